"""Multi-pass reductions: one pass over a row's chunks for each level of reductions, which writes the results that need
no more, and one that writes the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import arith, memref, scf

from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.order import by_reduction_depth, reduction_depths
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.dialect.shared_memory import workgroup_memref
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.rewriting import erase
from mlirfuse.tiling.emitter import TileEmitter
from mlirfuse.tiling.program import TileProgram, dynamic_extent, ragged_dims
from mlirfuse.tiling.reduction.reduction_ops import apply, combine, mask_of, neutral_tile, subtract
from mlirfuse.tiling.tiles import Shape, index
from mlirfuse.tiling.transfers import Read, TileTransfers

Accumulators = list[ir.Value]
Step = Callable[[TileEmitter, Accumulators], Accumulators]
Result = tuple[ir.Value, ir.Value]
"""A value of the kernel, and the memory that it is written to."""

GROUP = 32
"""Chunks of a dynamic extent that are accumulated before their sum is added to the row's: two-level summation, which
bounds the rounding error."""

FEWEST_SHARED = 3
"""Smallest chunk, in elements, that can be split together with one remaining element into two of at least two."""


def emit_multi_pass(
    program: TileProgram,
    space: IterationSpace,
    structures: Sequence[OpStructure],
    schedule: Schedule,
    chunked: int,
    outer: Sequence[int] = (),
) -> None:
    """Emits the body of a block: passes over chunks of the reduced dimensions, and the ops on row values between them.

    Args:
        program: the tile program.
        space: the kernel's iteration space.
        structures: its ops.
        schedule: the tile and the layout.
        chunked: the dimension of the innermost loop, whose last chunk may be smaller.
        outer: the dimensions of the loops around it, outermost first; tiles divide their extents.
    """
    _MultiPass(program, space, list(by_reduction_depth(structures)), schedule, chunked, tuple(outer)).emit()


@dataclass
class _MultiPass:
    program: TileProgram
    space: IterationSpace
    structures: list[OpStructure]
    schedule: Schedule
    chunked: int
    outer: tuple[int, ...] = ()
    row_values: dict[ir.Value, ir.Value] = field(default_factory=dict)
    stages: dict[Read, ir.Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.depths = reduction_depths(self.structures)
        self.row_values.update(self.program.scalars)
        self.extent = self.space.extents[self.chunked]
        self.chunk = self.schedule.tile[self.chunked]
        self.looped = {self.chunked, *self.outer}
        self.positions: dict[int, ir.Value] = {}  # of the loops around the innermost one

    def emit(self) -> None:
        levels = sorted({self.depths[s.op] for s in self.structures if self._accumulates(s)})
        left = self._varying_results()
        if self.schedule.persistence == "shared":
            self._allocate_stages()
        for level in range(max(self.depths.values()) + 1):
            self._emit_row_ops(level)
            if level in levels:
                reductions = [s for s in self.structures if self._accumulates(s) and self.depths[s.op] == level]
                # What is in shared memory is written last, as all of it is read again in any case.
                early = [] if self.schedule.persistence == "shared" else self._computed_at(level, left)
                left = [result for result in left if result not in early]
                self._reduce(reductions, early, first=level == levels[0])
                self._drop_unfilled_stages()
        for value, buffer in self.program.results:
            if value in self.row_values:
                emitter = self._emitter(self._tiles()[0], index(0))
                emitter.write(value, buffer)
        if left:
            self._pass_over([], lambda emitter, _: self._write(emitter, left), staged=True)

    def _varying_results(self) -> list[Result]:
        """The results that vary along the row."""
        makers = {result: s for s in self.structures for result in s.op.results}
        return [
            (value, buffer)
            for value, buffer in self.program.results
            if self._varies(makers[value]) and not self._accumulates(makers[value])
        ]

    def _computed_at(self, level: int, results: Sequence[Result]) -> list[Result]:
        """Results that the pass of a level of reductions can compute."""
        return [(value, buffer) for value, buffer in results if self.depths[value.owner.operation] <= level]

    def _varies(self, structure: OpStructure) -> bool:
        return not self.looped.isdisjoint(self.space.loops[structure.op])

    def _accumulates(self, structure: OpStructure) -> bool:
        """Whether an op reduces looped dimensions; a reduction of extents of 1 alone is emitted for each chunk."""
        return not self.looped.isdisjoint(self.space.reduced.get(structure.op, ()))

    def _emit_row_ops(self, level: int) -> None:
        """Emits the ops of a level that do not vary along the row."""
        emitter = self._emitter(self._tiles()[0], index(0))
        for s in self.structures:
            if self.depths[s.op] == level and not self._varies(s):
                emitter.emit(s)
                for result in s.op.results:
                    self.row_values[result] = emitter.values[result]

    def _reduce(self, reductions: Sequence[OpStructure], results: Sequence[Result], *, first: bool) -> None:
        """Emits one pass that accumulates all reductions of a level, and writes results that it can compute."""

        def step(emitter: TileEmitter, accumulators: Accumulators) -> Accumulators:
            self._emit_needed(emitter, [s.op for s in reductions])
            mask = self._inside(emitter.transfers)
            combined = [
                combine(s, accumulator, emitter.combine_input(s), mask)
                for s, accumulator in zip(reductions, accumulators, strict=True)
            ]
            if results:
                self._write(emitter, results)
            if first:
                emitter.transfers.fill_stages(self.stages)
            return combined

        partials = self._pass_over(reductions, step, staged=not first)
        for s, of_tiles in zip(reductions, zip(*partials, strict=True), strict=True):
            result = None
            for partial, tile in zip(of_tiles, self._tiles(), strict=True):
                emitter = self._emitter(tile, index(0))
                result = emitter.reduce(s, partial, emitter.initial(s) if result is None else result)
            assert result is not None
            self.row_values[s.op.results[0]] = result

    def _pass_over(self, reductions: Sequence[OpStructure], step: Step, *, staged: bool) -> list[Accumulators]:
        """Emits `step` for every chunk; returns the accumulators of each of `_tiles`."""
        starts = [self._initial(reductions, tile) for tile in self._tiles()]
        return self._pass_within(self.outer, starts, reductions, step, staged)

    def _pass_within(
        self,
        outer: Sequence[int],
        starts: list[Accumulators],
        reductions: Sequence[OpStructure],
        step: Step,
        staged: bool,
    ) -> list[Accumulators]:
        """Emits the loops over `outer` dimensions, around a pass over the chunks; carries the accumulators through."""
        if not outer:
            return self._pass_over_chunks(starts, reductions, step, staged)
        first, *rest = outer
        extent = self.space.extents[first]
        end = dynamic_extent(self.space, first, self.program.buffers) if extent is None else index(extent)
        flat = [value for start in starts for value in start]
        loop = scf.ForOp(index(0), end, index(self.schedule.tile[first]), flat)
        with ir.InsertionPoint(loop.body):
            self.positions[first] = loop.induction_variable
            carried = self._by_tile(loop.inner_iter_args, len(starts))
            found = self._pass_within(rest, carried, reductions, step, staged)
            scf.YieldOp([value for accumulators in found for value in accumulators])
        del self.positions[first]
        return self._by_tile(loop.results, len(starts))

    @staticmethod
    def _by_tile(values: Sequence[ir.Value], tiles: int) -> list[Accumulators]:
        """Accumulators that a loop carries, one list for each tile."""
        each = len(values) // tiles
        return [list(values)[i * each : (i + 1) * each] for i in range(tiles)]

    def _pass_over_chunks(
        self, starts: list[Accumulators], reductions: Sequence[OpStructure], step: Step, staged: bool
    ) -> list[Accumulators]:
        """Emits `step` for the chunks of the innermost looped dimension; returns the accumulators of each tile."""
        if self.extent is None:
            return [self._pass_over_groups(starts[0], reductions, step)]
        accumulated: list[Accumulators] = []
        remainders = self._remainders()
        position = self.extent - sum(remainders)
        if position:
            accumulated.append(self._loop(index(0), index(position), starts[0], step, staged=staged))
        for size, start in zip(remainders, starts[len(accumulated) :], strict=True):
            accumulated.append(step(self._emitter(self._tile_of(size), index(position), staged), start))
            position += size
        return accumulated

    def _pass_over_groups(self, start: Accumulators, reductions: Sequence[OpStructure], step: Step) -> Accumulators:
        """Emits `step` for every chunk of a dynamic extent, in groups of `GROUP`; the last chunk may be partial.

        Chunks that are whole have loops of their own, whose accesses are neither clamped nor masked.
        """
        extent = dynamic_extent(self.space, self.chunked, self.program.buffers)
        chunks = ir.AffineExpr.get_floor_div(ir.AffineExpr.get_dim(0), self.chunk)
        whole = apply(chunks * self.chunk, extent)
        if not reductions:
            start = self._loop(index(0), whole, start, step, whole=True)
            return self._partial_chunk(whole, extent, start, step)
        length = GROUP * self.chunk
        groups = scf.ForOp(index(0), whole, index(length), start)
        with ir.InsertionPoint(groups.body):
            end_of_group = apply(ir.AffineExpr.get_dim(0) + length, groups.induction_variable)
            end = arith.MinUIOp(end_of_group, whole).result
            neutral = self._initial(reductions, self.schedule.tile)
            sums = self._loop(groups.induction_variable, end, neutral, step, whole=True)
            carried = zip(reductions, groups.inner_iter_args, sums, strict=True)
            scf.YieldOp([combine(s, accumulator, partial, None) for s, accumulator, partial in carried])
        return self._partial_chunk(whole, extent, list(groups.results), step)

    def _partial_chunk(self, first: ir.Value, extent: ir.Value, start: Accumulators, step: Step) -> Accumulators:
        """Emits `step` for the last chunk of a dynamic extent, if that has a part of one behind `first`."""
        is_any = arith.CmpIOp(arith.CmpIPredicate.ult, first, extent).result
        branch = scf.IfOp(is_any, [value.type for value in start], has_else=bool(start))
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp(step(self._emitter(self.schedule.tile, first), start))
        if start:
            with ir.InsertionPoint(branch.else_block):
                scf.YieldOp(start)
        return list(branch.results)

    def _loop(
        self,
        first: ir.Value,
        end: ir.Value,
        start: Accumulators,
        step: Step,
        *,
        staged: bool = False,
        whole: bool = False,
    ) -> Accumulators:
        """Emits a loop of `step` over chunks of the schedule's size from `first` to `end`; returns the accumulators.

        `whole` says that no chunk of a dynamic extent is partial.
        """
        loop = scf.ForOp(first, end, index(self.chunk), start)
        with ir.InsertionPoint(loop.body):
            emitter = self._emitter(self.schedule.tile, loop.induction_variable, staged, whole=whole)
            scf.YieldOp(step(emitter, list(loop.inner_iter_args)))
        return list(loop.results)

    def _initial(self, reductions: Sequence[OpStructure], tile: Shape) -> Accumulators:
        """A tile of neutral elements for each reduction."""
        varying = [{d for d in self.space.loops[s.op] if d is not None} for s in reductions]
        shapes = [tuple(n if d in dims else 1 for d, n in enumerate(tile)) for dims in varying]
        return [neutral_tile(s, shape) for s, shape in zip(reductions, shapes, strict=True)]

    def _inside(self, transfers: TileTransfers) -> ir.Value | None:
        """Mask of a chunk's elements in bounds; None if the chunk is always whole."""
        if self.chunked not in transfers.ragged:
            return None
        extent = dynamic_extent(self.space, self.chunked, self.program.buffers)
        return mask_of(transfers.tile, {self.chunked: subtract(extent, transfers.offsets[self.chunked])})

    def _tiles(self) -> list[Shape]:
        """The tile of the loop over whole chunks, if there is such a loop, and the tiles of the remainders."""
        if self.extent is None:
            return [self.schedule.tile]
        remainders = self._remainders()
        loops = [self.chunk] if self.extent > sum(remainders) else []
        return [self._tile_of(size) for size in (*loops, *remainders)]

    def _remainders(self) -> list[int]:
        """Numbers of elements of the chunks after the loop.

        A remainder of one element is avoided where possible by splitting it together with the chunk before it into two:
        MLIR folds a reduction of one element to the element, whose layout then no longer says that one thread holds it.
        """
        assert self.extent is not None
        rest = self.extent % self.chunk
        if rest != 1 or self.extent == 1 or self.chunk < FEWEST_SHARED:
            return [rest] if rest else []
        both = self.chunk + rest
        return [both - both // 2, both // 2]

    def _tile_of(self, size: int) -> Shape:
        """The tile of a chunk of `size` elements."""
        return tuple(size if d == self.chunked else n for d, n in enumerate(self.schedule.tile))

    def _emitter(self, tile: Shape, position: ir.Value, staged: bool = False, *, whole: bool = False) -> TileEmitter:
        offsets = list(self.program.offsets)
        for dim in self.outer:
            offsets[dim] = self.positions.get(dim, offsets[dim])
        offsets[self.chunked] = position
        ends = ragged_dims(self.space, tile) if self.extent is None and not whole else frozenset()
        transfers = TileTransfers(
            self.space,
            tile,
            offsets,
            self.program.ragged | (ends & {self.chunked}),
            self.program.buffers,
            stages=self.stages if staged else {},
            chunked=self.chunked,
            streaming=False,  # rows that are read again should stay in the L2 meanwhile
        )
        return TileEmitter(transfers, dict(self.row_values))

    def _emit_needed(self, emitter: TileEmitter, roots: Sequence[ir.Operation]) -> None:
        """Emits the ops that `roots` depend on and that vary along the row."""
        producers = {r: s for s in self.structures for r in s.op.results}
        needed: set[ir.Operation] = set()
        stack = list(roots)
        while stack:
            op = stack.pop()
            for operand in op.operands:
                producer = producers.get(operand)
                if producer is not None and operand not in self.row_values and producer.op not in needed:
                    needed.add(producer.op)
                    stack.append(producer.op)
        for s in self.structures:
            if s.op in needed and not all(result in emitter.values for result in s.op.results):
                emitter.emit(s)

    def _write(self, emitter: TileEmitter, results: Sequence[Result]) -> Accumulators:
        roots = {r: s.op for s in self.structures for r in s.op.results}
        producers = [roots[value] for value, _ in results]
        self._emit_needed(emitter, producers)
        for s in self.structures:
            if s.op in producers and s.op.results[0] not in emitter.values:
                emitter.emit(s)
        for value, buffer in results:
            emitter.write(value, buffer)
        return []

    def _allocate_stages(self) -> None:
        """Allocates a shared-memory persistent buffer for every argument that varies over the whole tile."""
        for (op, number), axes in self.space.use_axes.items():
            value = op.operands[number]
            if value not in self.program.buffers or not self._whole(axes) or (value, axes) in self.stages:
                continue
            element = ir.MemRefType(self.program.buffers[value].type).element_type
            shape = [self.extent or 0 if d == self.chunked else n for d, n in enumerate(self.schedule.tile)]
            stage = memref.AllocOp(workgroup_memref(shape, element), [], []).result
            self.stages[(value, axes)] = stage

    def _drop_unfilled_stages(self) -> None:
        """Erases the buffers that the first pass did not fill; later passes read these arguments from global memory."""
        for read, stage in list(self.stages.items()):
            if not list(stage.uses):
                del self.stages[read]
                erase(stage.owner.operation)

    def _whole(self, axes: tuple[int | None, ...]) -> bool:
        return {d for d, extent in enumerate(self.space.extents) if extent != 1} <= set(axes)
