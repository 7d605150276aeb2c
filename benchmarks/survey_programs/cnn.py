"""Normalisations of images in both orders of dimensions, forward and backward; gates, poolings and statistics.

Images are (N, H, W, C) or (N, C, H, W); H and W are one dimension S where nothing needs both.
"""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from typing import Any

from survey_programs.formulas import wide

EPSILON = 1e-5


def _normalised(xp: Any, h: Any, axes: Any) -> Any:
    mean = xp.mean(h, axis=axes, keepdims=True)
    d = h - mean
    var = xp.mean(d * d, axis=axes, keepdims=True)
    return d * xp.rsqrt(var + EPSILON), mean, var


def _backward(xp: Any, g: Any, n: Any, gw: Any, rstd: Any, axes: Any) -> Any:
    along, mean = xp.mean(gw * n, axis=axes, keepdims=True), xp.mean(gw, axis=axes, keepdims=True)
    return xp.astype((gw - n * along - mean) * rstd, xp.bfloat16)


def batch_norm_last(xp: Any, x: Any, w: Any, b: Any) -> Any:
    """(N, S, C): the result, and the batch's mean and variance."""
    y, mean, var = _normalised(xp, wide(xp, x), (0, 1))
    return xp.astype(y * w + b, xp.bfloat16), mean, var


def batch_norm_first(xp: Any, x: Any, w: Any, b: Any) -> Any:
    """(N, C, S)."""
    y, mean, var = _normalised(xp, wide(xp, x), (0, 2))
    return xp.astype(y * w[:, None] + b[:, None], xp.bfloat16), mean, var


def batch_norm_relu_last(xp: Any, x: Any, r: Any, w: Any, b: Any) -> Any:
    y, mean, var = _normalised(xp, wide(xp, x), (0, 1))
    return xp.astype(xp.maximum(y * w + b + r, 0.0), xp.bfloat16), mean, var


def batch_norm_inference_last(xp: Any, x: Any, r: Any, mean: Any, var: Any, w: Any, b: Any) -> Any:
    y = (wide(xp, x) - mean) * xp.rsqrt(var + EPSILON) * w + b
    return xp.astype(xp.maximum(y + r, 0.0), xp.bfloat16)


def batch_norm_inference_first(xp: Any, x: Any, mean: Any, var: Any, w: Any, b: Any) -> Any:
    scale = w * xp.rsqrt(var + EPSILON)
    y = wide(xp, x) * scale[:, None] + (b - mean * scale)[:, None]
    return xp.astype(xp.maximum(y, 0.0), xp.bfloat16)


def batch_norm_backward_last(xp: Any, dy: Any, x: Any, w: Any, mean: Any, rstd: Any) -> Any:
    g, n = wide(xp, dy), (wide(xp, x) - mean) * rstd
    dw, db = xp.mean(g * n, axis=(0, 1)), xp.mean(g, axis=(0, 1))
    return xp.astype((g - n * dw - db) * rstd * w, xp.bfloat16), dw, db


def batch_norm_backward_first(xp: Any, dy: Any, x: Any, w: Any, mean: Any, rstd: Any) -> Any:
    g, n = wide(xp, dy), (wide(xp, x) - mean[:, None]) * rstd[:, None]
    dw, db = xp.mean(g * n, axis=(0, 2)), xp.mean(g, axis=(0, 2))
    return xp.astype((g - n * dw[:, None] - db[:, None]) * (rstd * w)[:, None], xp.bfloat16), dw, db


def batch_norm_relu_backward_last(xp: Any, dy: Any, y: Any, x: Any, w: Any, mean: Any, rstd: Any) -> Any:
    dy = xp.where(wide(xp, y) > 0.0, wide(xp, dy), 0.0)
    return batch_norm_backward_last(xp, dy, x, w, mean, rstd)


def group_norm_last(xp: Any, x: Any, w: Any, b: Any) -> Any:
    """(N, S, groups, C / groups)."""
    y, _, _ = _normalised(xp, wide(xp, x), (1, 3))
    return xp.astype(y * w + b, xp.bfloat16)


def group_norm_first(xp: Any, x: Any, w: Any, b: Any) -> Any:
    """(N, groups, C / groups, S)."""
    y, _, _ = _normalised(xp, wide(xp, x), (2, 3))
    return xp.astype(y * w[:, :, None] + b[:, :, None], xp.bfloat16)


def group_norm_silu_first(xp: Any, x: Any, w: Any, b: Any) -> Any:
    y, _, _ = _normalised(xp, wide(xp, x), (2, 3))
    h = y * w[:, :, None] + b[:, :, None]
    return xp.astype(h * xp.sigmoid(h), xp.bfloat16)


def group_norm_backward_first(xp: Any, dy: Any, x: Any, w: Any, mean: Any, rstd: Any) -> Any:
    g, n = wide(xp, dy), (wide(xp, x) - mean) * rstd
    dx = _backward(xp, g, n, g * w[:, :, None], rstd, (2, 3))
    return dx, xp.sum(g * n, axis=(0, 3)), xp.sum(g, axis=(0, 3))


def group_norm_backward_last(xp: Any, dy: Any, x: Any, w: Any, mean: Any, rstd: Any) -> Any:
    g, n = wide(xp, dy), (wide(xp, x) - mean) * rstd
    return _backward(xp, g, n, g * w, rstd, (1, 3)), xp.sum(g * n, axis=(0, 1)), xp.sum(g, axis=(0, 1))


