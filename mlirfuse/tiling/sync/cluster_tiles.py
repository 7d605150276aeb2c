"""Split-k within a cluster: partial tiles are exchanged through distributed shared memory, without workspace."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from mlir import ir
from mlir.dialects import arith, gpu, memref, scf, vector

from mlirfuse.dialect.attributes import PHASE, SECOND_STAGE
from mlirfuse.dialect.cluster_barrier import cluster_barrier
from mlirfuse.dialect.cluster_view import cluster_view
from mlirfuse.dialect.shared_memory import workgroup_memref
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.tiling.sync.partial_tiles import SliceEpilogue, add_tiles
from mlirfuse.tiling.tiles import index, zero

PADDING = 32  # bytes after each row, so that the rows that a warp writes together are in different banks


def reduce_in_cluster(
    member: ir.Value, split: int, partials: Sequence[ir.Value], rows: int, epilogue: SliceEpilogue
) -> None:
    """Each block stores its partials in shared memory, and adds up a slice of rows of all partials, in rank order.

    Args:
        member: the block's rank in its cluster, an index.
        split: number of blocks in a cluster.
        partials: the block's partial tiles, of the same rows.
        rows: rows in a block's slice.
        epilogue: emits the ops on a summed slice.
    """
    types = [ir.VectorType(partial.type) for partial in partials]
    whole, rank = types[0].shape[-2], types[0].rank
    buffers = [_buffer(type_) for type_ in types]
    zeros = [index(0)] * rank
    gpu.BarrierOp()  # other warps may still read earlier contents of this shared memory
    for partial, buffer in zip(partials, buffers, strict=True):
        vector.TransferWriteOp(None, partial, buffer, zeros, _identity(rank), in_bounds=_inside(rank))
    cluster_barrier()
    branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, member, index(whole // rows)).result)
    branch.operation.attributes[SECOND_STAGE] = ir.UnitAttr.get()
    with ir.InsertionPoint(branch.then_block):
        start = arith.MulIOp(member, index(rows)).result
        for number, (buffer, type_) in reversed(list(enumerate(zip(buffers, types, strict=True)))):
            slices = [_read(cluster_view(buffer, index(peer)), type_, start, rows) for peer in range(split)]
            epilogue(number, reduce(add_tiles, slices), start)
        scf.YieldOp([])
    cluster_barrier()  # peers may still read this block's partial


def _buffer(tile: ir.VectorType) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    width = tile.shape[-1] + PADDING // from_mlir(tile.element_type).bytes
    memory = workgroup_memref([*tile.shape[:-1], width], tile.element_type)
    alloc = memref.AllocOp(memory, [], [], alignment=ir.IntegerAttr.get(i64, 16))
    alloc.operation.attributes[PHASE] = ir.IntegerAttr.get(i64, 1)
    return alloc.result


def _read(view: ir.Value, tile: ir.VectorType, start: ir.Value, rows: int) -> ir.Value:
    """Rows `start` to `start + rows` of a block's partial."""
    shape = [*tile.shape[:-2], rows, tile.shape[-1]]
    indices = [*[index(0)] * (tile.rank - 2), start, index(0)]
    padding = arith.ConstantOp(tile.element_type, zero(tile.element_type)).result
    return vector.TransferReadOp(
        ir.VectorType.get(shape, tile.element_type),
        view,
        indices,
        _identity(tile.rank),
        padding,
        in_bounds=_inside(tile.rank),
    ).result


def _identity(rank: int) -> ir.AffineMapAttr:
    return ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))


def _inside(rank: int) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.BoolAttr.get(True)] * rank)
