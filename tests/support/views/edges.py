"""Functions of arrays with edges: padded, shifted, differenced, and what stencils make of these."""

from __future__ import annotations

from typing import Any

import numpy as np

Join = Any
"""`concat` of a namespace."""


def gradient(xp: Any, join: Join, x: Any) -> Any:
    """Central differences, and one-sided ones at the ends of rows."""
    return join([x[:, 1:2] - x[:, :1], (x[:, 2:] - x[:, :-2]) * 0.5, x[:, -1:] - x[:, -2:-1]], axis=1)


def differences(xp: Any, join: Join, x: Any) -> Any:
    return join([xp.zeros_like(x[:, :1]), xp.exp(x[:, 1:]) - x[:, :-1]], axis=1)


def edges(xp: Any, join: Join, x: Any) -> Any:
    """Padded on all sides with the nearest elements."""
    p = join([x[:1], x, x[-1:]], axis=0)
    return join([p[:, :1], p, p[:, -1:]], axis=1)


def zeros(xp: Any, join: Join, x: Any) -> Any:
    """Padded on all sides with zeros, of what is not zero of zeros."""
    y = xp.exp(x)
    z = xp.zeros_like(y[:2])
    p = join([z, y, z], axis=0)
    z = xp.zeros_like(p[:, :1])
    return join([z, p, z], axis=1)


def inner_zeros(xp: Any, join: Join, x: Any) -> Any:
    """A part in the middle, padded on all sides with zeros."""
    p, z = x[1:-1, 2:-2], xp.zeros_like(x[:1, 2:-2])
    p = join([z, p, z], axis=0)
    z = xp.zeros_like(x[:, :2])
    return join([z, p, z], axis=1) * 2


def mirrored(xp: Any, join: Join, x: Any) -> Any:
    """Differences in rows that are padded with their own elements, the other way round."""
    y = xp.exp(x)
    p = join([xp.flip(y[:, 1:3], axis=1), y, xp.flip(y[:, -3:-1], axis=1)], axis=1)
    return p[:, 4:] - p[:, :-4]


def periodic(xp: Any, join: Join, x: Any) -> Any:
    """The sum of the four neighbours on a torus."""
    rows = join([x[1:], x[:1]], axis=0) + join([x[-1:], x[:-1]], axis=0)
    return rows + join([x[:, 1:], x[:, :1]], axis=1) + join([x[:, -1:], x[:, :-1]], axis=1)


def blur(xp: Any, join: Join, x: Any) -> Any:
    p = edges(xp, join, x)
    r = p[:-2] + p[1:-1] + p[2:]
    return r[:, :-2] + r[:, 1:-1] + r[:, 2:]


def shifted(xp: Any, join: Join, x: Any) -> Any:
    """Rows mixed with those before, and normalised."""
    y = x * 0.7 + join([xp.zeros_like(x[:1]), x[:-1]], axis=0) * 0.3
    return y / xp.sqrt(xp.mean(y * y, axis=1, keepdims=True) + 1)


def responses(xp: Any, join: Join, x: Any) -> Any:
    """Of squares of five neighbours, padded with zeros."""
    s = x * x
    p = join([xp.zeros_like(s[:, :2]), s, xp.zeros_like(s[:, :2])], axis=1)
    return x / (1 + p[:, :-4] + p[:, 1:-3] + p[:, 2:-2] + p[:, 3:-1] + p[:, 4:])


def token(xp: Any, join: Join, x: Any) -> Any:
    """A row of ones before the others, and the sums of rows."""
    y = join([xp.zeros_like(x[:1]) + 1, x * 2], axis=0)
    return xp.sum(y, axis=1, keepdims=True) + y


def pairs(xp: Any, join: Join, x: Any) -> Any:
    """Sums and differences of runs of neighbours, in a shape of their own."""
    y = xp.reshape(x * 2, (x.shape[0], x.shape[1] // 4, 2, 2))
    a, b = y[:, :, 0], y[:, :, 1]
    return xp.reshape(xp.stack([a + b, a - b], axis=2), x.shape)


def columns_of_edges(xp: Any, join: Join, x: Any) -> Any:
    return xp.sum(join([x[:1] * 3, x, x[-1:] + x[:1]], axis=0), axis=0)


def turned_edges(xp: Any, join: Join, x: Any) -> Any:
    return xp.permute_dims(edges(xp, join, x), (1, 0)) + 1


EDGES = {
    function.__name__.replace("_", " "): function
    for function in (
        gradient,
        differences,
        edges,
        zeros,
        inner_zeros,
        mirrored,
        periodic,
        blur,
        shifted,
        responses,
        token,
        pairs,
        columns_of_edges,
        turned_edges,
    )
}
"""Functions of a namespace, its `concat`, and an array of two dimensions, of which the second is a multiple of 4."""

SHAPES = ((7, 12), (33, 64), (5, 260), (130, 8))


def drawn(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Random numbers of that shape."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def tolerance(dtype: Any, wanted: np.ndarray) -> float:
    """How far off results may be: they are rounded to the dtype at each step."""
    return (2e-5 if dtype == np.float32 else 1e-2) * max(1.0, float(np.abs(wanted).max()))
