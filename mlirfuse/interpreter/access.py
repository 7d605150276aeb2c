"""Loads and stores: from memref indices to buffer elements, with every check on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from mlirfuse.errors import InterpreterError
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.machine import Frame, ThreadBlock
from mlirfuse.interpreter.state.memory import Extent, MemRef
from mlirfuse.interpreter.state.shadow import SEVERAL, Shadow, Violation


def lanewise(value: Extent, ndim: int) -> Any:
    """One value for each thread, reshaped to broadcast against arrays of (threads, ...) with `ndim` axes."""
    return value if isinstance(value, int) else value.reshape(value.shape[:1] + (1,) * (ndim - 1))


def spread(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The array broadcast to a shape; itself where it has that shape, as NumPy's function is slow."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


def _outside(index: np.ndarray, extent: Any) -> np.ndarray:
    """Whether int64 indices are negative or not below an extent: as unsigned numbers, negative ones are the largest."""
    return index.view(np.uint64) >= (extent if isinstance(extent, int) else extent.view(np.uint64))


@lru_cache(maxsize=256)
def _lanes(threads: int, each: int) -> np.ndarray:
    """The numbers of the threads, each of them `each` times."""
    lanes = np.repeat(np.arange(threads), each)
    lanes.flags.writeable = False
    return lanes


def _chosen(array: np.ndarray, shape: tuple[int, ...], active: np.ndarray | None) -> np.ndarray:
    """The active elements of an array that is broadcast to a shape, in order; None for all of them."""
    array = spread(array, shape)
    return array.reshape(-1) if active is None else array[active]


def require_waited(site: Site, frame: Frame, memref: MemRef) -> None:
    """Raises `InterpreterError` for global memory that the predecessor in the stream may still be writing."""
    if not frame.block.has_waited and memref.buffer.space == "global":
        name = memref.text or memref.buffer.name
        raise site.error(f"access to {name} before the kernel has waited for its predecessor", frame)


class Access:
    """One load or store of one op by the active threads: which elements of which buffer.

    Args:
        site: the op.
        frame: the activation of the function that contains the op.
        memref: the memref that is accessed.
        indices: for each dimension of the memref an int array of shape (threads or 1, *vector extents); the arrays
            broadcast against each other.
        active: the active accesses, a bool array that broadcasts likewise; None for all. Threads outside the frame's
            mask are inactive in any case.

    Raises `InterpreterError` for an index out of bounds, and for global memory that the kernel must not access before
    it has waited for its predecessor in the stream.
    """

    def __init__(
        self, site: Site, frame: Frame, memref: MemRef, indices: Sequence[np.ndarray], active: np.ndarray | None = None
    ):
        require_waited(site, frame, memref)
        self.site, self.frame, self.memref, self.indices = site, frame, memref, indices
        self.block: ThreadBlock = frame.block
        ndim = max((i.ndim for i in indices), default=1)
        mask = None if frame.mask is None else lanewise(frame.mask, ndim)
        self.active = mask if active is None else active if mask is None else mask & active
        self._by_thread_only = active is None
        flat: Any = lanewise(memref.offset, ndim)
        for index, extent, stride in zip(indices, memref.shape, memref.strides, strict=True):
            if index.size == 1 and isinstance(extent, int) and isinstance(stride, int):
                at = index.item()  # of all threads: numbers are much faster than arrays of one
                if 0 <= at < extent:
                    flat = flat + at * stride
                    continue
            outside = _outside(np.asarray(index, np.int64), lanewise(extent, ndim))
            if np.count_nonzero(outside):  # much faster than `any` on small arrays
                self._require(~outside, "out-of-bounds access")
            flat = flat + (index if isinstance(stride, int) and stride == 1 else index * lanewise(stride, ndim))
        self.flat = np.asarray(flat, np.int64)
        if self.flat.ndim < ndim:
            self.flat = self.flat.reshape((1,) * (ndim - self.flat.ndim) + self.flat.shape)
        if memref.places is not None:
            self.flat = memref.places.take(self.flat, mode="clip")  # inactive elements may be anywhere
            stored = self.flat >= 0
            self.active = stored if self.active is None else self.active & stored
            self._by_thread_only = False
        outside = _outside(self.flat, memref.buffer.nbytes // memref.dtype.itemsize)
        if np.count_nonzero(outside):
            self._require(~outside, f"out-of-bounds access: outside of the {memref.buffer.nbytes} bytes of the buffer")

    def require_aligned(self, alignment: int | None) -> None:
        """Raises `InterpreterError` unless the address of every thread's first element is a multiple of `alignment`, a
        power of two.
        """
        if alignment is None or not self.block.checks:
            return
        buffer = self.memref.buffer
        first = self.flat[(slice(None),) + (slice(0, 1),) * (self.flat.ndim - 1)]
        beyond = (buffer.address + first * self.memref.dtype.itemsize) & (alignment - 1)
        if np.count_nonzero(beyond):
            self._require(
                beyond == 0,
                f"misaligned access: {alignment} bytes promised; the buffer's base is {buffer.address}-byte aligned",
            )

    def load(self, fill: np.ndarray | int = 0) -> np.ndarray:
        """The elements, of shape (threads or 1, *vector extents); `fill` for inactive ones."""
        data = self.memref.buffer.elements(self.memref.dtype)
        buffer = self.memref.buffer
        if self.memref.places is not None:
            raise self.site.error(f"load from {self.memref.text}, to which elements are only stored", self.frame)
        if self.active is None or (self.flat.shape[0] == 1 and self._by_thread_only):
            # Either no thread is inactive, or all threads read the same element.
            if buffer.shadow is not None and self.flat.size:
                violation = buffer.shadow.read(self.flat.ravel(), self._itemsize, self._threads(None), self.block)
                self._raise(violation, None)
            return data[self.flat]
        shape = np.broadcast_shapes(self.flat.shape, self.active.shape)
        active = spread(self.active, shape)
        chosen = _chosen(self.flat, shape, active)
        if buffer.shadow is not None and chosen.size:
            self._raise(buffer.shadow.read(chosen, self._itemsize, self._threads(active), self.block), active)
        result = np.empty(shape, self.memref.dtype)
        result[...] = fill
        result[active] = data[chosen]
        return result

    def store(self, value: np.ndarray) -> None:
        """Writes elements of shape (threads or 1, *vector extents).

        Raises `InterpreterError` for a store to an input.
        """
        shape, mask_shape = self.flat.shape, () if self.active is None else self.active.shape
        if shape != value.shape or shape[0] != self.block.threads or mask_shape not in ((), shape):
            shape = (
                np.broadcast_shapes((self.block.threads,), shape[:1])
                + np.broadcast_shapes(shape, value.shape, mask_shape)[1:]
            )
        active, chosen = self._changed(shape, Shadow.write)
        self.memref.buffer.elements(self.memref.dtype)[chosen] = _chosen(value, shape, active)

    def add(self, value: np.ndarray) -> None:
        """Adds numbers of shape (threads or 1, *vector extents) to the elements, atomically and one after the other.

        Raises `InterpreterError` for a store to an input, and for memory that was never written.
        """
        shape = (self.block.threads, *np.broadcast_shapes(self.flat.shape, value.shape)[1:])
        active, chosen = self._changed(shape, Shadow.update)
        np.add.at(self.memref.buffer.elements(self.memref.dtype), chosen, _chosen(value, shape, active))

    def update(self, combine: Callable[[np.ndarray, np.ndarray], np.ndarray], value: np.ndarray) -> np.ndarray:
        """Replaces each thread's element atomically by `combine(old, value)`; returns the old value of each thread.

        Threads update in order of their numbers. Raises `InterpreterError` for a store to an input, and for memory that
        was never written.
        """
        shape = (self.block.threads,)
        active, _ = self._changed(shape, Shadow.update)
        data, values, old = (
            self.memref.buffer.elements(self.memref.dtype),
            np.broadcast_to(value, shape),
            np.zeros(shape, value.dtype),
        )
        for thread in range(shape[0]) if active is None else np.flatnonzero(active):
            element = np.broadcast_to(self.flat, shape)[thread]
            old[thread] = data[element]
            data[element] = combine(old[thread : thread + 1], values[thread : thread + 1])[0]
        return old

    def _changed(
        self, shape: tuple[int, ...], record: Callable[..., Violation | None]
    ) -> tuple[np.ndarray | None, np.ndarray]:
        """Records the accesses; returns a mask of (threads, *vector extents) and the numbers of changed elements.

        The mask is None where all threads are active. Raises `InterpreterError` for an input, and for what the shadow
        finds wrong.
        """
        active = None if self.active is None else spread(self.active, shape)
        buffer = self.memref.buffer
        chosen = _chosen(self.flat, shape, active)
        if buffer.readonly and chosen.size:
            self._require(np.zeros(shape, bool), "store to an input of the kernel")
        if buffer.shadow is not None and chosen.size:
            violation = record(buffer.shadow, chosen, self._itemsize, self._lanes(shape, active), self.block)
            if violation is not None:
                self._raise(violation, np.ones(shape, bool) if active is None else active)
        return active, chosen

    @property
    def _itemsize(self) -> int:
        return self.memref.dtype.itemsize

    def _threads(self, active: np.ndarray | None) -> np.ndarray | int:
        """The thread of each accessed element (those where `active`), or one number for all of them."""
        shape = self.flat.shape if active is None else active.shape
        if shape[0] == 1 and self.block.threads > 1:
            who = self.frame.mask
            return int(np.argmax(who)) if who is not None and np.count_nonzero(who) == 1 else SEVERAL
        return self._lanes(shape, active)

    def _lanes(self, shape: tuple[int, ...], active: np.ndarray | None) -> np.ndarray | int:
        """The thread of each active element of (threads, *vector extents), or the only thread."""
        if self.block.threads == 1:
            return 0
        lanes = _lanes(self.block.threads, prod(shape[1:]))
        return lanes if active is None else lanes.reshape(shape)[active]

    def _raise(self, violation: Violation | None, active: np.ndarray | None) -> None:
        if violation is None:
            return
        if active is None:
            place = np.unravel_index(violation.position, self.flat.shape)
            if self.flat.shape[0] == 1:
                # All active threads read the element: the message names one that is not the writer.
                others = np.ones(self.block.threads, bool) if self.frame.mask is None else self.frame.mask.copy()
                if violation.thread >= 0:
                    others[violation.thread] = False
                place = (np.argmax(others), *place[1:])
        else:
            place = np.unravel_index(np.flatnonzero(active)[violation.position], active.shape)
        if violation.kind == "unwritten":
            raise self._error("read of memory that was never written", place)
        article = "an" if violation.earlier.startswith("a") else "a"
        space = {"shared": "shared-memory"}.get(self.memref.buffer.space, "global")
        raise self._error(f"{space} race with {article} {violation.earlier}: nothing orders the two", place)

    def _require(self, ok: np.ndarray, what: str) -> None:
        """Raises `InterpreterError` for the first active element for which `ok` is false, if there is one."""
        if self.active is not None:
            ok = ok | ~self.active
        if not ok.all():
            raise self._error(what, np.unravel_index(int(np.argmin(ok)), ok.shape))

    def _error(self, what: str, place: Sequence[Any]) -> InterpreterError:
        lane = int(place[0])
        mask = self.frame.mask
        if mask is not None and not mask[min(lane, len(mask) - 1)]:
            lane = int(np.argmax(mask))
        index = []
        for array in self.indices:
            at = [min(int(p), n - 1) for p, n in zip(place, array.shape, strict=False)]
            at[0] = min(lane, array.shape[0] - 1)
            index.append(int(array[tuple(at)]))
        where = f"index ({', '.join(map(str, index))}) of {self.memref.text or self.memref.buffer.name}"
        return self.site.error(f"{what}: {where}", self.frame, lane)
