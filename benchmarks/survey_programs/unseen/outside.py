"""Programs that somebody wrote who had not seen the others: geometry, finance, signals and statistics."""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from math import sqrt
from typing import Any

from survey_programs.formulas import softmax, wide


def determinant(xp: Any, a: Any) -> Any:
    return (
        a[:, 0, 0] * (a[:, 1, 1] * a[:, 2, 2] - a[:, 1, 2] * a[:, 2, 1])
        - a[:, 0, 1] * (a[:, 1, 0] * a[:, 2, 2] - a[:, 1, 2] * a[:, 2, 0])
        + a[:, 0, 2] * (a[:, 1, 0] * a[:, 2, 1] - a[:, 1, 1] * a[:, 2, 0])
    )


def _cross(xp: Any, a: Any, b: Any) -> Any:
    return xp.stack(
        [
            a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1],
            a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2],
            a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0],
        ],
        axis=-1,
    )


def _unit(xp: Any, x: Any) -> Any:
    return x / xp.sqrt(xp.sum(x * x, axis=-1, keepdims=True))


def unit_cross(xp: Any, a: Any, b: Any) -> Any:
    return _unit(xp, _cross(xp, a, b))


def surface_normals(xp: Any, p: Any) -> Any:
    return _unit(xp, _cross(xp, p[1:-1, 2:] - p[1:-1, :-2], p[2:, 1:-1] - p[:-2, 1:-1]))


def ray_triangle(xp: Any, v0: Any, v1: Any, v2: Any, o: Any, d: Any) -> Any:
    """Moeller and Trumbore's intersection."""
    e1, e2, s = v1 - v0, v2 - v0, o - v0
    p, q = _cross(xp, d, e2), _cross(xp, s, e1)
    det = xp.sum(e1 * p, axis=-1)
    inv = 1 / xp.where(xp.abs(det) < 1e-2, 1.0, det)
    u, v, t = (xp.sum(left * right, axis=-1) * inv for left, right in ((s, p), (d, q), (e2, q)))
    return xp.where((u >= 0) & (v >= 0) & (u + v <= 1), t, -1.0)


def heston(xp: Any, z: Any) -> Any:
    """Paths of a stochastic volatility."""
    v = z[:, 0, 0] * 0 + 0.04
    s, dt = v * 0, 1 / z.shape[-1]
    for step in range(z.shape[-1]):
        first = z[:, 0, step]
        second = -0.7 * first + sqrt(0.51) * z[:, 1, step]
        p = xp.maximum(v, 0)
        s = s - 0.5 * p * dt + xp.sqrt(p * dt) * first
        v = v + 1.5 * (0.04 - p) * dt + 0.3 * xp.sqrt(p * dt) * second
    return xp.exp(s), v


def returns(xp: Any, x: Any) -> Any:
    r = xp.log(x[1:]) - xp.log(x[:-1])
    return xp.var(r, axis=0), xp.sum(xp.abs(r), axis=0), xp.max(r, axis=0)


def moving_average(xp: Any, x: Any, s: Any) -> Any:
    """Exponential, of each series, all steps of which are kept."""
    steps = []
    for step in range(x.shape[0]):
        s = s + 0.2 * (x[step] - s)
        steps.append(s)
    return xp.stack(steps)


def hadamard(xp: Any, x: Any) -> Any:
    """Fast transform of rows of 16."""
    rows, n, half = x.shape[0], x.shape[1], 1
    while half < n:
        y = xp.reshape(x, (rows, n // (2 * half), 2, half))
        x = xp.reshape(xp.stack([y[:, :, 0] + y[:, :, 1], y[:, :, 0] - y[:, :, 1]], axis=2), (rows, n))
        half *= 2
    return x / sqrt(n)


def wavelet_packet(xp: Any, x: Any) -> Any:
    """Three levels of Haar's."""
    parts, low = [], x
    for _ in range(3):
        parts.append((low[:, ::2] - low[:, 1::2]) * sqrt(0.5))
        low = (low[:, ::2] + low[:, 1::2]) * sqrt(0.5)
    return xp.concat([low, *parts[::-1]], axis=1)


def gram(xp: Any, x: Any) -> Any:
    return xp.matmul(x.mT, x)


def least_squares(xp: Any, x: Any, y: Any) -> Any:
    return xp.matmul(x.mT, x), xp.matmul(x.mT, y)


def mixture_step(xp: Any, x: Any, r: Any) -> Any:
    """Of a Gaussian mixture with diagonal covariances: counts, means and variances."""
    count = xp.sum(r, axis=0)
    mean = xp.matmul(r.mT, x) / count[:, None]
    return count, mean, xp.matmul(r.mT, x * x) / count[:, None] - mean * mean


def softmax_regression(xp: Any, x: Any, y: Any, c: Any, w: Any) -> Any:
    g = softmax(xp, xp.matmul(x, w)) - wide(xp, y[:, None] == c)
    return xp.matmul(x.mT, g) / x.shape[0], xp.mean(xp.sum(g * g, axis=1))


def confusion(xp: Any, a: Any, b: Any, w: Any) -> Any:
    both, first, second = (xp.sum(wide(xp, each) * w, axis=0) for each in (a & b, a & ~b, ~a & b))
    return 2 * both / (2 * both + first + second + 1e-3), xp.mean(wide(xp, a ^ b))


def row_and_column_sums(xp: Any, x: Any) -> Any:
    return xp.sum(x, axis=-1), xp.sum(x, axis=0)


def symmetric_matvec(xp: Any, a: Any, v: Any) -> Any:
    return xp.sum(0.5 * (a + a.mT) * v, axis=-1)


def moments(xp: Any, x: Any) -> Any:
    """Skewness and kurtosis of columns."""
    d = x - xp.mean(x, axis=0)
    m2 = xp.mean(d * d, axis=0)
    return xp.mean(d * d * d, axis=0) / (m2 * xp.sqrt(m2)), xp.mean(d * d * d * d, axis=0) / (m2 * m2) - 3


def class_sums(xp: Any, x: Any) -> Any:
    e = xp.exp(wide(xp, x) - xp.max(wide(xp, x), axis=1, keepdims=True))
    p = e / xp.sum(e, axis=1, keepdims=True)
    return xp.sum(p, axis=(0, 2, 3)), xp.sum(p * p, axis=(0, 2, 3)), xp.mean(xp.max(p, axis=1))


def aces_tone_map(xp: Any, x: Any) -> Any:
    c = wide(xp, x)
    return xp.astype(xp.clip(c * (2.51 * c + 0.03) / (c * (2.43 * c + 0.59) + 0.14), 0.0, 1.0), xp.float16)
