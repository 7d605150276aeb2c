"""Partial tiles that meet through flagged buffers: numbers that announce themselves, without fences and semaphores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from mlir import ir
from mlir.dialects import arith, scf

from mlirfuse.analysis.memory.workspaces import SEMAPHORES
from mlirfuse.dialect.attributes import SECOND_STAGE
from mlirfuse.dialect.flagged_load import flagged_load
from mlirfuse.dialect.flagged_store import flagged_store
from mlirfuse.tiling.sync.partial_tiles import SliceEpilogue, add_tiles, part_row, workspace_argument
from mlirfuse.tiling.tiles import index


def flagged_workspace(
    kernel: ir.Operation, tiles: ir.AffineExpr, operands: Sequence[ir.Value], tile: ir.VectorType, split: int
) -> ir.Value:
    """Adds a workspace argument with room for `split` parts of each tile; `tiles` is over symbols `operands`."""
    return workspace_argument(kernel, SEMAPHORES, tiles * split, operands, list(tile.shape), tile.element_type)


def exchange_flagged(
    flagged_buffer: ir.Value,
    tile: ir.Value,
    part: ir.Value,
    split: int,
    partial: ir.Value,
    rows: int,
    epilogue: SliceEpilogue,
) -> None:
    """Every block stores its partial, and adds up some rows of all parts, in order, as soon as these have come.

    Args:
        flagged_buffer: the flagged buffer.
        tile: the number of the block's tile.
        part: the number of its part.
        split: parts of a tile.
        partial: the part.
        rows: rows that a block adds up.
        epilogue: what is done with them.
    """
    type_ = ir.VectorType(partial.type)
    inner = [index(0)] * (type_.rank - 2)
    flagged_store(partial, flagged_buffer, [part_row(tile, part, split), *inner, index(0), index(0)])
    branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, part, index(type_.shape[-2] // rows)).result)
    branch.operation.attributes[SECOND_STAGE] = ir.UnitAttr.get()
    with ir.InsertionPoint(branch.then_block):
        start = arith.MulIOp(part, index(rows)).result
        own = ir.VectorType.get([*type_.shape[:-2], rows, type_.shape[-1]], type_.element_type)
        (found,) = flagged_load(
            flagged_buffer, [[part_row(tile, index(0), split), *inner, start, index(0)]], own, split
        )
        epilogue(reduce(add_tiles, found), start)
        scf.YieldOp([])
