"""Elementwise functions of images of few pixels and of numbers for their channels, rows or pixels, all small integers,
which are exact: what the tests on the CPU and on the GPU share.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirfuse as mf
from tests.support.views.array_cases import ArrayCase


class Case(ArrayCase):
    """One of small integers."""

    def arrays(self) -> list[np.ndarray]:
        rng = np.random.default_rng(1)
        return [rng.integers(-9, 10, shape).astype(self.dtype) for shape in self.shapes]

    def check(self, result: np.ndarray, arrays: list[np.ndarray]) -> None:
        np.testing.assert_array_equal(result.astype(np.float64), self.expected(arrays))


def with_numbers(case: Case) -> Any:
    """The function with all extents as numbers, but those of the images."""

    def fn(x: Any, *others: Any) -> Any:
        first, *rest = case.shapes
        return case.fn(mf.reshape(x, (-1, *first[1:])), *map(mf.reshape, others, rest))

    return fn


def random_case(seed: int) -> Case:
    """A function of an array and of others that lack some of its dimensions, some of which are computed with first."""
    rng = np.random.default_rng(seed)
    whole = [int(n) for n in rng.choice([1, 2, 3, 4, 7, 8, 16], int(rng.integers(3, 5)))]
    count = int(rng.integers(1, 4))
    shapes = [tuple(whole), *(tuple(n if rng.random() < 0.5 else 1 for n in whole) for _ in range(count))]
    kinds = [(int(rng.integers(3)), int(rng.integers(3))) for _ in shapes[1:]]

    def fn(xp: Any, x: Any, *others: Any) -> Any:
        for y, (first, then) in zip(others, kinds, strict=True):
            y = (y, xp.abs(y) + 1, y * y)[first]
            x = (x + y, x - y, xp.maximum(x, y))[then]
        return x * 2

    return Case(lambda *given: fn(mf, *given), tuple(shapes), "float32", lambda *given: fn(np, *given))


def _of_channels(x: Any, s: Any, t: Any) -> Any:
    return x * s[:, None, None] + t[:, None, None]


def _computed(xp: Any, x: Any, s: Any, t: Any) -> Any:
    return x * (s * s + 1)[:, None, None] - xp.abs(t)[None, :, None, None]


X = (5, 16, 7, 7)
CASES = {
    "a number a channel": Case(_of_channels, (X, (16,), (16,)), "float16", _of_channels),
    "one that is computed": Case(
        lambda x, s, t: _computed(mf, x, s, t),
        (X, (16,), (16,)),
        "float32",
        lambda x, s, t: _computed(np, x, s, t),
    ),
    "one a row, and one a pixel": Case(
        lambda x, r, p: x + r * p, (X, (7, 1), (7, 7)), "float32", lambda x, r, p: x + r * p
    ),
    "one a column of a channel": Case(
        lambda x, c: mf.maximum(x, c), (X, (16, 1, 7)), "float32", lambda x, c: np.maximum(x, c)
    ),
    "all of an image": Case(
        lambda x, i, s: (x - i) * s, (X, (1, 16, 7, 7), (16, 1, 1)), "float32", lambda x, i, s: (x - i) * s
    ),
    "one an image": Case(
        lambda x, n, s: x * n + s, (X, (5, 1, 1, 1), (16, 1, 1)), "float32", lambda x, n, s: x * n + s
    ),
    "odd channels": Case(_of_channels, ((3, 5, 3, 3), (5,), (5,)), "float32", _of_channels),
}
