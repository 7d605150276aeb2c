"""The first tiles of a block, which stay in shared memory between two visits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, nvvm, scf

from mlirfuse.analysis.grid_persistent import GridPersistentOps
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.tiling.slot_ring import SlotRing
from mlirfuse.tiling.tiles import index
from mlirfuse.tiling.transfers import Read, TileTransfers


@dataclass(frozen=True)
class KeptTiles:
    """Slots of shared memory for a block's first tiles of some arguments.

    All copies are under way at once, a group a tile, before the first one is waited for.

    Attributes:
        rings: the slots of each argument.
        count: how many tiles there is room for.
        first: the block's first tile, an index.
        step: from one of its tiles to the next one, an index.
        tiles: number of all tiles of the slice, an index.
    """

    rings: dict[Read, SlotRing]
    count: int
    first: ir.Value
    step: ir.Value
    tiles: ir.Value

    def start(self, transfers: Callable[[ir.Value], TileTransfers]) -> None:
        """Starts all copies; `transfers` makes the transfers of the tile of a number."""
        loop = scf.ForOp(index(0), index(self.count), index(1))
        with ir.InsertionPoint(loop.body):
            slot = loop.induction_variable
            number = arith.AddIOp(self.first, arith.MulIOp(slot, self.step).result).result
            exists = arith.CmpIOp(arith.CmpIPredicate.ult, number, self.tiles).result
            branch = scf.IfOp(exists)
            with ir.InsertionPoint(branch.then_block):
                of_tile = transfers(number)
                for (value, axes), ring in self.rings.items():
                    of_tile.copy(value, axes, ring.slot(slot))
                scf.YieldOp([])
            nvvm.CpAsyncCommitGroupOp()
            scf.YieldOp([])

    def wait(self) -> None:
        """Waits, in a loop over the tiles, for the copies of the step's own.

        A further group in each step, which is empty, lets as many groups be under way in every step.
        """
        nvvm.CpAsyncCommitGroupOp()
        nvvm.CpAsyncWaitGroupOp(self.count)

    def slots(self, number: ir.Value) -> dict[Read, ir.Value]:
        """Where the tile of that number is."""
        slot = arith.DivUIOp(arith.SubIOp(number, self.first).result, self.step).result
        return {read: ring.slot(slot) for read, ring in self.rings.items()}


def read_twice(space: IterationSpace, plan: GridPersistentOps, buffers: Iterable[ir.Value]) -> list[Read]:
    """The arguments over the whole space that both visits of a tile read."""
    whole = {d for d, extent in enumerate(space.extents) if extent != 1}
    known = set(buffers)

    def reads(ops: Iterable[OpStructure]) -> list[Read]:
        chosen = {s.op for s in ops}
        found = [(op.operands[n], axes) for (op, n), axes in space.use_axes.items() if op in chosen]
        return [(value, axes) for value, axes in found if value in known and whole <= set(axes)]

    second = reads(plan.second)
    return list(dict.fromkeys(read for read in reads([*plan.first, *plan.reductions]) if read in second))


def rings_of(reads: Iterable[Read], buffers: dict[ir.Value, ir.Value], schedule: Schedule) -> dict[Read, SlotRing]:
    """Slots for tiles of arguments, as large as the layout, so that each thread has a place for padding too."""
    assert schedule.grid_persistent is not None
    extents = schedule.layout.extents
    return {
        (value, axes): SlotRing(
            ir.MemRefType(buffers[value].type).element_type, schedule.grid_persistent.kept_tiles, extents, extents[-1]
        )
        for value, axes in reads
    }
