"""Backward of softmax(x + b): a sum over columns feeds a sum over rows: python examples/softmax_backward.py"""

from __future__ import annotations

import numpy as np
from arrays import on_gpu_or_interpreter

import mlirfuse as mf


def softmax_backward(dy, y):
    """dx, which is the logits' gradient, and its column sum, which is the gradient of a bias added to every row."""
    g, p = dy.astype(mf.float32), y.astype(mf.float32)
    dx = p * (g - mf.sum(g * p, axis=-1, keepdims=True))
    return dx.astype(y.dtype), mf.sum(dx, axis=0).astype(y.dtype)


def reference(dy, y):
    g, p = dy.astype(np.float64), y.astype(np.float64)
    dx = p * (g - (g * p).sum(-1, keepdims=True))
    return dx, dx.sum(0)


def main() -> None:
    rng = np.random.default_rng(0)
    dy = rng.standard_normal((29, 500)).astype(np.float16)
    e = np.exp(3 * rng.standard_normal(dy.shape))
    y = (e / e.sum(-1, keepdims=True)).astype(np.float16)
    target, to_device, to_numpy = on_gpu_or_interpreter()
    gradients = mf.fuse(softmax_backward, target=target)(to_device(dy), to_device(y))
    for name, result, expected in zip(("dx", "db"), gradients, reference(dy, y), strict=True):
        error = np.abs(to_numpy(result) - expected).max()
        print(f"softmax_backward: {name} {result.shape}, largest error {error:.1e} against float64")
        assert error < 1e-3


if __name__ == "__main__":
    main()
