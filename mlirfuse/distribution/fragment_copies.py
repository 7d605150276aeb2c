"""The rule of `fuse.copy_fragments`: each thread copies its own fragments, in the background where the hardware can."""

from __future__ import annotations

from dataclasses import replace

from mlir import ir
from mlir.dialects import memref, nvgpu, vector

from mlirfuse.analysis.buffers import EVICT_FIRST
from mlirfuse.distribution.access import access_of, load
from mlirfuse.distribution.copies import goes_by_async_copy
from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.fragments import Fragments
from mlirfuse.distribution.transfers import Bounds, clamped_index
from mlirfuse.dtypes import from_mlir
from mlirfuse.tiling.memory import WIDEST


@rule("fuse.copy_fragments")
def copy_fragments(d: Distributor, op: ir.Operation) -> None:
    """By `cp.async` where a whole fragment is 4, 8 or 16 aligned, contiguous bytes; others, and bools, do without."""
    source, slot, *offsets = op.operands
    element_type = ir.MemRefType(source.type).element_type
    tile = Fragments(d.layout, tuple(ir.DenseI64ArrayAttr(op.attributes["tile"])), element_type)
    read = access_of(d, op, source, offsets, list(range(d.layout.rank)), tile)
    bounds, target = Bounds(read), d.scalars[slot]
    past_l1 = True if read.bytes == WIDEST else None
    for key in tile.keys():
        start = [clamped_index(d, tile, key, read, axis, bounds) for axis in range(len(read.dims))]
        place = [d.threads.place(dim, repeat, varies=tile.varies(dim)) for dim, repeat in enumerate(key)]
        if read.width == tile.width and goes_by_async_copy(read.type, read.width):
            copy = nvgpu.DeviceAsyncCopyOp(target, place, read.buffer, start, read.width, bypassL1=past_l1)
            if read.streaming:
                copy.attributes["nontemporal"] = ir.BoolAttr.get(True)
            if EVICT_FIRST in op.attributes:
                copy.attributes[EVICT_FIRST] = ir.UnitAttr.get()
        else:
            # The pieces of a fragment share lines: these stay in the L1 until the last is loaded.
            _store(load(replace(read, streaming=False), start, tile.width), target, place)


def _store(fragment: ir.Value, slot: ir.Value, place: list[ir.Value]) -> None:
    if not isinstance(fragment.type, ir.VectorType):
        memref.StoreOp(fragment, slot, place)
        return
    size = fragment.type.shape[0] * from_mlir(fragment.type.element_type).bytes
    vector.StoreOp(fragment, slot, place, alignment=min(WIDEST, size))
