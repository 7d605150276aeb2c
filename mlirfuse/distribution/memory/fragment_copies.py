"""The rule of `fuse.copy_fragments`: each thread copies its own fragments, asynchronously where the hardware can."""

from __future__ import annotations

from dataclasses import replace

from mlir import ir
from mlir.dialects import nvgpu

from mlirfuse.dialect.attributes import EVICT_FIRST
from mlirfuse.distribution.access import Access, access_of, load, store, with_axis_last
from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.memory.copies import can_copy_async
from mlirfuse.distribution.memory.transfers import Bounds, clamped_index
from mlirfuse.distribution.threads.fragments import Fragments
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.tiling.memory import access_elements


@rule("fuse.copy_fragments")
def copy_fragments(d: Distributor, op: ir.Operation) -> None:
    """Copies by `cp.async` if fragments are 4, 8 or 16 aligned bytes that are contiguous in source and slot.

    Other fragments, and those of bools, go through registers. Fragments are contiguous in the slot only if the threads'
    vectors run along the tile's last dimension of several elements, which is the slot's.
    """
    source, slot, *offsets = op.operands
    element_type = ir.MemRefType(source.type).element_type
    tile = Fragments(d.layout, tuple(ir.DenseI64ArrayAttr(op.attributes["tile"])), element_type)
    read = access_of(d, op, source, offsets, list(range(d.layout.rank)), tile)
    bounds, slots = Bounds(read), _slot_of(d, slot, tile)
    dims = [dim for dim in slots.dims if dim is not None]
    past_l1 = True if read.bytes == WIDEST_ACCESS else None
    for key in tile.keys():
        start = [clamped_index(d, tile, key, read, axis, bounds) for axis in range(len(read.dims))]
        indices = [d.threads.slot_index(dim, key[dim], varies=tile.varies(dim)) for dim in dims]
        if read.width == slots.width == tile.width and can_copy_async(read.type, read.width):
            copy = nvgpu.DeviceAsyncCopyOp(slots.buffer, indices, read.buffer, start, read.width, bypassL1=past_l1)
            if read.streaming:
                copy.attributes["nontemporal"] = ir.BoolAttr.get(True)
            if EVICT_FIRST in op.attributes:
                copy.attributes[EVICT_FIRST] = ir.UnitAttr.get()
        else:
            # The pieces of a fragment share cache lines, which stay in the L1 until the last piece is loaded.
            store(slots, load(replace(read, streaming=False), start, tile.width), indices, tile.width)


def _slot_of(d: Distributor, slot: ir.Value, tile: Fragments) -> Access:
    """The access with which a thread stores its fragments of a tile to the slot."""
    buffer = d.scalars[slot]
    axis = d.layout.vector_dim
    width = access_elements(ir.MemRefType(buffer.type), axis, None, tile.width)
    dims = list(range(d.layout.rank))
    access = Access(
        buffer, (), dims, frozenset(), width, axis, streaming=False, resumes=False, straddles=False, wide=width
    )
    return access if width == 1 else with_axis_last(access, axis)
