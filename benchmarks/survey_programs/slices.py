"""Slices of what is computed, and sums over pairs: packed gates, rotated halves, stencils, distances."""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from typing import Any


def _wide(xp: Any, x: Any) -> Any:
    return xp.astype(x, xp.float32)


def _sigmoid(xp: Any, x: Any) -> Any:
    return 1.0 / (1.0 + xp.exp(-x))


def packed_swiglu(xp: Any, x: Any, w: Any) -> Any:
    """Gate and value of one product."""
    h = xp.matmul(x, w)
    n = h.shape[-1] // 2
    gate, up = _wide(xp, h[:, :n]), _wide(xp, h[:, n:])
    return xp.astype(gate * _sigmoid(xp, gate) * up, xp.bfloat16)


def biased_glu(xp: Any, x: Any, b: Any) -> Any:
    """A gated linear unit of a product that another library computed."""
    h = _wide(xp, x) + b
    n = h.shape[-1] // 2
    return xp.astype(h[:, :n] * _sigmoid(xp, h[:, n:]), xp.bfloat16)


def norm_rotary(xp: Any, x: Any, w: Any, cos: Any, sin: Any) -> Any:
    """Heads (batch, heads, tokens, 2 * half), normalised and rotated."""
    h = _wide(xp, x)
    h = h * (1.0 / xp.sqrt(xp.mean(h * h, axis=-1, keepdims=True) + 1e-6)) * w
    n = h.shape[-1] // 2
    a, b = h[..., :n], h[..., n:]
    return xp.astype(a * cos - b * sin, xp.bfloat16), xp.astype(b * cos + a * sin, xp.bfloat16)


def interleaved_rotary(xp: Any, x: Any, cos: Any, sin: Any) -> Any:
    h = _wide(xp, x)
    a, b = h[..., 0::2], h[..., 1::2]
    return xp.astype(a * cos - b * sin, xp.bfloat16), xp.astype(b * cos + a * sin, xp.bfloat16)


def joined_rotary(xp: Any, x: Any, cos: Any, sin: Any) -> Any:
    """Halves as one array, as models write it."""
    h = _wide(xp, x)
    n = h.shape[-1] // 2
    turned = xp.concat([-h[..., n:], h[..., :n]], axis=-1)
    return xp.astype(h * cos + turned * sin, xp.bfloat16)


def rotary_halves(xp: Any, x: Any, w: Any, cos: Any, sin: Any) -> Any:
    """Normalised heads, whose rotated halves are one array."""
    h = _wide(xp, x)
    h = h * (1.0 / xp.sqrt(xp.mean(h * h, axis=-1, keepdims=True) + 1e-6)) * w
    n = h.shape[-1] // 2
    a, b = h[..., :n], h[..., n:]
    return xp.astype(xp.concat([a * cos - b * sin, b * cos + a * sin], axis=-1), xp.bfloat16)


def packed_swiglu_backward(xp: Any, x: Any, dy: Any) -> Any:
    """The gradient with regard to a packed projection."""
    n = x.shape[-1] // 2
    gate, up, d = _wide(xp, x[:, :n]), _wide(xp, x[:, n:]), _wide(xp, dy)
    s = _sigmoid(xp, gate)
    return xp.astype(xp.concat([d * up * s * (1.0 + gate * (1.0 - s)), d * gate * s], axis=-1), xp.bfloat16)


def stacked_rotary(xp: Any, x: Any, cos: Any, sin: Any) -> Any:
    """Pairs of neighbours as one array."""
    h = _wide(xp, x)
    a, b = h[..., 0::2], h[..., 1::2]
    pairs = xp.stack([a * cos - b * sin, b * cos + a * sin], axis=-1)
    return xp.astype(xp.reshape(pairs, x.shape), xp.bfloat16)


def skip_connection(xp: Any, x: Any, skip: Any, w: Any, b: Any) -> Any:
    """Channels of two images side by side, scaled and shifted, behind an activation."""
    h = _wide(xp, xp.concat([x, skip], axis=-1)) * w + b
    return xp.astype(h * _sigmoid(xp, h), xp.bfloat16)


def appended_keys(xp: Any, cache: Any, keys: Any) -> Any:
    return xp.concat([cache, keys], axis=2)


