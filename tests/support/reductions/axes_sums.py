"""Sums over different axes of one array, which one persistent loop computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mlirfuse as mf

SHAPES = [(24, 40, 64), (33, 20, 36), (7, 64, 128), (64, 12, 33)]
"""Vectors that divide rows and others, and axes of which lanes have several numbers, all or none."""


def sums_of_each_axis(x: Any) -> Any:
    return mf.sum(x, axis=0), mf.sum(x, axis=1), mf.sum(x, axis=2)


def pooled(x: Any) -> Any:
    """Means and maxima over rows, over images, and along rows."""
    return mf.mean(x, axis=1), mf.max(x, axis=1), mf.mean(x, axis=(1, 2)), mf.mean(x, axis=2)


def shares(x: Any) -> Any:
    """Softmax over the first axis, added up over the others: the inner reductions are over the outermost axis."""
    e = mf.exp(x - mf.max(x, axis=0, keepdims=True))
    p = e / mf.sum(e, axis=0, keepdims=True)
    return mf.sum(p, axis=(1, 2)), mf.max(p, axis=1)


def _shares(x: np.ndarray) -> Sequence[np.ndarray]:
    e = np.exp(x - x.max(0, keepdims=True))
    p = e / e.sum(0, keepdims=True)
    return p.sum((1, 2)), p.max(1)


EXPECTED: dict[Callable[..., Any], Callable[[np.ndarray], Sequence[np.ndarray]]] = {
    sums_of_each_axis: lambda x: (x.sum(0), x.sum(1), x.sum(2)),
    shares: _shares,
    pooled: lambda x: (x.mean(1), x.max(1), x.mean((1, 2)), x.mean(2)),
}


def array(shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of float32, the same for the same shape."""
    return (np.random.default_rng(sum(shape)).standard_normal(shape) + 1).astype(np.float32)


def check(function: Callable[..., Any], results: Sequence[np.ndarray], x: np.ndarray) -> None:
    """Compares results with those in float64."""
    for result, wanted in zip(results, EXPECTED[function](x.astype(np.float64)), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6 * np.abs(wanted).max())
