"""Functions of single elements, or short parts, of inner axes, which the interpreter's and the GPU's tests share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Case = tuple[Callable[[Any, Any], Any], tuple[int, ...]]


def determinants(xp: Any, a: Any) -> Any:
    """Of 3 x 3 matrices."""
    return (
        a[:, 0, 0] * (a[:, 1, 1] * a[:, 2, 2] - a[:, 1, 2] * a[:, 2, 1])
        - a[:, 0, 1] * (a[:, 1, 0] * a[:, 2, 2] - a[:, 1, 2] * a[:, 2, 0])
        + a[:, 0, 2] * (a[:, 1, 0] * a[:, 2, 1] - a[:, 1, 1] * a[:, 2, 0])
    )


def paths(xp: Any, z: Any) -> Any:
    """A recurrence over the steps of two coordinates."""
    s = z[:, 0, 0] * 0
    for step in range(z.shape[2]):
        s = s + xp.tanh(z[:, 0, step] + 0.1 * s) * z[:, 1, step]
    return s


CASES: dict[str, Case] = {
    "determinants": (determinants, (130, 3, 3)),
    "paths": (paths, (33, 2, 16)),
    "rows": (lambda xp, a: a[:, 0] * a[:, 1] + a[:, 2], (65, 3, 3)),
    "columns": (lambda xp, a: a[:, :, 0] - a[:, :, 2], (65, 3, 3)),
    "steps": (lambda xp, z: z[:, 0, 3] + xp.sum(z[:, 1, 2:14:3], axis=1), (40, 2, 16)),
    "kept axes": (lambda xp, q: q[:, 1:2, :1, ::2] * 2 + q[:, 2:3, 1:, 1:4], (20, 6, 2, 5)),
    "outer parts": (lambda xp, q: q[2:, 1:5, 0, 2] + q[:-2, 2:, 1, 4], (20, 6, 2, 5)),
    "computed": (lambda xp, q: (q * 2)[:, 2, 1, 1] + xp.exp(q)[:, 3, 0, 0], (20, 6, 2, 5)),
    "reduced": (lambda xp, q: xp.sum(q[:, :, 1, 3], axis=1) + q[:, 0, 0, 0], (20, 6, 2, 5)),
    "all axes": (lambda xp, q: q[0, 2, 1, 3] * 2 + q[1, 0, 0], (20, 6, 2, 5)),
}
"""A function of a namespace and an array of float32, and the array's shape."""
