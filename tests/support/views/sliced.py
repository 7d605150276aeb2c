"""Random functions of slices: of arguments and of what is computed of them, some of which overlap."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlirfuse as mf

Step = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Sliced:
    """A function over mlirfuse or NumPy, and arrays of small whole numbers.

    Attributes:
        function: of two arrays, and the module whose functions it calls.
        shape: of the first array; the second one has its last extent.
        dtype: of both.
    """

    function: Any
    shape: tuple[int, ...]
    dtype: str

    def arrays(self) -> list[np.ndarray]:
        """Both arrays."""
        rng = np.random.default_rng(sum(self.shape))
        return [rng.integers(-3, 4, shape).astype(self.dtype) for shape in (self.shape, self.shape[-1:])]

    def expected(self) -> list[np.ndarray]:
        """The results by NumPy, in float64."""
        return list(self.function(*(array.astype(np.float64) for array in self.arrays()), np))


def random_sliced(seed: int) -> Sliced:
    """Values that are added, scaled and compared, sliced along one or two axes in two or three ways, and added."""
    rng = random.Random(seed)
    rank = rng.choice((1, 2, 2, 3))
    shape = tuple(rng.choice((4, 6, 8, 12, 16, 24, 40)) for _ in range(rank))
    first, second = (_elementwise(rng) for _ in range(2))
    heads = rng.random() < 0.25
    slices = [(..., number, slice(None)) for number in (0, 1)] if heads else _slices(rng, shape)
    again = rng.random() < 0.3
    ends = rng.choice(("values", "sum", "whole", "norm", "pair"))

    def sliced(x: Any, b: Any, xp: Any = mf) -> tuple[Any, ...]:
        h = first(xp, x, b)
        if ends == "norm":
            h = h - xp.max(h, axis=-1, keepdims=True)
        if heads:
            h = h.reshape((*shape[:-1], 2, shape[-1] // 2))
        parts = [second(xp, h[s], h[s]) for s in slices]
        if again and all(n > 2 for n in parts[0].shape):
            inner = tuple(slice(1, None) for _ in parts[0].shape), tuple(slice(None, -1) for _ in parts[0].shape)
            parts = [part[inner[0]] - part[inner[1]] for part in parts]
        total = parts[0]
        for part in parts[1:]:
            total = xp.maximum(total, part) + part
        if ends == "sum":
            return (xp.sum(total, axis=-1),)
        if ends == "whole":
            return total, h
        if ends == "pair":
            return parts[0] + 1, total
        return (total,)

    return Sliced(sliced, shape, rng.choice(("float32", "int32", "float16")))


def _elementwise(rng: random.Random) -> Step:
    scale, number = rng.choice((1, 2)), rng.choice((-1, 1, 2))
    return rng.choice(
        (
            lambda xp, x, b: x * scale + number,
            lambda xp, x, b: xp.maximum(x, number) - x,
            lambda xp, x, b: xp.where(x > b, x, b + number) if b.shape[-1] == x.shape[-1] else x,
            lambda xp, x, b: xp.abs(x + b),
        )
    )


def _slices(rng: random.Random, shape: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Equally large slices: halves, every second element, or neighbours."""
    axes = rng.sample(range(len(shape)), rng.choice((1, 1, min(2, len(shape)))))
    kind = rng.choice(("parts", "steps", "neighbours", "neighbours"))
    found = []
    for number in range(rng.choice((2, 2, 3))):
        index = [slice(None)] * len(shape)
        for axis in axes:
            extent = shape[axis]
            half = extent // 2
            offset = number * rng.choice((0, 1)) if kind == "neighbours" and axis != axes[0] else number
            if kind == "parts":
                index[axis] = slice(half * (offset % 2), half * (offset % 2) + half)
            elif kind == "steps":
                index[axis] = slice(offset % 2, None, 2)
            else:
                index[axis] = slice(offset, extent - 2 + offset if offset < 2 else None)
        found.append(tuple(index))
    return found


def random_reduced(seed: int) -> Sliced:
    """Rows that are centred or scaled by reductions over an axis whose equal parts are read and put together."""
    rng = random.Random(seed)
    rank, count = rng.choice((1, 2, 2, 3)), rng.choice((2, 2, 3, 4))
    axis = rng.choice((rank - 1, rng.randrange(rank)))
    shape = [rng.choice((2, 5, 8, 16, 20)) for _ in range(rank)]
    shape[axis] *= count
    interleaved, form = rng.random() < 0.4, rng.choice(("max", "sum", "two", "squares", "returned"))
    scale = _elementwise(rng)

    def reduced(x: Any, b: Any, xp: Any = mf) -> tuple[Any, ...]:
        h = scale(xp, x, b)
        if form == "squares":
            statistic = xp.sum(xp.square(h - 1), axis=axis, keepdims=True)
        elif form == "two":
            low = xp.min(h, axis=axis, keepdims=True)
            statistic = xp.max(h - low, axis=axis, keepdims=True) + low
        else:
            statistic = (xp.max if form == "max" else xp.sum)(h, axis=axis, keepdims=True)
        y = h - statistic
        each = shape[axis] // count
        parts = []
        for number in range(count):
            index = [slice(None)] * rank
            blocks = slice(number * each, (number + 1) * each)
            index[axis] = slice(number, None, count) if interleaved else blocks
            parts.append(y[tuple(index)])
        total = parts[0]
        for part in parts[1:]:
            total = 2 * total + part
        return (total, statistic) if form == "returned" else (total,)

    return Sliced(reduced, tuple(shape), rng.choice(("float32", "int32")))


def random_flipped(seed: int) -> Sliced:
    """Values that are computed, transposed or not, and read forwards and backwards along one axis or two."""
    rng = random.Random(seed)
    rank = rng.choice((1, 2, 3, 3))
    shape = tuple(rng.choice((1, 4, 6, 8, 24)) for _ in range(rank))
    first, second = (_elementwise(rng) for _ in range(2))
    order = tuple(rng.sample(range(rank), rank)) if rng.random() < 0.6 else tuple(range(rank))
    turned = [rng.sample(range(rank), rng.randint(1, min(2, rank))) for _ in range(2)]
    again, reduces = rng.random() < 0.4, rng.random() < 0.3

    def flipped(x: Any, b: Any, xp: Any = mf) -> tuple[Any, ...]:
        h = xp.permute_dims(first(xp, x, b), order)
        backwards = [h[tuple(slice(None, None, -1 if d in axes else 1) for d in range(rank))] for axes in turned]
        y = second(xp, h, backwards[0])
        if again:
            y = y[::-1] * 2 - backwards[1]
        return (y, xp.sum(y, axis=-1)) if reduces else (y,)

    return Sliced(flipped, shape, "float32")
