"""Functions of several products and other ops, for the interpreter's and the GPU's tests, with NumPy's float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlirfuse as mf
from tests.support.numerics.closeness import check_results


def attention(q, k, v):
    s = (q @ k.mT).astype(mf.float32) * 0.125
    p = mf.exp(s - mf.max(s, axis=-1, keepdims=True))
    p = p / mf.sum(p, axis=-1, keepdims=True)
    return p.astype(q.dtype) @ v


def _attention(q, k, v):
    s = (q @ k.swapaxes(-1, -2)) * 0.125
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ v


def mlp(x, g, w1, b1, w2):
    h = x.astype(mf.float32)
    centred = h - mf.mean(h, axis=-1, keepdims=True)
    n = (centred * mf.rsqrt(mf.mean(centred**2, axis=-1, keepdims=True) + 1e-5) * g).astype(x.dtype)
    return x + mf.maximum(n @ w1.T + b1, 0) @ w2.T


def _mlp(x, g, w1, b1, w2):
    centred = x - x.mean(-1, keepdims=True)
    n = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * g
    return x + np.maximum(n @ w1.T + b1, 0) @ w2.T


def linear_backward(x, w, dy):
    return dy @ w, dy.T @ x, mf.sum(dy.astype(mf.float32), axis=0)


def low_rank_update(x, w, a, b):
    return x @ w.T + (x @ a.T) @ b.T


def gram(x):
    return x @ x.T


def squared(x):
    return x @ x


def heads(x, w):
    return mf.permute_dims(x, (0, 2, 1, 3)) @ w


def batched_bias(x, w, b):
    return x @ w + b[:, None, :]


def outer(a, b):
    return a[:, None] @ b[None, :]


@dataclass(frozen=True)
class Composition:
    """A function, the shapes of its arguments, and the same in float64."""

    fn: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    reference: Callable[..., Any]

    def __str__(self) -> str:
        return self.fn.__name__

    def inputs(self) -> list[np.ndarray]:
        rng = np.random.default_rng(len(self.shapes))
        return [(rng.standard_normal(shape) / 4).astype(np.float16) for shape in self.shapes]

    def check(self, results: Sequence[np.ndarray], inputs: Sequence[np.ndarray]) -> None:
        """Compares with float64; half precision rounds between the kernels."""
        check_results(results, self.reference(*(a.astype(np.float64) for a in inputs)), 2e-3)


COMPOSITIONS = [
    Composition(attention, ((2, 3, 40, 32), (2, 3, 48, 32), (2, 3, 48, 32)), _attention),
    Composition(mlp, ((30, 64), (64,), (128, 64), (128,), (64, 128)), _mlp),
    Composition(linear_backward, ((50, 40), (24, 40), (50, 24)), lambda x, w, dy: (dy @ w, dy.T @ x, dy.sum(0))),
    Composition(low_rank_update, ((40, 64), (48, 64), (8, 64), (48, 8)), lambda x, w, a, b: x @ w.T + x @ a.T @ b.T),
    Composition(gram, ((40, 24),), lambda x: x @ x.T),
    Composition(squared, ((40, 40),), lambda x: x @ x),
    Composition(heads, ((2, 20, 3, 24), (2, 3, 24, 16)), lambda x, w: x.transpose(0, 2, 1, 3) @ w),
    Composition(batched_bias, ((3, 40, 24), (3, 24, 16), (3, 16)), lambda x, w, b: x @ w + b[:, None, :]),
    Composition(outer, ((40,), (24,)), np.outer),
]
