"""Functions that reshape what they compute, for the interpreter's and the GPU's tests."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

import mlirfuse as mf

Shape = tuple[int, ...]
EXTENTS = (2, 3, 4, 5, 6, 8)


@dataclass(frozen=True)
class Reshaped:
    """A random function.

    Attributes:
        shapes: of its arguments, in float32.
        steps: what it does to the first one: the name of a step, and what the step needs.
    """

    shapes: tuple[Shape, ...]
    steps: tuple[tuple[str, Any], ...]

    def __call__(self, *arrays: Any) -> Any:
        """Traced."""
        return self.result(mf, arrays)

    def expected(self, arrays: list[np.ndarray]) -> np.ndarray:
        """In double precision."""
        return np.asarray(self.result(np, [array.astype(np.float64) for array in arrays]))

    def result(self, xp: Any, arrays: Any) -> Any:
        """By mlirfuse or NumPy."""
        h = arrays[0]
        for name, what in self.steps:
            if name == "reshape":
                h = xp.reshape(h, what)
            elif name == "square":
                h = h * h - 0.5
            elif name == "add":
                h = h + arrays[what]
            elif name == "scale":
                number, shape = what
                h = h * xp.reshape(arrays[number], shape)
            elif name == "max":
                h = xp.max(h, axis=what)
            elif name == "permute":
                h = xp.permute_dims(h, what)
            else:
                h = h - xp.mean(h, axis=what, keepdims=True)
        return h


def reshaped(seed: int) -> Reshaped:
    """A function of two to seven steps, half of which are reshapes."""
    rng = random.Random(seed)
    shape = tuple(rng.choice(EXTENTS) for _ in range(rng.randint(1, 4)))
    shapes, steps = [shape], list[tuple[str, Any]]()
    for _ in range(rng.randint(2, 7)):
        kind = rng.choice(["reshape", "reshape", "reshape", "square", "add", "scale", "max", "permute", "centre"])
        if kind == "reshape":
            shape = _factored(prod(shape), rng)
            steps.append((kind, shape))
        elif kind == "square":
            steps.append((kind, None))
        elif kind == "add":
            shapes.append(shape)
            steps.append((kind, len(shapes) - 1))
        elif kind == "scale":
            dim = rng.randrange(len(shape))
            steps.append((kind, (len(shapes), tuple(n if d == dim else 1 for d, n in enumerate(shape)))))
            shapes.append((shape[dim],))
        elif kind == "max" and len(shape) > 1:
            dim = rng.randrange(len(shape))
            steps.append((kind, dim))
            shape = (*shape[:dim], *shape[dim + 1 :])
        elif kind == "permute":
            order = tuple(rng.sample(range(len(shape)), len(shape)))
            steps.append((kind, order))
            shape = tuple(shape[d] for d in order)
        elif kind == "centre":
            steps.append((kind, tuple(sorted(rng.sample(range(len(shape)), rng.randint(1, len(shape)))))))
    return Reshaped(tuple(shapes), tuple(steps))


def _factored(size: int, rng: random.Random) -> Shape:
    """Up to four extents, of 1 too, whose product is a size."""
    primes = []
    for prime in (2, 3, 5):
        while size % prime == 0:
            primes.append(prime)
            size //= prime
    rng.shuffle(primes)
    cuts = sorted(rng.choices(range(len(primes) + 1), k=rng.randint(0, 3)))
    return tuple(prod(primes[a:b]) for a, b in zip([0, *cuts], [*cuts, len(primes)], strict=True))


def group_norm(x: Any, w: Any, b: Any) -> Any:
    """Of images (N, C, H, W) in groups of 8 channels, cast before they are reshaped and after."""
    n, c, height, width = x.shape
    h = mf.reshape(x.astype(mf.float32), (n, c // 8, 8 * height * width))
    h = h - mf.mean(h, axis=-1, keepdims=True)
    h = h * mf.rsqrt(mf.mean(h * h, axis=-1, keepdims=True) + 1e-5)
    return (mf.reshape(h, (n, c, height, width)) * w[:, None, None] + b[:, None, None]).astype(x.dtype)


def softmax_of_heads(x: Any) -> Any:
    """Of (N, T, heads * 16), over each head."""
    h = mf.reshape(x.astype(mf.float32) * 2.0, (x.shape[0], x.shape[1], -1, 16))
    e = mf.exp(h - mf.max(h, axis=-1, keepdims=True))
    return e / mf.sum(e, axis=-1, keepdims=True)


def merged_heads(x: Any, r: Any) -> Any:
    """Heads of (N, heads, T, D) side by side, and a residual."""
    h = mf.permute_dims(x.astype(mf.float32) * 0.5, (0, 2, 1, 3))
    return (mf.reshape(h, r.shape) + r).astype(x.dtype)


KERNELS: dict[Callable[..., Any], list[mf.TensorSpec]] = {
    group_norm: [
        mf.TensorSpec((4, 24, 6, 5), mf.float16),
        mf.TensorSpec((24,), mf.float32),
        mf.TensorSpec((24,), mf.float32),
    ],
    softmax_of_heads: [mf.TensorSpec((3, 7, 64), mf.float16)],
    merged_heads: [mf.TensorSpec((2, 4, 8, 16), mf.float16), mf.TensorSpec((2, 8, 64), mf.float16)],
}
"""Functions that one kernel computes."""
