"""Functions around a matrix product, for the interpreter's and the GPU's tests, with NumPy's float64 beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlirfuse as mf
from tests.support.numerics.closeness import check_results

M, N, K = 72, 96, 200


def gelu(x, w, b):
    h = (mf.matmul(x, w.T, dtype=mf.float32) + b) * 1.0
    return (0.5 * h * (1 + mf.erf(h * 0.7071067811865476))).astype(x.dtype)


def residual(x, w, r):
    return (mf.matmul(x, w.T, dtype=mf.float32) + r).astype(x.dtype)


def scaled_rows(x, w, s):
    return (mf.matmul(x, w.T, dtype=mf.float32) * s[:, None]).astype(x.dtype)


def two_results(x, w):
    y = mf.matmul(x, w.T, dtype=mf.float32)
    return y, mf.maximum(y, 0).astype(x.dtype)


def transposed_result(x, w, b):
    return (mf.matmul(x, w.T, dtype=mf.float32) + b).T


def row_sums_of_squares(x, w):
    y = x @ w.T
    return y, mf.sum(y.astype(mf.float32) ** 2, axis=-1)


def dequantised(x, q, s):
    return x @ (q.astype(x.dtype) * s[:, None]).T


def two_products(x, w, v):
    return (x @ w.T) @ v


def _erf(x: np.ndarray) -> np.ndarray:
    from math import erf

    return np.vectorize(erf)(x)


@dataclass(frozen=True)
class Case:
    """A function with a product in it.

    Attributes:
        fn: the function.
        shapes: of its arguments; the first two are the product's operands.
        reference: the same in float64.
        kernels: how many kernels it becomes.
        quantised: whether the second argument is int8.
        rounded: whether something is rounded before it is multiplied.
        reductions: whether the result is reduced, for which a block must have its tile whole.
    """

    fn: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    reference: Callable[..., Any]
    kernels: int = 1
    quantised: bool = False
    rounded: bool = False
    totals: bool = False

    def __str__(self) -> str:
        return self.fn.__name__

    def inputs(self) -> list[np.ndarray]:
        rng = np.random.default_rng(len(self.shapes))
        arrays = [(rng.standard_normal(shape) / 4).astype(np.float16) for shape in self.shapes]
        if self.quantised:
            arrays[1] = rng.integers(-8, 8, self.shapes[1]).astype(np.int8)
        return arrays

    def check(self, results: Sequence[np.ndarray], inputs: Sequence[np.ndarray]) -> None:
        # Half precision rounds once, or a few times where there are several kernels.
        bound = 2e-3 if self.kernels > 1 or self.rounded else 6e-4
        check_results(results, self.reference(*(a.astype(np.float64) for a in inputs)), bound)


def _gelu(x, w, b):
    h = x @ w.T + b
    return 0.5 * h * (1 + _erf(h * np.sqrt(0.5)))


OPERANDS = ((M, K), (N, K))
CASES = [
    Case(gelu, (*OPERANDS, (N,)), _gelu),
    Case(residual, (*OPERANDS, (M, N)), lambda x, w, r: x @ w.T + r),
    Case(scaled_rows, (*OPERANDS, (M,)), lambda x, w, s: (x @ w.T) * s[:, None]),
    Case(two_results, OPERANDS, lambda x, w: (x @ w.T, np.maximum(x @ w.T, 0))),
    Case(transposed_result, (*OPERANDS, (N,)), lambda x, w, b: (x @ w.T + b).T),
    Case(row_sums_of_squares, OPERANDS, lambda x, w: (x @ w.T, ((x @ w.T) ** 2).sum(-1)), rounded=True, totals=True),
    Case(dequantised, (*OPERANDS, (N,)), lambda x, q, s: x @ (q * s[:, None]).T, rounded=True, quantised=True),
    Case(two_products, (*OPERANDS, (N, 40)), lambda x, w, v: x @ w.T @ v, kernels=2),
]
