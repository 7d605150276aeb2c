"""The second stage of a grid reduction: combines the blocks' partials and runs the ops that use the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir
from mlir.dialects import arith, linalg, memref, scf, vector

from mlirfuse.analysis.grid_reduction import GridReduction, kept_dims, second_stage_dims
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.dialect.attributes import COOPERATIVE, SECOND_STAGE
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.tiling.emitter import TileEmitter
from mlirfuse.tiling.program import KernelFrame, ragged_dims, tile_offsets
from mlirfuse.tiling.reduction.reduction_ops import (
    apply,
    combine,
    combine_pairwise,
    mask_of,
    masked,
    neutral_scalar,
    neutral_tile,
    partial_dims,
    subtract,
)
from mlirfuse.tiling.sync.semaphores import grid_barrier, last_block
from mlirfuse.tiling.tiles import Shape, index, zero
from mlirfuse.tiling.transfers import TileTransfers

GROUP = 8
"""Steps of a second stage that are summed before they are added to the result, if the number of partials grows with
the number of rows."""

LoadPartials = Callable[[ir.Value], list[ir.Value]]
"""Reads a tile of partials of each reduction, starting at the given row."""


def slice_counts(space: IterationSpace, plan: GridReduction, persistent_loop: PersistentLoop) -> list[int]:
    """Number of slices of the second stage along each dimension; 1 along dimensions that no reduction keeps."""
    varying = second_stage_dims(space, plan)
    sizes = zip(space.extents, persistent_loop.second_stage_tile, strict=True)
    return [-(-(extent or 1) // n) if d in varying else 1 for d, (extent, n) in enumerate(sizes)]


@dataclass
class SecondStage:
    """Emits the second stage of a block, after the block has stored its partials.

    Attributes:
        frame: the kernel of the second stage.
        space: the kernel's iteration space.
        plan: the kernel's ops, by stage.
        schedule: the schedule, with the grid reduction and its tiles.
        blocks: number of blocks, an index.
        partials: number of partials that all blocks have stored, an index.
        buffers: for each reduction the memref of its partials, one a row.
    """

    frame: KernelFrame
    space: IterationSpace
    plan: GridReduction
    schedule: Schedule
    blocks: ir.Value
    partials: ir.Value
    buffers: Sequence[ir.Value]

    @property
    def persistent_loop(self) -> PersistentLoop:
        assert self.schedule.persistent_loop is not None  # checked by the pass
        return self.schedule.persistent_loop

    def emit(self, block: ir.Value, semaphore: ir.Value) -> None:
        """Emits the second stage of a block at the current insertion point."""
        if self.persistent_loop.grid_reduction == "grid_sync":
            self._after_grid_sync(block, semaphore)
        else:
            self._in_last_block(semaphore)

    @property
    def slices(self) -> int:
        """Number of slices."""
        return prod(slice_counts(self.space, self.plan, self.persistent_loop))

    def _after_grid_sync(self, block: ir.Value, semaphore: ir.Value) -> None:
        """Grid sync: all blocks wait for each other; block i then combines slices i, i + blocks, and so on."""
        self.frame.function.attributes[COOPERATIVE] = ir.UnitAttr.get()
        with grid_barrier(semaphore, index(0), self.blocks):
            self.emit_slices(block, self.blocks)

    def _in_last_block(self, semaphore: ir.Value) -> None:
        """Last block: the last block to arrive combines all slices."""
        branch = last_block(semaphore, index(0), self.blocks)
        branch.operation.attributes[SECOND_STAGE] = ir.UnitAttr.get()  # a loop over a single slice is folded away
        with ir.InsertionPoint(branch.then_block):
            self.emit_slices(index(0), index(1))
            if self.persistent_loop.grid_reduction == "atomics":  # sums are zero between launches, like semaphores
                for s, buffer in zip(self.plan.reductions, self.buffers, strict=True):
                    linalg.fill(neutral_scalar(s), outs=[buffer])
            scf.YieldOp([])

    def emit_slices(self, first: ir.Value, step: ir.Value) -> None:
        """Emits a loop over slices of the columns, from `first` on with `step`."""
        counts = slice_counts(self.space, self.plan, self.persistent_loop)
        partials = [self._written_partials(buffer) for buffer in self.buffers]
        loop = scf.ForOp(first, index(self.slices), step)
        loop.operation.attributes[SECOND_STAGE] = ir.UnitAttr.get()
        with ir.InsertionPoint(loop.body):
            divided = frozenset(d for d, count in enumerate(counts) if count > 1)
            self._slice(
                tile_offsets(loop.induction_variable, counts, self.persistent_loop.second_stage_tile), divided, partials
            )
            scf.YieldOp([])

    def _written_partials(self, buffer: ir.Value) -> ir.Value:
        """The rows of a workspace that the blocks of this launch wrote, as a view."""
        whole = ir.MemRefType(buffer.type)
        dynamic, kept = ir.ShapedType.get_dynamic_size(), list(whole.shape)[1:]
        layout = ir.StridedLayoutAttr.get(0, [prod(kept[axis:]) for axis in range(len(kept) + 1)])
        return memref.SubViewOp(
            ir.MemRefType.get([dynamic, *kept], whole.element_type, layout),
            buffer,
            [],
            [self.partials],
            [],
            [0] * whole.rank,
            [dynamic, *kept],
            [1] * whole.rank,
        ).result

    def _slice(self, offsets: Sequence[ir.Value], divided: frozenset[int], buffers: Sequence[ir.Value]) -> None:
        """Combines all partials of one slice, and emits the ops that use the results."""
        tile = self.persistent_loop.second_stage_tile
        first = self.plan.outer_dims[0]
        ragged = ragged_dims(self.space, tile) - set(self.plan.outer_dims)
        shapes = [
            tuple(n if d == first or d in kept_dims(self.space, s) else 1 for d, n in enumerate(tile))
            for s in self.plan.reductions
        ]
        start = [neutral_tile(s, shape) for s, shape in zip(self.plan.reductions, shapes, strict=True)]

        def load(position: ir.Value) -> list[ir.Value]:
            starts = [[position, *(offsets[d] for d in self._order(s))] for s in self.plan.reductions]
            return [
                self._load(s, buffer, shape, indices, ragged)
                for s, buffer, shape, indices in zip(self.plan.reductions, buffers, shapes, starts, strict=True)
            ]

        results = (self._sum_of_groups if self.persistent_loop.period else self._sum)(
            index(0), self.partials, start, load
        )
        transfers = TileTransfers(
            self.space, tile, offsets, ragged, self.frame.buffers, streaming=False, divided=divided
        )
        emitter = TileEmitter(transfers, dict(self.frame.scalars))
        for s, result in zip(self.plan.reductions, results, strict=True):
            emitter.values[s.op.results[0]] = emitter.reduce(s, result, emitter.initial(s))
        for s in self.plan.second_stage:
            emitter.emit(s)
        for value, buffer in self.frame.results:
            if value in emitter.values:
                emitter.write(value, buffer)

    def _sum_of_groups(
        self, first: ir.Value, end: ir.Value, start: Sequence[ir.Value], load: LoadPartials
    ) -> list[ir.Value]:
        """Two-level form of `_sum`: sums of `GROUP` steps are added up, to bound the rounding error."""
        rows = self._rows_at_once * GROUP
        loop = scf.ForOp(first, end, index(rows), start)
        with ir.InsertionPoint(loop.body):
            end_of_group = apply(ir.AffineExpr.get_dim(0) + rows, loop.induction_variable)
            group = self._sum(loop.induction_variable, arith.MinUIOp(end_of_group, end).result, start, load)
            added = zip(self.plan.reductions, loop.inner_iter_args, group, strict=True)
            scf.YieldOp([combine(s, accumulator, partial, None) for s, accumulator, partial in added])
        return list(loop.results)

    def _sum(self, first: ir.Value, end: ir.Value, start: Sequence[ir.Value], load: LoadPartials) -> list[ir.Value]:
        """Combines the partials in rows from `first` to `end`, `second_stage_reads` tiles a step, pairwise."""
        loop = scf.ForOp(first, end, index(self._rows_at_once), start)
        with ir.InsertionPoint(loop.body):
            rows = self.persistent_loop.second_stage_tile[self.plan.outer_dims[0]]
            positions = [
                apply(ir.AffineExpr.get_dim(0) + number * rows, loop.induction_variable)
                for number in range(self.persistent_loop.second_stage_reads)
            ]
            tiles = [load(position) for position in positions]
            masks = [self._inside(position) for position in positions]
            combined = [
                combine_pairwise(s, [masked(s, partial, mask) for partial, mask in zip(partials, masks, strict=True)])
                for s, partials in zip(self.plan.reductions, zip(*tiles, strict=True), strict=True)
            ]
            added = zip(self.plan.reductions, loop.inner_iter_args, combined, strict=True)
            scf.YieldOp([combine(s, accumulator, partial, None) for s, accumulator, partial in added])
        return list(loop.results)

    def _order(self, s: OpStructure) -> list[int]:
        """The dimension along each axis of a row of a reduction's partials."""
        return partial_dims(self.space, s, self.schedule)

    @property
    def _rows_at_once(self) -> int:
        """Rows of partials in one step of the second stage."""
        return self.persistent_loop.second_stage_tile[self.plan.outer_dims[0]] * self.persistent_loop.second_stage_reads

    @property
    def _clips(self) -> bool:
        """Whether a step of the second stage may reach past the last partial."""
        return self._rows_at_once > 1

    def _inside(self, position: ir.Value) -> ir.Value | None:
        """Mask of the rows that are partials in a tile that starts at `position`; None if all are."""
        if not self._clips:
            return None
        left = subtract(self.partials, arith.MinUIOp(position, self.partials).result)
        return mask_of(self.persistent_loop.second_stage_tile, {self.plan.outer_dims[0]: left})

    def _load(
        self, s: OpStructure, buffer: ir.Value, shape: Shape, indices: Sequence[ir.Value], ragged: frozenset[int]
    ) -> ir.Value:
        """Reads a tile of a reduction's partials, with one partial a row along the first looped dimension."""
        axes = [self.plan.outer_dims[0], *self._order(s)]
        element = ir.MemRefType(buffer.type).element_type
        exprs = [
            ir.AffineExpr.get_dim(axes.index(d)) if d in axes else ir.AffineExpr.get_constant(0)
            for d in range(self.space.rank)
        ]
        bounds = [
            ir.BoolAttr.get(d not in axes or (d not in ragged and (d != axes[0] or not self._clips)))
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
