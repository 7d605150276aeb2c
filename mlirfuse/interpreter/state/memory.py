"""Buffers and the memrefs that view them.

A buffer is bytes with a base address that has exactly the alignment that was promised and no more, so that a vector
access which needs more is caught. Fresh memory is filled with ones: floats read as NaN, integers as -1.
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
        name: for messages: the argument's name or the op that allocated it.
        space: `global`, `shared` or `private`.
        nbytes: its size.
        alignment: its base address, of which twice the promised alignment is no divisor, bytes.
        shadow: the shadow memory, or None where accesses are not checked.
        readonly: whether a store to it is an error (a kernel's inputs).

    Attributes:
        published: of a buffer of semaphores, by element: what is ordered before who acquires it.
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
        """All of it as a one-dimensional array of `dtype`; writing to that writes to the buffer."""
        view = self._views.get(dtype)
        if view is None:
            view = self._bytes[: self.nbytes // dtype.itemsize * dtype.itemsize].view(dtype)
            self._views[dtype] = view
        return view


@dataclass(frozen=True, slots=True)
class MemRef:
    """A strided view of a buffer.

    Attributes:
        buffer: what it views.
        dtype: of its elements.
        offset: of its first element from the buffer's start, in elements.
        shape: extents, outermost first.
        strides: in elements, outermost first.
        text: how messages name it.
    """

    buffer: Buffer
    dtype: np.dtype
    offset: Extent
    shape: tuple[Extent, ...]
    strides: tuple[Extent, ...]
    text: str = field(default="", compare=False)


def row_major(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """The strides of a C-contiguous array of that shape, in elements."""
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
    """A new uninitialised C-contiguous buffer; `alignment` None means the element's own size.

    With `copies` above 1 every thread gets its own; the memref's offset then differs by thread.
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

    `strides` (in elements) is how the elements lie in memory, None for C-contiguous; where some are negative, the first
    element is not where the buffer begins. Elements of the buffer between those of the array count as never written.
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
    # It is the first element that is aligned as promised.
    buffer = Buffer(name, "global", span * size, (alignment or size) - first * size, shadow, readonly=readonly)
    if span:
        buffer.elements(array.dtype)[places] = array
        if shadow is not None and gaps:
            shadow.mark_written(places.ravel(), size)
    return MemRef(buffer, array.dtype, first, shape, strides, name)
