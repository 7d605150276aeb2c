"""Reductions over tiles of a contraction's result: each block stores a partial, and the last block adds them up.

The blocks whose tiles follow each other along the reduced dimensions form a group with one semaphore. The last block
adds the group's partials in tile order, so results are bitwise reproducible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine, arith, scf

from mlirfuse.analysis.contractions.epilogues import Epilogue
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.analysis.memory.workspaces import SCRATCH, SEMAPHORES
from mlirfuse.tiling.emitter import TileEmitter
from mlirfuse.tiling.program import Count, TileProgram, count_expr, tile_counts
from mlirfuse.tiling.reduction.reduction_ops import combine, element_type, mask_of, neutral_scalar
from mlirfuse.tiling.sync.partial_tiles import PartialTiles, workspace_argument
from mlirfuse.tiling.sync.semaphores import last_block
from mlirfuse.tiling.tiles import broadcast, index, splat
from mlirfuse.tiling.transfers import TileTransfers


@dataclass(frozen=True)
class TileReductions:
    """Emits the reductions in an epilogue of a contraction.

    Attributes:
        program: the tile program, in whose body ops are being inserted.
        emitter: the emitter of the block's tile; its iteration space contains the reductions.
        epilogue: the epilogue's ops: reductions and their second stage.
    """

    program: TileProgram
    emitter: TileEmitter
    epilogue: Epilogue

    def emit(self) -> None:
        """Emits the reductions, the ops of the second stage, and the writes of their results."""
        transfers = self.emitter.transfers
        with ir.InsertionPoint(self.program.forall):
            counts = tile_counts(
                transfers.space, transfers.tile, self.program.buffers, frozenset(range(transfers.space.rank))
            )
        members = [d for d in self.reduced if counts[d] != 1]
        if not members:
            self._second_stage(
                [self._partial(reduction, self.emitter.initial(reduction)) for reduction in self.epilogue.reductions]
            )
            return
        groups = [d for d in range(len(counts)) if d not in self.reduced and counts[d] != 1]
        partials = [self._partial(reduction, neutral_scalar(reduction)) for reduction in self.epilogue.reductions]
        self._combine_in_last_block(partials, counts, groups, members)

    @property
    def reduced(self) -> list[int]:
        """The reduced dimensions, ascending."""
        return sorted(self.emitter.space.reduced[self.epilogue.reductions[0].op])

    def _partial(self, reduction: OpStructure, initial: ir.Value) -> ir.Value:
        """The block's partial of a reduction: its tile reduced, without elements out of bounds."""
        transfers, space = self.emitter.transfers, self.emitter.space
        elements = self.emitter.combine_input(reduction)
        shape = tuple(ir.VectorType(elements.type).shape)
        bounds = {}
        for d in set(self.reduced) & transfers.ragged:
            extent = space.extents[d]
            assert extent is not None  # checked by epilogue_of
            bounds[d] = arith.SubIOp(index(extent), transfers.offsets[d]).result
        if bounds:
            outside = splat(neutral_scalar(reduction), shape)
            elements = arith.SelectOp(broadcast(mask_of(shape, bounds), shape), elements, outside).result
        return self.emitter.reduce(reduction, elements, initial)

    def _combine_in_last_block(
        self, partials: Sequence[ir.Value], counts: Sequence[Count], groups: Sequence[int], members: Sequence[int]
    ) -> None:
        """Stores the partials and arrives at the group's semaphore; the group's last block runs the second stage."""
        function = self.program.function.operation
        size, size_symbols = count_expr([counts[d] for d in members])
        tiles = count_expr([counts[d] for d in [*members, *groups]])
        i32 = ir.IntegerType.get_signless(32)
        semaphores = workspace_argument(function, SEMAPHORES, *count_expr([counts[d] for d in groups]), [], i32)
        stores = []
        for reduction, partial in zip(self.epilogue.reductions, partials, strict=True):
            inner = list(ir.VectorType(partial.type).shape)
            scratch = workspace_argument(function, SCRATCH, *tiles, inner, element_type(reduction))
            stores.append(PartialTiles(semaphores, scratch, 1))
        group_size = affine.AffineApplyOp(ir.AffineMap.get(0, len(size_symbols), [size]), size_symbols).result
        group, member = self._number(groups, counts), self._number(members, counts)
        first = arith.MulIOp(group, group_size).result
        for store, partial in zip(stores, partials, strict=True):
            store.write(partial, arith.AddIOp(first, member).result)
        branch = last_block(semaphores, group, group_size)
        with ir.InsertionPoint(branch.then_block):
            shapes = [tuple(ir.VectorType(partial.type).shape) for partial in partials]
            starts = [self.emitter.initial(reduction) for reduction in self.epilogue.reductions]
            first_sums = [broadcast(start, shape) for start, shape in zip(starts, shapes, strict=True)]
            loop = scf.ForOp(index(0), group_size, index(1), first_sums)
            with ir.InsertionPoint(loop.body):
                row = arith.AddIOp(first, loop.induction_variable).result
                added = zip(self.epilogue.reductions, loop.inner_iter_args, stores, strict=True)
                scf.YieldOp(
                    [combine(reduction, accumulator, store.read(row), None) for reduction, accumulator, store in added]
                )
            self._second_stage(list(loop.results))
            scf.YieldOp([])

    def _number(self, dims: Sequence[int], counts: Sequence[Count]) -> ir.Value:
        """The linear number of the block's tile among the tiles along `dims`, an index."""
        transfers = self.emitter.transfers
        number = index(0)
        for d in dims:
            count, symbols = count_expr([counts[d]])
            along = affine.AffineApplyOp(ir.AffineMap.get(0, len(symbols), [count]), symbols).result
            tile_number = ir.AffineExpr.get_floor_div(ir.AffineExpr.get_dim(0), transfers.tile[d])
            position = affine.AffineApplyOp(ir.AffineMap.get(1, 0, [tile_number]), [transfers.offsets[d]]).result
            number = arith.AddIOp(arith.MulIOp(number, along).result, position).result
        return number

    def _second_stage(self, results: Sequence[ir.Value]) -> None:
        """Emits the ops that use the reductions' results, and writes the kernel's results among these."""
        outer = self.emitter.transfers
        transfers = TileTransfers(
            outer.space,
            outer.tile,
            outer.offsets,
            outer.ragged,
            outer.buffers,
            streaming=False,
            divided=frozenset(d for d in range(outer.space.rank) if d not in self.reduced),
        )
        emitter = TileEmitter(transfers, dict(self.emitter.values))
        for reduction, value in zip(self.epilogue.reductions, results, strict=True):
            emitter.values[reduction.op.results[0]] = value
        for structure in self.epilogue.second_stage:
            emitter.emit(structure)
        computed = {result for s in (*self.epilogue.reductions, *self.epilogue.second_stage) for result in s.op.results}
        for value, buffer in self.program.results:
            if value in computed:
                emitter.write(value, buffer)
