"""What the ops behind a contraction take on each tile of the result, and adding up the partial sums of a split."""

from __future__ import annotations

from math import prod

from mlirfuse.schedule.contractions.grid import ContractionGrid
from mlirfuse.schedule.contractions.stages import is_residual_staged, staged_arguments
from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.model.loops import LOADS_AHEAD
from mlirfuse.schedule.model.machine import PARTITIONS, WARPGROUP
from mlirfuse.schedule.model.registers import OTHER_REGISTERS, accumulator_registers, consumer_registers
from mlirfuse.schedule.parts.contraction import SLICED
from mlirfuse.schedule.predict.counts.instructions import INDEPENDENT, exchanges_of
from mlirfuse.schedule.predict.work import DEPENDENT_CYCLES, EXCHANGE_BARRIERS
from mlirfuse.schedule.problem import RowReduction

STORE_CYCLES = 8
"""Cycles in which a thread converts an accumulator, and stores it through shared memory."""

ROLLED = 8
"""Elements of a thread in 16 columns of a warpgroup's rows: what an epilogue loads of an argument at once that works on
fragments one by one, depth first."""

STAGED_CYCLES = 280
"""Cycles from a tile's last product to its copy to memory at least: waiting for the product, a barrier of the warps
that store it to shared memory, and one for the copy before."""

STAGED_COLUMNS = 8
"""The number of which the columns of 16-bit results are a multiple where results are staged: 16 bytes."""

ROW_LANES = 8
"""Lanes of a warp that have the rows of a matrix instruction's result."""

PART_ELEMENTS = 8
"""Elements of a row that one access of a warp to a matrix instruction's result reaches: two of each of four lanes."""

PARTS_AT_ONCE = 512
"""Parts of lines that an SM has under way from the L2 at once: 64 KB where the parts are whole lines."""

PART_BYTES = 64
"""Bytes that a store takes as long as which writes a part of a sector, where results are not staged."""

FLAGGED = 1.4
"""Time of a flag-in-data exchange to that of plain stores and loads: half of its words are flags, and readers ask again
until they have come."""


def issue_seconds(grid: ContractionGrid) -> float:
    """Time of an SM's schedulers for the instructions of one block's epilogue, in the mean over blocks of a split."""
    return prod(grid.tile) * grid.problem.work.instructions / grid.contraction.tile_split / grid.machine.issue_per_sm


def special_seconds(grid: ContractionGrid) -> float:
    """Time of an SM's special-function units for the same."""
    return prod(grid.tile) * grid.problem.work.special / grid.contraction.tile_split / grid.machine.special_per_sm


def epilogue_seconds(grid: ContractionGrid) -> float:
    """Time from the last product of a tile to its last store, where nothing overlaps with it."""
    machine, contraction, work = grid.machine, grid.contraction, grid.problem.work
    cycles = STORE_CYCLES * grid.schedule.layout.elements_per_thread
    if contraction.family.is_asynchronous:
        cycles = max(cycles, STAGED_CYCLES)
    results = cycles / machine.clock
    if contraction.tile_split == 1:
        written = prod(side / count for side, count in zip(grid.sides, grid.counts, strict=True)) * work.written
        results = max(results, _parts(grid) * written / machine.dram_bandwidth_per_sm)
    arguments = _computing_seconds(grid) + _loading_seconds(grid)
    return max(results, special_seconds(grid)) + arguments + _reducing_seconds(grid) + _joining(grid)


def _reducing_seconds(grid: ContractionGrid) -> float:
    """Time in which the threads of a block exchange what each has reduced of its own elements: along columns of a tile
    few lanes have a row together, along rows all warps have each column.
    """
    problem, layout, machine = grid.problem, grid.schedule.layout, grid.machine
    rank = len(layout.lanes)
    over = frozenset(rank - 2 + side for side, reduced in enumerate(grid.swapped(*problem.reduced_over)) if reduced)
    if not over:
        return 0.0
    part = RowReduction(over, frozenset({rank - 2, rank - 1}) - over, problem.accumulator_bytes)
    out = exchanges_of((part,), layout, False, False)
    waits = max(out.instructions / machine.issue_per_sm, out.waits * DEPENDENT_CYCLES / machine.clock)
    return waits + out.shared / machine.shared_bandwidth_per_sm + out.meets * EXCHANGE_BARRIERS * machine.block_barrier


def _joining(grid: ContractionGrid) -> float:
    """Time in which a block hands over partial results of a reduction over several tiles: all its threads wait until
    they are visible, and for the number of blocks that have come before.
    """
    return grid.machine.message_latency + grid.machine.atomic_latency if _joined(grid) > 1 else 0.0


def _joined(grid: ContractionGrid) -> int:
    """The tiles whose partial results of a reduction the last block of them adds up."""
    over = zip(grid.swapped(*grid.problem.reduced_over), grid.counts, strict=True)
    return prod(count for reduced, count in over if reduced)


