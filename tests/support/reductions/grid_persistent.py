"""Functions of statistics over leading axes, which tiles may need again, and schedules for a grid persistent kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

import mlirfuse as mf
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.grid_persistent import GridPersistent
from mlirfuse.schedule.schedule import Schedule

EPSILON = 1e-5


def batch_norm(x: Any, w: Any, b: Any) -> Any:
    """The forward pass of training: normalised rows, and the statistics that the backward pass and averages need."""
    h = x.astype(mf.float32)
    mean = mf.mean(h, axis=0)
    variance = mf.mean((h - mean) ** 2, axis=0)
    return ((h - mean) * mf.rsqrt(variance + EPSILON) * w + b).astype(x.dtype), mean, variance


def batch_norm_backward(dy: Any, x: Any, w: Any, mean: Any, rstd: Any) -> Any:
    """Gradients with respect to rows, weights and biases: dx needs both sums."""
    g = dy.astype(mf.float32)
    n = (x.astype(mf.float32) - mean) * rstd
    dw, db = mf.sum(g * n, axis=0), mf.sum(g, axis=0)
    return ((g - (n * dw + db) / x.shape[0]) * rstd * w).astype(x.dtype), dw, db


def channels_norm(x: Any, w: Any) -> Any:
    """Statistics over all axes but the second one, of images with the channels outside."""
    h = x.astype(mf.float32)
    mean = mf.mean(h, axis=(0, 2, 3), keepdims=True)
    variance = mf.mean((h - mean) ** 2, axis=(0, 2, 3), keepdims=True)
    return ((h - mean) * mf.rsqrt(variance + EPSILON) * mf.reshape(w, (1, -1, 1, 1))).astype(x.dtype)


def scaled_by_norm(x: Any) -> Any:
    """A sum of everything, which every element then needs."""
    return x * mf.rsqrt(mf.sum(x * x))


def below_maximum(x: Any) -> Any:
    """A maximum over leading axes, subtracted again."""
    return x - mf.max(x, axis=0), mf.max(x, axis=0)


def column_softmax(x: Any) -> Any:
    """A maximum over rows, and the sum of exponentials below it."""
    h = x.astype(mf.float32)
    e = mf.exp(h - mf.max(h, axis=0))
    return (e / mf.sum(e, axis=0)).astype(x.dtype)


def column_moments(x: Any, w: Any) -> Any:
    """Statistics that no element needs again, averages of them, and a result of the same visit."""
    h = x.astype(mf.float32)
    mean = mf.mean(h, axis=0)
    return mean, 0.9 * w + 0.1 * mf.mean((h - mean) ** 2, axis=0), x * 2


def log_sum_exp(x: Any) -> Any:
    """The logarithm of a sum of exponentials, and the maximum, of each column."""
    h = x.astype(mf.float32)
    maximum = mf.max(h, axis=0)
    return maximum + mf.log(mf.sum(mf.exp(h - maximum), axis=0)), maximum


def moments_of_all(x: Any) -> Any:
    """The mean and the deviation of all elements."""
    h = x.astype(mf.float32)
    return mf.mean(h), mf.std(h)


@dataclass(frozen=True)
class Case:
    """A function, its inputs by shape and dtype, and what it computes in float64."""

    fn: Callable[..., Any]
    inputs: Callable[[tuple[int, ...], str, np.random.Generator], tuple[np.ndarray, ...]]
    expected: Callable[..., tuple[np.ndarray, ...]]


def _forward(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
    return (x - x.mean(0)) / np.sqrt(x.var(0) + EPSILON) * w + b, x.mean(0), x.var(0)


def _backward(
    dy: np.ndarray, x: np.ndarray, w: np.ndarray, mean: np.ndarray, rstd: np.ndarray
) -> tuple[np.ndarray, ...]:
    n = (x - mean) * rstd
    dw, db = (dy * n).sum(0), dy.sum(0)
    return (dy - (n * dw + db) / max(1, len(x))) * rstd * w, dw, db


def _channels(x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
    axes = (0, 2, 3)
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return ((x - mean) / np.sqrt(variance + EPSILON) * w.reshape(1, -1, 1, 1),)


def _softmax(x: np.ndarray) -> tuple[np.ndarray, ...]:
    e = np.exp(x - x.max(0))
    return (e / e.sum(0),)


def _log_sum_exp(x: np.ndarray) -> tuple[np.ndarray, ...]:
    return np.log(np.exp(x - x.max(0)).sum(0)) + x.max(0), x.max(0)


def _rows(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> np.ndarray:
    """Numbers whose mean is several times their deviation, so that a variance may cancel."""
    return (rng.standard_normal(shape) * 2 + 6).astype(dtype)


def _columns(shape: tuple[int, ...], count: int, rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.uniform(0.5, 1.5, shape[-1]).astype(np.float32) for _ in range(count)]


CASES = {
    "forward": Case(batch_norm, lambda s, d, r: (_rows(s, d, r), *_columns(s, 2, r)), _forward),
    "backward": Case(
        batch_norm_backward,
        lambda s, d, r: (r.standard_normal(s).astype(d), _rows(s, d, r), *_columns(s, 3, r)),
        _backward,
    ),
    "channels": Case(
        channels_norm,
        lambda s, d, r: (_rows(s, d, r), r.uniform(0.5, 1.5, s[1]).astype(np.float32)),
        _channels,
    ),
    "softmax": Case(column_softmax, lambda s, d, r: (_rows(s, d, r),), _softmax),
    "norm": Case(scaled_by_norm, lambda s, d, r: (_rows(s, d, r),), lambda x: (x / np.sqrt((x * x).sum()),)),
    "maximum": Case(below_maximum, lambda s, d, r: (_rows(s, d, r),), lambda x: (x - x.max(0), x.max(0))),
    "moments": Case(
        column_moments,
        lambda s, d, r: (_rows(s, d, r), *_columns(s, 1, r)),
        lambda x, w: (x.mean(0), 0.9 * w + 0.1 * x.var(0), x * 2),
    ),
    "log_sum_exp": Case(log_sum_exp, lambda s, d, r: (_rows(s, d, r),), _log_sum_exp),
    "moments of all": Case(moments_of_all, lambda s, d, r: (_rows(s, d, r),), lambda x: (x.mean(), x.std())),
}
ONE_VISIT = ("moments", "log_sum_exp", "moments of all")
"""The cases whose tiles need no statistic."""


def check(case: Case, results: Any, arrays: tuple[np.ndarray, ...]) -> None:
    """Compares results with those in float64, to the precision of the type of the rows."""
    expected = case.expected(*(array.astype(np.float64) for array in arrays))
    results = results if isinstance(results, tuple | list) else (results,)
    for result, wanted in zip(results, expected, strict=True):
        tolerance = 4e-3 if result.dtype == np.float16 else 2e-5
        scale = np.abs(wanted).max(initial=1.0) if np.isfinite(wanted).all() else 1.0
        np.testing.assert_allclose(result.astype(np.float64), wanted, rtol=tolerance, atol=tolerance * scale)


def with_known_rows(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function with extents that are compiled as numbers, so that one schedule can be given for all of it."""

    @wraps(fn)
    def known(*arrays: Any) -> Any:
        int(arrays[0].shape[0])
        return fn(*arrays)

    return known


def in_rows(
    columns: int, *, vector: int, lanes: int = 4, warps: int = 2, repeats: int = 1, kept: int = 0, blocks: int = 1
) -> Schedule:
    """A schedule for rows of numbers, in slices of so many columns at most."""
    covered = vector * lanes
    layout = BlockedLayout((1, vector), (32 // lanes, lanes), (warps, 1), (repeats, 1), (1, 1))
    tile = (32 // lanes * warps * repeats, min(covered, columns))
    return Schedule(tile, layout, blocks_per_sm=blocks, grid_persistent=GridPersistent((0,), kept))
