"""Views of the caller's arrays: aliasing arrays of the same framework, without a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mlirfuse.runtime.device import cuda
from mlirfuse.support.dtypes import DType

Maker = Callable[[Any], Any]


class Seen(Protocol):
    """Where the elements of a view lie; `layout.Result` is one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in elements."""

    @property
    def offset(self) -> int:
        """Elements from the source's first to the view's first."""


def view_maker(framework: str, dtype: DType, shape: Sequence[int], strides: Sequence[int], seen: Seen) -> Maker | None:
    """A function that makes a view of an array of `shape` and `strides`; None where the view is the array as it is.

    Args:
        framework: `torch` or `cupy`.
        dtype: the array's.
        shape: its extents.
        strides: its strides in elements.
        seen: the view.
    """
    source = list(zip(shape, strides, strict=True))
    view = list(zip(seen.shape, seen.strides, strict=True))
    if not seen.offset and _are_alike(source, view):
        return None
    axes = None if seen.offset else _permutation(source, view)
    if framework == "torch":
        return _of_torch(seen, axes)
    return _of_cupy(seen, axes, dtype.bytes)


def _are_alike(source: list[tuple[int, int]], view: list[tuple[int, int]]) -> bool:
    """Whether two arrays are the same, as the strides of extents of 1 do not count."""
    if [extent for extent, _ in source] != [extent for extent, _ in view]:
        return False
    return all(a == b or a[0] == 1 for a, b in zip(source, view, strict=True))


def _permutation(source: list[tuple[int, int]], view: list[tuple[int, int]]) -> tuple[int, ...] | None:
    """The dimensions of the source in the view's order; None for another kind of view."""
    if len(source) != len(view):
        return None
    free, axes = list(range(len(source))), []
    for entry in view:
        axis = next((a for a in free if source[a] == entry), None)
        if axis is None:
            return None
        free.remove(axis)
        axes.append(axis)
    return tuple(axes)


def _of_torch(seen: Seen, axes: tuple[int, ...] | None) -> Maker:
    if axes == (1, 0):
        return lambda tensor: tensor.t()
    if axes is not None:
        return lambda tensor: tensor.permute(axes)
    shape, strides, offset = seen.shape, seen.strides, seen.offset
    if not offset:
        return lambda tensor: tensor.as_strided(shape, strides)
    return lambda tensor: tensor.as_strided(shape, strides, tensor.storage_offset() + offset)


def _of_cupy(seen: Seen, axes: tuple[int, ...] | None, element_bytes: int) -> Maker:
    if axes is not None:
        return lambda array: array.transpose(axes)
    make, shape, offset = cuda.cupy().ndarray, seen.shape, seen.offset * element_bytes
    strides = tuple(stride * element_bytes for stride in seen.strides)
    if not offset:
        return lambda array: make(shape, array.dtype, array.data, strides)
    return lambda array: make(shape, array.dtype, array.data + offset, strides)
