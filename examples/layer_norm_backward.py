"""LayerNorm, forward and backward; two gradients are sums over rows: python examples/layer_norm_backward.py"""

from __future__ import annotations

import numpy as np
from arrays import on_gpu_or_interpreter

import mlirfuse as mf


def layer_norm(x, w, b, eps):
    h = x.astype(mf.float32)
    mean = mf.mean(h, axis=-1, keepdims=True)
    rstd = mf.rsqrt(mf.mean((h - mean) ** 2, axis=-1, keepdims=True) + eps)
    return ((h - mean) * rstd * w + b).astype(x.dtype), mean, rstd


def layer_norm_backward(dy, x, w, mean, rstd):
    g = dy.astype(mf.float32)
    n = (x.astype(mf.float32) - mean) * rstd
    gw = g * w
    along = mf.mean(gw * n, axis=-1, keepdims=True)
    dx = (gw - n * along - mf.mean(gw, axis=-1, keepdims=True)) * rstd
    return dx.astype(x.dtype), mf.sum(g * n, axis=0).astype(w.dtype), mf.sum(g, axis=0).astype(w.dtype)


def reference(dy, x, w, eps):
    """dx, dw and db in float64."""
    g, h, w = (a.astype(np.float64) for a in (dy, x, w))
    n = (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + eps)
    gw = g * w
    inner = gw - n * (gw * n).mean(-1, keepdims=True) - gw.mean(-1, keepdims=True)
    return inner / np.sqrt(h.var(-1, keepdims=True) + eps), (g * n).sum(0), g.sum(0)


def main() -> None:
    rng = np.random.default_rng(0)
    dy, x, w, b = (rng.standard_normal(shape).astype(np.float16) for shape in [*[(37, 384)] * 2, *[(384,)] * 2])
    target, to_device, to_numpy = on_gpu_or_interpreter()
    dy_there, x_there, w_there, b_there = map(to_device, (dy, x, w, b))
    _, mean, rstd = mf.fuse(layer_norm, target=target)(x_there, w_there, b_there, 1e-5)
    gradients = mf.fuse(layer_norm_backward, target=target)(dy_there, x_there, w_there, mean, rstd)
    for name, result, expected in zip(("dx", "dw", "db"), gradients, reference(dy, x, w, 1e-5), strict=True):
        error = np.abs(to_numpy(result) - expected).max()
        print(f"layer_norm_backward: {name} {result.shape}, largest error {error:.1e} against float64")
        assert error < 2e-2


if __name__ == "__main__":
    main()
