"""Random functions that join arrays, with their meaning in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirfuse as mf

AXIS = [0, 1, 2, -1, -2]


def rotated(x: Any, cos: Any, sin: Any) -> Any:
    """Rotary embeddings whose pairs are the halves of a row."""
    half = x.shape[-1] // 2
    return x * cos + mf.concat([-x[..., half:], x[..., :half]], axis=-1) * sin


def rotated_in_numpy(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    half = x.shape[-1] // 2
    return x * cos + np.concatenate([-x[..., half:], x[..., :half]], axis=-1) * sin


class Joined:
    """A function of a seed: parts as they are, negated or exponentiated, joined along an axis, and then reduced or not.

    Attributes:
        shapes: of its arrays.
    """

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.stacks = bool(self.rng.integers(2))
        self.axis = int(self.rng.integers(-4, 4) if self.stacks else self.rng.integers(-3, 3))
        shape = [int(n) for n in self.rng.choice([1, 2, 3, 5, 8, 16, 33], 3)]
        count = int(self.rng.integers(2, 5))
        self.shapes = [list(shape) for _ in range(count)]
        if not self.stacks:
            for each in self.shapes:
                each[self.axis] = int(self.rng.choice([1, 2, 4, 7, 16]))
        self.kinds = [int(self.rng.integers(4)) for _ in range(count)]
        self.reduced = int(self.rng.integers(3))

    def arrays(self) -> list[np.ndarray]:
        """Of random numbers, others at each call."""
        return [self.rng.standard_normal(shape).astype(np.float32) for shape in self.shapes]

    def __call__(self, xp: Any, *arrays: Any) -> Any:
        parts = [(x, -x, 2 * x + 1, xp.exp(x))[kind] for x, kind in zip(arrays, self.kinds, strict=True)]
        join = {True: xp.stack, False: xp.concat if xp is mf else xp.concatenate}[self.stacks]
        whole = join(parts, axis=self.axis)
        if self.reduced == 1:
            return xp.sum(whole, axis=self.axis)
        return whole - xp.max(whole, axis=-1, keepdims=True) if self.reduced else whole
