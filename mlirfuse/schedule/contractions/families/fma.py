"""Schedules of products by scalar multiply-adds of CUDA cores (SIMT), which take operands of any type."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from mlirfuse.schedule.contractions.family import FamilySchedules
from mlirfuse.schedule.contractions.grid import ContractionGrid
from mlirfuse.schedule.contractions.step_times import (
    StepTimes,
    arrival_seconds,
    computing,
    copying_seconds,
    staged_seconds,
)
from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import REGISTER_BYTES, WIDEST_ACCESS
from mlirfuse.schedule.model.registers import fits_simt
from mlirfuse.schedule.parts.contraction import ContractionSchedule
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.precision import IEEE
from mlirfuse.target import Target
from mlirfuse.target.instructions import SIMT

FMA_TILES = ((128, 128), (64, 128), (128, 64), (64, 64), (32, 32), (16, 32))

NARROW = 16
"""Rows, or columns, of narrow results, most of which would be zeros in `FMA_TILES`."""

FMA_NARROW_TILES = ((128, 16), (64, 16), (16, 128), (16, 64), (16, 16), (8, 16))
"""Tiles of results that are narrow in every side in which the tile is."""

FMA_STEP = 32
"""Elements of k in one step of SIMT products: near the square root of common extents, which keeps two-level sums
accurate."""

MOST_OF_THREAD = 8
"""Rows, and columns, of a SIMT product's tile that a thread has at most; half as many columns in tiles of fewer than
`FMA_WARPS` such warps, and where an element takes more than a register."""

FMA_WARPS = 4
"""Warps of a block that multiplies by SIMT instructions, one for each scheduler, if rows can be shared out so."""

LOAD_CYCLES, WIDE_COPY_CYCLES, ELEMENT_COPY_CYCLES = 2, 8, 13
"""Cycles of an SM's load/store units for a warp's load of fragments, for its copy of 16 bytes a thread, and for that of
an element a thread, as of operands that are transposed on their way (`benchmarks/results/fma_tiles-h200.json`)."""

MOST_SUMS = 128
"""Registers of a thread's sums from which on it has none to hold several steps along k of an operand."""


