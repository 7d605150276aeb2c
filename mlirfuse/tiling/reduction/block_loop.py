"""The persistent loop of one thread block over its tiles, which accumulates and stores partials of the reductions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine, arith, scf

from mlirfuse.analysis.arithmetic.combining import combiner_of
from mlirfuse.analysis.grid_reduction import GridReduction
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.order import by_reduction_depth
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.schedule.parts.persistent_loop import SUM_ROWS
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.tiling.emitter import TileEmitter
from mlirfuse.tiling.program import Count, KernelFrame, count_expr, dynamic_extent, ragged_dims, tile_offsets
from mlirfuse.tiling.reduction.accumulators import Accumulators
from mlirfuse.tiling.reduction.block_tiles import consecutive_tiles, in_slice
from mlirfuse.tiling.reduction.compensated_sums import CompensatedSums
from mlirfuse.tiling.reduction.reduction_ops import (
    apply,
    mask_of,
    neutral_scalar,
    neutral_tile,
    partial_dims,
    store_row,
    subtract,
)
from mlirfuse.tiling.tiles import Shape, index
from mlirfuse.tiling.transfers import TileTransfers


@dataclass
class BlockLoop:
    """Emits the first stage of a grid reduction: one block's tiles and its partial of each reduction.

    Attributes:
        frame: the kernel under construction.
        space: the kernel's iteration space.
        plan: the kernel's ops, by stage.
        schedule: the tile and the persistent loop.
        counts: number of tiles in each dimension.
        tiles: number of all tiles, an index.
        blocks: blocks of the grid, an index.
        buffers: for each reduction the memref of its partials, one partial a row.
        slice_start: where the block has a slice of the dimension of threads' vectors, its first index; else None.
    """

    frame: KernelFrame
    space: IterationSpace
    plan: GridReduction
    schedule: Schedule
    counts: Sequence[Count]
    tiles: ir.Value
    blocks: ir.Value
    buffers: Sequence[ir.Value]
    slice_start: ir.Value | None = None

    @property
    def tile(self) -> Shape:
        return self.schedule.tile

    @property
    def period(self) -> int:
        """Tiles after which a block restarts from the neutral elements; 0 for never.

        It stores a partial then, or adds it to a sum where the host has to know how many partials there are.
        """
        assert self.schedule.persistent_loop is not None  # checked by the pass
        return self.schedule.persistent_loop.period

    @property
    def _uses_atomics(self) -> bool:
        """Whether blocks add their partials atomically to shared rows, instead of storing each in its own row."""
        assert self.schedule.persistent_loop is not None  # checked by the pass
        return self.schedule.persistent_loop.grid_reduction == "atomics"

    @property
    def _returns_partials(self) -> bool:
        """Whether the partials are results of the kernel, for a second kernel to combine."""
        assert self.schedule.persistent_loop is not None  # checked by the pass
        return self.schedule.persistent_loop.has_second_kernel

    @property
    def _stores_each_period(self) -> bool:
        """Whether a block stores a partial after each period."""
        return bool(self.period) and not self._returns_partials

    @property
    def _compensated(self) -> CompensatedSums:
        """What adds up the periods of a block's partials: of sums of floating-point numbers, which round."""
        assert self.schedule.persistent_loop is not None  # checked by the pass
        sums = [n for n, s in enumerate(self.plan.reductions) if combiner_of(s).name == "arith.addf"]
        return CompensatedSums(self.period, tuple(sums) if self.schedule.persistent_loop.compensates else ())

    @property
    def _accumulators(self) -> Accumulators:
        reductions = (*self.plan.reductions, *(s for s in self.plan.tile if s.reduction_loops))
        return Accumulators(self.space, self.schedule, frozenset(self.plan.outer_dims), reductions)

    @property
    def early_accumulators(self) -> bool:
        """Whether elements are accumulated as soon as they are computed, instead of after the tile's results.

        Early accumulation needs fewer registers, as elements are not live across the tile's own reductions. Late
        accumulation lets the stores of a tile's results start earlier.
        """
        return self.schedule.order == "depth"

    def emit(self, block: ir.Value) -> ir.Value:
        """Emits the persistent loop; returns the number of workspace rows that the second stage adds up, an index."""
        start = self._in_slice([index(0)] * self.space.rank)
        transfers = TileTransfers(self.space, self.tile, start, self._ragged_slice, self.frame.buffers)
        column = TileEmitter(transfers, dict(self.frame.scalars))
        self._read_columns(transfers)
        for s in self.plan.column:
            column.emit(s)
        partials = [neutral_tile(s, self._accumulators.extents(s)) for s in self.plan.reductions]
        # All blocks store equally many partials in their loops: as many as the tiles that every block has allow.
        periods = index(0)
        if self._stores_each_period:
            least = arith.DivUIOp(self.tiles, self.blocks).result
            periods = arith.DivUIOp(least, index(self.period)).result
        accumulators = self._emit_loop(column, partials, self._bounds(block), periods, block)
        self._store_last_partials(column, accumulators, periods, block)
        return index(SUM_ROWS) if self._uses_atomics else self._row(periods, self._blocks_with_partials)

    def _in_slice(self, offsets: Sequence[ir.Value]) -> list[ir.Value]:
        return in_slice(offsets, self.schedule.layout.vector_dim, self.slice_start)

    @property
    def _ragged_slice(self) -> frozenset[int]:
        """The dimension of slices, if the last one may reach past the end of the data."""
        ragged = frozenset[int]() if self.slice_start is None else ragged_dims(self.space, self.tile)
        return ragged - frozenset(self.plan.outer_dims)

    def _bounds(self, block: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """The first tile of a block, the end of its tiles, and the step from one to the next."""
        assert self.schedule.persistent_loop is not None  # checked by the pass
        if self.schedule.persistent_loop.consecutive:
            return consecutive_tiles(block, self.tiles, self.blocks)
        return block, self.tiles, self.blocks

    def _emit_loop(
        self,
        column: TileEmitter,
        partials: Sequence[ir.Value],
        bounds: tuple[ir.Value, ir.Value, ir.Value],
        periods: ir.Value,
        block: ir.Value,
    ) -> list[ir.Value]:
        """Emits the loop over tiles; returns the accumulators that are not stored yet.

        Where only the last tiles may reach past the end of the data, those before have a loop of their own, whose
        accesses are neither clamped nor masked.
        """
        first, end, step = bounds
        ragged = ragged_dims(self.space, self.tile) & frozenset(self.plan.outer_dims)
        start = [*partials, *self._compensated.start(partials), *([index(0)] if self.period else [])]
        whole = self._whole_tiles(ragged)
        if whole is not None:
            most = arith.MinUIOp(whole, end).result
            *start, first = self._loop(
                column, partials, (first, most, step), [*start, first], frozenset(), periods, block
            )
        results = self._loop(column, partials, (first, end, step), start, ragged, periods, block)
        return self._compensated.end(results[: len(partials)], results[len(partials) :])

    def _loop(
        self,
        column: TileEmitter,
        partials: Sequence[ir.Value],
        bounds: tuple[ir.Value, ir.Value, ir.Value],
        start: Sequence[ir.Value],
        ragged: frozenset[int],
        periods: ir.Value,
        block: ir.Value,
    ) -> list[ir.Value]:
        """Emits one loop over tiles that may reach past the end of the data in `ragged` dimensions.

        It carries the accumulators, with periods their sums and the number of tiles done, and, if there is one more
        value in `start`, the number of the block's next tile.
        """
        loop = scf.ForOp(*bounds, list(start))
        with ir.InsertionPoint(loop.body):
            offsets = self._in_slice(tile_offsets(loop.induction_variable, self.counts, self.tile))
            ragged |= self._ragged_slice
            reads = dict(column.transfers.reads)
            outer_dims = frozenset(self.plan.outer_dims)
            own = TileTransfers(
                self.space, self.tile, offsets, ragged, self.frame.buffers, divided=outer_dims, reads=reads
            )
            carried = list(loop.inner_iter_args)
            accumulators = self._emit_tile(TileEmitter(own, dict(column.values)), carried[: len(partials)])
            counted = len(partials)
            if self.period:
                counted += self._compensated.count
                done = arith.AddIOp(carried[counted], index(1)).result
                if self._stores_each_period:
                    accumulators = self._store_each_period(column, accumulators, partials, done, periods, block)
                else:
                    sums = carried[len(partials) : counted]
                    accumulators = self._compensated.after_tile(accumulators, sums, partials, done)
                accumulators.append(done)
                counted += 1
            if len(carried) > counted:
                accumulators.append(arith.AddIOp(loop.induction_variable, bounds[2]).result)
            scf.YieldOp(accumulators)
        return list(loop.results)

    def _whole_tiles(self, ragged: frozenset[int]) -> ir.Value | None:
        """The number of tiles that lie inside of the data whatever its extents, an index; None where a second loop does
        not pay or other tiles than the last ones may be ragged.

        A second loop repeats the code of a tile, which is short where nothing is reduced inside of it, or written.
        """
        plan, moving = self.schedule.persistent_loop, [d for d, count in enumerate(self.counts) if count != 1]
        assert plan is not None  # checked by the pass
        written = {value for value, _ in self.frame.results} & {r for s in self.plan.tile for r in s.op.results}
        if plan.stages > 1 or plan.peeled or written or any(s.reduction_loops for s in self.plan.tile):
            return None
        if not ragged or ragged != set(moving[:1]):
            return None
        (dim,) = ragged
        tiles = apply(ir.AffineExpr.get_floor_div(ir.AffineExpr.get_dim(0), self.tile[dim]), self._extent(dim))
        for count in (count for d, count in enumerate(self.counts) if d != dim and count != 1):
            expr, symbols = count_expr([count])
            others = affine.AffineApplyOp(ir.AffineMap.get(0, len(symbols), [expr]), symbols).result
            tiles = arith.MulIOp(tiles, others).result
        return tiles

    def _store_each_period(
        self,
        column: TileEmitter,
        accumulators: Sequence[ir.Value],
        neutral: Sequence[ir.Value],
        done: ir.Value,
        periods: ir.Value,
        block: ir.Value,
    ) -> list[ir.Value]:
        """Stores the block's partial after each period of tiles, and restarts from the neutral elements.

        Periods bound the rounding error of long sums. Returns the accumulators of the next tile.
        """
        number = arith.DivUIOp(done, index(self.period)).result
        rest = arith.RemUIOp(done, index(self.period)).result
        is_whole = arith.CmpIOp(arith.CmpIPredicate.eq, rest, index(0)).result
        is_counted = arith.CmpIOp(arith.CmpIPredicate.ule, number, periods).result
        restart = scf.IfOp(arith.AndIOp(is_whole, is_counted).result, [v.type for v in accumulators], has_else=True)
        with ir.InsertionPoint(restart.then_block):
            self._store_partials(column, accumulators, arith.SubIOp(number, index(1)).result, block)
            scf.YieldOp(list(neutral))
        with ir.InsertionPoint(restart.else_block):
            scf.YieldOp(list(accumulators))
        return list(restart.results)

    def _store_last_partials(
        self, column: TileEmitter, partials: Sequence[ir.Value], number: ir.Value, block: ir.Value
    ) -> None:
        """Stores the last partial of each block that has tiles, and of block 0 if there are no tiles at all.

        The second stage does not read the partials of other blocks. Partials that are a kernel's result are all stored.
        """
        if self._returns_partials:
            self._store_partials(column, partials, number, block)
            return
        has_partial = arith.CmpIOp(arith.CmpIPredicate.ult, block, arith.MaxUIOp(self.tiles, index(1)).result)
        with ir.InsertionPoint(scf.IfOp(has_partial.result).then_block):
            self._store_partials(column, partials, number, block)
            scf.YieldOp([])

    @property
    def _blocks_with_partials(self) -> ir.Value:
        """The number of blocks that store a last partial, an index: the first blocks, which have tiles.

        At least one block, so that an empty grid needs no branch in the second stage.
        """
        if self._returns_partials:
            return self.blocks
        return arith.MinUIOp(self.blocks, arith.MaxUIOp(self.tiles, index(1)).result).result

    def _store_partials(
        self, column: TileEmitter, partials: Sequence[ir.Value], number: ir.Value, block: ir.Value
    ) -> None:
        """Reduces the block's accumulators over their rows, and stores them as its partial of that number."""
        row = self._row(number, block)
        for s, partial, buffer in zip(self.plan.reductions, partials, self.buffers, strict=True):
            extents = ir.VectorType(partial.type).shape
            has_rows = any(extents[d] > 1 for d in self.space.reduced[s.op])
            self._store_partial(s, column.reduce(s, partial, neutral_scalar(s)) if has_rows else partial, buffer, row)

    def _row(self, number: ir.Value, block: ir.Value) -> ir.Value:
        """The workspace row of a block's partial of that number.

        With the number of blocks that store in place of `block`, the row is the end of all partials.
        """
        if self._uses_atomics:
            return apply(ir.AffineExpr.get_dim(0) % SUM_ROWS, block)
        if not self._stores_each_period:
            return block
        return arith.AddIOp(arith.MulIOp(number, self.blocks).result, block).result

    def _read_columns(self, transfers: TileTransfers) -> None:
        """Reads, before the persistent loop, the operands that do not vary from tile to tile."""
        for (op, number), axes in self.space.use_axes.items():
            value = op.operands[number]
            if value in self.frame.buffers and not set(axes) & set(self.plan.outer_dims):
                transfers.read(value, axes)

    def _emit_tile(self, emitter: TileEmitter, partials: Sequence[ir.Value]) -> list[ir.Value]:
        """Emits all ops that vary along the looped dimensions, for one tile; returns the new accumulators."""
        for (op, number), axes in self.space.use_axes.items():
            value = op.operands[number]
            if value in self.frame.buffers and len({d for d in axes if d is not None}) == self.space.rank:
                emitter.transfers.read(value, axes)
        mask = self._inside(emitter.transfers)
        computed = {result for s in self.plan.tile for result in s.op.results}
        carried = {s.op: partial for s, partial in zip(self.plan.reductions, partials, strict=True)}
        ordered = [*by_reduction_depth(self.plan.tile), *self.plan.reductions]
        if self.early_accumulators:
            ordered = by_reduction_depth(ordered)
        for s in ordered:
            if s.op in carried:
                carried[s.op] = self._accumulators.add(s, emitter, carried[s.op], mask, restarted=bool(self.period))
            else:
                emitter.emit(s)
        for value, buffer in self.frame.results:
            if value in computed:
                emitter.write(value, buffer)
        return list(carried.values())

    def _inside(self, transfers: TileTransfers) -> ir.Value | None:
        """Mask of a tile's elements in bounds of the looped dimensions; None if the tile is always whole.

        The first row of a tile is always in bounds, so a thread unrolled over rows needs no mask for it.
        """
        ragged = transfers.ragged - self._ragged_slice  # what a slice has past the end is not stored
        bounds = {d: subtract(self._extent(d), transfers.offsets[d]) for d in sorted(ragged)}
        for d in bounds:
            if self.schedule.layout.is_alone([d]):
                bounds[d] = arith.MaxUIOp(bounds[d], index(1)).result
        return mask_of(transfers.tile, bounds) if bounds else None

    def _extent(self, dim: int) -> ir.Value:
        extent = self.space.extents[dim]
        return dynamic_extent(self.space, dim, self.frame.buffers) if extent is None else index(extent)

    def _store_partial(self, s: OpStructure, partial: ir.Value, buffer: ir.Value, row: ir.Value) -> None:
        """Stores a reduction's partial in its workspace row, or adds it atomically."""
        order = partial_dims(self.space, s, self.schedule)
        start = self._in_slice([index(0)] * self.space.rank)
        columns, ragged = [start[d] for d in order], self._ragged_slice
        store_row(partial, order, buffer, row, columns, ragged, atomically=self._uses_atomics)
