"""Norms with residuals, dropout and quantised results, gates, softmaxes, rotary pairs; forward and backward."""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from typing import Any

EPSILON = 1e-5
KEPT = 0.9


def _wide(xp: Any, *arrays: Any) -> Any:
    return tuple(xp.astype(x, xp.float32) for x in arrays) if len(arrays) > 1 else xp.astype(arrays[0], xp.float32)


def _rms(xp: Any, h: Any, w: Any) -> Any:
    return h * xp.rsqrt(xp.mean(h * h, axis=-1, keepdims=True) + EPSILON) * w


def _layer_norm(xp: Any, h: Any, w: Any, b: Any) -> Any:
    d = h - xp.mean(h, axis=-1, keepdims=True)
    return d * xp.rsqrt(xp.mean(d * d, axis=-1, keepdims=True) + EPSILON) * w + b


def _softmax(xp: Any, h: Any, axis: int = -1) -> Any:
    e = xp.exp(h - xp.max(h, axis=axis, keepdims=True))
    return e / xp.sum(e, axis=axis, keepdims=True)


def rms_norm(xp: Any, x: Any, w: Any) -> Any:
    return xp.astype(_rms(xp, _wide(xp, x), w), xp.bfloat16)


def torch_rms_norm(x: Any, w: Any) -> Any:
    import torch

    return torch.nn.functional.rms_norm(x, (x.shape[-1],), w.to(x.dtype), EPSILON)


def layer_norm(xp: Any, x: Any, w: Any, b: Any) -> Any:
    return xp.astype(_layer_norm(xp, _wide(xp, x), w, b), xp.bfloat16)


def torch_layer_norm(x: Any, w: Any, b: Any) -> Any:
    import torch

    return torch.nn.functional.layer_norm(x, (x.shape[-1],), w.to(x.dtype), b.to(x.dtype), EPSILON)


def residual_rms_norm(xp: Any, x: Any, r: Any, w: Any) -> Any:
    h = x + r
    return xp.astype(_rms(xp, _wide(xp, h), w), xp.bfloat16), h


def residual_layer_norm(xp: Any, x: Any, r: Any, w: Any, b: Any) -> Any:
    h = _wide(xp, x) + _wide(xp, r)
    return xp.astype(_layer_norm(xp, h, w, b), xp.bfloat16), xp.astype(h, xp.bfloat16)


def dropout_residual_layer_norm(xp: Any, x: Any, r: Any, mask: Any, w: Any, b: Any) -> Any:
    h = xp.where(mask, _wide(xp, x) / KEPT, 0.0) + _wide(xp, r)
    return xp.astype(_layer_norm(xp, h, w, b), xp.bfloat16), xp.astype(h, xp.bfloat16)


def bias_dropout_residual(xp: Any, x: Any, b: Any, r: Any, mask: Any) -> Any:
    return xp.astype(xp.where(mask, _wide(xp, x + b) / KEPT, 0.0) + r, xp.bfloat16)


def rms_norm_int8(xp: Any, x: Any, w: Any) -> Any:
    y = _rms(xp, _wide(xp, x), w)
    scale = xp.max(xp.abs(y), axis=-1, keepdims=True) / 127.0
    return xp.astype(xp.clip(xp.round(y / scale), -127.0, 127.0), xp.int8), scale


def residual_rms_norm_float8(xp: Any, x: Any, r: Any, w: Any) -> Any:
    h = x + r
    y = _rms(xp, _wide(xp, h), w)
    scale = xp.max(xp.abs(y), axis=-1, keepdims=True) / 448.0
    return xp.astype(y / scale, xp.float8_e4m3fn), scale, h


def gated_rms_norm(xp: Any, x: Any, z: Any, w: Any) -> Any:
    """As Mamba-2 ends a block."""
    z = _wide(xp, z)
    return xp.astype(_rms(xp, _wide(xp, x) * z * xp.sigmoid(z), w), xp.bfloat16)