def adding_seconds(grid: ContractionGrid) -> float:
    """Time in which that block reads these one after the other, a few at once."""
    read = _joined(grid)
    return read / LOADS_AHEAD * grid.machine.l2_latency if read > 1 else 0.0


def _parts(grid: ContractionGrid) -> float:
    """Bytes that stores take for each byte of a result: 1 where it is staged, or is 32 bits wide.

    Eight lanes of a transposed tile have neighbours along a row; of another one four, with two elements each, which are
    stored one by one where rows are no whole pairs. No lanes have neighbours where memory is contiguous along neither.
    """
    problem, columns = grid.problem, grid.problem.n or STAGED_COLUMNS
    if problem.strided[0] and problem.work.written:
        return max(1.0, PART_BYTES * problem.strided[0] / problem.work.written)
    staged = columns % STAGED_COLUMNS == 0 and not problem.scattered_results
    if staged or not (grid.contraction.swapped or columns % 2):
        return 1.0
    lanes = ROW_LANES if grid.contraction.swapped or columns % 2 == 0 else ROW_LANES // 2
    return PART_BYTES / (lanes * problem.element.bytes)


def _elements(grid: ContractionGrid) -> float:
    """Elements of a thread in the epilogue, for which blocks of a split have slices of the tile, or one has all."""
    shared_out = grid.contraction.split if grid.contraction.reduction in SLICED else 1
    return grid.schedule.layout.elements_per_thread / shared_out


def _computing_seconds(grid: ContractionGrid) -> float:
    """Time in which a thread issues the instructions for its elements: those of its warp wait for one another, and take
    turns with those of other warps of its scheduler.
    """
    layout = grid.schedule.layout
    turns = max(INDEPENDENT * DEPENDENT_CYCLES, layout.threads / (WARP * PARTITIONS))
    return _elements(grid) * grid.problem.work.instructions * turns / grid.machine.clock


def _loading_seconds(grid: ContractionGrid) -> float:
    """Time in which a thread waits for what it loads, as much at once as it has registers for.

    An argument of the type and order of a result comes through the result's stages where these hold its whole tile, and
    others through stages of their own. Of those that threads load an access of a warp asks for a part of eight rows, or
    for each element by itself: the SM has so many parts of lines under way at once.
    """
    layout, problem = grid.schedule.layout, grid.problem
    staged = len(staged_arguments(grid.schedule, problem)) + is_residual_staged(grid.schedule, problem)
    unstaged = max(0.0, problem.work.arguments - staged)
    loads = _elements(grid) * unstaged
    sums = accumulator_registers(layout, problem.accumulator.bytes)
    spare = consumer_registers(max(1, layout.threads // WARPGROUP)) - sums - OTHER_REGISTERS
    at_once = ROLLED if grid.schedule.order == "depth" else max(ROLLED, spare)
    apart = min(unstaged, problem.strided[1])
    parts = prod(grid.tile) * (apart + (unstaged - apart) / PART_ELEMENTS)
    return max(loads / at_once, parts / PARTS_AT_ONCE) * grid.machine.dram_latency


def arguments_seconds(grid: ContractionGrid) -> float:
    """Time in which arguments of the epilogue come to their stages, from when the epilogue of the tile before has read
    these: while the tile's products run.
    """
    staged = sum(staged_arguments(grid.schedule, grid.problem))
    if is_residual_staged(grid.schedule, grid.problem):
        staged += grid.problem.residual_bytes
    if not staged:
        return 0.0
    return grid.machine.dram_loaded_latency + prod(grid.tile) * staged / grid.machine.dram_bandwidth_per_sm


def meeting_seconds(grid: ContractionGrid) -> float:
    """Of all blocks of a tile: each stores a partial sum, and one of them, or each for a slice, reads these."""
    contraction, machine = grid.contraction, grid.machine
    if contraction.split == 1:
        return 0.0
    part = prod(grid.tile) * grid.problem.accumulator.bytes
    stored = part / machine.dram_bandwidth_per_sm
    if contraction.reduction == "cluster":
        return 2 * machine.cluster_barrier + part / machine.dsmem_bandwidth_per_sm
    if contraction.reduction in ("last_block", "serial"):
        # One block reads what all have stored; in `serial` each reads what those before it have added up.
        turns = contraction.split - 1 if contraction.reduction == "serial" else 1
        waits = turns * (machine.message_latency + machine.atomic_latency)
        return waits + stored + contraction.split * part / machine.dram_bandwidth_per_sm
    exchanged = max(stored + part / machine.l2_bandwidth_per_sm, 2 * part * grid.blocks / machine.dram_bandwidth)
    if contraction.reduction == "flagged":
        return machine.message_latency + FLAGGED * exchanged
    return machine.grid_barrier + machine.message_latency + machine.dram_latency + exchanged
