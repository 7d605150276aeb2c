"""Functions of whose results each thread has a run of memory, as parts that interleave or short rows, in NumPy too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def parts(count: int) -> Callable[..., Any]:
    """That many parts, elements of which are neighbours."""

    def interleaved(xp: Any, x: Any) -> Any:
        return xp.stack([x * (part + 1) + part for part in range(count)], axis=-1)

    return interleaved


def two_by_three(xp: Any, x: Any) -> Any:
    """Matrices as rows of elements, and a result of one element beside them."""
    rows = [[x, x * 2, x + 1], [x - 1, x * 3, x * x]]
    return xp.stack([xp.stack(row, axis=-1) for row in rows], axis=-2), x * 5


def two_lengths(xp: Any, x: Any) -> Any:
    """Runs of two lengths, through one array in shared memory."""
    return tuple(xp.stack([x * (part + 1) for part in range(count)], axis=-1) for count in (3, 7))


def differences(xp: Any, x: Any) -> Any:
    """Short rows of joined parts, of which a dimension in front has whole rows."""
    return xp.stack([x[:, 1:] - x[:, :-1], x[:, 1:] + x[:, :-1], x[:, 1:] * 2], axis=-1)


def butterflies(xp: Any, x: Any) -> Any:
    """Parts that interleave, and sums of what is stored so."""
    a, b, c, d = (x[:, part::4] for part in range(4))
    y = xp.stack([a + b + c + d, a - c, a - b + c - d, b - d], axis=-1)
    return y, xp.sum(xp.abs(y), axis=1)


def centred(xp: Any, x: Any) -> Any:
    """Parts that interleave, stored from several places of a kernel."""
    c = x - xp.mean(x)
    return xp.stack([c**2, c, c], axis=-1)


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[int], tuple[int, ...]]]] = {
    "2 parts": (parts(2), lambda n: (n,)),
    "3 parts": (parts(3), lambda n: (n,)),
    "5 parts": (parts(5), lambda n: (n,)),
    "9 parts": (parts(9), lambda n: (n,)),
    "2 by 3": (two_by_three, lambda n: (n,)),
    "two lengths": (two_lengths, lambda n: (n,)),
    "differences": (differences, lambda n: (7, n)),
    "butterflies": (butterflies, lambda n: (-(-n // 8), 32)),
    "centred": (centred, lambda n: (n // 8 + 1,)),
}
"""Functions of a namespace and an array, and its shape for a number of elements."""


def close(found: Any, expected: Any, dtype: Any) -> None:
    """Compares results with those in double precision."""
    found, expected = (each if isinstance(each, tuple) else (each,) for each in (found, expected))
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        tolerance = 1e-5 if dtype == np.float32 else 4e-3
        np.testing.assert_allclose(one.astype(np.float64), other, rtol=tolerance, atol=4 * tolerance)
