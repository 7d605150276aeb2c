"""The backward functions that are timed: plain Python for mlirfuse, and the same formulas for PyTorch.

Arguments are dy and x of (rows, columns), w of (columns), and what the forward pass saved in float32: the mean
(LayerNorm only) and the reciprocal deviation of every row, of (rows, 1). Results are dx and the vectors' gradients.
"""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from typing import Any

import mlirfuse as mf

EPSILON = 1e-5


def rms_norm_backward(dy: Any, x: Any, w: Any, rstd: Any) -> Any:
    g = dy.astype(mf.float32)
    n = x.astype(mf.float32) * rstd
    gw = g * w
    dx = (gw - n * mf.mean(gw * n, axis=-1, keepdims=True)) * rstd
    return dx.astype(x.dtype), mf.sum(g * n, axis=0).astype(w.dtype)


def layer_norm_backward(dy: Any, x: Any, w: Any, mean: Any, rstd: Any) -> Any:
    g = dy.astype(mf.float32)
    n = (x.astype(mf.float32) - mean) * rstd
    gw = g * w
    along = mf.mean(gw * n, axis=-1, keepdims=True)
    dx = (gw - n * along - mf.mean(gw, axis=-1, keepdims=True)) * rstd
    return dx.astype(x.dtype), mf.sum(g * n, axis=0).astype(w.dtype), mf.sum(g, axis=0).astype(w.dtype)


def torch_rms_norm_backward(dy: Any, x: Any, w: Any, rstd: Any) -> Any:
    g, n = dy.float(), x.float() * rstd
    gw = g * w
    dx = (gw - n * (gw * n).mean(-1, keepdim=True)) * rstd
    return dx.to(x.dtype), (g * n).sum(0).to(w.dtype)


def torch_layer_norm_backward(dy: Any, x: Any, w: Any, mean: Any, rstd: Any) -> Any:
    g, n = dy.float(), (x.float() - mean) * rstd
    gw = g * w
    dx = (gw - n * (gw * n).mean(-1, keepdim=True) - gw.mean(-1, keepdim=True)) * rstd
    return dx.to(x.dtype), (g * n).sum(0).to(w.dtype), g.sum(0).to(w.dtype)


def double_rms_norm_backward(dy: Any, x: Any, w: Any) -> Any:
    g, h = dy.double(), x.double()
    rstd = (h.square().mean(-1, keepdim=True) + EPSILON).rsqrt()
    n, gw = h * rstd, g * w.double()
    return (gw - n * (gw * n).mean(-1, keepdim=True)) * rstd, (g * n).sum(0)


def double_layer_norm_backward(dy: Any, x: Any, w: Any) -> Any:
    g, h = dy.double(), x.double()
    h = h - h.mean(-1, keepdim=True)
    rstd = (h.square().mean(-1, keepdim=True) + EPSILON).rsqrt()
    n, gw = h * rstd, g * w.double()
    dx = (gw - n * (gw * n).mean(-1, keepdim=True) - gw.mean(-1, keepdim=True)) * rstd
    return dx, (g * n).sum(0), g.sum(0)


def rms_norm_saved(x: Any) -> tuple[Any, ...]:
    return ((x.float().square().mean(-1, keepdim=True) + EPSILON).rsqrt(),)


def layer_norm_saved(x: Any) -> tuple[Any, ...]:
    h = x.float()
    mean = h.mean(-1, keepdim=True)
    return mean, ((h - mean).square().mean(-1, keepdim=True) + EPSILON).rsqrt()


RESULTS = {"rms_norm": ("dx", "dw"), "layer_norm": ("dx", "dw", "db")}
FUSED = {"rms_norm": rms_norm_backward, "layer_norm": layer_norm_backward}
TORCH = {"rms_norm": torch_rms_norm_backward, "layer_norm": torch_layer_norm_backward}
DOUBLE = {"rms_norm": double_rms_norm_backward, "layer_norm": double_layer_norm_backward}
SAVED = {"rms_norm": rms_norm_saved, "layer_norm": layer_norm_saved}
"""What the forward pass leaves behind."""
