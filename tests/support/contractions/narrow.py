"""Products of which a side and what is summed are a few elements: of colours, of points, of small matrices."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import mlirfuse as mf


def random_narrow(seed: int, longest: int = 40) -> tuple[Any, list[np.ndarray], np.ndarray]:
    """A function over mlirfuse or NumPy, arrays of small whole numbers, and the result in float64."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    rows, k, n = rng.randrange(1, longest), rng.choice((1, 2, 3, 4, 8)), rng.choice((1, 2, 3, 4, 16))
    dtype, ends = rng.choice(("float32", "float16", "int32")), rng.choice(("plain", "bias", "left", "batch"))
    shapes: list[tuple[int, ...]] = [(rows, k), (k, n)]
    if ends == "left":
        shapes = [(n, k), (k, rows)]
    elif ends == "batch":
        shapes = [(3, rows, k), (k, n)]
    arrays = [numbers.integers(-3, 4, shape).astype(dtype) for shape in shapes]

    def narrow(x: Any, w: Any, xp: Any = mf) -> Any:
        y = x @ w
        return xp.maximum(y + 1, 0) if ends == "bias" else y

    return narrow, arrays, narrow(*(array.astype(np.float64) for array in arrays), np)
