"""Grids, images and signals: padding, shifts, stencils, resampling."""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from typing import Any

from survey_programs.formulas import wide


def gradient_rows(xp: Any, x: Any) -> Any:
    """np.gradient along the last axis."""
    return xp.concat([x[:, 1:2] - x[:, :1], (x[:, 2:] - x[:, :-2]) * 0.5, x[:, -1:] - x[:, -2:-1]], axis=1)


def gradient_planes(xp: Any, x: Any) -> Any:
    gy = xp.concat([x[:, 1:2] - x[:, :1], (x[:, 2:] - x[:, :-2]) * 0.5, x[:, -1:] - x[:, -2:-1]], axis=1)
    gx = xp.concat(
        [x[:, :, 1:2] - x[:, :, :1], (x[:, :, 2:] - x[:, :, :-2]) * 0.5, x[:, :, -1:] - x[:, :, -2:-1]], axis=2
    )
    return xp.sqrt(gx * gx + gy * gy)


def edge_pad(xp: Any, x: Any) -> Any:
    """Edge padding by one on height and width."""
    p = xp.concat([x[:, :1], x, x[:, -1:]], axis=1)
    return xp.concat([p[:, :, :1], p, p[:, :, -1:]], axis=2)


def box_blur_edge(xp: Any, x: Any) -> Any:
    p = xp.concat([x[:, :1], x, x[:, -1:]], axis=1)
    p = xp.concat([p[:, :, :1], p, p[:, :, -1:]], axis=2)
    r = p[:, :-2] + p[:, 1:-1] + p[:, 2:]
    return (r[:, :, :-2] + r[:, :, 1:-1] + r[:, :, 2:]) * (1.0 / 9.0)


def zero_pad(xp: Any, x: Any) -> Any:
    z = xp.zeros_like(x[:, :1])
    p = xp.concat([z, x, z], axis=1)
    z = xp.zeros_like(p[:, :, :1])
    return xp.concat([z, p, z], axis=2)


def periodic_laplace(xp: Any, x: Any) -> Any:
    """Periodic boundaries by rolls."""
    up = xp.concat([x[1:], x[:1]], axis=0)
    down = xp.concat([x[-1:], x[:-1]], axis=0)
    left = xp.concat([x[:, 1:], x[:, :1]], axis=1)
    right = xp.concat([x[:, -1:], x[:, :-1]], axis=1)
    return up + down + left + right - 4.0 * x


def differences(xp: Any, x: Any) -> Any:
    """np.diff with a first element of zero."""
    return xp.concat([xp.zeros_like(x[:, :1]), x[:, 1:] - x[:, :-1]], axis=1)


def total_variation(xp: Any, x: Any) -> Any:
    return xp.mean(xp.abs(x[:, 1:] - x[:, :-1])) + xp.mean(xp.abs(x[:, :, 1:] - x[:, :, :-1]))


def haar(xp: Any, x: Any) -> Any:
    """A level of the 2-D Haar transform into four bands."""
    a, b, c, d = x[:, 0::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 0::2], x[:, 1::2, 1::2]
    return xp.stack([a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d], axis=1) * 0.5


def upsample_nearest(xp: Any, x: Any) -> Any:
    n, h, w, c = x.shape
    y = x[:, :, None, :, None, :] + xp.zeros_like(x[:, :1, None, :1, None, :])
    z = xp.concat([y, y], axis=2)
    z = xp.concat([z, z], axis=4)
    return xp.reshape(z, (n, 2 * h, 2 * w, c))


def max_pool(xp: Any, x: Any) -> Any:
    a = xp.maximum(x[:, 0::2], x[:, 1::2])
    return xp.maximum(a[:, :, 0::2], a[:, :, 1::2])


def avg_pool_overlap(xp: Any, x: Any) -> Any:
    """3 x 3 windows of stride 2."""
    a = x[:, 0:-2:2] + x[:, 1:-1:2] + x[:, 2::2]
    return (a[:, :, 0:-2:2] + a[:, :, 1:-1:2] + a[:, :, 2::2]) * (1.0 / 9.0)


def sliding_norm(xp: Any, x: Any) -> Any:
    """Local response normalisation over 5 neighbouring channels."""
    s = x * x
    z = xp.zeros_like(s[:, :, :2])
    p = xp.concat([z, s, z], axis=2)
    n = p[:, :, :-4] + p[:, :, 1:-3] + p[:, :, 2:-2] + p[:, :, 3:-1] + p[:, :, 4:]
    return x / xp.exp(0.75 * xp.log(2.0 + 1e-4 * n))


