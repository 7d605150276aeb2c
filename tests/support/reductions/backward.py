"""Backward functions with references in any precision; shared by the CPU and the GPU tests.

The functions are those of examples/. Each reduces rows, most reduce columns too, over the same full-size inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from add_rms_norm_backward import add_rms_norm_backward
from bias_gelu_backward import bias_gelu_backward
from layer_norm_backward import layer_norm_backward
from rms_norm_backward import rms_norm_backward
from softmax_backward import softmax_backward

import mlirfuse as mf
from tests.support.reductions.numerics import EPSILON, assert_close


def batch_norm_sums(dy, x, mean, rstd):
    """What the backward pass of a batch normalisation sums over rows; no reduction runs over columns."""
    g = dy.astype(mf.float32)
    n = (x.astype(mf.float32) - mean) * rstd
    return mf.sum(g * n, axis=0), mf.sum(g, axis=0)


@dataclass(frozen=True)
class Backward:
    """A function of full-size arrays, vectors of (columns) and numbers of a row, (rows, 1).

    Attributes:
        fn: what mlirfuse compiles.
        reference: the same of NumPy arrays or PyTorch tensors, in whatever precision they have.
        make: float64 arguments, from a generator, rows and columns.
        like: for every result the argument whose dtype it is rounded to, or None for float32.
        saved: positions of arguments that are float32 whatever the dtype of the others.
    """

    fn: Callable[..., Any]
    reference: Callable[..., tuple[Any, ...]]
    make: Callable[[np.random.Generator, int, int], list[np.ndarray]]
    like: tuple[int | None, ...]
    saved: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return self.fn.__name__

    def inputs(self, rows: int, columns: int, dtype: np.dtype, *, seed: int = 0) -> list[np.ndarray]:
        """Arguments in the given dtype, those in `saved` in float32."""
        arrays = self.make(np.random.default_rng(seed), rows, columns)
        return [a.astype(np.float32 if i in self.saved else dtype) for i, a in enumerate(arrays)]

    def specs(self, columns: int, dtype: np.dtype) -> list[mf.TensorSpec]:
        """What the function is compiled for to take arguments of any number of rows."""
        arrays = self.inputs(2, columns, dtype)
        return [mf.TensorSpec(("rows", *a.shape[1:]) if a.ndim == 2 else a.shape, a.dtype) for a in arrays]

    def exact(self, inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """The results in float64."""
        return self.reference(*(a.astype(np.float64) for a in inputs))

    def baseline(self, inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """NumPy's results in float32, each rounded once."""
        results = self.reference(*(a.astype(np.float32) for a in inputs))
        return tuple(r.astype(dtype) for r, dtype in zip(results, self.result_dtypes(inputs), strict=True))

    def result_dtypes(self, inputs: Sequence[np.ndarray]) -> list[np.dtype]:
        return [np.dtype(np.float32) if i is None else inputs[i].dtype for i in self.like]

    def check(
        self, results: Sequence[np.ndarray], inputs: Sequence[np.ndarray], baseline: Sequence[np.ndarray] | None = None
    ) -> None:
        """Asserts that results are as close to float64 as `baseline`, NumPy's in float32 if None, allows."""
        yardsticks = self.baseline(inputs) if baseline is None else baseline
        for actual, exact, yardstick in zip(results, self.exact(inputs), yardsticks, strict=True):
            assert_close(actual, exact, yardstick)


def _norm_inputs(full: int, means: bool) -> Callable[[np.random.Generator, int, int], list[np.ndarray]]:
    """`full` arrays of which the last is x, w, and what the forward pass of x saved."""

    def make(rng: np.random.Generator, rows: int, columns: int) -> list[np.ndarray]:
        arrays = [rng.standard_normal((rows, columns)) for _ in range(full)]
        x = arrays[-1] = arrays[-1] + 0.5
        mean = x.mean(-1, keepdims=True) if means else np.zeros((rows, 1))
        rstd = 1 / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + EPSILON)
        return [*arrays, rng.normal(1, 0.5, columns), *([mean] if means else []), rstd]

    return make


def _batch_inputs(rng: np.random.Generator, rows: int, columns: int) -> list[np.ndarray]:
    dy, x = rng.standard_normal((rows, columns)), rng.normal(0.5, 1, (rows, columns))
    return [dy, x, x.mean(0), 1 / np.sqrt(x.var(0) + EPSILON)]


def _gelu_inputs(rng: np.random.Generator, rows: int, columns: int) -> list[np.ndarray]:
    return [rng.standard_normal((rows, columns)), rng.standard_normal((rows, columns)), rng.standard_normal(columns)]


def _softmax_inputs(rng: np.random.Generator, rows: int, columns: int) -> list[np.ndarray]:
    e = np.exp(2 * rng.standard_normal((rows, columns)))
    return [rng.standard_normal((rows, columns)), e / e.sum(-1, keepdims=True)]


def _rms_norm(dy, x, w, rstd):
    n, gw = x * rstd, dy * w
    return (gw - n * (gw * n).mean(axis=-1, keepdims=True)) * rstd, (dy * n).sum(axis=0)


def _layer_norm(dy, x, w, mean, rstd):
    n, gw = (x - mean) * rstd, dy * w
    inner = gw - n * (gw * n).mean(axis=-1, keepdims=True) - gw.mean(axis=-1, keepdims=True)
    return inner * rstd, (dy * n).sum(axis=0), dy.sum(axis=0)


def _add_rms_norm(dy, ds, s, w, rstd):
    dx, dw = _rms_norm(dy, s, w, rstd)
    return dx + ds, dw


def _bias_gelu(dy, x, bias):
    h = x + bias
    dx = dy * (0.5 * (1 + _erf(h * 0.5**0.5)) + h * _exp(-0.5 * h * h) / (2 * np.pi) ** 0.5)
    return dx, dx.sum(axis=0)


def _erf(values):
    return values.erf() if hasattr(values, "erf") else np.vectorize(math.erf)(values).astype(values.dtype)


def _exp(values):
    return values.exp() if hasattr(values, "exp") else np.exp(values)


def _softmax(dy, y):
    dx = y * (dy - (dy * y).sum(axis=-1, keepdims=True))
    return dx, dx.sum(axis=0)


def _batch_sums(dy, x, mean, rstd):
    return (dy * (x - mean) * rstd).sum(axis=0), dy.sum(axis=0)


BACKWARD: dict[str, Backward] = {
    backward.name: backward
    for backward in (
        Backward(rms_norm_backward, _rms_norm, _norm_inputs(2, means=False), (1, 2), saved=(3,)),
        Backward(layer_norm_backward, _layer_norm, _norm_inputs(2, means=True), (1, 2, 2), saved=(3, 4)),
        Backward(add_rms_norm_backward, _add_rms_norm, _norm_inputs(3, means=False), (2, 3), saved=(4,)),
        Backward(bias_gelu_backward, _bias_gelu, _gelu_inputs, (1, 2)),
        Backward(softmax_backward, _softmax, _softmax_inputs, (1, 1)),
        Backward(batch_norm_sums, _batch_sums, _batch_inputs, (None, None), saved=(2, 3)),
    )
}
