"""RMSNorm, forward and backward; the weight's gradient is a sum over rows: python examples/rms_norm_backward.py"""

from __future__ import annotations

import numpy as np
from arrays import on_gpu_or_interpreter

import mlirfuse as mf


def rms_norm(x, w, eps):
    h = x.astype(mf.float32)
    rstd = mf.rsqrt(mf.mean(h * h, axis=-1, keepdims=True) + eps)
    return (h * rstd * w).astype(x.dtype), rstd


def rms_norm_backward(dy, x, w, rstd):
    g = dy.astype(mf.float32)
    n = x.astype(mf.float32) * rstd
    gw = g * w
    dx = (gw - n * mf.mean(gw * n, axis=-1, keepdims=True)) * rstd
    return dx.astype(x.dtype), mf.sum(g * n, axis=0).astype(w.dtype)


def reference(dy, x, w, eps):
    """dx and dw in float64."""
    g, h, w = (a.astype(np.float64) for a in (dy, x, w))
    rstd = 1 / np.sqrt((h * h).mean(-1, keepdims=True) + eps)
    n, gw = h * rstd, g * w
    return (gw - n * (gw * n).mean(-1, keepdims=True)) * rstd, (g * n).sum(0)


def main() -> None:
    rng = np.random.default_rng(0)
    dy, x, w = (rng.standard_normal(shape).astype(np.float16) for shape in [(37, 384), (37, 384), (384,)])
    target, to_device, to_numpy = on_gpu_or_interpreter()
    dy_there, x_there, w_there = map(to_device, (dy, x, w))
    _, rstd = mf.fuse(rms_norm, target=target)(x_there, w_there, 1e-5)
    gradients = mf.fuse(rms_norm_backward, target=target)(dy_there, x_there, w_there, rstd)
    for name, result, expected in zip(("dx", "dw"), gradients, reference(dy, x, w, 1e-5), strict=True):
        error = np.abs(to_numpy(result) - expected).max()
        print(f"rms_norm_backward: {name} {result.shape}, largest error {error:.1e} against float64")
        assert error < 2e-2


if __name__ == "__main__":
    main()