def moving_var(xp: Any, x: Any) -> Any:
    def five(a: Any) -> Any:
        return (a[:, :-4] + a[:, 1:-3] + a[:, 2:-2] + a[:, 3:-1] + a[:, 4:]) * 0.2

    m = five(x)
    return five(x * x) - m * m


def bilinear_upsample(xp: Any, x: Any) -> Any:
    n, h, w, c = x.shape
    r = xp.concat([x[:, :1], x], axis=1)
    rows = xp.reshape(
        xp.stack([0.25 * r[:, :-1] + 0.75 * x, 0.75 * x + 0.25 * xp.concat([x[:, 1:], x[:, -1:]], axis=1)], axis=2),
        (n, 2 * h, w, c),
    )
    left = xp.concat([rows[:, :, :1], rows[:, :, :-1]], axis=2)
    right = xp.concat([rows[:, :, 1:], rows[:, :, -1:]], axis=2)
    return xp.reshape(xp.stack([0.25 * left + 0.75 * rows, 0.75 * rows + 0.25 * right], axis=3), (n, 2 * h, 2 * w, c))


def dilate(xp: Any, x: Any) -> Any:
    low = xp.zeros_like(x[:, :1]) - 3e38
    p = xp.concat([low, x, low], axis=1)
    r = xp.maximum(xp.maximum(p[:, :-2], p[:, 1:-1]), p[:, 2:])
    low = xp.zeros_like(r[:, :, :1]) - 3e38
    p = xp.concat([low, r, low], axis=2)
    return xp.maximum(xp.maximum(p[:, :, :-2], p[:, :, 1:-1]), p[:, :, 2:])


def dct_blocks(xp: Any, x: Any, d: Any) -> Any:
    """(images, height / 8, 8, width / 8, 8)."""
    return xp.einsum("ij,bpjqk,lk->bpiql", d, x, d)


def wave(xp: Any, u: Any, v: Any) -> Any:
    lap = -6.0 * u
    for axis in range(3):
        lap = lap + _roll(xp, u, 1, axis) + _roll(xp, u, -1, axis)
    return 2.0 * u - v + 0.1 * lap


def boltzmann(xp: Any, f: Any) -> Any:
    """D2Q9: streaming and collision."""
    cx, cy = (0, 1, 0, -1, 0, 1, -1, -1, 1), (0, 0, 1, 0, -1, 1, 1, -1, -1)
    wt = (4 / 9,) + (1 / 9,) * 4 + (1 / 36,) * 4
    g = [_roll(xp, _roll(xp, f[i], cx[i], 0), cy[i], 1) for i in range(9)]
    rho = sum(g[1:], g[0])
    ux = sum((c * a for c, a in zip(cx, g, strict=True) if c), 0 * g[0]) / rho
    uy = sum((c * a for c, a in zip(cy, g, strict=True) if c), 0 * g[0]) / rho
    us = 1.5 * (ux * ux + uy * uy)
    out = []
    for i in range(9):
        cu = 3.0 * (cx[i] * ux + cy[i] * uy)
        out.append(g[i] - 0.6 * (g[i] - wt[i] * rho * (1.0 + cu + 0.5 * cu * cu - us)))
    return xp.stack(out, axis=0)


def life(xp: Any, x: Any) -> Any:
    c = xp.astype(x, xp.int32)
    r = _roll(xp, c, 1, 0) + c + _roll(xp, c, -1, 0)
    n = _roll(xp, r, 1, 1) + r + _roll(xp, r, -1, 1) - c
    return xp.astype(xp.where((n == 3) | ((n == 2) & (c == 1)), 1, 0), xp.int8)


def upwind(xp: Any, u: Any, a: Any) -> Any:
    left = xp.concat([u[:, -1:], u[:, :-1]], axis=1)
    right = xp.concat([u[:, 1:], u[:, :1]], axis=1)
    return u - 0.1 * (xp.maximum(a, 0) * (u - left) + xp.minimum(a, 0) * (right - u))


def gray_scott(xp: Any, u: Any, v: Any) -> Any:
    def lap(z: Any) -> Any:
        p = xp.concat([z[-1:], z, z[:1]], axis=0)
        p = xp.concat([p[:, -1:], p, p[:, :1]], axis=1)
        return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4.0 * z

    r = u * v * v
    return u + 0.16 * lap(u) - r + 0.035 * (1.0 - u), v + 0.08 * lap(v) + r - 0.1 * v


