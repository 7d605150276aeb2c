"""Flag-in-data exchange of partial tiles (as NCCL's LL protocol): data words carry flags, without fences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from mlir import ir
from mlir.dialects import arith, scf

from mlirfuse.analysis.memory.workspaces import SEMAPHORES
from mlirfuse.dialect.attributes import SECOND_STAGE
from mlirfuse.dialect.flagged_load import flagged_load
from mlirfuse.dialect.flagged_store import flagged_store
from mlirfuse.tiling.sync.partial_tiles import SliceEpilogue, add_tiles, partial_row, workspace_argument
from mlirfuse.tiling.tiles import index


def flagged_workspace(
    kernel: ir.Operation, tiles: ir.AffineExpr, operands: Sequence[ir.Value], tile: ir.VectorType, split: int
) -> ir.Value:
    """Adds a workspace argument for `split` partials of each tile; `tiles` is an expression over symbols `operands`."""
    return workspace_argument(kernel, SEMAPHORES, tiles * split, operands, list(tile.shape), tile.element_type)


def exchange_flagged(
    flagged_buffers: Sequence[ir.Value],
    tile: ir.Value,
    member: ir.Value,
    split: int,
    partials: Sequence[ir.Value],
    rows: int,
    epilogue: SliceEpilogue,
) -> None:
    """Each block stores its partials, waits for a slice of rows of all partials, and adds the slices up in order.

    Args:
        flagged_buffers: the workspace argument of `flagged_workspace` for each of a block's tiles.
        tile: number of the block's tile, an index.
        member: number of the block's partial within the tile, an index.
        split: number of partials of a tile.
        partials: the block's partial tiles, of the same rows.
        rows: rows in a block's slice.
        epilogue: emits the ops on a summed slice.
    """
    type_ = ir.VectorType(partials[0].type)
    inner = [index(0)] * (type_.rank - 2)
    for partial, buffer in zip(partials, flagged_buffers, strict=True):
        flagged_store(partial, buffer, [partial_row(tile, member, split), *inner, index(0), index(0)])
    branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, member, index(type_.shape[-2] // rows)).result)
    branch.operation.attributes[SECOND_STAGE] = ir.UnitAttr.get()
    with ir.InsertionPoint(branch.then_block):
        start = arith.MulIOp(member, index(rows)).result
        for number, (partial, buffer) in reversed(list(enumerate(zip(partials, flagged_buffers, strict=True)))):
            tile_type = ir.VectorType(partial.type)
            slice_type = ir.VectorType.get([*tile_type.shape[:-2], rows, tile_type.shape[-1]], tile_type.element_type)
            (slices,) = flagged_load(
                buffer, [[partial_row(tile, index(0), split), *inner, start, index(0)]], slice_type, split
            )
            epilogue(number, reduce(add_tiles, slices), start)
        scf.YieldOp([])