def adaptive_layer_norm(xp: Any, x: Any, shift: Any, scale: Any) -> Any:
    """As diffusion transformers modulate: x of (images, tokens, channels), a shift and a scale an image."""
    return xp.astype(_layer_norm(xp, _wide(xp, x), 1.0 + scale[:, None, :], shift[:, None, :]), xp.bfloat16)


def rms_norm_backward(xp: Any, dy: Any, x: Any, w: Any, rstd: Any) -> Any:
    g, n = _wide(xp, dy), _wide(xp, x) * rstd
    gw = g * w
    dx = (gw - n * xp.mean(gw * n, axis=-1, keepdims=True)) * rstd
    return xp.astype(dx, xp.bfloat16), xp.sum(g * n, axis=0)


def residual_rms_norm_backward(xp: Any, dy: Any, dr: Any, x: Any, w: Any, rstd: Any) -> Any:
    g, n = _wide(xp, dy), _wide(xp, x) * rstd
    gw = g * w
    dx = (gw - n * xp.mean(gw * n, axis=-1, keepdims=True)) * rstd + dr
    return xp.astype(dx, xp.bfloat16), xp.sum(g * n, axis=0)


def layer_norm_backward(xp: Any, dy: Any, x: Any, w: Any, mean: Any, rstd: Any) -> Any:
    g, n = _wide(xp, dy), (_wide(xp, x) - mean) * rstd
    gw = g * w
    along = xp.mean(gw * n, axis=-1, keepdims=True)
    dx = (gw - n * along - xp.mean(gw, axis=-1, keepdims=True)) * rstd
    return xp.astype(dx, xp.bfloat16), xp.sum(g * n, axis=0), xp.sum(g, axis=0)


def dropout_layer_norm_backward(xp: Any, dy: Any, x: Any, mask: Any, w: Any, mean: Any, rstd: Any) -> Any:
    dx, dw, db = layer_norm_backward(xp, dy, x, w, mean, rstd)
    return dx, xp.astype(xp.where(mask, _wide(xp, dx) / KEPT, 0.0), xp.bfloat16), dw, db


def swiglu(xp: Any, gate: Any, up: Any) -> Any:
    g = _wide(xp, gate)
    return xp.astype(g * xp.sigmoid(g) * up, xp.bfloat16)


def swiglu_backward(xp: Any, dy: Any, gate: Any, up: Any) -> Any:
    d, g, u = _wide(xp, dy, gate, up)
    s = xp.sigmoid(g)
    return xp.astype(d * u * s * (1.0 + g * (1.0 - s)), xp.bfloat16), xp.astype(d * g * s, xp.bfloat16)


def swiglu_float8(xp: Any, gate: Any, up: Any) -> Any:
    g, u = _wide(xp, gate, up)
    y = g * xp.sigmoid(g) * u
    scale = xp.max(xp.abs(y), axis=-1, keepdims=True) / 448.0
    return xp.astype(y / scale, xp.float8_e4m3fn), scale


def geglu_tanh(xp: Any, gate: Any, up: Any) -> Any:
    g = _wide(xp, gate)
    return xp.astype(0.5 * g * (1.0 + xp.tanh(0.7978845608 * (g + 0.044715 * g * g * g))) * up, xp.bfloat16)


def bias_gelu(xp: Any, x: Any, b: Any) -> Any:
    h = _wide(xp, x) + b
    return xp.astype(0.5 * h * (1.0 + xp.erf(h * 0.7071067812)), xp.bfloat16)


def bias_gelu_backward(xp: Any, dy: Any, x: Any, b: Any) -> Any:
    h = _wide(xp, x) + b
    density = 0.3989422804 * xp.exp(-0.5 * h * h)
    dx = _wide(xp, dy) * (0.5 * (1.0 + xp.erf(h * 0.7071067812)) + h * density)
    return xp.astype(dx, xp.bfloat16), xp.sum(dx, axis=0)


