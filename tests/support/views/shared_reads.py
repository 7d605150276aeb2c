"""Functions of several results that read the same data, each with something of its own before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class SharedReads:
    """A function of arrays of one shape.

    Attributes:
        fn: the function, whose results NumPy computes with the same bits.
        arguments: how many it has.
        kernels: how many kernels it becomes.
    """

    fn: Callable[..., tuple[Any, ...]]
    arguments: int
    kernels: int

    def inputs(self, *shape: int) -> list[Array]:
        random = np.random.default_rng(7)
        return [random.integers(-64, 64, shape).astype(np.float32) for _ in range(self.arguments)]


SHARED_READS = {
    "two": SharedReads(lambda a, b, x: (a * 2 + x, b * 4 - x), 3, 1),
    "three": SharedReads(lambda a, b, c, x: (a * 2 + x, b * 4 - x, c * 0.5 * x), 4, 1),
    "in a row": SharedReads(lambda a, b, x, y: (a * 2 + x, b * 4 - x + y, -y), 4, 1),
    "reduced": SharedReads(lambda a, b, x: (a * 2 + x, (b * 4 - x).sum(axis=-1)), 3, 2),
}
"""Of whole numbers and quarters, of which sums are exact."""
