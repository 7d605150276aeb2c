"""The loop over blocks of a kernel whose reductions run over more than a tile.

A block walks its tiles, carries a tile of partial results for each total, and stores its part. When all parts are
there, the blocks add them up, a slice of the columns each, and run what the totals feed; or the block that arrives last
does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir
from mlir.dialects import affine, arith, memref, scf, vector

from mlirfuse.analysis.grid_reduction import GridReduction, kept_dims
from mlirfuse.analysis.iteration_space import IterationSpace
from mlirfuse.analysis.structure import OpStructure
from mlirfuse.analysis.workspaces import (
    COOPERATIVE,
    RESIDENT,
    SCRATCH,
    SEMAPHORES,
    WORKSPACE,
    WORKSPACE_EXTENTS,
    WORKSPACE_OPERANDS,
)
from mlirfuse.dialect.resident_blocks import resident_blocks
from mlirfuse.dialect.semaphore_arrive import semaphore_arrive
from mlirfuse.dialect.semaphore_wait import semaphore_wait
from mlirfuse.schedule.grid_walk import GridWalk
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.tiling.combining import combiner_of, neutral
from mlirfuse.tiling.emitter import TileEmitter
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
from mlirfuse.tiling.tiles import Shape, broadcast, splat, zero
from mlirfuse.tiling.transfers import TileTransfers

FINISH = "fuse.finish"
"""Unit attribute of the loop over slices, whose tiles have the layout of the schedule's `walk`."""


def workspace_of(space: IterationSpace, plan: GridReduction, schedule: Schedule) -> list[WorkspaceArgument]:
    """The arguments that hold partial results, one row a block, and the semaphore behind them."""
    scratch = {
        WORKSPACE: ir.StringAttr.get(SCRATCH),
        WORKSPACE_EXTENTS: ir.AffineMapAttr.get(ir.AffineMap.get(0, 1, [ir.AffineExpr.get_symbol(0)])),
        WORKSPACE_OPERANDS: ir.DenseI64ArrayAttr.get([RESIDENT, max(1, schedule.blocks_per_sm)]),
    }
    arguments: list[WorkspaceArgument] = []
    for s in plan.totals:
        kept = [space.extents[d] or 0 for d in kept_dims(space, s)]
        element = ir.RankedTensorType(s.op.results[0].type).element_type
        arguments.append((ir.MemRefType.get([ir.ShapedType.get_dynamic_size(), *kept], element), scratch))
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
        _Walk(frame, space, plan, schedule, schedule.walk, counts, tiles, blocks).emit()


