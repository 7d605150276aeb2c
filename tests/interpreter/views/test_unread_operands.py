"""Operands of which nothing but the shape is used, and results that are one number: their extents are still right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf

FLOATS = np.array([[3.0, -2.0, 1.0], [0.0, 5.0, -0.5]], np.float32)
INTEGERS = np.array([[7, 8, 0], [-7, -7, 1]], np.int32)

Case = tuple[Callable[..., Any], Callable[..., Any], np.ndarray]


def minus_ones(x: Any) -> Any:
    """Numbers of the shape of x's columns, repeated: read by what reads x, and by what reads nothing."""
    ones = mf.broadcast_to(mf.full_like(x, -1), (1000, x.shape[1], 3))
    return 1000.0 * ones, x - ones


def all_or_x(x: Any) -> Any:
    """A choice that canonicalisation makes, of a number that is repeated in fewer dimensions than the tile has."""
    first = mf.where(x >= x, mf.all(x, axis=(0, 1)), x)
    return mf.broadcast_to(x.T, (2, 33, 2, 1)), first


CASES: dict[str, Case] = {
    "a predicate of integers": (
        lambda x: mf.isinf(x) ^ (x > 0),
        lambda x: x > 0,
        INTEGERS,
    ),
    "a power of zero": (lambda x: x * x**0, lambda x: x, FLOATS),
    "a power of zero in three dimensions": (lambda x: x**0 / x, lambda x: 1 / x, FLOATS[:, :, None] + 8),
    "a condition": (lambda x: mf.where(x**0 > 0, 1000.0, x), lambda x: np.full_like(x, 1000), FLOATS),
    "a transposed operand": (
        lambda x: mf.isfinite(mf.permute_dims(x, (0, 2, 1, 3))),
        lambda x: np.ones((2, 1, 3, 1), bool),
        INTEGERS.reshape(2, 3, 1, 1),
    ),
    "results of one number": (
        minus_ones,
        lambda x: (np.full((1000, 2, 3), -1000.0), np.broadcast_to(x + 1, (1000, 2, 3))),
        FLOATS[:, :1][None],
    ),
    "a count of elements that is a view's size": (
        lambda x: mf.var(mf.reshape(x, (1, -1)), axis=(0, 1), correction=1),
        lambda x: x.var(ddof=1),
        INTEGERS,
    ),
    "a shape of merged dimensions": (
        lambda x: mf.reshape(x, (-1, 1)) ** 0,
        lambda x: np.ones((6, 1)),
        FLOATS[:, :, None],
    ),
    "a shape of merged dimensions of a copy": (
        lambda x: (mf.reshape(x, (-1, 1)) ** 0, mf.reshape(x, (-1,)) ** 0),
        lambda x: (np.ones((6, 1)), np.ones(6)),
        np.ascontiguousarray(FLOATS.T[None]).T,
    ),
    "a power of zero beside what reads the same array": (
        lambda x: (x**0, x**2),
        lambda x: (np.ones_like(x), x * x),
        FLOATS,
    ),
    "a power of zero of a value beside the value": (
        lambda x: ((x * 3) ** 0, x * 3),
        lambda x: (np.ones_like(x), x * 3),
        FLOATS,
    ),
    "two predicates of integers": (
        lambda x: (mf.isfinite(x), mf.isnan(x)),
        lambda x: (np.isfinite(x), np.isnan(x)),
        INTEGERS,
    ),
    "a number for a row": (
        all_or_x,
        lambda x: (np.broadcast_to(x.T, (2, 33, 2, 1)), np.full((1, 2), x.all())),
        np.array([[False, True]]),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_operands_that_only_have_a_shape(name: str) -> None:
    fn, reference, x = CASES[name]
    with np.errstate(all="ignore"):
        wanted = reference(x)
    results = mf.fuse(fn, target="interpret")(x)
    for result, right in zip(*((r if isinstance(r, tuple) else (r,)) for r in (results, wanted)), strict=True):
        assert result.shape == np.shape(right)
        np.testing.assert_allclose(result, right, rtol=1e-6)
