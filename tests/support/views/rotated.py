"""Functions with periodic boundaries: slices of an array joined so that indices wrap around, in NumPy too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def roll(xp: Any, x: Any, by: int, axis: int) -> Any:
    """The elements from `by` on, then those before."""
    outer = (slice(None),) * axis
    return xp.concat([x[(*outer, slice(by, None))], x[(*outer, slice(None, by))]], axis=axis)


def laplace(xp: Any, x: Any) -> Any:
    """Of a torus: neighbours, and the diagonal ones, which wrap around along both axes."""
    rows = roll(xp, x, 1, 0) + roll(xp, x, -1, 0)
    return rows + roll(xp, rows, 1, 1) + roll(xp, rows, -1, 1) - 6 * x


def planes(xp: Any, x: Any) -> Any:
    """A stencil whose means keep the middle axis: partial results have one of the first."""
    new = x + 0.1 * (roll(xp, x, 1, 0) + roll(xp, x, -1, 2) - 2 * x)
    return new, xp.mean(new, axis=(0, 2))


FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "twice along an axis": (lambda xp, x: roll(xp, roll(xp, x, 1, 1), 3, 1) + x, 2),
    "along both axes": (lambda xp, x: roll(xp, roll(xp, x, 2, 0), -1, 1) * 2, 2),
    "a border": (lambda xp, x: xp.concat([x[:, -2:], x, x[:, :3]], axis=1) + 1, 2),
    "a border of a border": (lambda xp, x: laplace(xp, xp.concat([x[-1:], x, x[:1]], axis=0)), 2),
    "three times": (lambda xp, x: xp.concat([x, x, x], axis=0) * 2, 2),
    "of some rows": (lambda xp, x: xp.concat([x[1:4], x[0:1]], axis=0)[:, 1:3] * 2, 2),
    "something left out": (lambda xp, x: xp.concat([x[2:4], x[0:1]], axis=0) * 2, 2),
    "a product": (lambda xp, x: xp.sum(roll(xp, x, 1, 1) * x, axis=1), 2),
    "laplace": (laplace, 2),
    "planes": (planes, 3),
}
"""Functions of a namespace and an array, and the dimensions of it."""
