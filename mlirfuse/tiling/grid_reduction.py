"""The loop over blocks of a kernel whose reductions run over more than a tile.

A block walks its tiles, carries a tile of partial results for each total, and stores its part. `grid_finish` has what
follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine, scf, vector

from mlirfuse.analysis.grid_reduction import GridReduction, kept_dims
from mlirfuse.analysis.iteration_space import IterationSpace
from mlirfuse.analysis.structure import OpStructure
from mlirfuse.analysis.workspaces import (
    RESIDENT,
    SCRATCH,
    SEMAPHORES,
    WORKSPACE,
    WORKSPACE_EXTENTS,
    WORKSPACE_OPERANDS,
)
from mlirfuse.dialect.resident_blocks import resident_blocks
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.tiling.emitter import TileEmitter
from mlirfuse.tiling.grid_finish import GridFinish
from mlirfuse.tiling.order import by_reduction_depth
from mlirfuse.tiling.program import (
    Count,
    KernelFrame,
    WorkspaceArgument,
    count_expr,
    dynamic_extent,
    forall,
    ragged_dims,
    tile_counts,
    tile_offsets,
)
from mlirfuse.tiling.tiles import Shape, index
from mlirfuse.tiling.totals import combine, element_type, mask_of, neutral_scalar, neutral_tile, subtract
from mlirfuse.tiling.transfers import TileTransfers


def workspace_of(space: IterationSpace, plan: GridReduction, schedule: Schedule) -> list[WorkspaceArgument]:
    """The arguments that hold partial results, one row a block, and the semaphore behind them."""
    scratch = {
        WORKSPACE: ir.StringAttr.get(SCRATCH),
        WORKSPACE_EXTENTS: ir.AffineMapAttr.get(ir.AffineMap.get(0, 1, [ir.AffineExpr.get_symbol(0)])),
        WORKSPACE_OPERANDS: ir.DenseI64ArrayAttr.get([RESIDENT, max(1, schedule.blocks_per_sm)]),
    }
    dynamic = ir.ShapedType.get_dynamic_size()
    arguments: list[WorkspaceArgument] = []
    for s in plan.totals:
        kept = [space.extents[d] or 0 for d in kept_dims(space, s)]
        arguments.append((ir.MemRefType.get([dynamic, *kept], element_type(s)), scratch))
    semaphores = ir.MemRefType.get([1], ir.IntegerType.get_signless(32))
    return [*arguments, (semaphores, {WORKSPACE: ir.StringAttr.get(SEMAPHORES)})]


def emit_grid_reduction(frame: KernelFrame, space: IterationSpace, plan: GridReduction, schedule: Schedule) -> None:
    """Emits the loop into a kernel that was opened with `workspace_of` the plan."""
    assert schedule.walk is not None  # the pass looked
    with frame.body():
        counts = tile_counts(space, schedule.tile, frame.buffers, frozenset(plan.walked))
        expr, symbols = count_expr(counts)
        tiles = affine.AffineApplyOp(ir.AffineMap.get(0, len(symbols), [expr]), symbols).result
        # One block more than tiles, so that there is a block to write the totals of nothing.
        bounds = [expr + 1, ir.AffineExpr.get_symbol(len(symbols))]
        resident = resident_blocks(max(1, schedule.blocks_per_sm))
        blocks = affine.AffineMinOp(ir.AffineMap.get(0, len(symbols) + 1, bounds), [*symbols, resident]).result
        grid = forall(blocks)
        block = grid.body.arguments[0]
        with ir.InsertionPoint.at_block_terminator(grid.body):
            _Walk(frame, space, plan, schedule.tile, schedule.order == "depth", counts, tiles, blocks).emit(block)
            GridFinish(frame, space, plan, schedule.walk, blocks).emit(block)


@dataclass
class _Walk:
    """What one block does before the totals are known: its tiles, and then its part of every total.

    Attributes:
        early_totals: whether a total takes its elements as soon as they are known. Where registers are short they would
            otherwise be kept across the reductions of a tile, or computed again; where they are not, a tile's results
            are under way earlier without them (H200, LayerNorm backward: 1 %).
    """

    frame: KernelFrame
    space: IterationSpace
    plan: GridReduction
    tile: Shape
    early_totals: bool
    counts: Sequence[Count]
    tiles: ir.Value
    blocks: ir.Value

    def emit(self, block: ir.Value) -> None:
        start = [index(0)] * self.space.rank
        transfers = TileTransfers(self.space, self.tile, start, frozenset(), self.frame.buffers)
        column = TileEmitter(transfers, dict(self.frame.scalars))
        self._read_columns(transfers)
        for s in self.plan.column:
            column.emit(s)
        partials = [neutral_tile(s, self._extents(s)) for s in self.plan.totals]
        loop = scf.ForOp(block, self.tiles, self.blocks, partials)
        with ir.InsertionPoint(loop.body):
            offsets = tile_offsets(loop.induction_variable, self.counts, self.tile)
            ragged = ragged_dims(self.space, self.tile) & frozenset(self.plan.walked)
            reads = dict(transfers.reads)
            walked = frozenset(self.plan.walked)
            own = TileTransfers(self.space, self.tile, offsets, ragged, self.frame.buffers, divided=walked, reads=reads)
            scf.YieldOp(self._emit_tile(TileEmitter(own, dict(column.values)), list(loop.inner_iter_args)))
        for s, partial, buffer in zip(self.plan.totals, loop.results, self.frame.workspace, strict=False):
            self._store_part(s, column.reduce(s, partial, neutral_scalar(s)), buffer, block)

    def _read_columns(self, transfers: TileTransfers) -> None:
        """Reads what all tiles share before the walk."""
        for (op, number), axes in self.space.use_axes.items():
            value = op.operands[number]
            if value in self.frame.buffers and not set(axes) & set(self.plan.walked):
                transfers.read(value, axes)

    def _emit_tile(self, emitter: TileEmitter, partials: Sequence[ir.Value]) -> list[ir.Value]:
        """One tile: everything that varies along the walk; returns the new partial results."""
        for (op, number), axes in self.space.use_axes.items():
            value = op.operands[number]
            if value in self.frame.buffers and len({d for d in axes if d is not None}) == self.space.rank:
                emitter.transfers.read(value, axes)
        mask = self._inside(emitter.transfers)
        made = {result for s in self.plan.tile for result in s.op.results}
        carried = {s.op: partial for s, partial in zip(self.plan.totals, partials, strict=True)}
        ordered = [*by_reduction_depth(self.plan.tile), *self.plan.totals]
        if self.early_totals:
            ordered = by_reduction_depth(ordered)
        for s in ordered:
            if s.op in carried:
                carried[s.op] = combine(s, carried[s.op], emitter.combine_input(s), mask)
            else:
                emitter.emit(s)
        for value, buffer in self.frame.results:
            if value in made:
                emitter.write(value, buffer)
        return list(carried.values())

    def _inside(self, transfers: TileTransfers) -> ir.Value | None:
        """Which elements of a tile are not past the end of the walked dimensions; None where all are."""
        bounds = {d: subtract(self._extent(d), transfers.offsets[d]) for d in sorted(transfers.ragged)}
        return mask_of(transfers.tile, bounds) if bounds else None

    def _extent(self, dim: int) -> ir.Value:
        extent = self.space.extents[dim]
        return dynamic_extent(self.space, dim, self.frame.buffers) if extent is None else index(extent)

    def _extents(self, s: OpStructure) -> Shape:
        """Extents of the tile that is carried for a total."""
        dims = {d for d in self.space.loops[s.op] if d is not None}
        return tuple(n if d in dims else 1 for d, n in enumerate(self.tile))

    def _store_part(self, s: OpStructure, total: ir.Value, buffer: ir.Value, block: ir.Value) -> None:
        """Writes the block's part of a total to its row of the workspace."""
        kept = kept_dims(self.space, s)
        vector_type = ir.VectorType(total.type)
        # The kept dimensions alone, so that the vector is not taken for a tile of the iteration space.
        shape = [vector_type.shape[d] for d in kept] or [1]
        axes = range(1, 1 + len(kept)) if kept else (0,)
        places = ir.AffineMap.get(1 + len(kept), 0, [ir.AffineExpr.get_dim(axis) for axis in axes])
        vector.TransferWriteOp(
            None,
            vector.ShapeCastOp(ir.VectorType.get(shape, vector_type.element_type), total).result,
            buffer,
            [block, *([index(0)] * len(kept))],
            ir.AffineMapAttr.get(places),
            in_bounds=ir.ArrayAttr.get([ir.BoolAttr.get(True)] * len(shape)),
        )
