"""Dividends and divisors in single precision whose quotients are hard to round, overflow, or are special."""

from __future__ import annotations

from typing import Any

import numpy as np

SMALLEST_EXACT = 2.0**-101
"""Quotients from here on must be correctly rounded; those below may be off by `UNITS_BELOW` in the last place."""

UNITS_BELOW = 1.5

_SPECIAL = [0.0, np.inf, np.nan, 2.0**-149, 3 * 2.0**-149, 2.0**-127, 2.0**-126, 2.0**128 - 2.0**104, 3.4e38, 1.7e38]
_EDGES = [m * 2.0**e for e in range(-126, 128) for m in (1, 1 + 2.0**-23, 4 / 3, 2 - 2.0**-23)]


def edges() -> Any:
    """Special numbers, and those next to the powers of two, of both signs: 1-D float32."""
    positive = np.array([*_SPECIAL, *_EDGES]).astype(np.float32)
    return np.concatenate([positive, -positive])


def hard_pairs(divisors: Any, offset: int, *, above_one: bool) -> tuple[Any, Any]:
    """Pairs whose quotients are as near the middle between two numbers as they can be: (dividends, divisors).

    With 24-bit integers x and s, `x 2^b = (2 m + 1) s + offset` for some m, where b is 24 if x >= s and 25 if not.

    Args:
        divisors: odd integers from 2^23 to 2^24.
        offset: a small odd integer; the quotient is `offset / (2 s)` units in the last place from the middle.
        above_one: whether the quotients are; both kinds need not exist for a divisor, those that do are returned.
    """
    s = np.asarray(divisors, dtype=np.int64)
    inverse = np.ones_like(s)  # of the power of two, modulo s
    for _ in range(24 if above_one else 25):
        inverse = np.where(inverse % 2, inverse + s, inverse) // 2
    x = offset * inverse % s
    x = x + s if above_one else x
    fits = (x >= 2**23) & (x < 2**24)
    return x[fits].astype(np.float32), s[fits].astype(np.float32)


def quotients_near_the_largest(count: int, seed: int = 0) -> tuple[Any, Any]:
    """Pairs whose quotients are within some units of where they overflow: (dividends, divisors)."""
    rng = np.random.default_rng(seed)
    s = rng.uniform(2.0**-20, 1.0, count).astype(np.float32)
    largest = (s * (2.0**128 - 2.0**104)).astype(np.float32)
    return (largest.view(np.int32) + rng.integers(-3, 4, count).astype(np.int32)).view(np.float32), s


def random_numbers(count: int, seed: int) -> Any:
    """Random bits as float32: all exponents are as frequent."""
    return np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint32).view(np.float32)


def misrounded(found: Any, x: Any, s: Any) -> Any:
    """Which quotients are wrong: a NaN, an infinity, the sign of a zero, or a rounding that is not allowed."""
    with np.errstate(all="ignore"):
        exact = x.astype(np.float64) / s.astype(np.float64)
        right = exact.astype(np.float32)  # one rounding: 53 bits are more than twice 24
        same = (found.view(np.uint32) == right.view(np.uint32)) | (np.isnan(found) & np.isnan(right))
        unit = np.maximum(np.spacing(np.abs(right)).astype(np.float64), 2.0**-149)
        near = np.abs(found.astype(np.float64) - exact) <= UNITS_BELOW * unit
    is_small = (np.abs(exact) < SMALLEST_EXACT) & (np.signbit(found) == np.signbit(exact))
    return ~(same | (is_small & near))
