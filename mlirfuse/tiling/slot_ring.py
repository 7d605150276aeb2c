"""Rings of shared-memory slots that hold a tile each."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import memref, vector

from mlirfuse.dialect.attributes import OWN
from mlirfuse.dialect.shared_memory import workgroup_memref
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.tiling.tiles import index

ROW_BYTES = 16
"""The stride of padded rows is an odd multiple of these bytes, so that eight rows of a column touch each of the 32
shared-memory banks once."""


class SlotRing:
    """Slots for tiles, allocated at the current insertion point.

    Args:
        element: type of one element.
        stages: number of slots.
        shape: extents of a slot.
        row: elements from one row of a slot to the next; the last of `shape`, or more where rows are padded.
    """

    def __init__(self, element: ir.Type, stages: int, shape: Sequence[int], row: int):
        self.shape, self.row = list(shape), row
        self.element = element
        padded = [stages, *self.shape[:-1], row]
        self.buffer = memref.AllocOp(workgroup_memref(padded, self.element), [], []).result

    def slot(self, number: ir.Value) -> ir.Value:
        """A view of one slot, without the padding."""
        rank = len(self.shape)
        strides = [self.row] * rank
        strides[-1] = 1
        for d in range(rank - 3, -1, -1):
            strides[d] = strides[d + 1] * self.shape[d + 1]
        dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
        layout = ir.StridedLayoutAttr.get(dynamic, strides)
        view = ir.MemRefType.get(self.shape, self.element, layout, self.buffer.type.memory_space)
        starts, ones = [dynamic, *[0] * rank], [1] * (rank + 1)
        return memref.SubViewOp(view, self.buffer, [number], [], [], starts, [1, *self.shape], ones).result

    def tile(self, number: ir.Value, type_: ir.Type, padding: ir.Value) -> ir.Value:
        """The tile in a slot, a vector of that type."""
        start = index(0)
        rank = len(self.shape)
        return vector.TransferReadOp(
            type_,
            self.slot(number),
            [start] * rank,
            ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank)),
            padding,
            in_bounds=ir.ArrayAttr.get([ir.BoolAttr.get(True)] * rank),
        ).result


class ReadRing(SlotRing):
    """The slots of one `vector.transfer_read`, which is replaced by reads of the slots.

    Args:
        read: the read whose tiles go through the ring.
        stages: number of slots.
        shape: extents of a slot.
        row: elements from one row of a slot to the next.
    """

    def __init__(self, read: ir.Operation, stages: int, shape: Sequence[int], row: int):
        self.read = read
        super().__init__(ir.VectorType(read.results[0].type).element_type, stages, shape, row)

    def load(self, number: ir.Value) -> ir.Value:
        """The tile in a slot, of the replaced read's type."""
        padding = self.read.operands[1 + ir.MemRefType(self.read.operands[0].type).rank]
        return self.tile(number, self.read.results[0].type, padding)


class PerThreadRing(ReadRing):
    """The slots of a read that does not vary along some dimensions; each thread has its own copy of its elements.

    Args:
        read: the read whose tiles go through the ring.
        stages: number of slots.
        layout: the distribution of the tile over threads.
    """

    def __init__(self, read: ir.Operation, stages: int, layout: BlockedLayout):
        shape = [
            layout.extents[d] // layout.blocks[d] if extent > 1 else layout.lanes[d] * layout.warps[d]
            for d, extent in enumerate(ir.VectorType(read.results[0].type).shape)
        ]
        super().__init__(read, stages, shape, shape[-1])

    def load(self, number: ir.Value) -> ir.Value:
        """The thread's copies in a slot, of the replaced read's type."""
        tile = super().load(number)
        tile.owner.attributes[OWN] = ir.UnitAttr.get()
        return tile


def padded_row(tile: ir.VectorType) -> int:
    """Row stride, in elements, of a slot padded so that reads of columns have no bank conflicts."""
    size = from_mlir(tile.element_type).bytes
    row = tile.shape[-1] * size
    return (row + (ROW_BYTES if row % (2 * ROW_BYTES) == 0 else 0)) // size


def read_indices(read: ir.Operation) -> list[ir.Value]:
    """The start indices of a `vector.transfer_read`, one for each axis of its buffer."""
    return list(read.operands)[1 : 1 + ir.MemRefType(read.operands[0].type).rank]