def jacobi(xp: Any, x: Any, b: Any) -> Any:
    z = xp.zeros_like(x[:, :1])
    h = xp.concat([z, x, z], axis=1)
    z = xp.zeros_like(h[:, :, :1])
    h = xp.concat([z, h, z], axis=2)
    return 0.25 * (h[:, :-2, 1:-1] + h[:, 2:, 1:-1] + h[:, 1:-1, :-2] + h[:, 1:-1, 2:] + b)


def unsharp(xp: Any, x: Any) -> Any:
    p = xp.concat([x[:, :1], x, x[:, -1:]], axis=1)
    v = 0.25 * p[:, :-2] + 0.5 * p[:, 1:-1] + 0.25 * p[:, 2:]
    p = xp.concat([v[:, :, :1], v, v[:, :, -1:]], axis=2)
    s = 0.25 * p[:, :, :-2] + 0.5 * p[:, :, 1:-1] + 0.25 * p[:, :, 2:]
    return xp.clip(x + 0.7 * (x - s), 0.0, 1.0)


def yuv_planes(xp: Any, x: Any) -> Any:
    r, g, b = x[..., 0], x[..., 1], x[..., 2]
    y = 0.299 * r + 0.587 * g + 0.114 * b
    return xp.stack([y, 0.492 * (b - y), 0.877 * (r - y)], axis=1)


def depth_to_space(xp: Any, x: Any) -> Any:
    n, h, w, c = x.shape
    return (
        xp.reshape(
            xp.permute_dims(xp.reshape(x, (n, h, w, 2, 2, c // 4)), (0, 1, 3, 2, 4, 5)), (n, 2 * h, 2 * w, c // 4)
        )
        * 2
    )


def checker_mask(xp: Any, x: Any, i: Any, j: Any) -> Any:
    return xp.where((i[:, None] + j) % 2 == 0, x, -x)


def cumulative_four(xp: Any, x: Any) -> Any:
    a = x
    b = a[:, 1:] + a[:, :-1]
    c = b[:, 2:] + b[:, :-2]
    return c[:, 4:] + c[:, :-4]


def framed(xp: Any, x: Any, win: Any) -> Any:
    """Frames of 512 every 256, windowed."""
    n, t = x.shape
    halves = xp.reshape(x, (n, t // 256, 256))
    f = xp.concat([halves[:, :-1], halves[:, 1:]], axis=2)
    return f * win


def overlap_add(xp: Any, f: Any) -> Any:
    n, m, h = f.shape[0], f.shape[1], f.shape[2] // 2
    z = xp.zeros_like(f[:, :1, :h])
    return xp.reshape(xp.concat([f[:, :, :h], z], axis=1) + xp.concat([z, f[:, :, h:]], axis=1), (n, (m + 1) * h))


def autocovariance(xp: Any, x: Any) -> Any:
    d = x - xp.mean(x, axis=1, keepdims=True)
    n = x.shape[1]
    return xp.stack([xp.sum(d[:, k:] * d[:, : n - k], axis=1) / n for k in range(4)], axis=1)


def hsv_value(xp: Any, x: Any) -> Any:
    r, g, b = x[..., 0], x[..., 1], x[..., 2]
    v = xp.maximum(xp.maximum(r, g), b)
    c = v - xp.minimum(xp.minimum(r, g), b)
    d = xp.maximum(c, 1e-6)
    h = xp.where(v == r, (g - b) / d, xp.where(v == g, 2.0 + (b - r) / d, 4.0 + (r - g) / d))
    return xp.stack([h, c / xp.maximum(v, 1e-6), v], axis=-1)


def mandelbrot(xp: Any, cr: Any, ci: Any) -> Any:
    zr, zi, n = cr, ci, 0.0 * cr
    for _ in range(20):
        zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
        zr, zi = xp.clip(zr, -1e4, 1e4), xp.clip(zi, -1e4, 1e4)
        n = n + wide(xp, zr * zr + zi * zi < 4.0)
    return n


def ncc(xp: Any, x: Any, y: Any) -> Any:
    """Normalised cross-correlation of image pairs."""
    a = x - xp.mean(x, axis=(1, 2), keepdims=True)
    b = y - xp.mean(y, axis=(1, 2), keepdims=True)
    return xp.sum(a * b, axis=(1, 2)) / xp.sqrt(xp.sum(a * a, axis=(1, 2)) * xp.sum(b * b, axis=(1, 2)))


def _roll(xp: Any, x: Any, s: Any, axis: Any) -> Any:
    cut = s % x.shape[axis]
    if not cut:
        return x
    lead = (slice(None),) * axis
    n = x.shape[axis]
    return xp.concat([x[(*lead, slice(n - cut, n))], x[(*lead, slice(0, n - cut))]], axis=axis)