def token_shift(xp: Any, x: Any, mix: Any) -> Any:
    h = _wide(xp, x)
    return xp.astype(h[:, 1:] * mix + h[:, :-1] * (1.0 - mix), xp.bfloat16)


def laplace(xp: Any, x: Any) -> Any:
    return x[1:-1, 2:] + x[1:-1, :-2] + x[2:, 1:-1] + x[:-2, 1:-1] - 4.0 * x[1:-1, 1:-1]


def sobel(xp: Any, x: Any) -> Any:
    """(images, height, width) to the size of the gradient."""
    left, right = (x[:, :-2, a] + 2.0 * x[:, 1:-1, a] + x[:, 2:, a] for a in (slice(None, -2), slice(2, None)))
    above, below = (x[:, a, :-2] + 2.0 * x[:, a, 1:-1] + x[:, a, 2:] for a in (slice(None, -2), slice(2, None)))
    across, down = right - left, below - above
    return xp.sqrt(across * across + down * down)


def heat(xp: Any, u: Any) -> Any:
    """A step of the heat equation in three dimensions."""
    c = u[1:-1, 1:-1, 1:-1]
    around = u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1]
    return c + 0.1 * (around + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2] - 6.0 * c)


def moving_average(xp: Any, x: Any) -> Any:
    h = _wide(xp, x)
    return xp.astype((h[:, 3:] + h[:, 2:-1] + h[:, 1:-2] + h[:, :-3]) * 0.25, xp.bfloat16)


def luminance(xp: Any, x: Any) -> Any:
    return x[..., 0] * 0.299 + x[..., 1] * 0.587 + x[..., 2] * 0.114


def taxicab(xp: Any, x: Any, y: Any) -> Any:
    return xp.sum(xp.abs(x[:, None, :] - y[None, :, :]), axis=-1)


def batched_distances(xp: Any, x: Any, y: Any) -> Any:
    d = x[:, :, None, :] - y[:, None, :, :]
    return xp.sum(d * d, axis=-1)


def max_plus(xp: Any, x: Any, y: Any) -> Any:
    return xp.max(x[:, :, None] + y[None, :, :], axis=1)


def divergences(xp: Any, p: Any, q: Any) -> Any:
    return xp.sum(p[:, None, :] * (xp.log(p)[:, None, :] - xp.log(q)[None, :, :]), axis=-1)


def additive_attention(xp: Any, q: Any, k: Any, w: Any) -> Any:
    return xp.sum(xp.tanh(_wide(xp, q)[:, :, None, :] + _wide(xp, k)[:, None, :, :]) * w, axis=-1)


def forces(xp: Any, x: Any, m: Any) -> Any:
    """Between bodies, of points (bodies, 3)."""
    r = x[None, :, :] - x[:, None, :]
    d = xp.sum(r * r, axis=-1, keepdims=True) + 1e-2
    return xp.sum(r * (m[None, :, None] / (d * xp.sqrt(d))), axis=1)


def overlaps(xp: Any, a: Any, b: Any) -> Any:
    """Intersection over union of pairs of boxes."""
    width = xp.minimum(a[:, None, 2], b[None, :, 2]) - xp.maximum(a[:, None, 0], b[None, :, 0])
    height = xp.minimum(a[:, None, 3], b[None, :, 3]) - xp.maximum(a[:, None, 1], b[None, :, 1])
    shared = xp.maximum(width, 0.0) * xp.maximum(height, 0.0)
    sizes = [(c[:, 2] - c[:, 0]) * (c[:, 3] - c[:, 1]) for c in (a, b)]
    return shared / (sizes[0][:, None] + sizes[1][None, :] - shared)


def decoded_boxes(xp: Any, a: Any, d: Any) -> Any:
    """Corners of boxes, of those of anchors and of how far off these are, in their sizes."""
    size = a[:, 2:] - a[:, :2]
    centre, half = a[:, :2] + size * (0.5 + d[:, :2]), 0.5 * size * xp.exp(d[:, 2:])
    return centre - half, centre + half


def colours(xp: Any, x: Any, m: Any) -> Any:
    """Pixels (pixels, 3) by a matrix of 3 x 3, as a product."""
    return xp.matmul(x, m)
