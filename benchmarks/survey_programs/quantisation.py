"""Arrays in int8 and float8, with scales a tensor, a row, a column or a block; products of such arrays."""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from typing import Any

from survey_programs.formulas import wide

LEAST = 1e-8


def _bytes(xp: Any, h: Any, axis: Any) -> Any:
    """int8 and scales of what `axis` spans."""
    scale = xp.maximum(xp.max(xp.abs(h), axis=axis, keepdims=True), LEAST) / 127.0
    return xp.astype(xp.clip(xp.round(h / scale), -127.0, 127.0), xp.int8), scale


def _float8(xp: Any, h: Any, axis: Any) -> Any:
    scale = xp.maximum(xp.max(xp.abs(h), axis=axis, keepdims=True), LEAST) / 448.0
    return xp.astype(h / scale, xp.float8_e4m3fn), scale


def int8_by_tensor(xp: Any, x: Any) -> Any:
    return _bytes(xp, wide(xp, x), None)


def int8_by_row(xp: Any, x: Any) -> Any:
    return _bytes(xp, wide(xp, x), -1)


def int8_by_column(xp: Any, x: Any) -> Any:
    return _bytes(xp, wide(xp, x), 0)


def int8_by_block(xp: Any, x: Any) -> Any:
    """(rows, blocks, block)."""
    return _bytes(xp, wide(xp, x), -1)


def int8_asymmetric_by_row(xp: Any, x: Any) -> Any:
    h = wide(xp, x)
    low, high = xp.min(h, axis=-1, keepdims=True), xp.max(h, axis=-1, keepdims=True)
    scale = (high - low) / 255.0
    return xp.astype(xp.round((h - low) / scale) - 128.0, xp.int8), scale, low


def float8_by_tensor(xp: Any, x: Any) -> Any:
    return _float8(xp, wide(xp, x), None)


def float8_by_row(xp: Any, x: Any) -> Any:
    return _float8(xp, wide(xp, x), -1)


def float8_by_column(xp: Any, x: Any) -> Any:
    return _float8(xp, wide(xp, x), 0)


def float8_by_block(xp: Any, x: Any) -> Any:
    """(rows, blocks, block)."""
    return _float8(xp, wide(xp, x), -1)


def float8_by_square(xp: Any, x: Any) -> Any:
    """Weights (rows, 128, columns, 128) by squares of 128."""
    return _float8(xp, wide(xp, x), (1, 3))


def float8_known_scale(xp: Any, x: Any, scale: Any) -> Any:
    """By the last step's scale, with this step's maximum for the next: (1) arrays."""
    h = wide(xp, x)
    return xp.astype(h * scale, xp.float8_e4m3fn), xp.max(xp.abs(h))


def float8_both_ways(xp: Any, x: Any, scale: Any) -> Any:
    """And transposed, for the two products of a backward pass; a transpose of the first result would be a view."""
    turned = xp.permute_dims(x, (1, 0))
    return tuple(xp.astype(wide(xp, y) * scale, xp.float8_e4m3fn) for y in (x, turned))


def power_of_two_blocks(xp: Any, x: Any) -> Any:
    """Blocks of 32 by powers of two, as microscaled formats have them, in E5M2."""
    h = wide(xp, x)
    most = xp.maximum(xp.max(xp.abs(h), axis=-1, keepdims=True), LEAST)
    scale = xp.exp2(xp.floor(xp.log2(most)) - 15.0)
    return xp.astype(h / scale, xp.float8_e5m2), scale


def dequantised(xp: Any, q: Any, scale: Any) -> Any:
    """By tensor, row, column or block, as scale's shape says."""
    return xp.astype(wide(xp, q) * scale, xp.bfloat16)


def dequantised_asymmetric(xp: Any, q: Any, scale: Any, zero: Any) -> Any:
    return xp.astype((wide(xp, q) - zero) * scale, xp.bfloat16)


def gelu_int8(xp: Any, x: Any, b: Any) -> Any:
    h = wide(xp, x) + b
    return _bytes(xp, h * xp.sigmoid(1.702 * h), -1)


def fake_quantised(xp: Any, x: Any) -> Any:
    """Rounded to 4 bits a row, in the array's own type."""
    h = wide(xp, x)
    scale = xp.max(xp.abs(h), axis=-1, keepdims=True) / 7.0
    return xp.astype(xp.clip(xp.round(h / scale), -7.0, 7.0) * scale, xp.bfloat16)


def straight_through_backward(xp: Any, dy: Any, x: Any, limit: Any) -> Any:
    """Gradients of what was not clipped, and of each column's limit."""
    g, h = wide(xp, dy), wide(xp, x)
    inside = xp.abs(h) <= limit
    return xp.astype(xp.where(inside, g, 0.0), xp.bfloat16), xp.sum(xp.where(inside, 0.0, g * xp.sign(h)), axis=0)


def cache_entry(xp: Any, k: Any, v: Any) -> Any:
    """Keys and values (tokens, heads, channels) for a cache in int8."""
    return *_bytes(xp, wide(xp, k), -1), *_bytes(xp, wide(xp, v), -1)


def weight_only_int8(xp: Any, x: Any, w: Any, scale: Any) -> Any:
    """Weights (N, K) in int8 with a scale a row, in a product of bfloat16."""
    return (x @ xp.astype(w, xp.bfloat16).mT) * scale


def weight_only_blocks(xp: Any, x: Any, w: Any, scale: Any) -> Any:
    """Weights (N, blocks, 128) with a scale a block."""
    n, blocks, block = w.shape
    dense = xp.reshape(xp.astype(wide(xp, w) * scale, xp.bfloat16), (n, blocks * block))
    return x @ dense.mT


def int8_product(xp: Any, x: Any, w: Any, x_scale: Any, w_scale: Any) -> Any:
    """int8 by int8 in int32, then scales a row and a column."""
    total = xp.astype(x, xp.int32) @ xp.astype(w, xp.int32).mT
    return xp.astype(xp.astype(total, xp.float32) * x_scale * w_scale, xp.bfloat16)


def torch_int8_product(x: Any, w: Any, x_scale: Any, w_scale: Any) -> Any:
    import torch

    return (torch._int_mm(x, w.t()).float() * x_scale * w_scale).bfloat16()


def float8_product(xp: Any, x: Any, w: Any, x_scale: Any, w_scale: Any) -> Any:
    """With scales a row and a column."""
    return xp.astype(xp.matmul(x, w.mT, dtype=xp.float32) * x_scale * w_scale, xp.bfloat16)


def torch_float8_product(x: Any, w: Any, x_scale: Any, w_scale: Any) -> Any:
    import torch

    return torch._scaled_mm(x, w.t(), x_scale, w_scale, out_dtype=torch.bfloat16)
