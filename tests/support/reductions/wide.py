"""Reductions over rows too wide for a cluster: what the tests on the CPU and on the GPU share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import mlirfuse as mf
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop

WIDE = 200_000
"""Columns of which no cluster holds a row with its accumulators."""

COLUMNS = 70
"""Columns for the schedules that are given here."""

CHUNKS = mf.Schedule(
    (8, 64),
    BlockedLayout(vector=(1, 2), lanes=(1, 32), warps=(4, 1), repeats=(2, 1), blocks=(1, 1)),
    persistence="multi_pass",
)
"""Blocks that reduce 64 columns alone, in chunks of 8 rows."""


def parts_of_rows(period: int, grid_reduction: str = "grid_sync") -> mf.Schedule:
    """A persistent loop over tiles of 64 of the 70 columns, so that the second tile of each row is masked."""
    layout = BlockedLayout(vector=(1, 2), lanes=(1, 32), warps=(1, 1), repeats=(1, 1), blocks=(1, 1))
    parts = BlockedLayout(vector=(1, 1), lanes=(32, 1), warps=(1, 1), repeats=(1, 1), blocks=(1, 1))
    blocks = 3 if grid_reduction == "second_kernel" else 0
    persistent_loop = PersistentLoop(
        (0, 1), grid_reduction, (32, 1), parts, second_stage_reads=2, period=period, blocks=blocks
    )
    return mf.Schedule((1, 64), layout, blocks_per_sm=1, persistent_loop=persistent_loop)


def column_sums(x: Any, w: Any) -> Any:
    """Reductions of columns, with what they feed and what all rows share; single precision shows every rounding."""
    h = x.astype(mf.float32)
    total = mf.sum(h * w.astype(mf.float32), axis=0)
    return total, mf.sqrt(mf.abs(total) + 1) * w, mf.mean(h, axis=0).astype(x.dtype)


def batch_norm(x: Any, w: Any) -> Any:
    """Two dependent reductions over columns, which every row then needs."""
    h = x.astype(mf.float32)
    mean = mf.mean(h, axis=0)
    variance = mf.mean((h - mean) ** 2, axis=0)
    return ((h - mean) * mf.rsqrt(variance + 0.1) * w).astype(x.dtype), mean, variance


def sums_of_everything(x: Any, w: Any) -> Any:
    """Single numbers, of rows and of what all of them share."""
    h = x.astype(mf.float32)
    return mf.sum(h * w), mf.mean(h * h), mf.sqrt(mf.sum(mf.abs(h)))


def expected(fn: Callable[..., Any], x: np.ndarray, w: np.ndarray) -> list[np.ndarray]:
    """The results of one of these in float64."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a mean over no rows, which is NaN
        if fn is column_sums:
            total = (x * w).sum(0)
            return [total, np.sqrt(abs(total) + 1) * w, x.sum(0) / len(x)]
        if fn is batch_norm:
            return [(x - x.mean(0)) / np.sqrt(x.var(0) + 0.1) * w, x.mean(0), x.var(0)]
        return [(x * w).sum(), (x * x).sum() / np.float64(x.size), np.sqrt(abs(x).sum())]


def check(fn: Callable[..., Any], results: list[np.ndarray], x: np.ndarray, w: np.ndarray) -> None:
    """Asserts that results are what float64 gives, within the rounding of their types."""
    for result, wanted in zip(results, expected(fn, x, w), strict=True):
        assert result.shape == wanted.shape
        scale = 1 + np.sqrt(x.size / max(1, wanted.size))  # of a sum's rounding, where what is added cancels out
        # What is of half precision is no sum: near zero it is as exact as elsewhere.
        relative, absolute = (2e-5, 2e-5 * scale) if result.dtype == np.float32 else (1e-2, 1e-3)
        np.testing.assert_allclose(result.astype(np.float64), wanted, rtol=relative, atol=absolute)
