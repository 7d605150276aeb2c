"""Arrays that are not C-contiguous, of each kind that NumPy makes without copying, for interpreter and GPU tests."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

View = Callable[[Any, tuple[int, ...]], Any]
"""Takes a function that makes a random C-contiguous array of a shape, and a shape of two dimensions or more; returns a
view of an array, of that shape."""


def _swapped(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2])


VIEWS: dict[str, View] = {
    "slice of columns": lambda make, s: make((*s[:-1], 3 * s[-1]))[..., s[-1] : 2 * s[-1]],
    "odd offset": lambda make, s: make((*s[:-1], s[-1] + 3))[..., 3:],
    "every other row": lambda make, s: make((2 * s[0], *s[1:]))[::2],
    "every third column": lambda make, s: make((*s[:-1], 3 * s[-1]))[..., 1::3],
    "rows reversed": lambda make, s: make(s)[::-1],
    "columns reversed": lambda make, s: make(s)[..., ::-1],
    "all reversed": lambda make, s: make(s)[(slice(None, None, -1),) * len(s)],
    "every other row from the end": lambda make, s: make((2 * s[0], *s[1:]))[::-2],
    "transposed": lambda make, s: make(_swapped(s)).swapaxes(-1, -2),
    "transposed and reversed": lambda make, s: make(_swapped(s)).swapaxes(-1, -2)[..., ::-1, ::-1],
    "one row for all": lambda make, s: _repeated(make((*s[:-2], 1, s[-1])), s),
}


def _repeated(row: Any, shape: tuple[int, ...]) -> Any:
    """The array in that shape, with strides of 0, by NumPy's function or by that of CuPy."""
    return import_module(type(row).__module__.partition(".")[0]).broadcast_to(row, shape)
