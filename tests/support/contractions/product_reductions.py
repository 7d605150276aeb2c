"""Functions that reduce a product's result, for the interpreter's and the GPU's tests, with float64 beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlirfuse as mf
from tests.support.numerics.closeness import check_results

M, N, K = 72, 100, 200


def product(x, w):
    return mf.matmul(x, w.T, dtype=mf.float32)


def rows_of_squares(x, w):
    y = x @ w.T
    return y, mf.sum(y.astype(mf.float32) ** 2, axis=-1)


def columns(x, w):
    return mf.sum(product(x, w), axis=0)


def everything(x, w):
    return mf.sum(mf.abs(product(x, w)))


def two_totals(x, w, b):
    y = product(x, w) + b
    return mf.max(y, axis=1), y.astype(x.dtype), mf.sum(y, axis=1)


def normalised(x, w, s):
    """What works on a reduction, with an argument that the tile does not need."""
    y = product(x, w)
    return mf.sqrt(mf.mean(y * y, axis=1) + 1.0) * s


def products(x, w):
    """A neutral element that is not zero."""
    return mf.min(product(x, w) + 100, axis=1)


def batched(x, w):
    y = mf.matmul(x, w, dtype=mf.float32)
    return mf.sum(y * y, axis=-1)


def over_batch(x, w):
    return mf.sum(mf.matmul(x, w, dtype=mf.float32), axis=0)


def single_precision(x, w):
    y = x @ w.T
    return y, mf.sum(y * y, axis=1)


@dataclass(frozen=True)
class Case:
    """A function of a product and its reductions.

    Attributes:
        fn: the function.
        shapes: of its arguments.
        reference: the same in float64.
        dtype: of the arguments.
    """

    fn: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    reference: Callable[..., Any]
    dtype: str = "float16"

    def __str__(self) -> str:
        return self.fn.__name__

    def inputs(self) -> list[np.ndarray]:
        rng = np.random.default_rng(len(self.shapes))
        return [(rng.standard_normal(shape) / 4).astype(self.dtype) for shape in self.shapes]

    def check(self, results: Sequence[np.ndarray], inputs: Sequence[np.ndarray]) -> None:
        check_results(results, self.reference(*(a.astype(np.float64) for a in inputs)), 1e-3)


OPERANDS = ((M, K), (N, K))
CASES = [
    Case(rows_of_squares, OPERANDS, lambda x, w: (x @ w.T, ((x @ w.T) ** 2).sum(-1))),
    Case(columns, OPERANDS, lambda x, w: (x @ w.T).sum(0)),
    Case(everything, OPERANDS, lambda x, w: np.abs(x @ w.T).sum()),
    Case(
        two_totals,
        (*OPERANDS, (N,)),
        lambda x, w, b: ((x @ w.T + b).max(1), x @ w.T + b, (x @ w.T + b).sum(1)),
    ),
    Case(normalised, (*OPERANDS, (M,)), lambda x, w, s: np.sqrt(((x @ w.T) ** 2).mean(1) + 1) * s),
    Case(products, OPERANDS, lambda x, w: (x @ w.T + 100).min(1)),
    Case(batched, ((3, M, 64), (3, 64, N)), lambda x, w: ((x @ w) ** 2).sum(-1)),
    Case(over_batch, ((3, M, 64), (3, 64, N)), lambda x, w: (x @ w).sum(0)),
    Case(single_precision, OPERANDS, lambda x, w: (x @ w.T, ((x @ w.T) ** 2).sum(1)), "float32"),
]
