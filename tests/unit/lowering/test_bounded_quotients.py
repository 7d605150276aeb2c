"""Divisions by numbers that are known not to be tiny, and roots of such, as they are lowered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlirfuse.analysis.arithmetic.ranges import LEAST_DIVISOR, LEAST_SQUARE, MOST_DIVISOR
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
  gpu.func @k(%x: f32, %a: f32, %out: memref<1xf32>) kernel {{
    %c0 = arith.constant 0 : index
    %least = arith.constant {least:.9e} : f32
    %most = arith.constant {most} : f32
    %one = arith.constant 1.0 : f32
    %b = arith.maximumf %a, %least : f32
    %s = arith.minimumf %b, %most : f32
    %0 = {op} : f32
    memref.store %0, %out[%c0] : memref<1xf32>
    gpu.return
  }}
}}
"""

MOST = {"finite": f"{MOST_DIVISOR:.9e}", "any": "0x7F800000"}


def bounded(op: str, least: float, most: str) -> Compute:
    """What the lowered code computes for numbers that are brought between `least` and `most`, and for a dividend."""
    return lowered(KERNEL.format(op=op, least=least, most=MOST[most]), op, "lower-bounded-divisions")


@pytest.fixture(params=MOST)
def divide(request: pytest.FixtureRequest) -> tuple[Compute, str]:
    return bounded("arith.divf %x, %s", LEAST_DIVISOR, request.param), request.param


def expect_right(divide: tuple[Compute, str], x: Any, s: Any) -> None:
    """Correctly rounded but for tiny dividends, whose quotients are within 1.5 units in the last place."""
    compute, most = divide
    s = np.abs(s)
    fits = ~(s < LEAST_DIVISOR) & (~(s > MOST_DIVISOR) | (most == "any"))
    x, s = x[fits], s[fits]
    found = compute(s, x)
    tiny = np.abs(x) < 4 * SMALLEST_EXACT
    wrong = misrounded(found, x, s)
    with np.errstate(all="ignore"):
        unit = np.maximum(np.spacing(np.abs(x / s)), 2.0**-149)
        near = np.abs(found.astype(np.float64) - x.astype(np.float64) / s) <= 1.5 * unit
    wrong &= ~(tiny & near)
    assert not wrong.any(), [(a.hex(), b.hex(), c.hex()) for a, b, c in zip(x, s, found, strict=True)][wrong.argmax()]


def test_edges(divide: tuple[Compute, str]) -> None:
    """Zeros, infinities, NaN, subnormal and the largest numbers, and those beside powers of two, by each other."""
    x, s = (pairs.ravel() for pairs in np.meshgrid(edges(), edges()))
    expect_right(divide, x, s)


def test_random_numbers(divide: tuple[Compute, str]) -> None:
    expect_right(divide, random_numbers(1 << 20, 0), random_numbers(1 << 20, 1))


def test_quotients_near_the_largest_number(divide: tuple[Compute, str]) -> None:
    expect_right(divide, *quotients_near_the_largest(1 << 18))


@pytest.mark.parametrize("above_one", [False, True])
@pytest.mark.parametrize("offset", [1, -1])
def test_quotients_near_the_middle_of_two_numbers(divide: tuple[Compute, str], offset: int, above_one: bool) -> None:
    x, s = hard_pairs(np.arange(2**23 + 1, 2**24, 14), offset, above_one=above_one)
    for scale in (2.0**-60, 1.0):
        expect_right(divide, x, s * np.float32(scale))


@pytest.mark.parametrize("most", MOST)
def test_reciprocals(most: str) -> None:
    """Significands, at both ends of the range and at 1."""
    compute = bounded("arith.divf %one, %s", LEAST_DIVISOR, most)
    significands = (np.arange(2**23, 2**24, 5) * 2.0**-23).astype(np.float32)
    for power in (-64, 0, 125 if most == "finite" else 127):
        s = significands * np.float32(2.0**power)
        right = (1.0 / s.astype(np.float64)).astype(np.float32)
        np.testing.assert_array_max_ulp(compute(s), right, 1)
        assert power == 127 or (compute(s) == right).mean() > 0.999  # subnormal results are rounded twice
    limits = np.array([np.nan, MOST_DIVISOR] if most == "finite" else [np.nan, np.inf], np.float32)
    np.testing.assert_array_equal(compute(limits), 1 / limits)


@pytest.mark.parametrize("most", MOST)
def test_roots(most: str) -> None:
    """Significands with even and odd powers of two, at both ends of the range and at 1."""
    compute = bounded("math.sqrt %s", LEAST_SQUARE, most)
    significands = (np.arange(2**23, 2**24, 5) * 2.0**-23).astype(np.float32)
    for power in (-100, -99, 0, 1, 124, 125):
        s = significands * np.float32(2.0**power)
        np.testing.assert_array_max_ulp(compute(s), np.sqrt(s), 1)
        assert (compute(s) == np.sqrt(s)).mean() > 0.999  # the GPU's are all right: tests/gpu/programs/test_rounding.py
    limits = np.array([np.nan, MOST_DIVISOR] if most == "finite" else [np.nan, np.inf], np.float32)
    np.testing.assert_array_equal(compute(limits), np.sqrt(limits))
