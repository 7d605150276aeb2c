"""Matrix products with what surrounds them, each in one kernel or two: python examples/linear.py

`x @ w.T` contracts on the tensor cores; what follows works on the tile of sums while it is in registers.
"""

from __future__ import annotations

import math

import numpy as np
from arrays import on_gpu_or_interpreter

import mlirfuse as mf


def gelu_linear(x, w, b):
    """One kernel: the product, a bias and an activation."""
    h = mf.matmul(x, w.T, dtype=mf.float32) + b
    return (0.5 * h * (1 + mf.erf(h * math.sqrt(0.5)))).astype(x.dtype)


def add_linear(x, w, r):
    """One kernel: the product and a residual."""
    return (mf.matmul(x, w.T, dtype=mf.float32) + r).astype(x.dtype)


def linear_with_norm(x, w):
    """Two kernels: a row's sum of squares needs whole rows of the product."""
    y = x @ w.T
    return y, mf.sum(y.astype(mf.float32) ** 2, axis=-1)


def dequantised_linear(x, q, scale):
    """Two kernels: the weights are cast once; their scales, one a row, are applied to the product's columns."""
    return (mf.matmul(x, q.astype(x.dtype).T, dtype=mf.float32) * scale).astype(x.dtype)


def gelu(h):
    return 0.5 * h * (1 + np.vectorize(math.erf)(h * math.sqrt(0.5)))


def main() -> None:
    rng = np.random.default_rng(0)
    x, w, r = ((rng.standard_normal(shape) / 8).astype(np.float16) for shape in [(48, 256), (96, 256), (48, 96)])
    b, scale = (rng.standard_normal(96).astype(np.float16) for _ in range(2))
    q = rng.integers(-8, 8, (96, 256)).astype(np.int8)
    product = x.astype(np.float64) @ w.astype(np.float64).T
    cases = [
        (gelu_linear, (x, w, b), [gelu(product + b)]),
        (add_linear, (x, w, r), [product + r]),
        (linear_with_norm, (x, w), [product, (product**2).sum(-1)]),
        (dequantised_linear, (x, q, scale), [x.astype(np.float64) @ q.astype(np.float64).T * scale]),
    ]
    target, to_device, to_numpy = on_gpu_or_interpreter()
    for function, arguments, expected in cases:
        results = mf.fuse(function, target=target)(*map(to_device, arguments))
        for result, exact in zip(results if isinstance(results, tuple) else (results,), expected, strict=True):
            error = np.abs(to_numpy(result).astype(np.float64) - exact).max() / np.abs(exact).max()
            print(f"{function.__name__}: {result.shape}, largest error {error:.1e} of the largest element, in float64")
            assert error < 2e-3


if __name__ == "__main__":
    main()
