"""Images in the four dimensions that frameworks give them, (N, C, H, W), whose rows are often 7, 14 or 49 elements."""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from survey_programs.formulas import wide
from survey_programs.program import Program, sized

EPSILON = 1e-5
SPACE = (2, 3)


def _by_channel(x: Any) -> Any:
    return x[:, None, None]


def _normalised(xp: Any, h: Any, axes: Any) -> tuple[Any, Any, Any]:
    mean = xp.mean(h, axis=axes, keepdims=True)
    d = h - mean
    rstd = xp.rsqrt(xp.mean(d * d, axis=axes, keepdims=True) + EPSILON)
    return d * rstd, mean, rstd


def scale_shift_relu(xp: Any, x: Any, scale: Any, shift: Any) -> Any:
    y = wide(xp, x) * _by_channel(scale) + _by_channel(shift)
    return xp.astype(xp.maximum(y, 0.0), xp.bfloat16)


def batch_norm_planes(xp: Any, x: Any, w: Any, b: Any) -> Any:
    y, mean, rstd = _normalised(xp, wide(xp, x), (0, 2, 3))
    return xp.astype(y * _by_channel(w) + _by_channel(b), xp.bfloat16), mean, rstd


def batch_norm_planes_backward(xp: Any, dy: Any, x: Any, w: Any, mean: Any, rstd: Any) -> Any:
    axes = (0, 2, 3)
    g, n = wide(xp, dy), (wide(xp, x) - _by_channel(mean)) * _by_channel(rstd)
    dw, db = xp.mean(g * n, axis=axes, keepdims=True), xp.mean(g, axis=axes, keepdims=True)
    dx = _by_channel(w) * _by_channel(rstd) * (g - db - n * dw)
    return xp.astype(dx, xp.bfloat16), dw, db


def bias_residual_relu(xp: Any, x: Any, r: Any, b: Any) -> Any:
    return xp.maximum(x + r + _by_channel(b), 0.0)


def gated_channels(xp: Any, x: Any, gate: Any) -> Any:
    return xp.astype(wide(xp, x) * xp.sigmoid(gate), xp.bfloat16)


def global_average(xp: Any, x: Any) -> Any:
    return xp.astype(xp.mean(wide(xp, x), axis=SPACE), xp.bfloat16)


def layer_scale(xp: Any, x: Any, r: Any, gamma: Any) -> Any:
    return r + x * _by_channel(gamma)


def group_norm_planes(xp: Any, x: Any, w: Any, b: Any) -> Any:
    y, _, _ = _normalised(xp, wide(xp, x), (2, 3, 4))
    return xp.astype(y * w[..., None, None] + b[..., None, None], xp.bfloat16)


def channel_norm(xp: Any, x: Any, w: Any, b: Any) -> Any:
    """ConvNeXt's normalisation over the channels of each pixel."""
    y, _, _ = _normalised(xp, wide(xp, x), 1)
    return xp.astype(y * _by_channel(w) + _by_channel(b), xp.bfloat16)


def class_probabilities(xp: Any, x: Any) -> Any:
    e = xp.exp(x - xp.max(x, axis=1, keepdims=True))
    return e / xp.sum(e, axis=1, keepdims=True)


def attention_map(xp: Any, x: Any) -> Any:
    h = wide(xp, x)
    e = xp.exp(h - xp.max(h, axis=SPACE, keepdims=True))
    return xp.astype(e / xp.sum(e, axis=SPACE, keepdims=True), xp.bfloat16)


def window_attention(xp: Any, scores: Any, bias: Any) -> Any:
    """Swin's probabilities within windows of 7 by 7 pixels, with a bias for each head and pair of pixels."""
    h = wide(xp, scores) + bias
    e = xp.exp(h - xp.max(h, axis=-1, keepdims=True))
    return xp.astype(e / xp.sum(e, axis=-1, keepdims=True), xp.bfloat16)


def shifted_window_attention(xp: Any, scores: Any, bias: Any, mask: Any) -> Any:
    return window_attention(xp, scores, bias + mask[:, None])


def unit_pixels(xp: Any, x: Any) -> Any:
    return x * xp.rsqrt(xp.sum(x * x, axis=1, keepdims=True) + EPSILON)


def dice(xp: Any, p: Any, t: Any) -> Any:
    both = xp.sum(p * t, axis=SPACE)
    return 1.0 - (2.0 * both + 1.0) / (xp.sum(p * p, axis=SPACE) + xp.sum(t * t, axis=SPACE) + 1.0)


def average_frames(xp: Any, x: Any) -> Any:
    return xp.astype(xp.mean(wide(xp, x), axis=2), xp.bfloat16)


def planes() -> Iterator[Program]:
    """Layers of ResNet, EfficientNet, ConvNeXt, Swin, diffusion's U-Net and segmentation."""
    d, x = "planes", "x:bf16[N,C,H,W]"
    affine, small, middle = f"{x} w:f32[C] b:f32[C]", "N=128 C=2048 H=7 W=7", "N=128 C=1024 H=14 W=14"
    relu = f"{x} scale:f32[C] shift:f32[C]"
    yield from sized(d, scale_shift_relu, relu, small, middle, "N=128 C=512 H=28 W=28", "N=64 C=256 H=56 W=56")
    yield from sized(d, batch_norm_planes, affine, middle, "N=64 C=64 H=112 W=112")
    saved = "w:f32[C] mean:f32[C] rstd:f32+[C]"
    yield from sized(d, batch_norm_planes_backward, f"dy:bf16[N,C,H,W] {x} {saved}", middle)
    yield from sized(d, bias_residual_relu, f"{x} r:bf16[N,C,H,W] b:bf16[C]", small, "N=128 C=512 H=28 W=28")
    yield from sized(d, gated_channels, f"{x} gate:f32[N,C,1,1]", "N=128 C=672 H=14 W=14", "N=128 C=1152 H=7 W=7")
    yield from sized(d, global_average, x, small, "N=64 C=512 H=14 W=14")
    yield from sized(d, layer_scale, f"{x} r:bf16[N,C,H,W] gamma:bf16[C]", "N=128 C=768 H=14 W=14")
    grouped = "x:bf16[N,G,D,H,W] w:f32[G,D] b:f32[G,D]"
    yield from sized(d, group_norm_planes, grouped, "N=16 G=32 D=10 H=64 W=64", "N=16 G=32 D=40 H=8 W=8")
    yield from sized(d, channel_norm, affine, "N=64 C=96 H=56 W=56", "N=128 C=768 H=7 W=7")
    yield from sized(d, class_probabilities, "x:f32[N,C,H,W]", "N=16 C=21 H=129 W=129")
    yield from sized(d, attention_map, x, "N=64 C=256 H=14 W=14")
    windows = "scores:bf16[B,H,T,T] bias:f32[H,T,T]"
    yield from sized(d, window_attention, windows, "B=4096 H=4 T=49")
    yield from sized(
        d, shifted_window_attention, "scores:bf16[B,M,H,T,T] bias:f32[H,T,T] mask:f32[M,T,T]", "B=64 M=64 H=3 T=49"
    )
    yield from sized(d, unit_pixels, "x:f32[N,C,H,W]", "N=32 C=64 H=33 W=33")
    yield from sized(d, dice, "p:f32+[N,C,H,W] t:f32+[N,C,H,W]", "N=16 C=4 H=224 W=224")
    yield from sized(d, average_frames, "x:bf16[N,C,T,H,W]", "N=16 C=512 T=16 H=14 W=14")