class FmaSchedules(FamilySchedules):
    """Tiles of up to 8 x 8 accumulators a thread."""

    def unsupported(self, problem: ContractionProblem) -> str | None:
        return None if problem.precision == IEEE else f"{SIMT.name} multiplies as {IEEE}, not as {problem.precision}"

    def tiles(self, problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
        extents = (problem.m or NARROW + 1, problem.n or NARROW + 1)
        narrow = (
            tile
            for tile in FMA_NARROW_TILES
            if all(extent <= NARROW for extent, size in zip(extents, tile, strict=True) if size <= NARROW)
        )
        tiles = (fma_schedule(problem, m, n) for m, n in (*FMA_TILES, *narrow))
        return (schedule for schedule in tiles if fits_simt(schedule.layout, problem.accumulator.bytes, target))

    def check(self, contraction: ContractionSchedule, layout: BlockedLayout, problem: ContractionProblem) -> str | None:
        """What is wrong with fragments side by side, which a thread loads at once, or None."""
        for run in layout.run:
            if run & (run - 1) or run * problem.element.bytes > WIDEST_ACCESS:
                return (
                    f"runs of {run} {problem.element.name} are no power of two, or of more than {WIDEST_ACCESS} bytes"
                )
        return None

    def step_times(self, grid: ContractionGrid) -> StepTimes:
        """Threads load fragments as vectors, and multiply each element of one operand by each of the other."""
        machine, layout, accumulator = grid.machine, grid.schedule.layout, grid.problem.accumulator
        rows, columns = (layout.fragments(d) * layout.vector[d] for d in (layout.rank - 2, layout.rank - 1))
        products = prod(grid.tile) * grid.contraction.k
        rate = machine.f32_fma_per_sm if accumulator.bytes <= REGISTER_BYTES else machine.f64_fma_per_sm
        loads = products * (rows + columns) / (rows * columns) * accumulator.bytes / WIDEST_ACCESS
        instructions, special = computing(grid)
        # A thread issues an instruction a cycle, and waits for its copies at the end of a step.
        own = (products + loads + instructions) / (layout.threads * machine.clock) + copying_seconds(grid)
        return StepTimes(
            shared=(LOAD_CYCLES * loads + _copy_cycles(grid)) / (WARP * machine.clock),
            copies=staged_seconds(grid),
            issue=products / rate + loads / machine.load_store_per_sm + instructions / machine.issue_per_sm,
            special=special / machine.special_per_sm,
            chain=own + arrival_seconds(grid),
        )


def _copy_cycles(grid: ContractionGrid) -> float:
    """Cycles of the load/store units for a step's copies, of as many threads as a warp has."""
    problem, bytes_of = grid.problem, dict(enumerate(grid.step_bytes))
    along_k = grid.swapped(*problem.k_contiguous)
    by_element = {side for side in bytes_of if grid.contraction.transposed_operands and along_k[side]}
    elements = sum(bytes_of[side] / grid.element_bytes[side] for side in by_element)
    pieces = sum(nbytes for side, nbytes in bytes_of.items() if side not in by_element) / WIDEST_ACCESS
    return ELEMENT_COPY_CYCLES * elements + WIDE_COPY_CYCLES * pieces


STRATEGY = FmaSchedules()


def fma_schedule(problem: ContractionProblem, m: int, n: int, *, stages: int = 2, split: int = 1) -> Schedule:
    """A tile for scalar multiply-adds: warps of 4 x 8 threads, each with up to 8 rows of up to 8 columns.

    A thread loads operands from shared memory as vectors of up to 16 bytes, along the rows (or columns) of operands
    that are contiguous so. Where k is contiguous, a thread loads several steps of one row at once, and neighbouring
    threads have neighbouring rows: rows that lie four apart are in the same banks. Threads whose sums, and sums of one
    step, fill most of their registers have none for several steps: such operands are transposed on their way to shared
    memory (`fuse-transpose-operands`). One block an SM is asked of ptxas, which otherwise takes too few registers and
    spills.
    """
    size = problem.accumulator.bytes
    rows = min(MOST_OF_THREAD, m // 4)
    is_wide = (m // (4 * rows)) * (n // (8 * MOST_OF_THREAD)) >= FMA_WARPS and size <= REGISTER_BYTES
    columns = MOST_OF_THREAD if is_wide else min(MOST_OF_THREAD // 2, n // 8)
    while rows > 2 and (m // (4 * rows)) * (n // (8 * columns)) < FMA_WARPS:
        rows //= 2
    plain = [source is None for source in problem.computed_from]
    narrow = problem.element.bytes < REGISTER_BYTES  # `cp.async` does not copy these one by one
    transposed_operands = not narrow and any(p and k for p, k in zip(plain, problem.k_contiguous, strict=True))
    transposed_operands &= 2 * rows * columns * size // REGISTER_BYTES >= MOST_SUMS
    beside = [not k or (transposed_operands and p) for p, k in zip(plain, problem.k_contiguous, strict=True)]
    run, width = (
        min(e, max(1, WIDEST_ACCESS // size)) if b else 1 for e, b in zip((rows, columns), beside, strict=True)
    )
    batch = (1,) * len(problem.batch)
    layout = BlockedLayout(
        vector=(*batch, 1, width),
        lanes=(*batch, 4, 8),
        warps=(*batch, m // (4 * rows), n // (8 * columns)),
        repeats=(*batch, rows // run, columns // width),
        blocks=(*batch, 1, 1),
        run=(*batch, run, 1) if run > 1 else (),
    )
    contraction = ContractionSchedule(FMA_STEP, SIMT.name, stages, split, transposed_operands=transposed_operands)
    return Schedule((*batch, m, n), layout, blocks_per_sm=1, contraction=contraction)
