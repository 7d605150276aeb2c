"""Schemes of finite volumes and wavelets, whose differences are of computed neighbours: as written for NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _through_faces(xp: Any, u: Any, f: Any, speed: Any) -> Any:
    """Fluxes through the faces between neighbours along the last axis, of waves of at most so much speed."""
    fastest = xp.maximum(speed[..., 1:], speed[..., :-1])
    return 0.5 * (f[..., 1:] + f[..., :-1]) - 0.5 * fastest * (u[..., 1:] - u[..., :-1])


def one_quantity(xp: Any, p: Any, q: Any) -> Any:
    """What a step leaves of one quantity."""
    c = xp.sqrt(p / q)
    h = _through_faces(xp, p, p * c, c)
    return p[:, 1:-1] - 0.1 * (h[:, 1:] - h[:, :-1])


def three_quantities(xp: Any, p: Any, q: Any) -> Any:
    """The same of three quantities that waves of one speed carry."""
    c, left = xp.sqrt(p / q), []
    for u in (p, q, p * q):
        h = _through_faces(xp, u, u * c, c)
        left.append(u[:, 1:-1] - 0.1 * (h[:, 1:] - h[:, :-1]))
    return tuple(left)


def lifted(xp: Any, p: Any, q: Any) -> Any:
    """Details and means of pairs of a product, with the first detail in front of the first mean."""
    a = xp.sqrt(p * q)
    even, odd = a[:, 0::2], a[:, 1::2]
    after = xp.concat([even[:, 1:], even[:, -1:]], axis=1)
    high = odd - 0.5 * (even + after)
    before = xp.concat([high[:, :1], high[:, :-1]], axis=1)
    return even + 0.25 * (before + high), high


FUNCTIONS: dict[str, Callable[..., Any]] = {f.__name__: f for f in (one_quantity, three_quantities, lifted)}
"""Of two planes of positive numbers, with even rows."""
