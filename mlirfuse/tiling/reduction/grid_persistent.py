"""Grid persistent kernels: the workspace, the grid, and the code of each block around its barrier, if it waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir
from mlir.dialects import affine, arith, memref, scf, vector

from mlirfuse.analysis.grid_persistent import GridPersistentOps
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.analysis.memory.workspaces import RESIDENT, SCRATCH, SEMAPHORES
from mlirfuse.dialect.attributes import (
    COOPERATIVE,
    WORKSPACE,
    WORKSPACE_EXTENTS,
    WORKSPACE_OPERANDS,
)
from mlirfuse.dialect.resident_blocks import resident_blocks
from mlirfuse.schedule.parts.grid_persistent import SEMAPHORE_STRIDE, GridPersistent
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.tiling.emitter import TileEmitter
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
from mlirfuse.tiling.reduction.kept_tiles import KeptTiles, read_twice, rings_of
from mlirfuse.tiling.reduction.reduction_ops import apply, mask_of, store_row, subtract
from mlirfuse.tiling.reduction.statistics import Parts, Statistic, statistic_of
from mlirfuse.tiling.sync.semaphores import grid_barrier, last_block
from mlirfuse.tiling.tiles import Shape, broadcast, index, zero
from mlirfuse.tiling.transfers import TileTransfers


def workspace_of(space: IterationSpace, plan: GridPersistentOps, schedule: Schedule) -> list[WorkspaceArgument]:
    """The workspace arguments: the partial results of each statistic, a member's in a row, and then the semaphores."""
    assert schedule.grid_persistent is not None  # checked by the pass
    slices = prod(schedule.grid_persistent.slices(schedule.tile, space.extents))
    members = ir.AffineExpr.get_ceil_div(ir.AffineExpr.get_symbol(0), slices)
    scratch = {
        WORKSPACE: ir.StringAttr.get(SCRATCH),
        WORKSPACE_EXTENTS: ir.AffineMapAttr.get(ir.AffineMap.get(0, 1, [members])),
        WORKSPACE_OPERANDS: ir.DenseI64ArrayAttr.get([RESIDENT, max(1, schedule.blocks_per_sm)]),
    }
    dynamic, kept = ir.ShapedType.get_dynamic_size(), [space.extents[d] or 0 for d in plan.kept]
    types = []
    for statistic in (statistic_of(s, plan.dims) for s in plan.reductions):
        for number, type_ in enumerate(statistic.types):
            of_row = [slices] if number < statistic.uniform else kept
            types.append(ir.MemRefType.get([dynamic, *of_row], type_))
    counters = ir.MemRefType.get([slices * SEMAPHORE_STRIDE], ir.IntegerType.get_signless(32))
    semaphores = (counters, {WORKSPACE: ir.StringAttr.get(SEMAPHORES)})
    return [*((type_, scratch) for type_ in types), semaphores]


def emit_grid_persistent(
    frame: KernelFrame, space: IterationSpace, plan: GridPersistentOps, schedule: Schedule
) -> None:
    """Emits all stages into a kernel that was opened with the arguments of `workspace_of`."""
    assert schedule.grid_persistent is not None  # checked by the pass
    if plan.second:
        frame.function.attributes[COOPERATIVE] = ir.UnitAttr.get()
    slice_counts = schedule.grid_persistent.slices(schedule.tile, space.extents)
    slices = prod(slice_counts)
    with frame.body():
        counts = tile_counts(space, schedule.tile, frame.buffers, frozenset(plan.dims))
        expr, symbols = count_expr(counts)
        tiles = affine.AffineApplyOp(ir.AffineMap.get(0, len(symbols), [expr]), symbols).result
        # At least one member of each slice, so that an empty grid still writes what does not vary along the tiles.
        least = ir.AffineExpr.get_constant(slices)
        wanted = ir.AffineMap.get(0, len(symbols), [expr * slices, least])
        most = affine.AffineMaxOp(wanted, symbols).result
        resident = resident_blocks(max(1, schedule.blocks_per_sm))
        one = ir.AffineExpr.get_symbol(0)
        held = ir.AffineMap.get(0, 1, [ir.AffineExpr.get_floor_div(one, slices) * slices, least])
        bounds = ir.AffineMap.get(0, 2, [one, ir.AffineExpr.get_symbol(1)])
        blocks = affine.AffineMinOp(bounds, [most, affine.AffineMaxOp(held, [resident]).result]).result
        grid = forall(blocks)
        with ir.InsertionPoint.at_block_terminator(grid.body):
            block = grid.body.arguments[0]
            number = ir.AffineExpr.get_dim(0)
            own = apply(number % slices, block)
            member = apply(ir.AffineExpr.get_floor_div(number, slices), block)
            members = apply(ir.AffineExpr.get_floor_div(number, slices), blocks)
            offsets = tile_offsets(own, slice_counts, schedule.tile)
            _Block(frame, space, plan, schedule, counts, tiles, member, members, own, offsets).emit()


