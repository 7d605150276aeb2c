"""The loop of one block over its tiles: it carries a tile of partial results for each reduction, and stores its
partial.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, scf, vector

from mlirfuse.analysis.grid_reduction import GridReduction, kept_dims
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.order import by_reduction_depth
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.dialect.accumulate import accumulate
from mlirfuse.schedule.parts.persistent_loop import SUM_ROWS
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.tiling.emitter import TileEmitter
from mlirfuse.tiling.program import Count, KernelFrame, dynamic_extent, ragged_dims, tile_offsets
from mlirfuse.tiling.reduction.reduction_ops import (
    apply,
    combine,
    mask_of,
    masked,
    neutral_scalar,
    neutral_tile,
    subtract,
)
from mlirfuse.tiling.sync.dynamic_tail import DynamicTail
from mlirfuse.tiling.tiles import Shape, index
from mlirfuse.tiling.transfers import TileTransfers


@dataclass
class BlockLoop:
    """What one block does before the reductions are known: its tiles, and then its part of every reduction.

    Attributes:
        frame: the kernel.
        space: its iteration space.
        plan: its ops, by when they run.
        schedule: its tiles and its persistent loop.
        counts: tiles of each dimension.
        tiles: all tiles, an index.
        blocks: blocks of the grid, an index.
        buffers: where the partials of each reduction go, a row for each part.
        semaphores: where taken chunks of a dynamic tail are counted; None where there is no such end.
    """

    frame: KernelFrame
    space: IterationSpace
    plan: GridReduction
    schedule: Schedule
    counts: Sequence[Count]
    tiles: ir.Value
    blocks: ir.Value
    buffers: Sequence[ir.Value]
    semaphores: ir.Value | None = None

    @property
    def tile(self) -> Shape:
        return self.schedule.tile

    @property
    def period(self) -> int:
        """Tiles of a block after which it stores a part and starts anew; 0 for one part in the end."""
        assert self.schedule.persistent_loop is not None  # the pass looked
        return self.schedule.persistent_loop.period

    @property
    def chunk(self) -> int:
        """Tiles of a chunk of the end that blocks share; 0 where they share none."""
        assert self.schedule.persistent_loop is not None  # the pass looked
        return self.schedule.persistent_loop.chunk

    @property
    def _adds(self) -> bool:
        """Whether blocks add their parts to rows that they share, and do not store them in rows of their own."""
        assert self.schedule.persistent_loop is not None  # the pass looked
        return self.schedule.persistent_loop.grid_reduction == "atomics"

    @property
    def _are_result(self) -> bool:
        """Whether parts are a result of the kernel."""
        assert self.schedule.persistent_loop is not None  # the pass looked
        return self.schedule.persistent_loop.grid_reduction == "second_kernel"

    @property
    def early_accumulators(self) -> bool:
        """Whether a reduction takes its elements as soon as they are known.

        Where registers are short they would otherwise be kept across the reductions of a tile, or computed again; where
        they are not, the stores of a tile's results start earlier without them.
        """
        return self.schedule.order == "depth"

    def emit(self, block: ir.Value) -> ir.Value:
        """Emits the persistent loop at the current insertion point; returns how many rows of the workspace are to be
        added up.
        """
        start = [index(0)] * self.space.rank
        transfers = TileTransfers(self.space, self.tile, start, frozenset(), self.frame.buffers)
        column = TileEmitter(transfers, dict(self.frame.scalars))
        self._read_columns(transfers)
        for s in self.plan.column:
            column.emit(s)
        partials = [neutral_tile(s, self._extents(s)) for s in self.plan.reductions]
        # Every block has at least so many tiles, and stores as many parts in its loop as all others.
        periods = index(0)
        if self.period:
            least = arith.DivUIOp(self.tiles, self.blocks).result
            periods = arith.DivUIOp(least, index(self.period)).result
        if self.semaphores is not None and self.chunk:
            return self._emit_sharing(block, column, partials, self.semaphores)
        totals = self._emit_loop(column, partials, (block, self.tiles, self.blocks), periods, block)
        self._store_last_partials(column, totals, periods, block)
        return index(SUM_ROWS) if self._adds else self._row(periods, self._blocks_with_partials)

    def _emit_sharing(
        self, block: ir.Value, column: TileEmitter, partials: Sequence[ir.Value], semaphores: ir.Value
    ) -> ir.Value:
        """What `emit` does, of a block that takes chunks of the end when it is done with its own tiles."""
        end = DynamicTail.of(self.chunk, semaphores, self.tiles, self.blocks)
        loop = end.loop(block)
        with ir.InsertionPoint(loop.after.blocks[0]):
            (number,) = loop.after.blocks[0].arguments
            totals = self._emit_loop(column, partials, end.range(number), index(0), number)
            self._store_partials(column, totals, index(0), number)
            scf.YieldOp([end.next()])
        return end.loops

    def _emit_loop(
        self,
        column: TileEmitter,
        partials: Sequence[ir.Value],
        bounds: tuple[ir.Value, ir.Value, ir.Value],
        periods: ir.Value,
        block: ir.Value,
    ) -> list[ir.Value]:
        """The loop over tiles; returns the partial results that no part has yet."""
        loop = scf.ForOp(*bounds, [*partials, *([index(0)] if self.period else [])])
        with ir.InsertionPoint(loop.body):
            offsets = tile_offsets(loop.induction_variable, self.counts, self.tile)
            ragged = ragged_dims(self.space, self.tile) & frozenset(self.plan.outer_dims)
            reads = dict(column.transfers.reads)
            outer_dims = frozenset(self.plan.outer_dims)
            own = TileTransfers(
                self.space, self.tile, offsets, ragged, self.frame.buffers, divided=outer_dims, reads=reads
            )
            carried = list(loop.inner_iter_args)
            totals = self._emit_tile(TileEmitter(own, dict(column.values)), carried[: len(partials)])
            if self.period:
                done = arith.AddIOp(carried[-1], index(1)).result
                totals = [*self._start_anew(column, totals, partials, done, periods, block), done]
            scf.YieldOp(totals)
        return list(loop.results)[: len(partials)]

    def _start_anew(
        self,
        column: TileEmitter,
        totals: Sequence[ir.Value],
        neutral: Sequence[ir.Value],
        done: ir.Value,
        periods: ir.Value,
        block: ir.Value,
    ) -> list[ir.Value]:
        """Stores the block's part where a period of tiles is done; a sum of few numbers loses less than one of many."""
        number = arith.DivUIOp(done, index(self.period)).result
        rest = arith.RemUIOp(done, index(self.period)).result
        is_whole = arith.CmpIOp(arith.CmpIPredicate.eq, rest, index(0)).result
        is_counted = arith.CmpIOp(arith.CmpIPredicate.ule, number, periods).result
        due = scf.IfOp(arith.AndIOp(is_whole, is_counted).result, [v.type for v in totals], has_else=True)
        with ir.InsertionPoint(due.then_block):
            self._store_partials(column, totals, arith.SubIOp(number, index(1)).result, block)
            scf.YieldOp(list(neutral))
        with ir.InsertionPoint(due.else_block):
            scf.YieldOp(list(totals))
        return list(due.results)

    def _store_last_partials(
        self, column: TileEmitter, partials: Sequence[ir.Value], number: ir.Value, block: ir.Value
    ) -> None:
        """Stores what a block's loop leaves, where it had tiles; where there are none at all the first block stores.

        Nobody reads what others would store: 16 clusters that had two rows of 65536 columns stored 8 MB of zeros. But
        parts that are a kernel's result are all written.
        """
        if self._are_result:
            self._store_partials(column, partials, number, block)
            return
        leaves = arith.CmpIOp(arith.CmpIPredicate.ult, block, arith.MaxUIOp(self.tiles, index(1)).result)
        with ir.InsertionPoint(scf.IfOp(leaves.result).then_block):
            self._store_partials(column, partials, number, block)
            scf.YieldOp([])

    @property
    def _blocks_with_partials(self) -> ir.Value:
        """How many blocks leave a partial at the end: those that have tiles, which are the first blocks.

        At least one block, so that an empty grid needs no branch in the second stage.
        """
        if self._are_result:
            return self.blocks
        return arith.MinUIOp(self.blocks, arith.MaxUIOp(self.tiles, index(1)).result).result

    def _store_partials(
        self, column: TileEmitter, partials: Sequence[ir.Value], number: ir.Value, block: ir.Value
    ) -> None:
        """Stores the block's part of that number: its partial results, reduced over the rows that they are of."""
        row = self._row(number, block)
        for s, partial, buffer in zip(self.plan.reductions, partials, self.buffers, strict=True):
            extents = ir.VectorType(partial.type).shape
            has_rows = any(extents[d] > 1 for d in self.space.reduced[s.op])
            self._store_partial(s, column.reduce(s, partial, neutral_scalar(s)) if has_rows else partial, buffer, row)

    def _row(self, number: ir.Value, block: ir.Value) -> ir.Value:
        """The row of the workspace for a block's part of that number; for a number of blocks the end of their parts."""
        if self._adds:
            return apply(ir.AffineExpr.get_dim(0) % SUM_ROWS, block)
        if not self.period:
            return block
        return arith.AddIOp(arith.MulIOp(number, self.blocks).result, block).result

    def _read_columns(self, transfers: TileTransfers) -> None:
        """Reads what all tiles share before the persistent loop."""
        for (op, number), axes in self.space.use_axes.items():
            value = op.operands[number]
            if value in self.frame.buffers and not set(axes) & set(self.plan.outer_dims):
                transfers.read(value, axes)

    def _emit_tile(self, emitter: TileEmitter, partials: Sequence[ir.Value]) -> list[ir.Value]:
        """One tile: everything that varies along the looped dimensions; returns the new partial results."""
        for (op, number), axes in self.space.use_axes.items():
            value = op.operands[number]
            if value in self.frame.buffers and len({d for d in axes if d is not None}) == self.space.rank:
                emitter.transfers.read(value, axes)
        mask = self._inside(emitter.transfers)
        made = {result for s in self.plan.tile for result in s.op.results}
        carried = {s.op: partial for s, partial in zip(self.plan.reductions, partials, strict=True)}
        ordered = [*by_reduction_depth(self.plan.tile), *self.plan.reductions]
        if self.early_accumulators:
            ordered = by_reduction_depth(ordered)
        for s in ordered:
            if s.op in carried:
                carried[s.op] = self._add(s, emitter, carried[s.op], mask)
            else:
                emitter.emit(s)
        for value, buffer in self.frame.results:
            if value in made:
                emitter.write(value, buffer)
        return list(carried.values())

    def _add(self, s: OpStructure, emitter: TileEmitter, partial: ir.Value, mask: ir.Value | None) -> ir.Value:
        """A reduction's partial result with a tile's elements.

        Rows that a thread is unrolled over are combined at once: of each it would otherwise keep a partial result.
        """
        if not self._is_alone(s):
            return combine(s, partial, emitter.combine_input(s), mask)
        elements = masked(s, emitter.combine_input(s), mask)
        return combine(s, partial, emitter.reduce(s, elements, neutral_scalar(s)), None)

    def _is_alone(self, s: OpStructure) -> bool:
        """Whether threads are unrolled over several rows of what a reduction adds up, and all that there are in a
        tile.
        """
        dims = self.space.reduced[s.op]
        return self.schedule.layout.is_alone(dims) and any(self.tile[d] > 1 for d in dims)

    def _inside(self, transfers: TileTransfers) -> ir.Value | None:
        """Which elements of a tile are not past the end of the looped dimensions; None where all are.

        A tile starts inside: where a thread is unrolled over rows, its first one needs no mask.
        """
        bounds = {d: subtract(self._extent(d), transfers.offsets[d]) for d in sorted(transfers.ragged)}
        for d in bounds:
            if self.schedule.layout.is_alone([d]):
                bounds[d] = arith.MaxUIOp(bounds[d], index(1)).result
        return mask_of(transfers.tile, bounds) if bounds else None

    def _extent(self, dim: int) -> ir.Value:
        extent = self.space.extents[dim]
        return dynamic_extent(self.space, dim, self.frame.buffers) if extent is None else index(extent)

    def _extents(self, s: OpStructure) -> Shape:
        """Extents of the tile that is carried for a reduction."""
        dims = {d for d in self.space.loops[s.op] if d is not None}
        if self._is_alone(s):
            dims -= self.space.reduced[s.op]
        return tuple(n if d in dims else 1 for d, n in enumerate(self.tile))

    def _store_partial(self, s: OpStructure, total: ir.Value, buffer: ir.Value, row: ir.Value) -> None:
        """Writes a part of a reduction to its row of the workspace, or adds it to what is there."""
        kept = kept_dims(self.space, s)
        vector_type = ir.VectorType(total.type)
        # The kept dimensions alone, so that the vector is not taken for a tile of the iteration space.
        shape = [vector_type.shape[d] for d in kept] or [1]
        part = vector.ShapeCastOp(ir.VectorType.get(shape, vector_type.element_type), total).result
        columns = [index(0)] * len(kept)
        if self._adds:
            accumulate(part, buffer, [row, *columns])
            return
        axes = range(1, 1 + len(kept)) if kept else (0,)
        places = ir.AffineMap.get(1 + len(kept), 0, [ir.AffineExpr.get_dim(axis) for axis in axes])
        vector.TransferWriteOp(
            None,
            part,
            buffer,
            [row, *columns],
            ir.AffineMapAttr.get(places),
            in_bounds=ir.ArrayAttr.get([ir.BoolAttr.get(True)] * len(shape)),
        )
