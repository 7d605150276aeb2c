"""Functions that multiply by packed weights, and read slices of the product."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlirfuse as mf


@dataclass(frozen=True)
class Packed:
    """A function over mlirfuse or NumPy, and arrays of small whole numbers.

    Attributes:
        function: of rows, packed weights and a bias, and the module whose functions it calls.
        shapes: of the three.
        dtype: of all of them.
    """

    function: Any
    shapes: tuple[tuple[int, ...], ...]
    dtype: str

    def arrays(self) -> list[np.ndarray]:
        """The arrays."""
        rng = np.random.default_rng(len(self.dtype) + self.shapes[1][-1])
        return [rng.integers(-2, 3, shape).astype(self.dtype) for shape in self.shapes]

    def expected(self) -> np.ndarray:
        """The result by NumPy, in float64."""
        return self.function(*(array.astype(np.float64) for array in self.arrays()), np)


def random_packed(seed: int, widest: int = 40) -> Packed:
    """Products of which two to four slices are read, of columns or of rows, in blocks or interleaved."""
    rng = random.Random(seed)
    count = rng.choice((2, 2, 3, 4))
    m, n, k = (rng.randrange(4, widest) for _ in range(3))
    batch = rng.choice(((), (), (2,)))
    biased, rows = rng.random() < 0.5, rng.random() < 0.2
    added = rng.random() < 0.3
    ways = ("heads",) if not rows else ()
    way = rng.choice(("blocks", "steps", *ways))
    shapes = ((*batch, m * (count if rows else 1), k), (n * (1 if rows else count), k), (n * (1 if rows else count),))

    def packed(x: Any, w: Any, b: Any, xp: Any = mf) -> Any:
        h = x @ w.T
        if added:
            h = h + (x + 1) @ (w - 1).T
        if biased:
            h = h + b
        axis, size = (-2, m) if rows else (-1, n)
        if way == "heads":
            h = h.reshape((*h.shape[:-1], count, n))
            parts = [h[..., number, :] for number in range(count)]
        else:
            blocks = [slice(i * size, (i + 1) * size) for i in range(count)]
            chosen = blocks if way == "blocks" else [slice(i, None, count) for i in range(count)]
            parts = [h[(..., s, slice(None))] if axis == -2 else h[..., s] for s in chosen]
        y = parts[0]
        for number, part in enumerate(parts[1:]):
            y = xp.maximum(y, part) + number if number % 2 else y + 2 * part
        return y

    return Packed(packed, shapes, rng.choice(("float32", "float16", "int32")))
