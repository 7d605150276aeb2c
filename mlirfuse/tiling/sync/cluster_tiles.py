"""Partial tiles of a cluster's blocks: they meet in shared memory, without semaphores and without workspace."""

from __future__ import annotations

from functools import reduce

from mlir import ir
from mlir.dialects import arith, gpu, memref, scf, vector

from mlirfuse.dialect.attributes import PHASE, SECOND_STAGE
from mlirfuse.dialect.cluster_barrier import cluster_barrier
from mlirfuse.dialect.cluster_view import cluster_view
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.tiling.sync.partial_tiles import SliceEpilogue, add_tiles
from mlirfuse.tiling.tiles import index, zero

PADDING = 32  # bytes behind each row, so that the rows that a warp writes together lie in different banks


def meet_in_cluster(part: ir.Value, split: int, partial: ir.Value, rows: int, epilogue: SliceEpilogue) -> None:
    """Every block shows its part to the others of its cluster, and adds up some rows of all parts, in order.

    Args:
        part: the block's rank in its cluster.
        split: blocks of a cluster.
        partial: the block's part of the tile.
        rows: rows that a block adds up.
        epilogue: what is done with them.
    """
    type_ = ir.VectorType(partial.type)
    whole = type_.shape[-2]
    own = _buffer(type_)
    zeros = [index(0)] * type_.rank
    gpu.BarrierOp()  # what lies where the part goes may still be read by other warps
    vector.TransferWriteOp(None, partial, own, zeros, _identity(type_.rank), in_bounds=_inside(type_.rank))
    cluster_barrier()
    branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, part, index(whole // rows)).result)
    branch.operation.attributes[SECOND_STAGE] = ir.UnitAttr.get()
    with ir.InsertionPoint(branch.then_block):
        start = arith.MulIOp(part, index(rows)).result
        found = [_read(cluster_view(own, index(rank)), type_, start, rows) for rank in range(split)]
        epilogue(reduce(add_tiles, found), start)
        scf.YieldOp([])
    cluster_barrier()  # the others may still read this block's part


def _buffer(tile: ir.VectorType) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    width = tile.shape[-1] + PADDING // from_mlir(tile.element_type).bytes
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    memory = ir.MemRefType.get([*tile.shape[:-1], width], tile.element_type, memory_space=space)
    alloc = memref.AllocOp(memory, [], [], alignment=ir.IntegerAttr.get(i64, 16))
    alloc.operation.attributes[PHASE] = ir.IntegerAttr.get(i64, 1)
    return alloc.result


def _read(view: ir.Value, tile: ir.VectorType, start: ir.Value, rows: int) -> ir.Value:
    """Some rows of a block's part."""
    shape = [*tile.shape[:-2], rows, tile.shape[-1]]
    place = [*[index(0)] * (tile.rank - 2), start, index(0)]
    padding = arith.ConstantOp(tile.element_type, zero(tile.element_type)).result
    return vector.TransferReadOp(
        ir.VectorType.get(shape, tile.element_type),
        view,
        place,
        _identity(tile.rank),
        padding,
        in_bounds=_inside(tile.rank),
    ).result


def _identity(rank: int) -> ir.AffineMapAttr:
    return ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))


def _inside(rank: int) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.BoolAttr.get(True)] * rank)
