"""The functions that are timed: plain Python for mlirfuse, and the same formulas for PyTorch."""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from typing import Any

import mlirfuse as mf

EPSILON = 1e-5


def layer_norm(x: Any, b0: Any, b1: Any, w: Any, b: Any) -> Any:
    h = (x + b0 + b1).astype(mf.float32)
    mu = mf.mean(h, axis=-1, keepdims=True)
    var = mf.mean((h - mu) ** 2, axis=-1, keepdims=True)
    return ((h - mu) * mf.rsqrt(var + EPSILON) * w + b).astype(x.dtype)


def rms_norm(x: Any, w: Any) -> Any:
    h = x.astype(mf.float32)
    return (h * mf.rsqrt(mf.mean(h * h, axis=-1, keepdims=True) + EPSILON) * w).astype(x.dtype)


def softmax(x: Any) -> Any:
    h = x.astype(mf.float32)
    e = mf.exp(h - mf.max(h, axis=-1, keepdims=True))
    return (e / mf.sum(e, axis=-1, keepdims=True)).astype(x.dtype)


def log_softmax(x: Any) -> Any:
    h = x.astype(mf.float32)
    d = h - mf.max(h, axis=-1, keepdims=True)
    return (d - mf.log(mf.sum(mf.exp(d), axis=-1, keepdims=True))).astype(x.dtype)


def torch_layer_norm(x: Any, b0: Any, b1: Any, w: Any, b: Any) -> Any:
    h = (x + b0 + b1).float()
    mu = h.mean(-1, keepdim=True)
    var = ((h - mu) ** 2).mean(-1, keepdim=True)
    return ((h - mu) * (var + EPSILON).rsqrt() * w + b).to(x.dtype)


def torch_rms_norm(x: Any, w: Any) -> Any:
    h = x.float()
    return (h * ((h * h).mean(-1, keepdim=True) + EPSILON).rsqrt() * w).to(x.dtype)


def torch_softmax(x: Any) -> Any:
    return x.float().softmax(-1).to(x.dtype)


def torch_log_softmax(x: Any) -> Any:
    return x.float().log_softmax(-1).to(x.dtype)


def double_layer_norm(x: Any, b0: Any, b1: Any, w: Any, b: Any) -> Any:
    """In float64 after the two sums, whose rounding to half precision belongs to the function."""
    h = (x + b0 + b1).double()
    mu = h.mean(-1, keepdim=True)
    var = ((h - mu) ** 2).mean(-1, keepdim=True)
    return (h - mu) * (var + EPSILON).rsqrt() * w.double() + b.double()


def double_rms_norm(x: Any, w: Any) -> Any:
    h = x.double()
    return h * ((h * h).mean(-1, keepdim=True) + EPSILON).rsqrt() * w.double()


def double_softmax(x: Any) -> Any:
    return x.double().softmax(-1)


def double_log_softmax(x: Any) -> Any:
    return x.double().log_softmax(-1)


PARAMETERS = {"layernorm": 4, "rms_norm": 1, "softmax": 0, "log_softmax": 0}
"""How many vectors of the row's length each function takes after x."""

FUSED = {"layernorm": layer_norm, "rms_norm": rms_norm, "softmax": softmax, "log_softmax": log_softmax}
TORCH = {
    "layernorm": torch_layer_norm,
    "rms_norm": torch_rms_norm,
    "softmax": torch_softmax,
    "log_softmax": torch_log_softmax,
}
DOUBLE = {
    "layernorm": double_layer_norm,
    "rms_norm": double_rms_norm,
    "softmax": double_softmax,
    "log_softmax": double_log_softmax,
}
