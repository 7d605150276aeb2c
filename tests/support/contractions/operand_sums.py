"""Functions that multiply an array and sum it up over the same dimension, in one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mlirfuse as mf
from tests.support.contractions.shared_operands import BF16, Shared
from tests.support.convolutions import PASSES, Case


def linear(x, dy):
    """The gradients of a linear layer's weights and bias."""
    return dy.mT @ x, mf.sum(dy, axis=-2)


def linear_transposed(x, dy):
    """The same with weights that are stored transposed."""
    return x.mT @ dy, mf.sum(dy, axis=-2)


def row_sums(x, w):
    """The sums that the zero point of a quantised product needs."""
    return x @ w.mT, mf.sum(x, axis=-1)


def normalised(x, w):
    """A product of rows that are divided by their root mean square, behind the product."""
    wide = mf.astype(x, mf.float32)
    squares = mf.sum(wide * wide, axis=-1, keepdims=True)
    return mf.astype(x @ w.mT, mf.float32) * squares, squares


def _bf16(array: np.ndarray) -> np.ndarray:
    return array.astype(BF16).astype(np.float64)


def _t(array: np.ndarray) -> np.ndarray:
    return np.swapaxes(array, -1, -2)


CASES = {
    "linear": Shared(linear, [(328, 136), (328, 72)], lambda x, dy: [_bf16(_t(dy) @ x), _bf16(dy.sum(-2))]),
    "linear_transposed": Shared(
        linear_transposed, [(328, 136), (328, 72)], lambda x, dy: [_bf16(_t(x) @ dy), _bf16(dy.sum(-2))]
    ),
    "row_sums": Shared(row_sums, [(72, 328), (136, 328)], lambda x, w: [_bf16(x @ w.T), _bf16(x.sum(-1))]),
    "normalised": Shared(
        normalised,
        [(72, 328), (136, 328)],
        lambda x, w: [_bf16(x @ w.T) * (x * x).sum(-1, keepdims=True), (x * x).sum(-1, keepdims=True)],
    ),
    "batched": Shared(linear, [(3, 72, 136), (3, 72, 40)], lambda x, dy: [_bf16(_t(dy) @ x), _bf16(dy.sum(-2))]),
    "float32": Shared(linear, [(72, 40), (72, 36)], lambda x, dy: [_t(dy) @ x, dy.sum(-2)], np.dtype(np.float32)),
    "float32_rows": Shared(row_sums, [(36, 72), (40, 72)], lambda x, w: [x @ w.T, x.sum(-1)], np.dtype(np.float32)),
}


def bias_gradient(case: Case) -> Callable[..., Any]:
    """The gradients of a convolution's filters and bias."""

    def gradients(x, dy):
        dw = PASSES[len(case.sizes) - 1][1](x, dy, kernel_size=case.taps, **case.parameters)
        return dw, mf.sum(dy, axis=tuple(range(dy.ndim - 1)))

    return gradients
