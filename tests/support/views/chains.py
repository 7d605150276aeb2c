"""Random chains of views that NumPy and traced functions make alike."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

import mlirfuse as mf

View = Callable[[Any], Any]
MOST_ELEMENTS = 512


def apply(array: Any, views: list[View]) -> Any:
    """The views of an array, one after the other."""
    for view in views:
        array = view(array)
    return array


def _namespace(x: Any) -> Any:
    return mf if isinstance(x, mf.Tensor) else np


@st.composite
def chains(draw: st.DrawFn, shape: tuple[int, ...], longest: int = 5) -> list[View]:
    """A chain of views of an array of that shape, each of which NumPy makes without a copy or not."""
    seen, views = np.zeros(shape, np.int8), []
    for _ in range(draw(st.integers(0, longest))):
        view = draw(_view(seen.shape))
        views.append(view)
        seen = view(seen)
        if not seen.size:
            break
    return views


@st.composite
def _view(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    kinds = ["index", "reshape", "broadcast", "expand"]
    kinds += ["permute"] * (len(shape) > 1) + ["diagonal"] * (len(shape) > 1) + ["flip"] * bool(shape)
    kinds += ["squeeze"] * (1 in shape)
    return globals()[f"_{draw(st.sampled_from(kinds))}"](draw, shape)


def _index(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    key: list[Any] = []
    for extent in shape:
        if draw(st.booleans()):
            key.append(slice(None))
        elif extent and draw(st.integers(0, 3)) == 0:
            key.append(draw(st.integers(-extent, extent - 1)))
        else:
            bound = st.none() | st.integers(-extent - 1, extent + 1)
            step = draw(st.none() | st.sampled_from([1, 2, 3, -1, -2]))
            key.append(slice(draw(bound), draw(bound), step))
        if draw(st.integers(0, 5)) == 0:
            key.append(None)
    return lambda x: x[(*key, ...)]  # the ellipsis makes NumPy return a view where no dimension is left


def _reshape(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    rest, extents = prod(shape), []
    while rest > 1 and len(extents) < 4:
        extents.append(draw(st.sampled_from([n for n in range(1, rest + 1) if rest % n == 0])))
        rest //= extents[-1]
    extents.append(rest)
    return lambda x: x.reshape(tuple(extents))


def _broadcast(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    wide = [draw(st.integers(1, 3)) if extent == 1 else extent for extent in shape]
    wide = [draw(st.integers(1, 2))] * draw(st.integers(0, 1)) + wide
    target = tuple(wide) if prod(wide) <= MOST_ELEMENTS else shape
    return lambda x: _namespace(x).broadcast_to(x, target)


def _expand(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    axis = draw(st.integers(0, len(shape)))
    return lambda x: _namespace(x).expand_dims(x, axis)


def _permute(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    axes = draw(st.permutations(range(len(shape))))
    return lambda x: x.transpose(axes)


def _diagonal(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    row, column = draw(st.permutations(range(len(shape))))[:2]
    offset = draw(st.integers(-2, 2))
    return lambda x: _namespace(x).diagonal(x, offset, row, column)


def _flip(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    axis = draw(st.integers(0, len(shape) - 1))
    return lambda x: _namespace(x).flip(x, axis)


def _squeeze(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    axis = draw(st.sampled_from([d for d, extent in enumerate(shape) if extent == 1]))
    return lambda x: x.squeeze(axis)
