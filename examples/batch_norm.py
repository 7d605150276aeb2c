"""Batch normalisation, forward and backward: every reduction runs over rows: python examples/batch_norm.py"""

from __future__ import annotations

import numpy as np
from arrays import on_gpu_or_interpreter

import mlirfuse as mf


def batch_norm(x, w, b, eps):
    h = x.astype(mf.float32)
    mean = mf.mean(h, axis=0)
    rstd = mf.rsqrt(mf.mean((h - mean) ** 2, axis=0) + eps)
    return ((h - mean) * rstd * w + b).astype(x.dtype), mean, rstd


def batch_norm_backward(dy, x, w, mean, rstd):
    g = dy.astype(mf.float32)
    n = (x.astype(mf.float32) - mean) * rstd
    dx = (g - n * mf.mean(g * n, axis=0) - mf.mean(g, axis=0)) * rstd * w
    return dx.astype(x.dtype), mf.sum(g * n, axis=0).astype(w.dtype), mf.sum(g, axis=0).astype(w.dtype)


def reference(dy, x, w, eps):
    """dx, dw and db in float64."""
    g, h, w = (a.astype(np.float64) for a in (dy, x, w))
    rstd = 1 / np.sqrt(h.var(0) + eps)
    n = (h - h.mean(0)) * rstd
    return (g - n * (g * n).mean(0) - g.mean(0)) * rstd * w, (g * n).sum(0), g.sum(0)


def main() -> None:
    rng = np.random.default_rng(0)
    dy, x, w, b = (rng.standard_normal(shape).astype(np.float16) for shape in [*[(100, 96)] * 2, *[(96,)] * 2])
    target, to_device, to_numpy = on_gpu_or_interpreter()
    dy_there, x_there, w_there, b_there = map(to_device, (dy, x, w, b))
    _, mean, rstd = mf.fuse(batch_norm, target=target)(x_there, w_there, b_there, 1e-5)
    gradients = mf.fuse(batch_norm_backward, target=target)(dy_there, x_there, w_there, mean, rstd)
    for name, result, expected in zip(("dx", "dw", "db"), gradients, reference(dy, x, w, 1e-5), strict=True):
        error = np.abs(to_numpy(result) - expected).max()
        print(f"batch_norm_backward: {name} {result.shape}, largest error {error:.1e} against float64")
        assert error < 2e-2


if __name__ == "__main__":
    main()
