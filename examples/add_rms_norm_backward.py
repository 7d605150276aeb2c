"""Backward of RMSNorm after a residual addition; dx serves both branches: python examples/add_rms_norm_backward.py"""

from __future__ import annotations

import numpy as np
from arrays import on_gpu_or_interpreter

import mlirfuse as mf


def add_rms_norm_backward(dy, ds, s, w, rstd):
    """For s = x + residual and y = rms_norm(s) * w: dy and ds come from behind, ds along the residual stream."""
    g = dy.astype(mf.float32)
    n = s.astype(mf.float32) * rstd
    gw = g * w
    dx = (gw - n * mf.mean(gw * n, axis=-1, keepdims=True)) * rstd + ds
    return dx.astype(s.dtype), mf.sum(g * n, axis=0).astype(w.dtype)


def reference(dy, ds, s, w, rstd):
    g, ds, h, w, rstd = (a.astype(np.float64) for a in (dy, ds, s, w, rstd))
    n, gw = h * rstd, g * w
    return (gw - n * (gw * n).mean(-1, keepdims=True)) * rstd + ds, (g * n).sum(0)


def main() -> None:
    rng = np.random.default_rng(0)
    dy, ds, s = (rng.standard_normal((37, 256)).astype(np.float16) for _ in range(3))
    w = rng.standard_normal(256).astype(np.float16)
    rstd = 1 / np.sqrt((s.astype(np.float32) ** 2).mean(-1, keepdims=True) + np.float32(1e-5))
    arguments = (dy, ds, s, w, rstd)
    target, to_device, to_numpy = on_gpu_or_interpreter()
    gradients = mf.fuse(add_rms_norm_backward, target=target)(*map(to_device, arguments))
    for name, result, expected in zip(("dx", "dw"), gradients, reference(*arguments), strict=True):
        error = np.abs(to_numpy(result) - expected).max()
        print(f"add_rms_norm_backward: {name} {result.shape}, largest error {error:.1e} against float64")
        assert error < 2e-2


if __name__ == "__main__":
    main()
