"""Random functions of arrays that lie in memory in different orders, some of which are broadcast, and then reduced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any

import numpy as np

import mlirfuse as mf

EXTENTS = (1, 2, 3, 5, 8, 16, 33, 40, 64, 72, 96, 130)
LONG_EXTENTS = (600, 1100, 2100)
MOST_ELEMENTS = 60_000
"""Of the result before it is reduced, for the interpreter's sake."""

OPERATORS = ("add", "subtract", "multiply", "maximum")
ENDS = ("none", "none", "sum", "max", "mean", "softmax", "deviations")
EXACT_ENDS = ("none", "sum", "max")
"""Those of integers."""


@dataclass(frozen=True)
class Permuted:
    """A function of arrays.

    Attributes:
        arrays: as they lie in memory.
        orders: the permutation of each array's dimensions that the function begins with.
        operators: between one array and the next, from the left.
        end: what follows along `axis`.
        keepdims: whether a reduced dimension stays.
        order: the permutation of the result's dimensions where all are left.
    """

    arrays: tuple[np.ndarray, ...]
    orders: tuple[tuple[int, ...], ...]
    operators: tuple[str, ...]
    end: str
    axis: int
    keepdims: bool
    order: tuple[int, ...]

    def __str__(self) -> str:
        arrays = [f"{a.dtype}{a.shape}.{order}" for a, order in zip(self.arrays, self.orders, strict=True)]
        return f"{arrays} {self.operators} {self.end} {self.axis} {self.keepdims} {self.order}"

    @property
    def fn(self) -> Callable[..., Any]:
        wide = None if self.arrays[0].dtype == np.int32 else mf.float32

        def two(x, y):
            return self._compute(mf, [x, y], mf.permute_dims, wide)

        def three(x, y, z):
            return self._compute(mf, [x, y, z], mf.permute_dims, wide)

        def one(x):
            return self._compute(mf, [x], mf.permute_dims, wide)

        return (one, two, three)[len(self.arrays) - 1]

    @property
    def expected(self) -> np.ndarray:
        return np.asarray(self._compute(np, list(self.arrays), np.transpose, np.float64))

    def _compute(self, lib: Any, arrays: list[Any], permute: Callable[..., Any], wide: Any) -> Any:
        first, *others = (permute(a, order) for a, order in zip(arrays, self.orders, strict=True))
        y = first if wide is None else first.astype(wide)
        for operator, other in zip(self.operators, others, strict=True):
            y = getattr(lib, operator)(y, other if wide is None else other.astype(wide))
        if self.end in ("sum", "max", "mean"):
            return getattr(lib, self.end)(y + 1, axis=self.axis, keepdims=self.keepdims)
        if self.end == "softmax":
            e = lib.exp(y - lib.max(y, axis=self.axis, keepdims=True))
            y = e / lib.sum(e, axis=self.axis, keepdims=True)
        if self.end == "deviations":
            d = y - lib.mean(y, axis=self.axis, keepdims=True)
            y = d * d + lib.sum(d * d, axis=self.axis, keepdims=True)
        return permute(y, self.order)


def permuted(seed: int) -> Permuted:
    """The function of a seed."""
    rng, numbers = Random(seed), np.random.default_rng(seed)
    shape = _shape(rng)
    rank, count = len(shape), rng.choice((1, 2, 2, 3))
    dtype = rng.choice(("float32", "float32", "float16", "int32"))
    arrays, orders = [], []
    for number in range(count):
        order = rng.sample(range(rank), rank) if rng.random() < 0.6 else list(range(rank))
        repeated = number > 0 and rng.random() < 0.4
        extents = [1 if repeated and rng.random() < 0.6 else n for n in shape]
        stored = [extents[order.index(d)] for d in range(rank)]
        arrays.append(numbers.integers(-4, 5, stored).astype(dtype))
        orders.append(tuple(order))
    return Permuted(
        tuple(arrays),
        tuple(orders),
        tuple(rng.choice(OPERATORS) for _ in range(count - 1)),
        rng.choice(EXACT_ENDS if dtype == "int32" else ENDS),
        rng.randrange(rank),
        rng.random() < 0.5,
        tuple(rng.sample(range(rank), rank) if rng.random() < 0.3 else range(rank)),
    )


def _shape(rng: Random) -> list[int]:
    if rng.random() < 0.2:
        return rng.sample([rng.choice(LONG_EXTENTS), rng.choice((8, 33, 40))], 2)
    shape = [rng.choice(EXTENTS) for _ in range(rng.choice((2, 2, 3, 3, 4)))]
    while prod(shape) > MOST_ELEMENTS:
        shape[shape.index(max(shape))] = rng.choice((1, 2, 4))
    return shape
