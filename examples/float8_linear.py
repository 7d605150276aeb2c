"""A linear layer in float8, quantised on the fly: python examples/float8_linear.py

Each row of x and w is scaled to the range of float8, so that its largest element becomes 448. The tensor cores multiply
float8, and sum in float32; the scales are in the epilogue of the product's kernel.
"""

from __future__ import annotations

import numpy as np
from arrays import on_gpu_or_interpreter

import mlirfuse as mf

LARGEST = 448.0
"""The largest number of float8_e4m3fn; what is larger would be cut off to it."""


def quantise(x):
    """One kernel: rows in float8, and what to multiply them with."""
    h = x.astype(mf.float32)
    scale = mf.max(mf.abs(h), axis=-1, keepdims=True) / LARGEST
    return (h / scale).astype(mf.float8_e4m3fn), scale


def float8_linear(x, w, b):
    """Three kernels: x and w are quantised, then multiplied."""
    (qx, x_scale), (qw, w_scale) = quantise(x), quantise(w)
    return (mf.matmul(qx, qw.T) * x_scale * w_scale.T + b).astype(x.dtype)


def tf32_linear(x, w, b):
    """One kernel: float32 operands, of which the tensor cores take 11 significant bits."""
    return mf.matmul(x, w.T, precision="tf32") + b


def main() -> None:
    rng = np.random.default_rng(0)
    x, w, b = ((rng.standard_normal(shape) / 8).astype(np.float32) for shape in [(48, 256), (96, 256), (96,)])
    exact = x.astype(np.float64) @ w.astype(np.float64).T + b
    half = tuple(a.astype(np.float16) for a in (x, w, b))
    target, to_device, to_numpy = on_gpu_or_interpreter()
    for function, arguments, most in ((float8_linear, half, 0.04), (tf32_linear, (x, w, b), 1e-3)):
        result = to_numpy(mf.fuse(function, target=target)(*map(to_device, arguments)))
        error = np.abs(result.astype(np.float64) - exact).max() / np.abs(exact).max()
        print(f"{function.__name__}: {result.shape}, largest error {error:.1e} of the largest element, in float64")
        assert error < most


if __name__ == "__main__":
    main()
