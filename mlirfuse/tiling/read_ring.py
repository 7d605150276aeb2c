"""A ring of shared-memory slots that a tile is read from instead of from device memory."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import memref, vector

from mlirfuse.tiling.tiles import index


class ReadRing:
    """The slots of one `vector.transfer_read`, allocated at the current insertion point.

    Args:
        read: the read whose tiles go through the ring.
        stages: number of slots.
        shape: extents of a slot.
        row: elements from one row of a slot to the next; the last of `shape`, or more where rows are padded.
    """

    def __init__(self, read: ir.Operation, stages: int, shape: Sequence[int], row: int):
        self.read = read
        self.shape, self.row = list(shape), row
        self.element = ir.VectorType(read.results[0].type).element_type
        self.space = ir.Attribute.parse("#gpu.address_space<workgroup>")
        padded = [stages, *self.shape[:-1], row]
        self.buffer = memref.AllocOp(ir.MemRefType.get(padded, self.element, memory_space=self.space), [], []).result

    def slot(self, number: ir.Value) -> ir.Value:
        """A view of one slot, without the padding."""
        rank = len(self.shape)
        strides = [self.row] * rank
        strides[-1] = 1
        for d in range(rank - 3, -1, -1):
            strides[d] = strides[d + 1] * self.shape[d + 1]
        dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
        layout = ir.StridedLayoutAttr.get(dynamic, strides)
        view = ir.MemRefType.get(self.shape, self.element, layout, self.space)
        starts, ones = [dynamic, *[0] * rank], [1] * (rank + 1)
        return memref.SubViewOp(view, self.buffer, [number], [], [], starts, [1, *self.shape], ones).result

    def load(self, number: ir.Value) -> ir.Value:
        """The tile in a slot."""
        start = index(0)
        rank = len(self.shape)
        return vector.TransferReadOp(
            self.read.results[0].type,
            self.slot(number),
            [start] * rank,
            ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank)),
            self.read.operands[1 + ir.MemRefType(self.read.operands[0].type).rank],
            in_bounds=ir.ArrayAttr.get([ir.BoolAttr.get(True)] * rank),
        ).result


def read_indices(read: ir.Operation) -> list[ir.Value]:
    """Where a `vector.transfer_read` begins, one index an axis of its buffer."""
    return list(read.operands)[1 : 1 + ir.MemRefType(read.operands[0].type).rank]
