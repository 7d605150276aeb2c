"""Grid reductions: the workspace, the grid, and the code of each block.

`block_loop` emits the first stage (a block's persistent loop), `second_stage` combines the blocks' partials.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir
from mlir.dialects import affine, arith

from mlirfuse.analysis.grid_reduction import GridReduction
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.memory.workspaces import RESIDENT, SCRATCH, SEMAPHORES
from mlirfuse.dialect.attributes import SECOND_STAGE, WORKSPACE, WORKSPACE_EXTENTS, WORKSPACE_OPERANDS
from mlirfuse.dialect.resident_blocks import resident_blocks
from mlirfuse.errors import PassError
from mlirfuse.schedule.parts.persistent_loop import SUM_ROWS
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.tiling.program import Count, KernelFrame, WorkspaceArgument, count_expr, forall, tile_counts
from mlirfuse.tiling.reduction.block_loop import BlockLoop
from mlirfuse.tiling.reduction.reduction_ops import element_type, partial_dims
from mlirfuse.tiling.reduction.second_stage import SecondStage, slice_counts
from mlirfuse.tiling.tiles import Shape, index


def workspace_of(space: IterationSpace, plan: GridReduction, schedule: Schedule) -> list[WorkspaceArgument]:
    """The workspace arguments: the partials of each reduction, one a row, and then the semaphores.

    With atomics, a reduction has `SUM_ROWS` rows, which are zero between launches.
    """
    assert schedule.persistent_loop is not None  # checked by the pass
    kept = [[space.extents[d] or 0 for d in partial_dims(space, s, schedule)] for s in plan.reductions]
    semaphores = {WORKSPACE: ir.StringAttr.get(SEMAPHORES)}
    counter = (ir.MemRefType.get([1], ir.IntegerType.get_signless(32)), semaphores)
    if schedule.persistent_loop.grid_reduction == "atomics":
        sums = [
            ir.MemRefType.get([SUM_ROWS, *extents], element_type(s))
            for s, extents in zip(plan.reductions, kept, strict=True)
        ]
        return [*((type_, semaphores) for type_ in sums), counter]
    resident = (RESIDENT, max(1, schedule.blocks_per_sm))
    expr, operands = ir.AffineExpr.get_symbol(0), [resident]
    if schedule.persistent_loop.period:
        tiles, extents = _tiles(space, plan, schedule.tile)
        expr = ir.AffineExpr.get_floor_div(tiles, schedule.persistent_loop.period) + ir.AffineExpr.get_symbol(
            len(extents)
        )
        operands = [*extents, resident]
    scratch = {
        WORKSPACE: ir.StringAttr.get(SCRATCH),
        WORKSPACE_EXTENTS: ir.AffineMapAttr.get(ir.AffineMap.get(0, len(operands), [expr])),
        WORKSPACE_OPERANDS: ir.DenseI64ArrayAttr.get([number for pair in operands for number in pair]),
    }
    dynamic = ir.ShapedType.get_dynamic_size()
    partials = [
        ir.MemRefType.get([dynamic, *extents], element_type(s))
        for s, extents in zip(plan.reductions, kept, strict=True)
    ]
    return [*((type_, scratch) for type_ in partials), counter]


def _tiles(space: IterationSpace, plan: GridReduction, tile: Shape) -> tuple[ir.AffineExpr, list[tuple[int, int]]]:
    """The number of tiles over symbols, and the (argument, axis) pair whose extent each symbol is."""
    expr: ir.AffineExpr = ir.AffineExpr.get_constant(1)
    sources: list[tuple[int, int]] = []
    for dim in plan.outer_dims:
        extent = space.extents[dim]
        if extent is not None:
            expr = expr * -(-extent // tile[dim])
            continue
        count = ir.AffineExpr.get_symbol(len(sources))
        expr = expr * ir.AffineExpr.get_ceil_div(count, tile[dim])
        sources.append(_argument_axis(space, dim))
    return expr, sources


def _argument_axis(space: IterationSpace, dim: int) -> tuple[int, int]:
    """The (argument, axis) pair of the kernel that runs along a dimension; raises `PassError` if there is none."""
    for (op, number), axes in space.use_axes.items():
        value = op.operands[number]
        if isinstance(value.owner, ir.Block) and dim in axes:
            return ir.BlockArgument(value).arg_number, axes.index(dim)
    raise PassError(f"no argument has the dynamic extent of dimension {dim}", hint="make the extent static")


def emit_grid_reduction(frame: KernelFrame, space: IterationSpace, plan: GridReduction, schedule: Schedule) -> None:
    """Emits both stages of a grid reduction into a kernel that was opened with the arguments of `workspace_of`."""
    assert schedule.persistent_loop is not None  # checked by the pass
    *buffers, semaphores = frame.workspace
    with frame.body():
        counts, tiles, blocks = _blocks(frame, space, plan, schedule)
        grid = forall(blocks)
        with ir.InsertionPoint.at_block_terminator(grid.body):
            block = grid.body.arguments[0]
            block_loop = BlockLoop(frame, space, plan, schedule, counts, tiles, blocks, buffers)
            partials = block_loop.emit(block)
            SecondStage(frame, space, plan, schedule, blocks, partials, buffers).emit(block, semaphores)


def emit_persistent_loop(
    frame: KernelFrame, space: IterationSpace, plan: GridReduction, schedule: Schedule, buffers: Sequence[ir.Value]
) -> None:
    """Emits the first stage alone, which stores its partials in `buffers`, results of the kernel."""
    with frame.body():
        counts, tiles, blocks = _blocks(frame, space, plan, schedule)
        grid = forall(blocks)
        with ir.InsertionPoint.at_block_terminator(grid.body):
            block, slice_start = grid.body.arguments[0], None
            assert schedule.persistent_loop is not None  # checked by the pass
            if (slices := schedule.persistent_loop.slices) > 1:
                width, blocks = schedule.tile[schedule.layout.vector_dim], index(schedule.persistent_loop.sharing)
                slice_start = arith.MulIOp(arith.RemUIOp(block, index(slices)).result, index(width)).result
                block = arith.DivUIOp(block, index(slices)).result
            block_loop = BlockLoop(
                frame, space, plan, schedule, counts, tiles, blocks, buffers, slice_start=slice_start
            )
            block_loop.emit(block)


def emit_second_stage(frame: KernelFrame, space: IterationSpace, plan: GridReduction, schedule: Schedule) -> None:
    """Emits the second stage alone, into a kernel whose further inputs are the partials of `emit_persistent_loop`."""
    assert schedule.persistent_loop is not None  # checked by the pass
    with frame.body():
        blocks = index(schedule.persistent_loop.sharing)
        second_stage = SecondStage(frame, space, plan, schedule, blocks, blocks, frame.inputs)
        grid = forall(index(second_stage.slices))
        grid.operation.attributes[SECOND_STAGE] = ir.UnitAttr.get()  # canonicalisation folds a loop over one slice
        with ir.InsertionPoint.at_block_terminator(grid.body):
            second_stage.emit_slices(grid.body.arguments[0], index(second_stage.slices))


def _blocks(
    frame: KernelFrame, space: IterationSpace, plan: GridReduction, schedule: Schedule
) -> tuple[list[Count], ir.Value, ir.Value]:
    """The tiles of each dimension, all tiles, and the blocks that loop over them."""
    assert schedule.persistent_loop is not None  # checked by the pass
    counts = tile_counts(space, schedule.tile, frame.buffers, frozenset(plan.outer_dims))
    expr, symbols = count_expr(counts)
    tiles = affine.AffineApplyOp(ir.AffineMap.get(0, len(symbols), [expr]), symbols).result
    if schedule.persistent_loop.blocks:
        return counts, tiles, index(schedule.persistent_loop.blocks)
    # At least one block, so that an empty grid still writes results. With `grid_sync` each slice has a block, even one
    # without a tile, so that the slices of a reduction of few rows and many columns are combined in parallel.
    slices = (
        prod(slice_counts(space, plan, schedule.persistent_loop))
        if schedule.persistent_loop.grid_reduction == "grid_sync"
        else 1
    )
    least = ir.AffineExpr.get_constant(slices)
    most_blocks = affine.AffineMaxOp(ir.AffineMap.get(0, len(symbols), [expr, least]), symbols).result
    resident = resident_blocks(max(1, schedule.blocks_per_sm))
    bounds = [ir.AffineExpr.get_symbol(0), ir.AffineExpr.get_symbol(1)]
    blocks = affine.AffineMinOp(ir.AffineMap.get(0, 2, bounds), [most_blocks, resident]).result
    return counts, tiles, blocks
