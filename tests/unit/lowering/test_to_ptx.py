"""gpu stage to PTX: every dtype and operation that a kernel may hold, for every architecture, through ptxas.

The NVPTX backend aborts the process on what it cannot select, so one test process runs each architecture's cases in a
child and reports what did not come back.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.errors import CompileError
from mlirfuse.lowering.ptx.assembler import assemble
from mlirfuse.target import TARGETS
from tests.support.harnesses.lowering_harness import compile_text, one_kernel
from tests.support.pairwise import FULL

FLOATS, INTS = ("f16", "bf16", "f32", "f64"), ("i8", "i16", "i32", "i64")
FLOAT_OPS = ("addf", "subf", "mulf", "divf", "remf", "maximumf", "minimumf", "maxnumf", "minnumf")
INT_OPS = (
    "addi",
    "subi",
    "muli",
    "divsi",
    "remsi",
    "floordivsi",
    "maxsi",
    "minsi",
    "andi",
    "ori",
    "xori",
    "shli",
    "shrsi",
)
MATH = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "sinh", "cosh", "atan", "asin", "acos", "erf")
MATH_ROUND = ("rsqrt", "sqrt", "cbrt", "absf", "floor", "ceil", "round", "roundeven", "trunc")


def binary(element: str, op: str) -> str:
    """`r = op(p, q)` on fragments of four."""
    return one_kernel(
        f"""
        %a = vector.load %p[%t] : memref<?x{element}>, vector<4x{element}>
        %b = vector.load %q[%t] : memref<?x{element}>, vector<4x{element}>
        %c = {op} %a, %b : vector<4x{element}>
        vector.store %c, %r[%t] : memref<?x{element}>, vector<4x{element}>""",
        ", ".join(f"%{name}: memref<?x{element}>" for name in "pqr"),
    )


def unary(element: str, op: str, result: str | None = None) -> str:
    """`r = op(p)` on fragments of four; `op` holds `%a` and its types."""
    result = result or element
    return one_kernel(
        f"""
        %a = vector.load %p[%t] : memref<?x{element}>, vector<4x{element}>
        %c = {op}
        vector.store %c, %r[%t] : memref<?x{result}>, vector<4x{result}>""",
        f"%p: memref<?x{element}>, %r: memref<?x{result}>",
    )


def reduction(element: str, kind: str) -> str:
    return one_kernel(
        f"""
        %a = vector.load %p[%t] : memref<?x{element}>, vector<4x{element}>
        %c = vector.reduction <{kind}>, %a : vector<4x{element}> into {element}
        memref.store %c, %r[%t] : memref<?x{element}>""",
        f"%p: memref<?x{element}>, %r: memref<?x{element}>",
    )


def cases() -> dict[str, str]:
    """Name to gpu-stage text."""
    made = {f"{op}.{t}": binary(t, f"arith.{op}") for t in FLOATS for op in FLOAT_OPS}
    made |= {f"{op}.{t}": binary(t, f"arith.{op}") for t in INTS for op in INT_OPS}
    made |= {f"{op}.i1": binary("i1", f"arith.{op}") for op in ("andi", "ori", "xori")}
    for t in FLOATS:
        vector = f"vector<4x{t}>"
        made[f"less.{t}"] = unary(t, f"arith.cmpf olt, %a, %a : {vector}", "i1")
        made[f"negf.{t}"] = unary(t, f"arith.negf %a : {vector}")
        made[f"sqrt.{t}"] = unary(t, f"math.sqrt %a : {vector}")
        made[f"fma.{t}"] = unary(t, f"math.fma %a, %a, %a : {vector}")
        made |= {f"sum.{kind}.{t}": reduction(t, kind) for kind in ("add", "mul", "maximumf", "minimumf")}
        made |= {f"{t}.to.{i}": unary(t, f"arith.fptosi %a : {vector} to vector<4x{i}>", i) for i in INTS}
        made |= {f"{i}.to.{t}": unary(i, f"arith.sitofp %a : vector<4x{i}> to {vector}", t) for i in INTS}
        made[f"i1.to.{t}"] = unary("i1", f"arith.uitofp %a : vector<4xi1> to {vector}", t)
        for u in FLOATS[FLOATS.index(t) + 1 :]:
            if {t, u} != {"f16", "bf16"}:
                made[f"{t}.to.{u}"] = unary(t, f"arith.extf %a : {vector} to vector<4x{u}>", u)
                made[f"{u}.to.{t}"] = unary(u, f"arith.truncf %a : vector<4x{u}> to {vector}", t)
    for t in ("f32", "f64"):
        made |= {f"{m}.{t}": unary(t, f"math.{m} %a : vector<4x{t}>") for m in (*MATH, *MATH_ROUND)}
        made |= {f"{m}.{t}": binary(t, f"math.{m}") for m in ("powf", "atan2", "copysign")}
        made[f"isnan.{t}"] = unary(t, f"math.isnan %a : vector<4x{t}>", "i1")
    for t in INTS:
        made[f"absi.{t}"] = unary(t, f"math.absi %a : vector<4x{t}>")
        made[f"less.{t}"] = unary(t, f"arith.cmpi slt, %a, %a : vector<4x{t}>", "i1")
        made |= {f"sum.{kind}.{t}": reduction(t, kind) for kind in ("add", "mul", "maxsi", "minsi")}
    return made


ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("chip", "step"), [("sm_90a", 1), ("sm_80", 2), ("sm_120", 4), *([("sm_90", 1), ("sm_100a", 1)] if FULL else [])]
)
def test_every_operation_assembles_without_local_memory(chip, step):
    """`make test` has each operation on one chip, and every `step`-th on the oldest and the newest."""
    step = 1 if FULL else step
    command = [sys.executable, "-m", "tests.unit.lowering.test_to_ptx", chip, str(step)]
    child = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    lines = [json.loads(line) for line in child.stdout.splitlines()]
    done = {line["case"] for line in lines if "problem" in line}
    begun = [line["case"] for line in lines if "problem" not in line]
    assert child.returncode == 0, f"{begun[-1:]} ended the process: {child.stderr[-2000:]}"
    assert done == set(list(cases())[::step])
    assert [line for line in lines if line.get("problem")] == []


@pytest.mark.parametrize("chip", TARGETS)
def test_whole_kernels_assemble(chip):
    """Rows in registers, of bools, and over a cluster or read again, a persistent loop of the grid, and a product with
    splits.
    """
    x, w = mf.TensorSpec((None, 4096), "float16"), mf.TensorSpec((None, 262144), "float32")
    bools = mf.TensorSpec((None, 4096), "bool")
    operands = [mf.TensorSpec((128, 16384), "bfloat16")] * 2
    for fn, specs in (
        (lambda x: x - mf.mean(x, axis=-1, keepdims=True), [x]),
        (lambda x: x - mf.mean(x, axis=-1, keepdims=True), [w]),
        (lambda x: (mf.sum(x, axis=1), mf.any(x, axis=1)), [bools]),
        (lambda x: (x - mf.mean(x, axis=-1, keepdims=True), mf.sum(x, axis=0)), [x]),
        (lambda x, w: x @ w.T, operands),
    ):
        for kernel in mf.fuse(fn, target=chip).lower(*specs).compile().resources:
            assert kernel.registers > 0


def ptx_of(text: str, chip: str = "sm_90a") -> str:
    return compile_text(text, chip)[0]["k"].ptx


def test_division_and_roots_are_exact():
    by_three = """
        %a = vector.load %x[%t] : memref<?xf32>, vector<4xf32>
        %three = arith.constant dense<3.0> : vector<4xf32>
        %c = arith.divf %a, %three : vector<4xf32>
        vector.store %c, %y[%t] : memref<?xf32>, vector<4xf32>"""
    assert ptx_of(one_kernel(by_three)).count("mul.rz.f32") == 4
    assert ptx_of(unary("f32", "math.sqrt %a : vector<4xf32>")).count("rsqrt.approx.ftz.f32") == 4
    assert ptx_of(unary("f64", "math.sqrt %a : vector<4xf64>")).count("sqrt.rn.f64") == 4


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("divide", [mf.remainder, mf.floor_divide])
def test_a_division_proves_nothing_about_its_divisor(divide, dtype: str):
    """LLVM concludes from `3 / x` that `x` is not 0, and folds `x != 0`, where the division is not guarded."""
    lowered = mf.fuse(lambda x: (divide(3, x), x != 0), target="sm_90a").lower(mf.TensorSpec((129, 7), dtype))
    ptx = lowered.compile().as_text("ptx")
    assert re.search(r"setp\.\w+\.\w+\s+%p\d+, %\w+, 0;", ptx)
    assert not re.search(r"st\.global\.\w+\s+\[%rd\d+\], 1;", ptx)


@pytest.mark.parametrize(
    ("flags", "instructions"), [("fastmath<contract>", {"fma.rn.f32"}), ("", {"mul.rn.f32", "add.rn.f32"})]
)
def test_marked_products_contract_and_others_round(flags: str, instructions: set[str]):
    body = f"""
        %a = memref.load %x[%t] : memref<?xf32>
        %p = arith.mulf %a, %a {flags} : f32
        %s = arith.addf %p, %a : f32
        memref.store %s, %y[%t] : memref<?xf32>"""
    assert set(re.findall(r"(?:fma|mul|add)\.\S*f32", ptx_of(one_kernel(body)))) == instructions


@pytest.mark.parametrize(("half", "chip"), [("f16", "sm_80"), ("f16", "sm_90a"), ("bf16", "sm_90a")])
def test_a_product_rounded_to_half_is_not_contracted(half, chip):
    text = one_kernel(
        f"""
        %a = vector.load %x[%t] {{alignment = 4 : i64}} : memref<?x{half}>, vector<2x{half}>
        %w = arith.extf %a : vector<2x{half}> to vector<2xf32>
        %p = arith.mulf %w, %w : vector<2xf32>
        %rounded = arith.truncf %p : vector<2xf32> to vector<2x{half}>
        %again = arith.extf %rounded : vector<2x{half}> to vector<2xf32>
        %s = arith.addf %again, %w : vector<2xf32>
        %n = arith.truncf %s : vector<2xf32> to vector<2x{half}>
        vector.store %n, %y[%t] {{alignment = 4 : i64}} : memref<?x{half}>, vector<2x{half}>""",
        f"%x: memref<?x{half}>, %y: memref<?x{half}>",
    )
    ptx = ptx_of(text, chip)
    assert f"mul.rn.{half}x2" in ptx  # with .rn, which ptxas may not contract either
    assert "fma" not in ptx


def test_minimum_propagates_nan():
    assert "min.NaN.f32" in ptx_of(binary("f32", "arith.minimumf"))
    assert "max.NaN.bf16x2" in ptx_of(binary("bf16", "arith.maximumf"))


def test_denormals_are_kept():
    assert ".ftz" not in ptx_of(binary("f32", "arith.addf"))


def test_half_fragments_move_sixteen_bytes_and_compute_in_registers():
    text = one_kernel(
        """
        %c8 = arith.constant 8 : index
        %i = arith.muli %t, %c8 : index
        %a = vector.load %p[%i] {alignment = 16 : i64, nontemporal = true} : memref<?xf16>, vector<8xf16>
        %w = arith.extf %a : vector<8xf16> to vector<8xf32>
        %e = math.exp %w : vector<8xf32>
        %s = arith.addf %e, %w : vector<8xf32>
        %n = arith.truncf %s : vector<8xf32> to vector<8xf16>
        vector.store %n, %r[%i] {alignment = 16 : i64, nontemporal = true} : memref<?xf16>, vector<8xf16>""",
        "%p: memref<?xf16>, %r: memref<?xf16>",
    )
    binaries, _, _ = compile_text(text)
    ptx = binaries["k"].ptx
    assert "ld.global.cg.nc.v4.b32" in ptx
    assert "st.global.cs.v4.b32" in ptx
    assert "cvt.rn.f16x2.f32" in ptx
    resources = assemble(binaries["k"])
    assert (resources.stack_bytes, resources.spill_store_bytes) == (0, 0)


def test_an_op_without_a_lowering_is_a_compile_error_at_its_place():
    body = """
        %a = memref.load %x[%t] : memref<?xf32>
        %s = gpu.subgroup_reduce add %a : (f32) -> f32
        memref.store %s, %y[%t] : memref<?xf32>"""
    with pytest.raises(CompileError, match=r"subgroup_reduce") as caught:
        compile_text(one_kernel(body))
    assert caught.value.where is not None


def _child(chip: str, step: int) -> None:
    """Compiles and assembles every `step`-th case; prints a line before and a line after each."""
    for name, text in list(cases().items())[::step]:
        print(json.dumps({"case": name}), flush=True)  # noqa: T201
        try:
            resources = assemble(compile_text(text, chip)[0]["k"])
            problem = "" if resources.stack_bytes == 0 else f"{resources.stack_bytes} bytes of local memory"
        except CompileError as error:
            problem = str(error)
        print(json.dumps({"case": name, "problem": problem}), flush=True)  # noqa: T201


if __name__ == "__main__":
    _child(sys.argv[1], int(sys.argv[2]))


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: (mf.astype(mf.where(x > x, 1e20, 1e30), mf.int32), x + 1), (33,)),
        (lambda x: (mf.astype(mf.mean(x, axis=0), mf.int64), mf.sum(x, axis=0) + 1), (0, 33)),
    ],
    ids=["beyond int32", "a mean of nothing"],
)
def test_what_is_no_integer_is_stored_all_the_same(function: Any, shape: tuple[int, ...]) -> None:
    """LLVM folds such casts to poison, whose store it removes."""
    compiled = mf.fuse(function, target="sm_90a").lower(mf.TensorSpec(shape, "float32")).compile()
    assert sum(binary.ptx.count("st.global") for binary in compiled.binaries.values()) >= 2
