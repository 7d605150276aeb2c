"""Backward of bias and GELU; the bias gradient sums dx over rows: python examples/bias_gelu_backward.py"""

from __future__ import annotations

import math

import numpy as np
from arrays import on_gpu_or_interpreter

import mlirfuse as mf


def bias_gelu_backward(dy, x, bias):
    h = x.astype(mf.float32) + bias
    distribution = 0.5 * (1.0 + mf.erf(h * math.sqrt(0.5)))
    density = mf.exp(-0.5 * h * h) * (1 / math.sqrt(2 * math.pi))
    dx = dy.astype(mf.float32) * (distribution + h * density)
    return dx.astype(x.dtype), mf.sum(dx, axis=0).astype(bias.dtype)


def reference(dy, x, bias):
    h = x.astype(np.float64) + bias
    distribution = 0.5 * (1 + np.vectorize(math.erf)(h * math.sqrt(0.5)))
    dx = dy.astype(np.float64) * (distribution + h * np.exp(-0.5 * h * h) / math.sqrt(2 * math.pi))
    return dx, dx.sum(0)


def main() -> None:
    rng = np.random.default_rng(0)
    dy, x, bias = (rng.standard_normal(shape).astype(np.float16) for shape in [(33, 320), (33, 320), (320,)])
    target, to_device, to_numpy = on_gpu_or_interpreter()
    gradients = mf.fuse(bias_gelu_backward, target=target)(*map(to_device, (dy, x, bias)))
    for name, result, expected in zip(("dx", "db"), gradients, reference(dy, x, bias), strict=True):
        error = np.abs(to_numpy(result) - expected).max()
        print(f"bias_gelu_backward: {name} {result.shape}, largest error {error:.1e} against float64")
        assert error < 2e-2


if __name__ == "__main__":
    main()
