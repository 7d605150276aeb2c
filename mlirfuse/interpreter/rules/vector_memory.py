"""`vector` ops that access memory: contiguous loads and stores, masked loads and stores, and transfers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from mlir import ir

from mlirfuse.dialect.attributes import UNDEFINED
from mlirfuse.interpreter.access import Access, lanewise, spread
from mlirfuse.interpreter.registry import rule
from mlirfuse.interpreter.site import Site, gather
from mlirfuse.interpreter.state.affine import plain_dims
from mlirfuse.interpreter.state.lanes import expand
from mlirfuse.interpreter.state.machine import Frame
from mlirfuse.interpreter.state.memory import MemRef
from mlirfuse.interpreter.state.types import vector_shape

Step = Callable[[Frame], None]


def _steps(shape: Sequence[int]) -> list[np.ndarray]:
    """For each dimension of a vector an array of 0, 1, 2, ... along its axis, which broadcasts to (threads, *shape)."""
    rank = len(shape)
    return [np.arange(n).reshape([1] * (1 + d) + [n] + [1] * (rank - 1 - d)) for d, n in enumerate(shape)]


def _contiguous(shape: Sequence[int]) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """A function from start indices to element indices of a vector along the memref's innermost dimensions."""
    steps, ndim = _steps(shape), 1 + len(shape)

    def indices(starts: Sequence[np.ndarray]) -> list[np.ndarray]:
        elements = [expand(start, ndim) for start in starts]
        for step, dimension in zip(reversed(steps), range(len(elements) - 1, -1, -1), strict=False):
            elements[dimension] = elements[dimension] + step
        return elements

    return indices


@rule("vector.load", "vector.maskedload")
def _load(site: Site) -> Step:
    shape, out, alignment = vector_shape(site.op.results[0].type), site.results[0], site.integer("alignment")
    rank = ir.MemRefType(site.op.operands[0].type).rank
    source, starts, masking = site.operands[0], site.operands[1 : 1 + rank], site.operands[1 + rank :]
    indices = _contiguous(shape)

    def step(frame: Frame) -> None:
        values = frame.values
        mask, fill = gather(values, masking) if masking else (None, 0)
        access = Access(site, frame, values[source], indices(gather(values, starts)), mask)
        access.require_aligned(alignment)
        values[out] = access.load(fill)

    return step


@rule("vector.store", "vector.maskedstore")
def _store(site: Site) -> Step:
    """Operands are (value, base, indices) in a store, and (base, indices, mask, value) in a masked store."""
    alignment = site.integer("alignment")
    if site.name == "vector.store":
        value, target, *starts = site.operands
        masking, value_type = [], site.op.operands[0].type
    else:
        target, *starts, mask_slot, value = site.operands
        masking, value_type = [mask_slot], site.op.operands[len(site.operands) - 1].type
    indices = _contiguous(vector_shape(value_type))

    def step(frame: Frame) -> None:
        values = frame.values
        mask = values[masking[0]] if masking else None
        access = Access(site, frame, values[target], indices(gather(values, starts)), mask)
        access.require_aligned(alignment)
        access.store(values[value])

    return step


class _Transfer:
    """Common part of `transfer_read` and `transfer_write`: indices through the permutation map, and bounds."""

    def __init__(self, site: Site, vector: ir.Type):
        map_ = ir.AffineMapAttr(site.op.attributes["permutation_map"]).value
        self.dimensions = plain_dims(map_)
        self.in_bounds = [ir.BoolAttr(b).value for b in ir.ArrayAttr(site.op.attributes["in_bounds"])]
        self.shape = vector_shape(vector)
        self.steps = _steps(self.shape)

    def locate(
        self, memref: MemRef, starts: Sequence[np.ndarray], mask: np.ndarray | None
    ) -> tuple[list[np.ndarray], np.ndarray | None]:
        """Element indices, and a mask of the accessed elements (None for all)."""
        ndim = 1 + len(self.shape)
        indices = [expand(start, ndim) for start in starts]
        active = None if mask is None else self._mask_on_vector(mask)
        for axis, dimension in enumerate(self.dimensions):
            if dimension is None:
                continue
            indices[dimension] = indices[dimension] + self.steps[axis]
            if not self.in_bounds[axis]:
                inside = (indices[dimension] >= 0) & (indices[dimension] < lanewise(memref.shape[dimension], ndim))
                if not inside.all():
                    active = inside if active is None else active & inside
        return indices, active

    def poison_past_end(
        self, value: np.ndarray, indices: Sequence[np.ndarray], memref: MemRef, axis: int
    ) -> np.ndarray:
        """The elements read, with undefined values for those past the memref's end along an axis."""
        dimension = self.dimensions[axis]
        assert dimension is not None  # no broadcast dimension is out of bounds
        outside = indices[dimension] >= lanewise(memref.shape[dimension], value.ndim)
        anything = np.iinfo(value.dtype).max if value.dtype.kind in "iu" else np.nan
        return np.where(outside, np.array(anything, value.dtype), value)

    def _mask_on_vector(self, mask: np.ndarray) -> np.ndarray:
        """A transfer's mask, which has the shape of the accessed memory, with axes in the order of the vector."""
        accessed = sorted(d for d in self.dimensions if d is not None)
        order = [accessed.index(d) for d in self.dimensions if d is not None]
        mask = mask.transpose([0, *(1 + position for position in order)])
        missing = tuple(1 + axis for axis, d in enumerate(self.dimensions) if d is None)
        return np.expand_dims(mask, missing)


@rule("vector.transfer_read")
def _transfer_read(site: Site) -> Step:
    """Reads a tile; out-of-bounds and masked elements become the padding, or undefined values if the op allows it."""
    (source,), starts, (padding,), mask = site.segments()
    transfer, out = _Transfer(site, site.op.results[0].type), site.results[0]
    undefined = site.ints(UNDEFINED) if UNDEFINED in site.op.attributes else []

    def step(frame: Frame) -> None:
        values = frame.values
        memref = values[source]
        indices, active = transfer.locate(memref, gather(values, starts), values[mask[0]] if mask else None)
        result = Access(site, frame, memref, indices, active).load(expand(values[padding], 1 + len(transfer.shape)))
        values[out] = spread(result, (result.shape[0], *transfer.shape))
        for axis in undefined:
            values[out] = transfer.poison_past_end(values[out], indices, memref, axis)

    return step


@rule("vector.transfer_write")
def _transfer_write(site: Site) -> Step:
    """Writes a tile, except for masked elements, and for out-of-bounds elements if the op allows these."""
    (value,), (target,), starts, mask = site.segments()
    transfer = _Transfer(site, site.op.operands[0].type)

    def step(frame: Frame) -> None:
        values = frame.values
        memref = values[target]
        indices, active = transfer.locate(memref, gather(values, starts), values[mask[0]] if mask else None)
        Access(site, frame, memref, indices, active).store(values[value])

    return step