def squared_relu(xp: Any, x: Any) -> Any:
    return xp.square(xp.maximum(x, 0.0))


def softmax(xp: Any, x: Any) -> Any:
    return xp.astype(_softmax(xp, _wide(xp, x)), xp.bfloat16)


def torch_softmax(x: Any) -> Any:
    return x.softmax(-1)


def masked_softmax(xp: Any, x: Any, mask: Any) -> Any:
    return xp.astype(_softmax(xp, xp.where(mask, _wide(xp, x) * 0.125, float("-inf"))), xp.bfloat16)


def additive_mask_softmax(xp: Any, x: Any, bias: Any) -> Any:
    return xp.astype(_softmax(xp, _wide(xp, x) * 0.125 + bias), xp.bfloat16)


def soft_capped_softmax(xp: Any, x: Any) -> Any:
    return xp.astype(_softmax(xp, xp.tanh(_wide(xp, x) / 50.0) * 50.0), xp.bfloat16)


def alibi_softmax(xp: Any, x: Any, slope: Any, position: Any) -> Any:
    """Scores of (batch, heads, queries, keys), a slope a head."""
    return xp.astype(_softmax(xp, _wide(xp, x) - slope[:, None, None] * position), xp.bfloat16)


def dropout_softmax(xp: Any, x: Any, mask: Any) -> Any:
    y = _softmax(xp, _wide(xp, x))
    return xp.astype(y, xp.bfloat16), xp.astype(xp.where(mask, y / KEPT, 0.0), xp.bfloat16)


def softmax_backward(xp: Any, dy: Any, y: Any) -> Any:
    g, p = _wide(xp, dy, y)
    return xp.astype(p * (g - xp.sum(g * p, axis=-1, keepdims=True)), xp.bfloat16)


def rotary_halves(xp: Any, left: Any, right: Any, cos: Any, sin: Any) -> Any:
    """The halves of heads of (tokens, heads, half) as arrays of their own."""
    a, b = _wide(xp, left, right)
    c, s = cos[:, None, :], sin[:, None, :]
    return xp.astype(a * c - b * s, xp.bfloat16), xp.astype(b * c + a * s, xp.bfloat16)


def rotary_matrices(xp: Any, x: Any, turn: Any) -> Any:
    """Heads of (tokens, heads, 2, half) by the rotation (tokens, 2, 2, half) of each pair, as no half can be sliced."""
    turned = xp.sum(_wide(xp, x)[:, :, None, :, :] * turn[:, None, :, :, :], axis=3)
    return xp.astype(turned, xp.bfloat16)


def head_norm(xp: Any, q: Any, w: Any) -> Any:
    """Queries of (tokens, heads, channels), as models of 2025 normalise them."""
    return xp.astype(_rms(xp, _wide(xp, q), w), xp.bfloat16)


def router(xp: Any, logits: Any) -> Any:
    """Probabilities of experts, their mean load, and the z-loss."""
    h = _wide(xp, logits)
    most = xp.max(h, axis=-1, keepdims=True)
    e = xp.exp(h - most)
    total = xp.sum(e, axis=-1, keepdims=True)
    p = e / total
    return xp.astype(p, xp.bfloat16), xp.mean(p, axis=0), xp.mean(xp.square(most + xp.log(total)))


def combine_experts(xp: Any, y: Any, weight: Any) -> Any:
    """Results of (tokens, experts, channels), weighted."""
    return xp.astype(xp.sum(_wide(xp, y) * weight[:, :, None], axis=1), xp.bfloat16)


def masked_mean_pool(xp: Any, x: Any, mask: Any) -> Any:
    """Embeddings of (texts, tokens, channels), averaged over valid tokens and normalised."""
    m = _wide(xp, mask)
    pooled = xp.sum(_wide(xp, x) * m[:, :, None], axis=1) / xp.sum(m, axis=1)[:, None]
    return pooled * xp.rsqrt(xp.sum(pooled * pooled, axis=-1, keepdims=True))
