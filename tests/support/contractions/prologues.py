"""Functions that compute a product's operands first, for the interpreter's and the GPU's tests, in float64 beside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlirfuse as mf
from mlirfuse.support.dtypes import dtype_of
from tests.support.numerics.closeness import check_results

M, N, K = 72, 96, 200


def cast(x, w):
    return x.astype(mf.float16) @ w.T


def activated(x, w):
    h = x.astype(mf.float32)
    return (h / (1 + mf.exp(-h))).astype(x.dtype) @ w


def dequantised(x, q, s):
    return x @ (q.astype(x.dtype) * s[:, None]).T


def dequantised_columns(x, q, s):
    return x @ (q.astype(x.dtype) * s[None, :])


def scaled_float8(x, q, s):
    return x @ (q.astype(x.dtype) * s[:, None]).T


def scaled_along_k(x, w, s):
    return (x * s) @ w.T


def both(x, w, s):
    return (x * 2) @ mf.maximum(w * s, 0).T


def transposed(x, w, s):
    return mf.maximum(x, 0).T @ (w * s[:, None])


def reciprocal(x, w):
    """Infinite where a tile reaches past the end of k."""
    return (1 / x) @ w.T


def single_precision(x, w):
    return (x * x) @ w.T


def batched(x, w, s):
    return (x * s[:, None, None]) @ w


def scaled_residual(x, w, r):
    """What is computed before the product, and needed behind it."""
    return (r * 2).astype(mf.float32) + mf.matmul(x, w.T, dtype=mf.float32)


@dataclass(frozen=True)
class Case:
    """A function of a product whose operands are computed.

    Attributes:
        fn: the function.
        shapes: of its arguments.
        reference: the same in float64.
        dtypes: of the arguments, float16 where missing.
        offset: what is added to random elements, so that a function may divide by them.
    """

    fn: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    reference: Callable[..., Any]
    dtypes: Sequence[str] = ()
    offset: float = 0.0

    def __str__(self) -> str:
        return self.fn.__name__

    def inputs(self) -> list[np.ndarray]:
        rng = np.random.default_rng(len(self.shapes))
        names = [*self.dtypes, *["float16"] * (len(self.shapes) - len(self.dtypes))]
        return [
            rng.integers(-8, 8, shape).astype(np.int8)
            if name == "int8"
            else (rng.standard_normal(shape) / 4 + np.sign(rng.random(shape) - 0.5) * self.offset).astype(
                dtype_of(name).numpy
            )
            for name, shape in zip(names, self.shapes, strict=True)
        ]

    def check(self, result: np.ndarray, inputs: Sequence[np.ndarray]) -> None:
        """Operands are rounded to half precision once or twice more than in the reference."""
        check_results([result], self.reference(*(a.astype(np.float64) for a in inputs)), 2e-3)


CASES = [
    Case(cast, ((M, K), (N, K)), lambda x, w: x @ w.T, ("float32",)),
    Case(activated, ((M, K), (K, N)), lambda x, w: (x / (1 + np.exp(-x))) @ w),
    Case(dequantised, ((M, K), (N, K), (N,)), lambda x, q, s: x @ (q * s[:, None]).T, ("float16", "int8")),
    Case(dequantised_columns, ((M, K), (K, N), (N,)), lambda x, q, s: x @ (q * s), ("float16", "int8")),
    Case(scaled_float8, ((M, K), (N, K), (N,)), lambda x, q, s: x @ (q * s[:, None]).T, ("float16", "float8_e4m3fn")),
    Case(scaled_along_k, ((M, K), (N, K), (K,)), lambda x, w, s: (x * s) @ w.T),
    Case(both, ((M, K), (N, K), (K,)), lambda x, w, s: (x * 2) @ np.maximum(w * s, 0).T),
    Case(transposed, ((K, M), (K, N), (K,)), lambda x, w, s: np.maximum(x, 0).T @ (w * s[:, None])),
    Case(reciprocal, ((M, K), (N, K)), lambda x, w: (1 / x) @ w.T, offset=1.0),
    Case(single_precision, ((M, K), (N, K)), lambda x, w: (x * x) @ w.T, ("float32", "float32")),
    Case(batched, ((3, M, 64), (64, N), (3,)), lambda x, w, s: (x * s[:, None, None]) @ w),
    Case(scaled_residual, ((M, K), (N, K), (M, N)), lambda x, w, r: r * 2 + x @ w.T),
]
