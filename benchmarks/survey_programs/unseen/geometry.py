"""Rotations, products of small matrices and complex numbers."""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from typing import Any


def complex_mul(xp: Any, a: Any, b: Any) -> Any:
    ar, ai, br, bi = a[..., 0], a[..., 1], b[..., 0], b[..., 1]
    return xp.stack([ar * br - ai * bi, ar * bi + ai * br], axis=-1)


def quaternion(xp: Any, q: Any, v: Any) -> Any:
    w, x, y, z = (q[:, i] for i in range(4))
    a, b, c = (v[:, i] for i in range(3))
    tx, ty, tz = 2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)
    return xp.stack([a + w * tx + y * tz - z * ty, b + w * ty + z * tx - x * tz, c + w * tz + x * ty - y * tx], axis=-1)


def complex_matmul(xp: Any, ar: Any, ai: Any, br: Any, bi: Any) -> Any:
    return xp.matmul(ar, br) - xp.matmul(ai, bi), xp.matmul(ar, bi) + xp.matmul(ai, br)


def kalman(xp: Any, f: Any, p: Any, q: Any) -> Any:
    return xp.matmul(xp.matmul(f, p), f.mT) + q


def rotate(xp: Any, r: Any, v: Any) -> Any:
    return xp.sum(r * v[:, None, :], axis=-1)


def cross(xp: Any, a: Any, b: Any) -> Any:
    return xp.stack(
        [
            a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1],
            a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2],
            a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0],
        ],
        axis=1,
    )


def to_matrix(xp: Any, q: Any) -> Any:
    w, x, y, z = (q[:, i] for i in range(4))
    return xp.stack(
        [
            xp.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], axis=-1),
            xp.stack([2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)], axis=-1),
            xp.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], axis=-1),
        ],
        axis=1,
    )
