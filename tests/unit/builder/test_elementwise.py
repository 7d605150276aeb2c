"""Elementwise functions give NumPy's numbers in NumPy's dtypes."""

from __future__ import annotations

import math
import operator

import ml_dtypes
import numpy as np
import pytest

from mlirfuse import builder as mf
from mlirfuse.errors import DTypeError
from tests.support.harnesses.builder_harness import ops, run, spec_of, traced

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.1, 3.7, -7.3, 65504.0, 1e-7, np.inf, -np.inf, np.nan])
FLOATS = [np.float16, np.float32, np.float64]


def pairs(dtype) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.meshgrid(SPECIAL, SPECIAL)
    with np.errstate(all="ignore"):
        return a.astype(dtype), b.astype(dtype)


def agree(actual: np.ndarray, expected: np.ndarray, ulps: int = 0) -> None:
    """Same dtype, and same values to that many units in the last place of the dtype."""
    assert actual.dtype == expected.dtype
    if ulps:
        tolerance = ulps * float(np.finfo(expected.dtype).eps)
        np.testing.assert_allclose(actual.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=1e-7)
    else:
        np.testing.assert_array_equal(actual, expected)


EXACT_BINARY = {
    mf.add: np.add,
    mf.subtract: np.subtract,
    mf.multiply: np.multiply,
    mf.divide: np.divide,
    mf.maximum: np.maximum,
    mf.minimum: np.minimum,
    mf.floor_divide: np.floor_divide,
    mf.remainder: np.remainder,
    mf.equal: np.equal,
    mf.not_equal: np.not_equal,
    mf.less: np.less,
    mf.less_equal: np.less_equal,
    mf.greater: np.greater,
    mf.greater_equal: np.greater_equal,
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("fn", EXACT_BINARY, ids=lambda fn: fn.__name__)
def test_exact_binary(fn, dtype) -> None:
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        expected = EXACT_BINARY[fn](a, b)
    agree(run(fn, a, b), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_zeros_have_the_signs_of_numpy(dtype) -> None:
    """Quotients below one are zeros too; `agree` takes both zeros for equal."""
    numbers = np.array([0.0, -0.0, 0.25, -0.25, 1.0, -1.0, 2.5, -2.5, np.inf, -np.inf], dtype)
    a, b = np.meshgrid(numbers, numbers)
    quotient, rest, sign = run(lambda a, b: (a // b, a % b, mf.sign(a)), a, b)
    with np.errstate(all="ignore"):
        expected = (a // b, a % b, np.sign(a))
    for actual, wanted in zip((quotient, rest, sign), expected, strict=True):
        agree(actual, wanted)
        known = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(actual[known]), np.signbit(wanted[known]))


@pytest.mark.parametrize("fn", [mf.add, mf.subtract, mf.multiply, mf.divide], ids=lambda fn: fn.__name__)
def test_bfloat16_rounds_every_operation(fn) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 64)).astype(ml_dtypes.bfloat16)
    agree(run(fn, a, b), EXACT_BINARY[fn](a, b))


EXACT_UNARY = {
    mf.negative: np.negative,
    mf.abs: np.abs,
    mf.square: np.square,
    mf.sqrt: np.sqrt,
    mf.reciprocal: np.reciprocal,
    mf.floor: np.floor,
    mf.ceil: np.ceil,
    mf.round: np.round,
    mf.trunc: np.trunc,
    mf.sign: np.sign,
    mf.isnan: np.isnan,
    mf.isinf: np.isinf,
    mf.isfinite: np.isfinite,
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("fn", EXACT_UNARY, ids=lambda fn: fn.__name__)
def test_exact_unary(fn, dtype) -> None:
    with np.errstate(all="ignore"):
        x = SPECIAL.astype(dtype)
        expected = EXACT_UNARY[fn](x)
    agree(run(fn, x), expected)


CLOSE_UNARY = {
    mf.exp: np.exp,
    mf.exp2: np.exp2,
    mf.expm1: np.expm1,
    mf.log: np.log,
    mf.log2: np.log2,
    mf.log1p: np.log1p,
    mf.sin: np.sin,
    mf.cos: np.cos,
    mf.tanh: np.tanh,
    mf.rsqrt: lambda x: 1 / np.sqrt(x),
    mf.sigmoid: lambda x: 1 / (1 + np.exp(-x)),
    mf.erf: np.vectorize(math.erf),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("fn", CLOSE_UNARY, ids=lambda fn: fn.__name__)
def test_transcendental(fn, dtype) -> None:
    x = np.linspace(0.01, 4, 40).astype(dtype)
    agree(run(fn, x), CLOSE_UNARY[fn](x.astype(np.float64)).astype(dtype), ulps=4 if dtype != np.float16 else 1)


def test_sigmoid_far_from_zero() -> None:
    x = np.array([-np.inf, -1000, 1000, np.inf], np.float32)
    agree(run(mf.sigmoid, x), np.array([0, 0, 1, 1], np.float32))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_sigmoid_is_subnormal_before_it_is_zero(dtype: str) -> None:
    """exp(-x) overflows before exp(x), which the sigmoid is there, is 0."""
    lowest = {"float16": -20, "bfloat16": -95, "float32": -105, "float64": -750}[dtype]
    element = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = np.linspace(lowest, lowest + 30, 4096).astype(element)
    wide = x.astype(np.longdouble)
    expected = (np.exp(wide) / (1 + np.exp(wide))).astype(np.float64).astype(element)
    found = run(mf.sigmoid, x)
    info = ml_dtypes.finfo(element)
    unit = np.maximum(np.abs(expected.astype(np.float64)) * float(info.eps), float(info.smallest_subnormal))
    assert (np.abs(found.astype(np.float64) - expected.astype(np.float64)) <= 2 * unit).all()
    assert ((found == 0) == (expected == 0)).mean() > 0.999


def test_half_precision_functions_compute_in_float32() -> None:
    x = np.ones(4, np.float16)
    module = traced(mf.exp, spec_of(x))
    assert str(ops(module, "math.exp")[0].result.type) == "f32"
    module = traced(mf.add, spec_of(x), spec_of(x))
    assert str(ops(module, "arith.addf")[0].result.type) == "f16"


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize(
    ("op", "numpy_op"),
    [
        (operator.add, np.add),
        (operator.sub, np.subtract),
        (operator.mul, np.multiply),
        (operator.floordiv, np.floor_divide),
        (operator.mod, np.remainder),
        (operator.and_, np.bitwise_and),
        (operator.or_, np.bitwise_or),
        (operator.xor, np.bitwise_xor),
        (operator.lshift, np.left_shift),
        (operator.rshift, np.right_shift),
        (operator.lt, np.less),
        (mf.maximum, np.maximum),
        (mf.minimum, np.minimum),
    ],
)
def test_integers(op, numpy_op, dtype) -> None:
    a, b = np.meshgrid(np.arange(-7, 8, dtype=dtype), np.array([-3, -1, 1, 2, 5], dtype))
    agree(run(op, a, b), numpy_op(a, b))


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:overflow")
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("fn", [np.floor_divide, np.remainder])
def test_integer_division_is_defined_for_all_numbers(fn, dtype) -> None:
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    numbers = np.array([least, least + 1, -2, -1, 0, 1, 2, most], dtype)
    a, b = np.meshgrid(numbers, numbers)
    rule = getattr(mf, fn.__name__)
    agree(run(rule, a, b), fn(a, b))
    for divisor in (-3, -1, 0, 1, 3):
        agree(run(lambda x, n=divisor: rule(x, n), numbers), fn(numbers, dtype(divisor)))
        agree(run(lambda x, n=divisor: rule(n, x), numbers), fn(dtype(divisor), numbers))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("shift", [operator.lshift, operator.rshift])
def test_shifts_are_defined_for_all_numbers(shift, dtype) -> None:
    bits = np.iinfo(dtype).bits
    numbers = np.array([np.iinfo(dtype).min, -5, -1, 0, 1, 77, np.iinfo(dtype).max], dtype)
    a, b = np.meshgrid(numbers, np.array([-1, 0, 1, 3, bits - 1, bits, np.iinfo(dtype).max], dtype))
    agree(run(shift, a, b), shift(a, b))
    agree(run(lambda x: shift(dtype(3), x), b), shift(dtype(3), b))
    for count in (-1, 0, 4, bits - 1, bits):
        agree(run(lambda x, n=count: shift(x, n), numbers), shift(numbers, dtype(count)))


def test_shifts_by_a_known_number_are_not_guarded() -> None:
    module = traced(lambda x: (x << 4) >> 4, spec_of(np.ones(4, np.int8)))
    assert not ops(module, "arith.select")
    assert not ops(module, "arith.minui")


def test_floats_and_bools_are_not_shifted() -> None:
    for dtype in (np.float32, np.bool_):
        with pytest.raises(DTypeError, match="bitwise_left_shift"):
            run(lambda x: x << 1, np.ones(4, dtype))


def test_division_by_a_known_number_is_not_guarded() -> None:
    spec = spec_of(np.ones(4, np.int32))
    assert not ops(traced(lambda x: x // 3, spec), "arith.select")
    assert ops(traced(lambda x: 3 // x, spec), "arith.select")


def test_integer_unary() -> None:
    x = np.arange(-3, 4, dtype=np.int32)
    results = run(lambda x: (-x, abs(x), ~x, mf.sign(x), mf.floor(x), mf.isnan(x), mf.isfinite(x)), x)
    expected = (-x, abs(x), ~x, np.sign(x), x, np.isnan(x), np.isfinite(x))
    for actual, wanted in zip(results, expected, strict=True):
        agree(actual, wanted)


def test_integers_divide_as_float32() -> None:
    a, b = np.array([1, 7, -9], np.int32), np.array([2, 3, 4], np.int32)
    agree(run(operator.truediv, a, b), a.astype(np.float32) / b.astype(np.float32))


def test_logic() -> None:
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    results = run(lambda a, b: (a & b, a | b, a ^ b, ~a, mf.logical_and(a, b), mf.logical_or(a, b), a < b), a, b)
    for actual, wanted in zip(results, (a & b, a | b, a ^ b, ~a, a & b, a | b, ~a & b), strict=True):
        agree(actual, wanted)
    agree(run(lambda a, b: mf.logical_xor(mf.logical_not(a), b), a, b), ~a ^ b)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("power", [0, 1, 2, 3, 4, -1, -2, 0.5, -0.5, 1.5, 9, 2.0])
def test_known_powers(power, dtype) -> None:
    x = np.linspace(0.3, 3, 20).astype(dtype)
    expected = (x.astype(np.float64) ** power).astype(dtype)
    agree(run(lambda x: x**power, x), expected, ulps=4 if dtype != np.float16 else 1)


def test_square_is_one_multiplication() -> None:
    x = np.ones(4, np.float16)
    module = traced(lambda x: x**2, spec_of(x))
    (multiply,) = ops(module, "arith.mulf")
    assert str(multiply.result.type) == "f16"
    assert multiply.operands[0] == multiply.operands[1]
    assert not ops(module, "math.powf")
    module = traced(lambda x: x**8, spec_of(x))
    assert len(ops(module, "arith.mulf")) == 3


def test_unknown_powers() -> None:
    x, y = np.linspace(0.5, 2, 8, dtype=np.float32), np.linspace(-2, 2, 8, dtype=np.float32)
    agree(run(operator.pow, x, y), (x.astype(np.float64) ** y).astype(np.float32), ulps=4)
    agree(run(lambda y: 2**y, y), (2.0 ** y.astype(np.float64)).astype(np.float32), ulps=4)
    n = np.arange(-4, 5, dtype=np.int32)
    agree(run(lambda n: n**11, n), n**11)


def test_where_and_clip() -> None:
    x = np.array([[-2, np.nan, 3], [0, 9, -1]], np.float32)
    row, column = np.array([1, 2, 3], np.float32), np.array([[True], [False]])
    agree(run(mf.where, column, x, row), np.where(column, x, row))
    agree(run(lambda c, x: mf.where(c, x, 0.0), x > 0, x), np.where(x > 0, x, np.float32(0)))
    agree(run(lambda c: mf.where(c, 1.0, 0.0), column), np.where(column, np.float32(1), np.float32(0)))
    agree(run(lambda c: mf.where(c, 1, 0), column), np.where(column, 1, 0))
    agree(run(lambda x: mf.clip(x, -1, 2), x), np.clip(x, -1, 2))
    agree(run(lambda x: mf.clip(x, max=2), x), np.clip(x, None, 2))
    agree(run(lambda x, low: mf.clip(x, low), x, row), np.clip(x, row, None))


CASTS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8, np.int32, np.int64, np.bool_]


@pytest.mark.parametrize("target", CASTS)
@pytest.mark.parametrize("source", CASTS)
def test_astype(source, target) -> None:
    x = np.array([0, 1, -1, 2.5, -2.5, 100.7, 0.3]).astype(source)
    agree(run(lambda x: x.astype(target), x), x.astype(target))


def test_astype_to_the_same_dtype_builds_nothing() -> None:
    module = traced(lambda x: x.astype("float32").astype("float32"), mf.TensorSpec(4, "float16"))
    assert len(ops(module, "linalg.generic")) == 1


def test_bool_conversion_of_nan_is_true() -> None:
    agree(run(lambda x: x.astype("bool"), np.array([np.nan, 0.0, -0.0])), np.array([True, False, False]))


def test_creation() -> None:
    x = np.ones((2, 3), np.float16)
    results = run(lambda x: (mf.zeros_like(x), mf.ones_like(x, dtype="int32"), mf.full_like(x, 0.1)), x)
    expected = (np.zeros_like(x), np.ones_like(x, dtype=np.int32), np.full_like(x, 0.1))
    for actual, wanted in zip(results, expected, strict=True):
        agree(actual, wanted)


def test_creation_of_bools_is_of_what_is_not_zero() -> None:
    x = np.ones(3, np.int8)
    for fill in (2, 256, 0.5, -0.0, 0, True, np.nan):
        agree(run(lambda x, fill=fill: mf.full_like(x, fill, dtype="bool"), x), np.full_like(x, fill, dtype=bool))


@pytest.mark.parametrize(
    ("fn", "dtype", "error"),
    [
        (lambda a: mf.logical_and(a, a), "float32", DTypeError),
        (lambda a: a & a, "float32", DTypeError),
        (lambda a: a + a, "bool", DTypeError),
        (lambda a: a**a, "bool", DTypeError),
        (lambda a: mf.isnan(a), "bool", DTypeError),
        (lambda a: mf.where(a, a, a), "float32", DTypeError),
        (lambda a: a**-1, "int32", DTypeError),
        (lambda a: a**a, "int32", mf.UnsupportedError),
        (lambda a: a + 300, "int8", DTypeError),
        (lambda a: a + True, "float32", DTypeError),
        (lambda a: mf.full_like(a, 300), "int8", DTypeError),
        (lambda a: mf.full_like(a, 300.0), "int8", DTypeError),
        (lambda a: mf.full_like(a, float("nan")), "int32", DTypeError),
    ],
)
def test_wrong_kinds(fn, dtype, error) -> None:
    with pytest.raises(error, match=r"builder/test_elementwise\.py:"):
        traced(fn, mf.TensorSpec(4, dtype))
