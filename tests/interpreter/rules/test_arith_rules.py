"""Scalar ops against values worked out by hand: rounding, wrapping, signedness, NaN."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

BF16 = np.dtype(ml_dtypes.bfloat16)
NAMES = {"f16": np.float16, "bf16": BF16, "f32": np.float32, "f64": np.float64, "i1": np.bool_, "i8": np.int8,
         "i32": np.int32, "i64": np.int64}  # fmt: skip
NAN, INF = math.nan, math.inf


def evaluate(run_threads, op: str, operands: list, types: list[str], result: str) -> np.ndarray:
    """Applies one op, `op` being its text with the operands as %v0, %v1, ..., in 1 thread."""
    inputs = [np.array([value]).astype(NAMES[name]) for value, name in zip(operands, types, strict=True)]
    out = np.zeros(1, NAMES[result])
    body = "".join(f"%v{k} = memref.load %in{k}[%t] : memref<1x{name}>\n" for k, name in enumerate(types))
    body += f"%r = {op}\nmemref.store %r, %out0[%t] : memref<1x{result}>"
    run_threads(body, inputs, [out], threads=1)
    return out[0]


@pytest.mark.parametrize(
    ("name", "type_", "a", "b", "expected"),
    [
        ("addi", "i8", 127, 1, -128),
        ("addi", "i1", True, True, False),
        ("subi", "i32", 3, 5, -2),
        ("muli", "i32", 1 << 30, 4, 0),
        ("divsi", "i32", -7, 2, -3),
        ("divsi", "i32", 7, -2, -3),
        ("remsi", "i32", -7, 2, -1),
        ("remsi", "i32", 7, -2, 1),
        ("floordivsi", "i32", -7, 2, -4),
        ("ceildivsi", "i32", -7, 2, -3),
        ("ceildivsi", "i32", 7, 2, 4),
        ("divui", "i8", -1, 2, 127),
        ("remui", "i8", -1, 16, 15),
        ("ceildivui", "i8", -1, 2, -128),
        ("andi", "i32", 12, 10, 8),
        ("ori", "i32", 12, 10, 14),
        ("xori", "i32", 12, 10, 6),
        ("shli", "i32", 3, 4, 48),
        ("shli", "i32", 3, 32, 0),
        ("shrsi", "i32", -16, 2, -4),
        ("shrui", "i8", -16, 4, 15),
        ("maxsi", "i32", -1, 1, 1),
        ("maxui", "i32", -1, 1, -1),
        ("minsi", "i32", -1, 1, -1),
        ("minui", "i32", -1, 1, 1),
        ("minsi", "i1", True, False, True),
        ("addf", "f16", 2048, 1, 2048),
        ("addf", "bf16", 256, 1, 256),
        ("mulf", "f16", 300, 300, INF),
        ("divf", "f32", 1, 3, np.float32(1) / np.float32(3)),
        ("remf", "f32", -7, 2, -1),
        ("maximumf", "f32", 1, NAN, NAN),
        ("maxnumf", "f32", 1, NAN, 1),
        ("minimumf", "bf16", NAN, 1, NAN),
        ("minnumf", "bf16", NAN, 1, 1),
    ],
)
def test_binary(run_threads, name, type_, a, b, expected):
    result = evaluate(run_threads, f"arith.{name} %v0, %v1 : {type_}", [a, b], [type_, type_], type_)
    np.testing.assert_equal(np.asarray(result).astype(np.float64), np.float64(expected))


@pytest.mark.parametrize(
    ("predicate", "type_", "a", "b", "expected"),
    [
        ("slt", "i8", -1, 1, True),
        ("ult", "i8", -1, 1, False),
        ("sge", "i8", 3, 3, True),
        ("ugt", "i32", -1, 1, True),
        ("slt", "i1", True, False, True),
        ("ult", "i1", False, True, True),
        ("ne", "i64", 1, 2, True),
        ("oeq", "f32", NAN, NAN, False),
        ("ueq", "f32", NAN, 1, True),
        ("one", "f32", NAN, 1, False),
        ("une", "f32", NAN, 1, True),
        ("olt", "f32", NAN, 1, False),
        ("ult", "f32", NAN, 1, True),
        ("oge", "f16", 2, 2, True),
        ("ord", "f32", 1, 2, True),
        ("uno", "bf16", NAN, 2, True),
    ],
)
def test_compare(run_threads, predicate, type_, a, b, expected):
    op = "cmpi" if type_.startswith("i") else "cmpf"
    result = evaluate(run_threads, f"arith.{op} {predicate}, %v0, %v1 : {type_}", [a, b], [type_, type_], "i1")
    assert bool(result) == expected


@pytest.mark.parametrize(
    ("name", "source", "value", "target", "expected"),
    [
        ("truncf", "f32", 1 + 2**-11, "f16", 1),
        ("truncf", "f32", 1 + 3 * 2**-11, "f16", 1 + 2**-9),
        ("truncf", "f32", 1 + 2**-8, "bf16", 1),
        ("truncf", "f32", 1e6, "f16", INF),
        ("extf", "bf16", 1.5, "f32", 1.5),
        ("sitofp", "i32", -3, "f32", -3),
        ("uitofp", "i8", -1, "f32", 255),
        ("fptosi", "f32", -2.9, "i32", -2),
        ("fptosi", "f32", 1e20, "i32", 2**31 - 1),
        ("fptosi", "f32", NAN, "i32", 0),
        ("fptosi", "f64", 1e30, "i64", 2**63 - 1),
        ("fptoui", "f32", -1.0, "i32", 0),
        ("fptoui", "f32", 4294967040.0, "i32", -256),
        ("extsi", "i8", -1, "i32", -1),
        ("extsi", "i1", True, "i32", -1),
        ("extui", "i8", -1, "i32", 255),
        ("extui", "i1", True, "i32", 1),
        ("trunci", "i32", 257, "i8", 1),
        ("trunci", "i32", 2, "i1", False),
        ("bitcast", "f32", 1.0, "i32", 0x3F800000),
        ("bitcast", "i32", 0x3F800000, "f32", 1.0),
    ],
)
def test_casts(run_threads, name, source, value, target, expected):
    result = evaluate(run_threads, f"arith.{name} %v0 : {source} to {target}", [value], [source], target)
    np.testing.assert_equal(np.asarray(result).astype(np.float64), np.float64(expected))


@pytest.mark.parametrize(
    ("name", "type_", "operands", "expected"),
    [
        ("rsqrt", "f32", [16.0], 0.25),
        ("rsqrt", "f16", [0.0], INF),
        ("sqrt", "f32", [2.0], math.sqrt(2)),
        ("exp", "f32", [1.0], math.e),
        ("exp2", "f16", [3.0], 8),
        ("log", "f32", [-1.0], NAN),
        ("log2", "bf16", [8.0], 3),
        ("tanh", "f32", [100.0], 1),
        ("erf", "f32", [0.5], math.erf(0.5)),
        ("powf", "f32", [2.0, 10.0], 1024),
        ("absf", "f16", [-1.5], 1.5),
        ("round", "f32", [2.5], 3),
        ("round", "f32", [-2.5], -3),
        ("roundeven", "f32", [2.5], 2),
        ("floor", "bf16", [-1.5], -2),
        ("copysign", "f32", [3.0, -0.0], -3),
        ("fma", "f32", [1 + 2**-12, 1 + 2**-12, -1 - 2**-11], 2**-24),
        ("atan2", "f32", [1.0, -1.0], 3 * math.pi / 4),
        ("acos", "f32", [0.0], math.pi / 2),
        ("asin", "f32", [1.0], math.pi / 2),
        ("atan", "f32", [1.0], math.pi / 4),
        ("acosh", "f64", [2.0], math.acosh(2)),
        ("asinh", "f64", [2.0], math.asinh(2)),
        ("atanh", "f64", [0.5], math.atanh(0.5)),
        ("cosh", "f32", [1.0], math.cosh(1)),
        ("sinh", "f32", [1.0], math.sinh(1)),
        ("cos", "f32", [math.pi], -1),
        ("sin", "f32", [math.pi / 2], 1),
        ("tan", "f64", [1.0], math.tan(1)),
        ("cbrt", "f32", [27.0], 3),
        ("ceil", "f16", [1.25], 2),
        ("trunc", "f32", [-1.75], -1),
        ("erfc", "f32", [0.5], math.erfc(0.5)),
        ("expm1", "f32", [1e-6], math.expm1(np.float32(1e-6))),
        ("log1p", "f32", [1e-6], math.log1p(np.float32(1e-6))),
        ("log10", "f32", [1000.0], 3),
    ],
)
def test_math(run_threads, name, type_, operands, expected):
    names = ", ".join(f"%v{k}" for k in range(len(operands)))
    result = evaluate(run_threads, f"math.{name} {names} : {type_}", operands, [type_] * len(operands), type_)
    np.testing.assert_allclose(np.float64(result), expected, rtol=2e-7)


@pytest.mark.parametrize(
    ("op", "operands", "types", "result", "expected"),
    [
        ("math.isnan %v0 : f32", [NAN], ["f32"], "i1", True),
        ("math.isinf %v0 : bf16", [-INF], ["bf16"], "i1", True),
        ("math.isfinite %v0 : f16", [INF], ["f16"], "i1", False),
        ("math.fpowi %v0, %v1 : f32, i32", [2.0, -2], ["f32", "i32"], "f32", 0.25),
        ("math.clampf %v0 to [%v1, %v2] : f32", [9.0, -1.0, 1.0], ["f32"] * 3, "f32", 1),
        ("arith.negf %v0 : f16", [1.5], ["f16"], "f16", -1.5),
        ("arith.index_castui %c8 : index to i32", [], [], "i32", 8),
    ],
)  # fmt: skip
def test_other_scalar_ops(run_threads, op, operands, types, result, expected):
    assert evaluate(run_threads, op, operands, types, result) == expected


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("affine.apply affine_map<(d0)[s0] -> ((d0 + 1) * s0)>(%c8)[%c2]", 18),
        ("affine.min affine_map<(d0)[s0] -> (d0 + 1, s0 * 2, 7)>(%c8)[%c2]", 4),
        ("affine.max affine_map<(d0) -> (d0 floordiv 3, d0 mod 3, d0 ceildiv 3)>(%c8)", 3),
    ],
)
def test_affine(run_threads, op, expected):
    out = np.zeros(1, np.int64)
    body = f"%q = {op}\n%r = arith.index_cast %q : index to i64\nmemref.store %r, %out0[%t] : memref<1xi64>"
    run_threads(body, [], [out], threads=1)
    assert out[0] == expected


def test_addition_with_carry(run_threads):
    total, carry = np.zeros(1, np.int8), np.zeros(1, bool)
    body = """
      %a = arith.constant -1 : i8
      %b2 = arith.constant 2 : i8
      %s, %c = arith.addui_extended %a, %b2 : i8, i1
      memref.store %s, %out0[%t] : memref<1xi8>
      memref.store %c, %out1[%t] : memref<1xi1>"""
    run_threads(body, [], [total, carry], threads=1)
    assert (total[0], carry[0]) == (1, True)


@pytest.mark.parametrize(
    ("name", "type_", "operands", "expected"),
    [("ctpop", "i8", [-1], 8), ("ctlz", "i32", [1], 31), ("ctlz", "i8", [0], 8), ("absi", "i32", [-3], 3),
     ("ipowi", "i32", [3, 4], 81), ("ipowi", "i32", [-1, -3], -1), ("ipowi", "i32", [2, -1], 0)],
)  # fmt: skip
def test_integer_math(run_threads, name, type_, operands, expected):
    names = ", ".join(f"%v{k}" for k in range(len(operands)))
    assert evaluate(run_threads, f"math.{name} {names} : {type_}", operands, [type_] * len(operands), type_) == expected


@pytest.mark.parametrize(("name", "nan"), [("bf16", "0x7FC0"), ("f16", "0x7E00")])
def test_constants_of_16_bits(run_threads, name, nan):
    out = np.zeros(3, NAMES[name])
    body = f"%v = arith.constant dense<[1.0, -2.5, {nan}]> : vector<3x{name}>\n"
    body += f"vector.store %v, %out0[%c0] : memref<3x{name}>, vector<3x{name}>"
    run_threads(body, [], [out], threads=1)
    np.testing.assert_equal(out.astype(np.float64), [1, -2.5, NAN])
