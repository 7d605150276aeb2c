"""Kernels with a float64 reference, and how far from it a result may be; shared by the CPU and the GPU tests.

The yardstick is what NumPy or PyTorch makes of the same problem at the same precision: inputs in the kernel's dtype,
arithmetic in float32, one rounding at the end. A result may be twice as far from float64 as that, and always one unit
in the last place of the largest output; four in float32, where every operation rounds, not the last one alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import mlirfuse as mf

DTYPES: dict[str, np.dtype] = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
}

EPSILON = 1e-5


def layer_norm(x, w, b):
    h = x.astype(mf.float32)
    mu = mf.mean(h, axis=-1, keepdims=True)
    var = mf.mean((h - mu) ** 2, axis=-1, keepdims=True)
    return ((h - mu) * mf.rsqrt(var + 1e-5) * w + b).astype(x.dtype)


def rms_norm(x, w):
    h = x.astype(mf.float32)
    return (h * mf.rsqrt(mf.mean(h * h, axis=-1, keepdims=True) + 1e-5) * w).astype(x.dtype)


def softmax(x):
    h = x.astype(mf.float32)
    e = mf.exp(h - mf.max(h, axis=-1, keepdims=True))
    return (e / mf.sum(e, axis=-1, keepdims=True)).astype(x.dtype)


def log_softmax(x):
    h = x.astype(mf.float32)
    shifted = h - mf.max(h, axis=-1, keepdims=True)
    return (shifted - mf.log(mf.sum(mf.exp(shifted), axis=-1, keepdims=True))).astype(x.dtype)


def norm_of_all(x, w):
    h = x.astype(mf.float32)
    return (h * mf.rsqrt(mf.mean(h * h) + 1e-5) * w).astype(x.dtype)


def variance(x):
    return mf.var(x, axis=-1)


def column_sums(x):
    return mf.sum(x, axis=0)


def batch_norm(x, w, b):
    h = x.astype(mf.float32)
    mu = mf.mean(h, axis=0, keepdims=True)
    var = mf.var(h, axis=0, keepdims=True)
    return ((h - mu) * mf.rsqrt(var + 1e-5) * w + b).astype(x.dtype)


def _normalised(x: np.ndarray, axis: int) -> np.ndarray:
    centred = x - x.mean(axis=axis, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=axis, keepdims=True) + x.dtype.type(EPSILON))


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _log_softmax(x: np.ndarray) -> np.ndarray:
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


@dataclass(frozen=True)
class Family:
    """A kernel over rows.

    Attributes:
        fn: the function that mlirfuse compiles: x of (rows, columns), then vectors of (columns).
        reference: the same of NumPy arrays, in whatever precision they have.
        vectors: how many vectors it takes.
    """

    fn: Callable[..., Any]
    reference: Callable[..., np.ndarray]
    vectors: int = 0

    @property
    def name(self) -> str:
        return self.fn.__name__

    def inputs(self, rows: int, columns: int, dtype: np.dtype, *, seed: int = 0, mean: float = 0.5) -> list[np.ndarray]:
        """x with the given mean and a deviation of 1, and the vectors around 1."""
        rng = np.random.default_rng(seed)
        x = rng.normal(mean, 1, (rows, columns)).astype(dtype)
        return [x, *(rng.normal(1, 0.5, columns).astype(dtype) for _ in range(self.vectors))]

    def specs(self, rows: int | None, columns: int, dtype: np.dtype, **layout: Any) -> list[mf.TensorSpec]:
        """The signature; `rows` None is dynamic."""
        x = mf.TensorSpec((rows, columns), dtype, **layout)
        return [x, *(mf.TensorSpec(columns, dtype) for _ in range(self.vectors))]

    def check(self, actual: np.ndarray, inputs: Sequence[np.ndarray], baseline: np.ndarray | None = None) -> None:
        """Asserts that a result is close enough to float64, measured by `baseline`; None takes NumPy's in float32."""
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of the mean of no rows
            exact = self.reference(*(a.astype(np.float64) for a in inputs))
            if baseline is None:
                baseline = self.reference(*(a.astype(np.float32) for a in inputs)).astype(inputs[0].dtype)
        assert_close(actual, exact, baseline)


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(layer_norm, lambda x, w, b: _normalised(x, -1) * w + b, vectors=2),
        Family(rms_norm, lambda x, w: x / np.sqrt((x * x).mean(-1, keepdims=True) + x.dtype.type(EPSILON)) * w, 1),
        Family(norm_of_all, lambda x, w: x / np.sqrt((x * x).mean() + x.dtype.type(EPSILON)) * w, vectors=1),
        Family(softmax, _softmax),
        Family(log_softmax, _log_softmax),
        Family(variance, lambda x: ((x - x.mean(-1, keepdims=True)) ** 2).mean(-1)),
        Family(column_sums, lambda x: x.sum(0)),
        Family(batch_norm, lambda x, w, b: _normalised(x, 0) * w + b, vectors=2),
    )
}


def ulp(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The distance between a float64 number and the next one that `dtype` can hold, in float64."""
    info = ml_dtypes.finfo(dtype)
    exponent = np.frexp(np.maximum(np.abs(values), float(info.smallest_normal)))[1]
    return np.ldexp(float(info.eps), exponent - 1)


def assert_close(actual: np.ndarray, exact: np.ndarray, baseline: np.ndarray, *, factor: float = 2) -> None:
    """Asserts that `actual` is as good as `baseline`.

    Where `exact` is NaN or infinite in the output's dtype, `actual` has to be the same.

    Args:
        actual: what the kernel gave, in its own dtype.
        exact: the float64 reference.
        baseline: another implementation's result in the same dtype.
        factor: how many times the baseline's largest error is allowed.
    """
    assert actual.shape == exact.shape, f"shape {actual.shape}, not {exact.shape}"
    assert actual.dtype == baseline.dtype, f"dtype {actual.dtype}, not {baseline.dtype}"
    with np.errstate(all="ignore"):
        rounded = exact.astype(actual.dtype).astype(np.float64)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(actual.astype(np.float64)[~finite], rounded[~finite])
    error = np.abs(actual.astype(np.float64) - exact)[finite]
    theirs = np.abs(baseline.astype(np.float64) - exact)[finite]
    if not error.size:
        return
    assert np.isfinite(error).all(), f"{np.count_nonzero(~np.isfinite(error))} results are not finite"
    floor = float(ulp(np.abs(exact[finite]).max(), actual.dtype)) * (4 if actual.dtype == np.float32 else 1)
    yardstick = float(theirs.max(initial=0, where=np.isfinite(theirs)))
    bound = np.maximum(factor * yardstick, floor)
    worst = int(np.argmax(error))
    assert error[worst] <= bound, (
        f"error {error[worst]:.3g} at element {np.flatnonzero(finite)[worst]} exceeds {bound:.3g}; "
        f"the yardstick's largest is {yardstick:.3g}"
    )
