"""What short sequences of instructions stand for on the GPU, for every kind of number: IEEE's casts and divisions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.numerics.quotients import edges, hard_pairs, misrounded, quotients_near_the_largest, random_numbers

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

TINIEST = float(np.finfo(np.float32).smallest_subnormal)
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, TINIEST, -3 * TINIEST, 2.0**-126, 3.4e38)
"""Divisors besides powers of two and their neighbours."""


def test_every_bfloat16_is_widened() -> None:
    x = np.arange(1 << 16, dtype=np.uint16).reshape(32, 2048).view(ml_dtypes.bfloat16)
    result = to_numpy(mf.fuse(lambda x: x.astype(mf.float32))(to_torch(x)))
    expected = x.astype(np.float32)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(result), ~number)
    np.testing.assert_array_equal(result.view(np.uint32)[number], expected.view(np.uint32)[number])


@pytest.mark.parametrize("target", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("by", ["rows", "elements"])
def test_numbers_are_divided_by_any_number(by: str, target: str) -> None:
    """Within a unit of the last place of the exact quotient, rounded; zeros, infinities and NaN as IEEE has them.

    By one number a row, whose reciprocal its elements share, and by one each.
    """
    powers = np.exp2(np.arange(-149, 128, dtype=np.float64))
    divisors = [*SPECIAL, *powers, *(powers[24:] * (1 + 2.0**-23)), *(-powers[24:] * (2 - 2.0**-23))]
    s = np.array(divisors, dtype=np.float32)[:, None]
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((len(s), 64)) * np.exp2(rng.integers(-100, 100, (len(s), 64)))).astype(np.float32)
    x[:, :5] = [0.0, -0.0, np.inf, np.nan, -1.0]
    if by == "elements":
        s = np.repeat(s, x.shape[1], axis=1)
    result = to_numpy(mf.fuse(lambda x, s: (x / s).astype(target))(to_torch(x), to_torch(s)))
    dtype = np.dtype(getattr(ml_dtypes, target, target))
    with np.errstate(all="ignore"):
        exact = (x.astype(np.float64) / s).astype(np.float32)
        expected, single = exact.astype(dtype).astype(np.float64), exact.astype(np.float64)
    found = result.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    finite = np.isfinite(found) & np.isfinite(expected)
    largest = float(ml_dtypes.finfo(dtype).max)
    overflows = np.isfinite(single) & (np.abs(single) > largest * (1 - 2.0**-7))  # either side of the last number
    np.testing.assert_array_equal(finite | overflows, np.isfinite(expected) | overflows)
    unit = 2.0 * float(ml_dtypes.finfo(dtype).eps)
    smallest = float(ml_dtypes.finfo(dtype).smallest_subnormal)
    error = np.abs(found[finite] - expected[finite])
    assert (error <= unit * np.abs(expected[finite]) + 2 * smallest).all()
    assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()


@pytest.mark.parametrize("kind", ["edges", "near the largest", "near the middle", "random"])
def test_quotients_of_single_precision_are_correctly_rounded(kind: str) -> None:
    """By one divisor a row, whose reciprocal four dividends share; see `tests/support/numerics/quotients.py`."""
    if kind == "edges":
        x, s = (pairs.ravel() for pairs in np.meshgrid(edges(), edges()))
    elif kind == "near the largest":
        x, s = quotients_near_the_largest(1 << 22)
    elif kind == "near the middle":
        divisors = np.arange(2**23 + 1, 2**24, 6)
        sets = [hard_pairs(divisors, n, above_one=above) for n in (-3, -1, 1, 3) for above in (False, True)]
        x, s = (np.concatenate(parts) for parts in zip(*sets, strict=True))
    else:
        x, s = random_numbers(1 << 22, 0), random_numbers(1 << 22, 1)
    with np.errstate(all="ignore"):
        rows = np.stack([x, -x, x * np.float32(2.0**-40), x * np.float32(0.7)], axis=1)
    fused = mf.fuse(lambda x, s: x / s)
    found = to_numpy(fused(to_torch(rows), to_torch(s[:, None])))
    wrong = misrounded(found, rows, s[:, None])
    row, column = np.unravel_index(wrong.argmax(), wrong.shape)
    assert not wrong.any(), (rows[row, column].hex(), s[row].hex(), found[row, column].hex(), int(wrong.sum()))


@pytest.mark.parametrize("constant", [3.0, -3.0, 0.1, 1.0 - 2.0**-24, -1e-19, 1e19])
def test_quotients_by_a_constant_are_correctly_rounded(constant: float) -> None:
    s = np.float32(constant)
    largest = (np.float32(2.0**128 - 2.0**104) * min(abs(s), np.float32(1.0))).view(np.int32)
    near = (largest + np.arange(-8, 9 if abs(s) < 1 else 1, dtype=np.int32)).view(np.float32)
    x = np.concatenate([edges(), near, -near, random_numbers(1 << 22, 0)])
    fused = mf.fuse(lambda x: x / constant)
    wide = x[: len(x) // 8 * 8].reshape(-1, 8)
    for found, given in ((fused(to_torch(x)), x), (fused(to_torch(wide)[:, :7]), wide[:, :7])):  # vectors, and numbers
        result = to_numpy(found)
        wrong = misrounded(result, given, np.full_like(given, s))
        assert not wrong.any(), (given[wrong][0].hex(), result[wrong][0].hex(), int(wrong.sum()))


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:overflow")
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_integers_are_divided_by_any_number(dtype: str) -> None:
    """Division by 0, and of the least number by -1, as NumPy has it, and what else is computed of the divisor."""
    limits = np.iinfo(dtype)
    numbers = np.array([limits.min, limits.min + 1, -3, -2, -1, 0, 1, 2, 3, limits.max], dtype)
    a, b = (x.copy() for x in np.meshgrid(numbers, numbers))
    fused = mf.fuse(lambda a, b: (a // b, a % b, b != 0, (a == limits.min) & (b == -1), 3 % b))
    results = fused(to_torch(a), to_torch(b))
    expected = (a // b, a % b, b != 0, (a == limits.min) & (b == -1), np.remainder(np.array(3, dtype), b))
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(to_numpy(result), wanted)


def test_extremes_of_doubles() -> None:
    """NaN wherever one is, and zeros by their sign."""
    numbers = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e308])
    a, b = (each.ravel() for each in np.meshgrid(numbers, numbers))
    most, least = mf.fuse(lambda a, b: (mf.maximum(a, b), mf.minimum(a, b)))(cupy.asarray(a), cupy.asarray(b))
    for found, expected, sign in ((most, np.maximum(a, b), False), (least, np.minimum(a, b), True)):
        np.testing.assert_array_equal(found.get(), expected)
        zeros = (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
        assert (np.signbit(found.get()[zeros]) == sign).all()