def instance_norm_first(xp: Any, x: Any) -> Any:
    return xp.astype(_normalised(xp, wide(xp, x), (2,))[0], xp.bfloat16)


def instance_norm_last(xp: Any, x: Any) -> Any:
    return xp.astype(_normalised(xp, wide(xp, x), (1,))[0], xp.bfloat16)


def adaptive_instance_norm_first(xp: Any, x: Any, scale: Any, shift: Any) -> Any:
    y, _, _ = _normalised(xp, wide(xp, x), (2,))
    return xp.astype(y * scale[:, :, None] + shift[:, :, None], xp.bfloat16)


def instance_norm_backward_first(xp: Any, dy: Any, x: Any, mean: Any, rstd: Any) -> Any:
    g, n = wide(xp, dy), (wide(xp, x) - mean) * rstd
    return _backward(xp, g, n, g, rstd, (2,))


def layer_norm_first(xp: Any, x: Any, w: Any, b: Any) -> Any:
    """Over the channels of (N, C, S)."""
    y, _, _ = _normalised(xp, wide(xp, x), (1,))
    return xp.astype(y * w[:, None] + b[:, None], xp.bfloat16)


def layer_norm_last(xp: Any, x: Any, w: Any, b: Any) -> Any:
    y, _, _ = _normalised(xp, wide(xp, x), (2,))
    return xp.astype(y * w + b, xp.bfloat16)


def layer_norm_backward_first(xp: Any, dy: Any, x: Any, w: Any, mean: Any, rstd: Any) -> Any:
    g, n = wide(xp, dy), (wide(xp, x) - mean) * rstd
    dx = _backward(xp, g, n, g * w[:, None], rstd, (1,))
    return dx, xp.sum(g * n, axis=(0, 2)), xp.sum(g, axis=(0, 2))


def channel_statistics_last(xp: Any, x: Any) -> Any:
    h = wide(xp, x)
    return xp.sum(h, axis=(0, 1)), xp.sum(h * h, axis=(0, 1))


def channel_statistics_first(xp: Any, x: Any) -> Any:
    h = wide(xp, x)
    return xp.sum(h, axis=(0, 2)), xp.sum(h * h, axis=(0, 2))


def squeeze_last(xp: Any, x: Any) -> Any:
    return xp.astype(xp.mean(wide(xp, x), axis=1), xp.bfloat16)


def excite_last(xp: Any, x: Any, gate: Any) -> Any:
    return xp.astype(wide(xp, x) * xp.sigmoid(gate)[:, None, :], xp.bfloat16)


def squeeze_excite_last(xp: Any, x: Any, down: Any, up: Any) -> Any:
    """With both products between: means, a bottleneck, gates."""
    pooled = xp.astype(xp.mean(wide(xp, x), axis=1), xp.bfloat16)
    gate = xp.sigmoid(xp.maximum(pooled @ down, 0.0) @ up)
    return x * gate[:, None, :]


def squeeze_excite_first(xp: Any, x: Any, down: Any, up: Any) -> Any:
    pooled = xp.astype(xp.mean(wide(xp, x), axis=2), xp.bfloat16)
    gate = xp.sigmoid(xp.maximum(pooled @ down, 0.0) @ up)
    return x * gate[:, :, None]


def excite_backward_last(xp: Any, dy: Any, x: Any, gate: Any) -> Any:
    g, s = wide(xp, dy), xp.sigmoid(gate)
    return xp.astype(g * s[:, None, :], xp.bfloat16), xp.sum(g * wide(xp, x), axis=1) * s * (1.0 - s)


def average_pool_last(xp: Any, x: Any) -> Any:
    """(N, H / 2, 2, W / 2, 2, C)."""
    return xp.astype(xp.mean(wide(xp, x), axis=(2, 4)), xp.bfloat16)


def max_pool_first(xp: Any, x: Any) -> Any:
    """(N, C, H / 2, 2, W / 2, 2)."""
    return xp.max(x, axis=(3, 5))


def global_max_pool_last(xp: Any, x: Any) -> Any:
    return xp.max(x, axis=1)


def bias_relu_first(xp: Any, x: Any, b: Any) -> Any:
    return xp.maximum(x + b[:, None], 0.0)


def bias_relu_backward_first(xp: Any, dy: Any, y: Any) -> Any:
    g = xp.where(wide(xp, y) > 0.0, wide(xp, dy), 0.0)
    return xp.astype(g, xp.bfloat16), xp.sum(g, axis=(0, 2))


def hard_swish(xp: Any, x: Any) -> Any:
    h = wide(xp, x)
    return xp.astype(h * xp.clip(h + 3.0, 0.0, 6.0) / 6.0, xp.bfloat16)


def weight_standardisation(xp: Any, w: Any, gain: Any) -> Any:
    """Of filters (outputs, inputs * taps)."""
    y, _, _ = _normalised(xp, w, (1,))
    return y * gain[:, None]


def global_response_norm_last(xp: Any, x: Any, w: Any, b: Any) -> Any:
    """As ConvNeXt V2: channels by their norms over an image, relative to the mean norm."""
    h = wide(xp, x)
    size = xp.sqrt(xp.sum(h * h, axis=1, keepdims=True))
    ratio = size / (xp.mean(size, axis=-1, keepdims=True) + 1e-6)
    return xp.astype(w * (h * ratio) + b + h, xp.bfloat16)


def gram_matrix(xp: Any, features: Any) -> Any:
    """(N, C, S): products of all channels, as style losses take them."""
    return features @ features.mT
