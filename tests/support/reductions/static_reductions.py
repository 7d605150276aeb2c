"""Reductions over static extents that no block holds, which all blocks, or those of a cluster, share."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirfuse as mf
from tests.support.reductions.numerics import DTYPES
from tests.support.views.array_cases import ArrayCase


class Case(ArrayCase):
    """One of random numbers of both signs."""

    def arrays(self, seed: int) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        return [rng.standard_normal(shape).astype(DTYPES[self.dtype]) for shape in self.shapes]

    def check(self, result: np.ndarray, arrays: list[np.ndarray]) -> None:
        expected = self.expected(arrays)
        # Sums of random numbers of both signs: an error is that of the sum of their sizes.
        tolerance = {"float32": 3e-6, "float16": 1e-3, "bfloat16": 8e-3}[self.dtype]
        np.testing.assert_allclose(result.astype(np.float64), expected, atol=tolerance * np.abs(expected).max() + 1e-3)


def total(x: Any) -> Any:
    return mf.sum(x * x)


def extremes(x: Any) -> Any:
    return mf.max(x) - mf.min(x)


def largest_of_columns(x: Any) -> Any:
    return mf.max(x, axis=0)


def one_row(x: Any, w: Any) -> Any:
    return mf.matmul(x, w, dtype=mf.float32)


def over_the_second(x: Any) -> Any:
    return mf.sum(x.astype(mf.float32), axis=1)


def softmax(x: Any) -> Any:
    h = x - mf.max(x, axis=-1, keepdims=True)
    e = mf.exp(h)
    return e / mf.sum(e, axis=-1, keepdims=True)


def softmax_of_columns(x: Any) -> Any:
    h = x.astype(mf.float32)
    e = mf.exp(h - mf.max(h, axis=1, keepdims=True))
    return e / mf.sum(e, axis=1, keepdims=True)


def below_the_largest(x: Any) -> Any:
    """Columns relative to their largest numbers, and then rows: that makes the number of rows static."""
    return softmax(x - mf.max(x, axis=0))


def _softmax_of_columns(x: np.ndarray) -> np.ndarray:
    return np.asarray(_softmax(x.swapaxes(1, 2)).swapaxes(1, 2))


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


LONG = 2**18 + 4
"""Elements of a row in float32 that no cluster of eight holds in registers."""

CASES = {
    "one long row": Case(total, ((LONG,),), "float32", lambda x: np.sum(x * x)),
    "one long odd row": Case(total, ((LONG + 1,),), "float32", lambda x: np.sum(x * x)),
    "two reductions": Case(extremes, ((2 * LONG,),), "float16", lambda x: x.max() - x.min()),
    "columns": Case(largest_of_columns, ((2000, 70),), "bfloat16", lambda x: x.max(0)),
    "one row times a matrix": Case(one_row, ((1, 4100), (4100, 40)), "float16", lambda x, w: x @ w),
    "middle": Case(over_the_second, ((3, 1100, 264),), "float16", lambda x: x.sum(1)),
    "narrow middle": Case(over_the_second, ((5, 4100, 8),), "bfloat16", lambda x: x.sum(1)),
    "short middle": Case(over_the_second, ((9, 32, 264),), "float16", lambda x: x.sum(1)),
    "short columns": Case(softmax_of_columns, ((5, 48, 136),), "bfloat16", _softmax_of_columns),
    "few rows over clusters": Case(below_the_largest, ((3, 20000),), "float32", lambda x: _softmax(x - x.max(0))),
    "rows read again": Case(softmax, ((2, LONG),), "float32", _softmax),
}
