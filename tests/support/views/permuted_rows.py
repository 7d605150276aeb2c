"""Functions that reduce rows and return them in another order: what the tests on the CPU and on the GPU share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mlirfuse as mf


def spread(xp: Any, x: Any, w: Any) -> Any:
    """Of small integers: exact."""
    d = x - xp.max(x, axis=-1, keepdims=True)
    return (d - xp.sum(d, axis=-1, keepdims=True)) * w


ORDERS = [(2, 0, 1), (1, 2, 0), (0, 2, 1), (2, 1, 0), (1, 0, 2)]


def turned(order: tuple[int, ...]) -> tuple[Callable[[Any, Any], Any], Callable[[np.ndarray, np.ndarray], list[Any]]]:
    """A function of which the last result has another order, and its results in NumPy."""

    def fn(x: Any, w: Any) -> Any:
        y = spread(mf, x, w)
        return mf.sum(y, axis=-1), mf.permute_dims(y, order) + 1

    def expected(x: np.ndarray, w: np.ndarray) -> list[Any]:
        y = spread(np, x.astype(np.float64), w.astype(np.float64))
        return [y.sum(axis=-1), y.transpose(order) + 1]

    return fn, expected


def arrays(rows: int) -> list[np.ndarray]:
    rng = np.random.default_rng(rows)
    shapes = ((rows, 4, 100), (1, 4, 1))
    return [rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes]