@dataclass
class _Walk:
    frame: KernelFrame
    space: IterationSpace
    plan: GridReduction
    schedule: Schedule
    walk: GridWalk
    counts: Sequence[Count]
    tiles: ir.Value
    blocks: ir.Value

    def emit(self) -> None:
        grid = forall(self.blocks)
        block = grid.body.arguments[0]
        with ir.InsertionPoint.at_block_terminator(grid.body):
            self._emit_walk(block)
            if self.walk.finish == "slices":
                self._finish_together(block)
            else:
                self._finish_last()

    def _finish_together(self, block: ir.Value) -> None:
        """Waits for all blocks, and takes every so many-th slice; then departs, so that the semaphore is zero again."""
        self.frame.function.attributes[COOPERATIVE] = ir.UnitAttr.get()
        semaphore, slot = self.frame.workspace[-1], _index(0)
        limit = _as_i32(_affine(2 * ir.AffineExpr.get_dim(0) - 1, self.blocks))
        semaphore_arrive(semaphore, slot, limit)
        semaphore_wait(semaphore, slot, _as_i32(self.blocks))
        self._emit_finish(block, self.blocks)
        semaphore_arrive(semaphore, slot, limit)

    def _finish_last(self) -> None:
        """Takes all slices, if all other blocks have arrived."""
        last = _as_i32(_affine(ir.AffineExpr.get_dim(0) - 1, self.blocks))
        arrived = semaphore_arrive(self.frame.workspace[-1], _index(0), last)
        branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.eq, arrived, last).result)
        with ir.InsertionPoint(branch.then_block):
            self._emit_finish(_index(0), _index(1))
            scf.YieldOp([])

    def _emit_walk(self, block: ir.Value) -> None:
        """What one block does: its tiles, and then its part of every total."""
        tile = self.schedule.tile
        start = [_index(0)] * self.space.rank
        ragged = ragged_dims(self.space, tile) & frozenset(self.plan.walked)
        column = TileEmitter(
            TileTransfers(self.space, tile, start, frozenset(), self.frame.buffers), dict(self.frame.scalars)
        )
        self._read_columns(column.transfers)
        for s in self.plan.column:
            column.emit(s)
        partials = [self._neutral(s, self._extents(s, tile)) for s in self.plan.totals]
        loop = scf.ForOp(block, self.tiles, self.blocks, partials)
        with ir.InsertionPoint(loop.body):
            offsets = tile_offsets(loop.induction_variable, self.counts, tile)
            reads = dict(column.transfers.reads)
            transfers = TileTransfers(self.space, tile, offsets, ragged, self.frame.buffers, reads=reads)
            emitter = TileEmitter(transfers, dict(column.values))
            scf.YieldOp(self._emit_tile(emitter, list(loop.inner_iter_args)))
        for s, partial, buffer in zip(self.plan.totals, loop.results, self.frame.workspace, strict=False):
            element = ir.RankedTensorType(s.op.results[0].type).element_type
            start_value = arith.ConstantOp(element, neutral(combiner_of(s).name, element)).result
            self._store_part(s, column.reduce(s, partial, start_value), buffer, block)

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
        # A total takes its elements as soon as they are known: later they would be computed again, or kept.
        for s in by_reduction_depth([*self.plan.tile, *self.plan.totals]):
            if s.op in carried:
                carried[s.op] = self._combine(s, carried[s.op], emitter.combine_input(s), mask)
            else:
                emitter.emit(s)
        for value, buffer in self.frame.results:
            if value in made:
                emitter.write(value, buffer)
        return list(carried.values())

    def _inside(self, transfers: TileTransfers) -> ir.Value | None:
        """Which elements of a tile are not past the end of the walked dimensions; None where all are."""
        if not transfers.ragged:
            return None
        shape = [n if d in transfers.ragged else 1 for d, n in enumerate(transfers.tile)]
        bounds = [
            _minus(self._extent(d), transfers.offsets[d]) if d in transfers.ragged else _index(1)
            for d in range(self.space.rank)
        ]
        return vector.CreateMaskOp(ir.VectorType.get(shape, ir.IntegerType.get_signless(1)), bounds).result

    def _extent(self, dim: int) -> ir.Value:
        extent = self.space.extents[dim]
        return dynamic_extent(self.space, dim, self.frame.buffers) if extent is None else _index(extent)

    def _emit_finish(self, first: ir.Value, step: ir.Value) -> None:
        """A loop over slices."""
        slices = [
            -(-(self.space.extents[d] or 1) // n) if d not in self.plan.walked else 1
            for d, n in enumerate(self.walk.finish_tile)
        ]
        parts = [self._parts(buffer) for buffer in self.frame.workspace[:-1]]
        loop = scf.ForOp(first, _index(prod(slices)), step)
        loop.operation.attributes[FINISH] = ir.UnitAttr.get()
        with ir.InsertionPoint(loop.body):
            self._emit_slice(tile_offsets(loop.induction_variable, slices, self.walk.finish_tile), parts)
            scf.YieldOp([])

    def _parts(self, buffer: ir.Value) -> ir.Value:
        """The rows of a workspace that blocks of this launch wrote."""
        whole = ir.MemRefType(buffer.type)
        dynamic, kept = ir.ShapedType.get_dynamic_size(), list(whole.shape)[1:]
        layout = ir.StridedLayoutAttr.get(0, [prod(kept[axis:]) for axis in range(len(kept) + 1)])
        return memref.SubViewOp(
            ir.MemRefType.get([dynamic, *kept], whole.element_type, layout),
            buffer,
            [],
            [self.blocks],
            [],
            [0] * whole.rank,
            [dynamic, *kept],
            [1] * whole.rank,
        ).result

    def _emit_slice(self, offsets: Sequence[ir.Value], buffers: Sequence[ir.Value]) -> None:
        """Adds up all parts of one slice of the columns, and runs what the totals feed."""
        first = self.plan.walked[0]
        tile = self.walk.finish_tile
        ragged = ragged_dims(self.space, tile) - set(self.plan.walked)
        transfers = TileTransfers(self.space, tile, offsets, ragged, self.frame.buffers, streaming=False)
        emitter = TileEmitter(transfers, dict(self.frame.scalars))
        shapes = [
            tuple(n if d == first or d in kept_dims(self.space, s) else 1 for d, n in enumerate(tile))
            for s in self.plan.totals
        ]
        start = [self._neutral(s, shape) for s, shape in zip(self.plan.totals, shapes, strict=True)]
        loop = scf.ForOp(_index(0), self.blocks, _index(tile[first]), start)
        with ir.InsertionPoint(loop.body):
            position = loop.induction_variable
            mask = None
            if tile[first] > 1:
                rows = [n if d == first else 1 for d, n in enumerate(tile)]
                bounds = [_minus(self.blocks, position) if d == first else _index(1) for d in range(self.space.rank)]
                mask = vector.CreateMaskOp(ir.VectorType.get(rows, ir.IntegerType.get_signless(1)), bounds).result
            parts = [
                self._load_part(s, buffer, shape, [position, *(offsets[d] for d in kept_dims(self.space, s))], ragged)
                for s, buffer, shape in zip(self.plan.totals, buffers, shapes, strict=True)
            ]
            scf.YieldOp(
                [
                    self._combine(s, total, part, mask)
                    for s, total, part in zip(self.plan.totals, loop.inner_iter_args, parts, strict=True)
                ]
            )
        for s, total in zip(self.plan.totals, loop.results, strict=True):
            emitter.values[s.op.results[0]] = emitter.reduce(s, total, emitter.initial(s))
        for s in self.plan.finish:
            emitter.emit(s)
        for value, buffer in self.frame.results:
            if value in emitter.values:
                emitter.write(value, buffer)

    def _store_part(self, s: OpStructure, total: ir.Value, buffer: ir.Value, block: ir.Value) -> None:
        """Writes a block's part of a total to its row of the workspace."""
        kept = kept_dims(self.space, s)
        vector_type = ir.VectorType(total.type)
        shape = [1, *(vector_type.shape[d] for d in kept)]
        vector.TransferWriteOp(
            None,
            vector.ShapeCastOp(ir.VectorType.get(shape, vector_type.element_type), total).result,
            buffer,
            [block, *([_index(0)] * len(kept))],
            ir.AffineMapAttr.get(ir.AffineMap.get_identity(len(shape))),
            in_bounds=ir.ArrayAttr.get([ir.BoolAttr.get(True)] * len(shape)),
        )

    def _load_part(
        self, s: OpStructure, buffer: ir.Value, shape: Shape, indices: list[ir.Value], ragged: frozenset[int]
    ) -> ir.Value:
        """The parts of some blocks, in a tile with these blocks along the first walked dimension."""
        axes = [self.plan.walked[0], *kept_dims(self.space, s)]
        element = ir.MemRefType(buffer.type).element_type
        exprs = [
            ir.AffineExpr.get_dim(axes.index(d)) if d in axes else ir.AffineExpr.get_constant(0)
            for d in range(self.space.rank)
        ]
        bounds = [
            ir.BoolAttr.get(d not in axes or (d not in ragged and (d != axes[0] or shape[d] == 1)))
            for d in range(self.space.rank)
        ]
        return vector.TransferReadOp(
            ir.VectorType.get(list(shape), element),
            buffer,
            indices,
            ir.AffineMapAttr.get(ir.AffineMap.get(len(axes), 0, exprs)),
            arith.ConstantOp(element, zero(element)).result,
            in_bounds=ir.ArrayAttr.get(bounds),
        ).result

    def _combine(self, s: OpStructure, total: ir.Value, element: ir.Value, mask: ir.Value | None) -> ir.Value:
        """A carried tile with one more element combined into each of its own; those outside of the mask stay."""
        name = combiner_of(s).name
        shape = tuple(ir.VectorType(total.type).shape)
        if mask is not None:
            scalar = arith.ConstantOp(total.type.element_type, neutral(name, total.type.element_type)).result
            element = arith.SelectOp(broadcast(mask, shape), element, splat(scalar, shape)).result
        return ir.Operation.create(name, results=[total.type], operands=[total, element]).results[0]

    def _extents(self, s: OpStructure, tile: Shape) -> Shape:
        dims = {d for d in self.space.loops[s.op] if d is not None}
        return tuple(n if d in dims else 1 for d, n in enumerate(tile))

    def _neutral(self, s: OpStructure, shape: Shape) -> ir.Value:
        element = ir.RankedTensorType(s.op.results[0].type).element_type
        vector_type = ir.VectorType.get(list(shape), element)
        value = neutral(combiner_of(s).name, element)
        return arith.ConstantOp(vector_type, ir.DenseElementsAttr.get_splat(vector_type, value)).result


def _minus(a: ir.Value, b: ir.Value) -> ir.Value:
    return _affine(ir.AffineExpr.get_dim(0) - ir.AffineExpr.get_dim(1), a, b)


def _affine(expr: ir.AffineExpr, *operands: ir.Value) -> ir.Value:
    return affine.AffineApplyOp(ir.AffineMap.get(len(operands), 0, [expr]), list(operands)).result


def _as_i32(value: ir.Value) -> ir.Value:
    return arith.IndexCastOp(ir.IntegerType.get_signless(32), value).result


def _index(value: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), value).result
