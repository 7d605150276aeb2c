"""Divisions by any number, and roots of any, as they are lowered without a branch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.numerics.float_code import Compute, lowered
from tests.support.numerics.quotients import (
    SMALLEST_EXACT,
    edges,
    hard_pairs,
    misrounded,
    quotients_near_the_largest,
    random_numbers,
)

KERNEL = """
gpu.module @k {{
  gpu.func @k(%x: f32, %s: f32, %out: memref<1xf32>) kernel {{
    %c0 = arith.constant 0 : index
    %one = arith.constant {one} : f32
    %0 = {op} : f32
    memref.store %0, %out[%c0] : memref<1xf32>
    gpu.return
  }}
}}
"""


def computing(op: str, one: float = 1.0) -> Compute:
    """What the lowered code computes for a divisor, or for what a root is of, and for a dividend."""
    return lowered(KERNEL.format(op=op, one=one), op, "lower-scaled-divisions")


@pytest.fixture
def divide() -> Compute:
    return computing("arith.divf %x, %s")


def expect_right(divide: Compute, x: Any, s: Any) -> None:
    """Correctly rounded but for tiny dividends, and for tiny quotients, as `misrounded` has it."""
    found = divide(s, x)
    wrong = misrounded(found, x, s)
    with np.errstate(all="ignore"):
        exact = x.astype(np.float64) / s
        unit = np.maximum(np.spacing(np.abs(exact).astype(np.float32)), np.float32(2.0**-149))
        near = np.abs(found.astype(np.float64) - exact) <= 1.5 * unit
    wrong &= ~((np.abs(x) < 4 * SMALLEST_EXACT) & near)
    assert not wrong.any(), [(a.hex(), b.hex(), c.hex()) for a, b, c in zip(x, s, found, strict=True)][wrong.argmax()]


def test_edges(divide: Compute) -> None:
    """Zeros, infinities, NaN, subnormal and the largest numbers, and those beside powers of two, by each other."""
    x, s = (pairs.ravel() for pairs in np.meshgrid(edges(), edges()))
    expect_right(divide, x, s)


def test_signs_of_zeros(divide: Compute) -> None:
    """Quotients of zero, and by zero and infinity, have the sign of IEEE's."""
    numbers = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, 2.0**-149, -(2.0**-149)], np.float32)
    x, s = (pairs.ravel() for pairs in np.meshgrid(numbers, numbers))
    with np.errstate(all="ignore"):
        right = x / s
    real = ~np.isnan(right)
    np.testing.assert_array_equal(np.signbit(divide(s, x))[real], np.signbit(right)[real])


def test_random_numbers(divide: Compute) -> None:
    expect_right(divide, random_numbers(1 << 20, 0), random_numbers(1 << 20, 1))


def test_quotients_near_the_largest_number(divide: Compute) -> None:
    expect_right(divide, *quotients_near_the_largest(1 << 18))


@pytest.mark.parametrize("above_one", [False, True])
@pytest.mark.parametrize("offset", [1, -1])
def test_quotients_near_the_middle_of_two_numbers(divide: Compute, offset: int, above_one: bool) -> None:
    x, s = hard_pairs(np.arange(2**23 + 1, 2**24, 14), offset, above_one=above_one)
    for scale in (-(2.0**-110), -(2.0**-60), 1.0, 2.0**100):
        expect_right(divide, x, s * np.float32(scale))


@pytest.mark.parametrize("one", [1.0, -2.0])
def test_reciprocals(one: float) -> None:
    """Significands, of divisors that are scaled and others."""
    compute = computing("arith.divf %one, %s", one)
    significands = (np.arange(2**23, 2**24, 5) * 2.0**-23).astype(np.float32)
    for power in (-126, -100, 0, 100, 125, 127):
        s = significands * np.float32(2.0**power)
        right = (one / s.astype(np.float64)).astype(np.float32)
        np.testing.assert_array_max_ulp(compute(s), right, 1)
        assert power == 127 or (compute(s) == right).mean() > 0.999  # subnormal results are rounded twice
    limits = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 2.0**-149], np.float32)
    with np.errstate(divide="ignore", over="ignore"):
        np.testing.assert_array_equal(compute(limits), np.float32(one) / limits)


def test_roots() -> None:
    """Significands with even and odd powers of two, of numbers that are scaled and others, and what is special."""
    compute = computing("math.sqrt %s")
    significands = (np.arange(2**23, 2**24, 5) * 2.0**-23).astype(np.float32)
    for power in (-126, -125, -101, -100, -99, 0, 1, 126, 127):
        s = significands * np.float32(2.0**power)
        np.testing.assert_array_max_ulp(compute(s), np.sqrt(s), 1)
        assert (compute(s) == np.sqrt(s)).mean() > 0.999  # the GPU's are all right: tests/gpu/programs/test_rounding.py
    subnormal = np.arange(1, 2**23, 1013).astype(np.float32) * np.float32(2.0**-149)
    np.testing.assert_array_max_ulp(compute(subnormal), np.sqrt(subnormal), 1)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, -(2.0**-149)], np.float32)
    with np.errstate(invalid="ignore"):
        right = np.sqrt(special)
    np.testing.assert_array_equal(compute(special), right)
    assert list(np.signbit(compute(special)[:2])) == [False, True]