@dataclass
class _Block:
    """Emits the code of one block.

    Attributes:
        frame: the kernel under construction.
        space: the kernel's iteration space.
        plan: the kernel's ops, by stage.
        schedule: the tile, its layout, and the tiles that are kept.
        counts: number of tiles along each reduced dimension.
        tiles: number of all tiles of a slice, an index.
        member: the block's number among those of its slice, an index.
        members: how many these are, an index.
        slice: the number of the block's slice, an index.
        slice_offsets: the first index of the slice in each dimension.
    """

    frame: KernelFrame
    space: IterationSpace
    plan: GridPersistentOps
    schedule: Schedule
    counts: Sequence[Count]
    tiles: ir.Value
    member: ir.Value
    members: ir.Value
    slice: ir.Value
    slice_offsets: Sequence[ir.Value]

    def __post_init__(self) -> None:
        assert self.schedule.grid_persistent is not None  # checked by the pass
        self.part: GridPersistent = self.schedule.grid_persistent
        self.tile = self.schedule.tile
        self.statistics: list[Statistic] = [statistic_of(s, self.plan.dims) for s in self.plan.reductions]
        self.ragged = ragged_dims(self.space, self.tile)
        *self.buffers, self.semaphores = self.frame.workspace

    def emit(self) -> None:
        """Emits all stages at the current insertion point."""
        column = self._column_emitter(self.member)
        for s in self.plan.column:
            column.emit(s)
        self._read_columns(column, [*self.plan.first, *self.plan.reductions])
        kept = self._kept_tiles()
        kept_end = self.member if kept is None else self._kept_end()
        parts = [s.start(self.tile, self.ragged) for s in self.statistics]
        if kept is not None:
            kept.start(lambda number: self._tile_emitter(column, number, streaming=True).transfers)
            parts = self._first_visits(column, parts, self.member, kept_end, kept)
        parts = self._first_visits(column, parts, kept_end, self.tiles, None)
        self._store_partials([s.reduced(p) for s, p in zip(self.statistics, parts, strict=True)])
        slot = apply(ir.AffineExpr.get_dim(0) * SEMAPHORE_STRIDE, self.slice)
        if not self.plan.second:
            branch = last_block(self.semaphores, slot, self.members)
            with ir.InsertionPoint(branch.then_block):
                self._finish_columns(self._column_emitter(index(0), column.values), self._combined())
                scf.YieldOp([])
            return
        with grid_barrier(self.semaphores, slot, self.members):
            combined = self._combined()
        self._finish_columns(column, combined)
        self._read_columns(column, self.plan.second)
        self._second_visits(column, kept_end, kept)

    def _finish_columns(self, column: TileEmitter, combined: Sequence[Parts]) -> None:
        """Emits what needs the statistics and does not vary along the tiles, and writes such results."""
        for statistic, found in zip(self.statistics, combined, strict=True):
            column.values.update(zip(statistic.structure.op.results, statistic.results(column, found), strict=True))
        for late in self.plan.late:
            column.emit(late)
        for value, buffer in self.frame.results:
            if value in column.values:
                column.write(value, buffer)

    def _read_columns(self, column: TileEmitter, ops: Sequence[OpStructure]) -> None:
        """Reads what ops need of arguments that do not vary along the tiles, in front of a loop over these."""
        chosen = {s.op for s in ops}
        for (op, number), axes in self.space.use_axes.items():
            along = set(axes) - {None}
            if (
                op in chosen
                and op.operands[number] in self.frame.buffers
                and along
                and along.isdisjoint(self.plan.dims)
            ):
                column.transfers.read(op.operands[number], axes)

    def _column_emitter(self, writer: ir.Value, known: Mapping[ir.Value, ir.Value] | None = None) -> TileEmitter:
        """The emitter of what does not vary along the tiles of a slice.

        Args:
            writer: 0, an index, in the member that writes results.
            known: values that are computed already.
        """
        first = self.plan.dims[0]
        offsets = [writer if d == first else offset for d, offset in enumerate(self.slice_offsets)]
        transfers = TileTransfers(
            self.space,
            self.tile,
            offsets,
            self.ragged - set(self.plan.dims),
            self.frame.buffers,
            streaming=False,
            divided=frozenset({first}),
        )
        return TileEmitter(transfers, {**self.frame.scalars, **(known or {})})

    def _kept_tiles(self) -> KeptTiles | None:
        """The block's first tiles of what both visits read, in shared memory; None where none are kept."""
        reads = read_twice(self.space, self.plan, self.frame.buffers) if self.part.kept_tiles else []
        if not reads:
            return None
        rings = rings_of(reads, self.frame.buffers, self.schedule)
        return KeptTiles(rings, self.part.kept_tiles, self.member, self.members, self.tiles)

    def _kept_end(self) -> ir.Value:
        """The number of the block's first tile that is not kept; beyond all tiles, or equal to it, where all are."""
        expr = ir.AffineExpr.get_dim(0) + ir.AffineExpr.get_symbol(0) * self.part.kept_tiles
        return affine.AffineApplyOp(ir.AffineMap.get(1, 1, [expr]), [self.member, self.members]).result

    def _first_visits(
        self, column: TileEmitter, parts: list[Parts], first: ir.Value, end: ir.Value, kept: KeptTiles | None
    ) -> list[Parts]:
        """Emits the loop that adds tiles to the statistics, tiles that are kept or others."""
        end = end if kept is None else arith.MinUIOp(end, self.tiles).result
        loop = scf.ForOp(first, end, self.members, [value for each in parts for value in each])
        with ir.InsertionPoint(loop.body):
            number = loop.induction_variable
            emitter = self._tile_emitter(column, number, streaming=kept is not None or not self.plan.second)
            if kept is not None:
                kept.wait()
                emitter.transfers.stages.update(kept.slots(number))
            self._emit_tile(emitter, self.plan.first)
            carried = self._grouped(list(loop.inner_iter_args))
            mask = self._inside(emitter.transfers)
            added = [s.add(emitter, each, mask) for s, each in zip(self.statistics, carried, strict=True)]
            scf.YieldOp([value for each in added for value in each])
        return self._grouped(list(loop.results))

    def _second_visits(self, column: TileEmitter, kept_end: ir.Value, kept: KeptTiles | None) -> None:
        """Emits the loops that write results: over tiles that are read again, the last one first, and kept ones."""
        self._second_loop(column, kept_end, self.tiles, None)
        if kept is not None:
            self._second_loop(column, self.member, arith.MinUIOp(kept_end, self.tiles).result, kept)

    def _second_loop(self, column: TileEmitter, first: ir.Value, end: ir.Value, kept: KeptTiles | None) -> None:
        some = arith.MaxUIOp(first, end).result
        left = arith.SubIOp(some, first).result
        count = arith.CeilDivUIOp(left, self.members).result
        loop = scf.ForOp(index(0), count, index(1))
        with ir.InsertionPoint(loop.body):
            back = arith.SubIOp(arith.SubIOp(count, index(1)).result, loop.induction_variable).result
            number = arith.AddIOp(first, arith.MulIOp(back, self.members).result).result
            emitter = self._tile_emitter(column, number, streaming=True)
            if kept is not None:
                emitter.transfers.stages.update(kept.slots(number))
            self._emit_tile(emitter, self.plan.second)
            scf.YieldOp([])

    def _emit_tile(self, emitter: TileEmitter, ops: Sequence[OpStructure]) -> None:
        """Emits the ops of a visit of a tile, and writes their results in the last visit."""
        for s in ops:
            emitter.emit(s)
        last = self.plan.second or self.plan.first
        made = {result for s in last for result in s.op.results} if ops == last else set()
        for value, buffer in self.frame.results:
            if value in made:
                emitter.write(value, buffer)

    def _tile_emitter(self, column: TileEmitter, number: ir.Value, *, streaming: bool) -> TileEmitter:
        """The emitter of the tile of that number, which knows what does not vary along the tiles."""
        along = tile_offsets(number, self.counts, self.tile)
        offsets = [along[d] if d in self.plan.dims else self.slice_offsets[d] for d in range(self.space.rank)]
        transfers = TileTransfers(
            self.space,
            self.tile,
            offsets,
            self.ragged,
            self.frame.buffers,
            streaming=streaming,
            divided=frozenset(range(self.space.rank)),
            reads=dict(column.transfers.reads),
        )
        return TileEmitter(transfers, dict(column.values))

    def _inside(self, transfers: TileTransfers) -> ir.Value | None:
        """Mask of a tile's elements in bounds of the reduced dimensions; None if tiles are always whole."""
        ragged = sorted(self.ragged & set(self.plan.dims))
        bounds = {d: subtract(self._extent(d), transfers.offsets[d]) for d in ragged}
        return mask_of(self.tile, bounds) if bounds else None

    def _extent(self, dim: int) -> ir.Value:
        extent = self.space.extents[dim]
        return dynamic_extent(self.space, dim, self.frame.buffers) if extent is None else index(extent)

    def _grouped(self, values: list[ir.Value]) -> list[Parts]:
        """The parts of each statistic, of all in a row."""
        grouped = []
        for s in self.statistics:
            count = len(s.types)
            grouped.append(values[:count])
            values = values[count:]
        return grouped

    def _store_partials(self, reduced: Sequence[Parts]) -> None:
        """Stores the block's partial results in its row of the workspace."""
        buffers = iter(self.buffers)
        for s, parts in zip(self.statistics, reduced, strict=True):
            for number, part in enumerate(parts):
                kept = () if number < s.uniform else self.plan.kept
                tile = broadcast(part, tuple(n if d in kept else 1 for d, n in enumerate(self.tile)))
                store_row(tile, kept, next(buffers), self.member, self._row_start(s, number), self.ragged)

    def _row_start(self, statistic: Statistic, number: int) -> list[ir.Value]:
        """Where the slice's numbers of a part begin in a row of the workspace."""
        return [self.slice] if number < statistic.uniform else [self.slice_offsets[d] for d in self.plan.kept]

    def _combined(self) -> list[Parts]:
        """Reads the partial results of all members, and combines them in the order of members."""
        tile = self.part.combining_tile(self.tile, self.schedule.layout)
        first = self.part.partial_dim(self.schedule.layout)
        buffers = [self._written(buffer) for buffer in self.buffers]
        start = [value for s in self.statistics for value in s.start(tile, {first})]
        loop = scf.ForOp(index(0), self.members, index(tile[first]), start)
        with ir.InsertionPoint(loop.body):
            position = loop.induction_variable
            mask = mask_of(tile, {first: subtract(self.members, position)}) if tile[first] > 1 else None
            of_parts = [(s, number) for s in self.statistics for number in range(len(s.types))]
            loaded = self._grouped(
                [
                    self._load(buffer, tile, first, position, *part)
                    for buffer, part in zip(buffers, of_parts, strict=True)
                ]
            )
            carried = self._grouped(list(loop.inner_iter_args))
            merged = [s.merge(a, b, mask) for s, a, b in zip(self.statistics, carried, loaded, strict=True)]
            scf.YieldOp([value for each in merged for value in each])
        parts = self._grouped(list(loop.results))
        return [s.reduced(each) for s, each in zip(self.statistics, parts, strict=True)]

    def _written(self, buffer: ir.Value) -> ir.Value:
        """The rows of a workspace that the members of this launch wrote, as a view."""
        whole = ir.MemRefType(buffer.type)
        dynamic, kept = ir.ShapedType.get_dynamic_size(), list(whole.shape)[1:]
        layout = ir.StridedLayoutAttr.get(0, [prod(kept[axis:]) for axis in range(len(kept) + 1)])
        view = ir.MemRefType.get([dynamic, *kept], whole.element_type, layout)
        starts, ones = [0] * whole.rank, [1] * whole.rank
        return memref.SubViewOp(view, buffer, [], [self.members], [], starts, [dynamic, *kept], ones).result

    def _load(
        self, buffer: ir.Value, tile: Shape, first: int, position: ir.Value, statistic: Statistic, number: int
    ) -> ir.Value:
        """Reads a tile of a part's partial results, members from `position` on along the dimension `first`."""
        kept = () if number < statistic.uniform else self.plan.kept
        axes = [first, *kept]
        indices = [position, *self._row_start(statistic, number)]
        element = ir.MemRefType(buffer.type).element_type
        exprs = [
            ir.AffineExpr.get_dim(axes.index(d)) if d in axes else ir.AffineExpr.get_constant(0)
            for d in range(self.space.rank)
        ]
        clipped = {d for d in kept if d in self.ragged} | ({first} if tile[first] > 1 else set())
        return vector.TransferReadOp(
            ir.VectorType.get([n if d in axes else 1 for d, n in enumerate(tile)], element),
            buffer,
            indices,
            ir.AffineMapAttr.get(ir.AffineMap.get(len(indices), 0, exprs)),
            arith.ConstantOp(element, zero(element)).result,
            in_bounds=ir.ArrayAttr.get([ir.BoolAttr.get(d not in clipped) for d in range(self.space.rank)]),
        ).result
