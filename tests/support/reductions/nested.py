"""Reductions of a few elements whose results reductions over other dimensions need."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlirfuse as mf


@dataclass(frozen=True)
class Nested:
    """A function over mlirfuse or NumPy, and arrays of small whole numbers.

    Attributes:
        function: of two arrays, and the module whose functions it calls.
        shapes: of the arrays.
        dtype: of both.
        kept: the array of whose points each has a result, and the axis along which they lie.
    """

    function: Any
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    dtype: str
    kept: tuple[int, int]

    def arrays(self) -> list[np.ndarray]:
        """Both arrays."""
        rng = np.random.default_rng(sum(self.shapes[0]))
        return [rng.integers(-3, 4, shape).astype(self.dtype) for shape in self.shapes]

    def expected(self) -> np.ndarray:
        """The result by NumPy, in float64."""
        return self.function(*(array.astype(np.float64) for array in self.arrays()), np)


def random_nested(seed: int) -> Nested:
    """Sums, maxima or minima over up to eight coordinates, and others over one of two lists of points."""
    rng = random.Random(seed)
    inner, outer = (rng.choice(("sum", "max", "min")) for _ in range(2))
    points = rng.choice((3, 8, 17)), rng.choice((4, 9, 20))
    coordinates, first = rng.choice((2, 3, 4, 8)), rng.random() < 0.5
    uses, axis = rng.choice(("alone", "coordinates")), rng.choice((0, 1))

    def nested(x: Any, y: Any, xp: Any = mf) -> Any:
        r = x[:, None] - y[None] if not first else x[:, :, None] - y[:, None]
        c = 0 if first else -1
        d = getattr(xp, inner)(xp.abs(r), axis=c, keepdims=True)
        r = r * d if uses == "coordinates" else d + 1
        return getattr(xp, outer)(r, axis=axis + (1 if first else 0))

    shapes = tuple((coordinates, n) if first else (n, coordinates) for n in points)
    return Nested(nested, shapes, rng.choice(("float32", "int32")), (1 - axis, 1 if first else 0))
