"""Buffers and the memrefs that view them.

The base address of a buffer has exactly the promised alignment and no more, so that a vector access which needs a
larger alignment is caught. In new memory all bits are set: floats read as NaN, integers as -1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlirfuse.interpreter.state.clocks import Clocks
from mlirfuse.interpreter.state.shadow import Shadow

Extent = int | np.ndarray
"""A size, stride or offset: an int, or an int64 array with one entry a thread."""


class Buffer:
    """One allocation.

    Args:
        name: name in messages: the argument, or the op that allocated the buffer.
        space: `global`, `shared` or `private`.
        nbytes: size in bytes.
        alignment: alignment of the base address in bytes; the address is no multiple of twice the alignment.
        shadow: the shadow memory; None if accesses are not checked.
        readonly: whether stores are errors, as for a kernel's inputs.

    Attributes:
        published: for a buffer of semaphores, by element, the clock that a thread acquires with the element.
    """

    __slots__ = ("_bytes", "_views", "address", "name", "nbytes", "published", "readonly", "shadow", "space")

    def __init__(
        self, name: str, space: str, nbytes: int, alignment: int, shadow: Shadow | None, *, readonly: bool = False
    ):
        self.name = name
        self.space = space
        self.nbytes = nbytes
        self.address = alignment
        self.shadow = shadow
        self.readonly = readonly
        self.published: dict[int, Clocks] = {}
        self._bytes = np.full(nbytes, 0xFF, np.uint8)
        self._views: dict[np.dtype, np.ndarray] = {}

    def elements(self, dtype: np.dtype) -> np.ndarray:
        """A view of the buffer as a one-dimensional array of `dtype`."""
        view = self._views.get(dtype)
        if view is None:
            view = self._bytes[: self.nbytes // dtype.itemsize * dtype.itemsize].view(dtype)
            self._views[dtype] = view
        return view


@dataclass(frozen=True, slots=True)
class MemRef:
    """A strided view of a buffer.

    Attributes:
        buffer: the buffer.
        dtype: type of an element.
        offset: elements from the buffer's start to the first element of the view.
        shape: extents, outermost first.
        strides: strides in elements, outermost first.
        text: name in messages.
        places: for a view whose elements are stored anywhere in the buffer, the number of each one's element of the
            buffer, -1 for none; strides then lead to a position among these. None for a plain view.
    """

    buffer: Buffer
    dtype: np.dtype
    offset: Extent
    shape: tuple[Extent, ...]
    strides: tuple[Extent, ...]
    text: str = field(default="", compare=False)
    places: np.ndarray | None = field(default=None, compare=False)


def row_major(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """The strides of a C-contiguous array, in elements."""
    strides: list[Any] = []
    step: Any = 1
    for extent in reversed(shape):
        strides.append(step)
        step = step * extent
    return tuple(reversed(strides))


def allocate(
    name: str,
    space: str,
    shape: tuple[int, ...],
    dtype: np.dtype,
    alignment: int | None,
    *,
    checks: bool,
    copies: int = 1,
) -> MemRef:
    """A new uninitialised C-contiguous buffer, aligned to `alignment` bytes, or to the size of an element if None.

    With `copies` above 1 each thread has a copy, and the memref's offset differs between threads.
    """
    size = int(np.prod(shape, dtype=np.int64))
    nbytes = copies * size * dtype.itemsize
    shadow = Shadow(nbytes, races=space != "private") if checks else None
    buffer = Buffer(name, space, nbytes, alignment or dtype.itemsize, shadow)
    return MemRef(buffer, dtype, 0 if copies == 1 else np.arange(copies) * size, shape, row_major(shape), name)


def from_array(
    name: str,
    array: np.ndarray,
    strides: tuple[int, ...] | None,
    alignment: int | None,
    *,
    readonly: bool,
    checks: bool,
) -> MemRef:
    """A buffer initialised from an array.

    `strides` are in elements, None for C-contiguous; with a negative stride, the first element is not at the buffer's
    start. Elements of the buffer between those of the array count as unwritten.
    """
    shape, size = array.shape, array.dtype.itemsize
    strides = row_major(shape) if strides is None else strides
    if strides == row_major(shape):
        shadow = Shadow(array.nbytes, written=True) if checks and not readonly else None
        buffer = Buffer(name, "global", array.nbytes, alignment or size, shadow, readonly=readonly)
        buffer.elements(array.dtype)[:] = array.ravel()
        return MemRef(buffer, array.dtype, 0, shape, strides, name)
    places = np.zeros((), np.int64)
    for extent, stride in zip(shape, strides, strict=True):
        places = places[..., None] + np.arange(extent) * stride
    first = 0 if not places.size else -int(places.min())
    places = places + first
    span = 0 if not places.size else int(places.max()) + 1
    covered = np.zeros(span, bool)
    covered[places] = True
    gaps = not covered.all()
    shadow = Shadow(span * size, written=not gaps, races=not readonly) if checks and (gaps or not readonly) else None
    # The promised alignment is that of the first element.
    buffer = Buffer(name, "global", span * size, (alignment or size) - first * size, shadow, readonly=readonly)
    if span:
        buffer.elements(array.dtype)[places] = array
        if shadow is not None and gaps:
            shadow.mark_written(places.ravel(), size)
    return MemRef(buffer, array.dtype, first, shape, strides, name)
