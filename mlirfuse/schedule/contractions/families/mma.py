"""Schedules of products by `mma.sync`: warps multiply fragments that they load from a ring in shared memory."""

from __future__ import annotations

from collections.abc import Iterator

from mlirfuse.schedule.contractions.family import FamilySchedules
from mlirfuse.schedule.contractions.grid import ContractionGrid
from mlirfuse.schedule.contractions.stages import ROW_PADDING, SPARE_BYTES, exchanged_bytes, fits_block
from mlirfuse.schedule.contractions.step_times import (
    StepTimes,
    arrival_seconds,
    check_fragments,
    computed_elements,
    computing,
    copying_seconds,
    product_flops,
    staged_seconds,
    tensor_rate,
    thread_copies,
    unsupported_type,
)
from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import ACCESS_WIDTHS, PARTITIONS, WIDEST_ACCESS
from mlirfuse.schedule.parts.contraction import ContractionSchedule
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.precision import TF32X3
from mlirfuse.target import Target
from mlirfuse.target.instructions import MMA_SYNC

WIDE_MMA_TILES = ((128, 256), (256, 128))
"""Tiles of which a warp has 64 x 64. No registers are left for splits, for operands that the kernel computes, or where
tiles overrun an operand."""
MMA_TILES = ((128, 128), (128, 64), (64, 128), (64, 64), (32, 64), (64, 32), (16, 64), (32, 32), (16, 32))

MMA_STAGES, FEWEST_MMA_STAGES = 4, 3
"""Stages of a ring for `mma.sync`, at most and at least: with fewer, a step's copies take longer than the step before.
"""

MMA_STEPS = (128, 64)
"""Bytes of an operand's row in one step: rows of whole 128 bytes are copied and read without bank conflicts, and those
of 64 are two instructions deep in 16-bit types, for short rows and where longer ones do not fit shared memory."""

BY_ELEMENT = 32
"""Elements of an operand's row in one step where elements are copied one by one, of any type: each waits in a register
of its own."""

REDUCTION_BYTES = 8192
"""Bytes of shared memory beside the ring, at least, for warps of a tile that add up reductions."""

TRANSPOSED_BYTES = 2
"""Bytes of elements that `ldmatrix` transposes, from operands that are not contiguous along k (PTX ISA)."""

BYTE_INSTRUCTIONS, BYTE_CONFLICTS = 1.75, 2
"""Instructions of a thread that loads a byte of such an operand: itself, and three for the four bytes of a register.
And lanes that wait for a bank of shared memory in turn: every second row of a tile begins at the same one."""

COPY_INSTRUCTIONS = 12
"""Instructions of a thread for one of its copies."""

GATHERED = 1.5
"""Time in which a thread issues a copy of a window's elements, to that of any copy (`COPY_CYCLES`): the address is
computed from the pixel, which is compared with all borders of the image."""


class MmaSchedules(FamilySchedules):
    """Tiles of up to 64 x 32 accumulators a warp, 64 x 64 in wide ones."""

    def unsupported(self, problem: ContractionProblem) -> str | None:
        return unsupported_type(MMA_SYNC.name, problem)

    def tiles(self, problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
        if problem.computed_from != (None, None):
            for m, n in MMA_TILES:
                steps = [mma_schedule(problem, m, n, step_bytes=size) for size in MMA_STEPS]
                yield next((schedule for schedule in steps if fits_block(schedule, problem, target)), steps[-1])
            return
        if problem.precision == TF32X3:
            yield from (mma_schedule(problem, m, n) for m, n in MMA_TILES)
            return
        if problem.row_bytes < ACCESS_WIDTHS[0]:
            step_bytes = BY_ELEMENT * problem.element.bytes
            yield from (mma_schedule(problem, m, n, step_bytes=step_bytes) for m, n in MMA_TILES)
            return
        # Of rows that are aligned to fewer bytes than the widest copy all steps are under way before the first product,
        # and each narrow copy takes registers for an address and an end. Short steps also copy fewer zeros past a row's
        # end.
        longest = MMA_STEPS[-1] if problem.row_bytes == WIDEST_ACCESS else MMA_STAGES * MMA_STEPS[0]
        short = problem.k * problem.element.bytes <= longest
        for wide, (m, n) in [*((True, tile) for tile in WIDE_MMA_TILES), *((False, tile) for tile in MMA_TILES)]:
            for step_bytes in MMA_STEPS[-1:] if short else MMA_STEPS:
                if wide and not _fills(problem, m, n, step_bytes // problem.element.bytes):
                    continue
                smallest = mma_schedule(problem, m, n, wide=wide)
                # Two warps for each of an SM's tensor cores keep these busy.
                blocks = max(1, 2 * PARTITIONS * WARP // smallest.layout.threads)
                reduced = max(REDUCTION_BYTES, exchanged_bytes(smallest, problem))
                spare = reduced if problem.accumulator_bytes else SPARE_BYTES
                memory = min(target.shared_per_block, target.shared_per_sm // blocks) - spare
                stages = min(MMA_STAGES, memory // ((m + n) * (step_bytes + ROW_PADDING)))
                if stages >= FEWEST_MMA_STAGES:
                    yield mma_schedule(problem, m, n, stages=stages, step_bytes=step_bytes, wide=wide)
                    break

    def check(self, contraction: ContractionSchedule, layout: BlockedLayout, problem: ContractionProblem) -> str | None:
        return check_fragments(contraction, layout, problem)

    def may_split(self, schedule: Schedule) -> bool:
        """Threads of wide tiles have no registers for splits."""
        return schedule.tile[-2:] not in WIDE_MMA_TILES

    def step_times(self, grid: ContractionGrid) -> StepTimes:
        """Threads copy, compute operands, load fragments and multiply; each warp has one partition's tensor core."""
        machine, contraction, layout = grid.machine, grid.contraction, grid.schedule.layout
        tensor = product_flops(grid.schedule) / tensor_rate(machine, MMA_SYNC.name, grid.problem)
        rows, columns = grid.tile
        size = grid.problem.element.bytes
        computed = sum(computed_elements(grid))
        instructions, special = computing(grid)
        apart = _loaded_apart(grid)
        read = contraction.k * size * (rows * layout.warps[-1] + columns * layout.warps[-2]) + computed * size
        exchanged = (read + sum(grid.step_bytes)) / machine.shared_bandwidth_per_sm
        exchanged += apart * (BYTE_CONFLICTS if size == 1 else 1) / machine.load_store_per_sm
        converting, functions = computed / machine.convert_int_per_sm, special / machine.special_per_sm
        making = max(converting, functions, instructions / machine.issue_per_sm)
        instructions += COPY_INSTRUCTIONS * thread_copies(grid) * layout.threads
        instructions += apart * (BYTE_INSTRUCTIONS if size == 1 else 1)
        # A barrier and the first fragments come before products.
        own = (tensor + making) * max(1.0, PARTITIONS * WARP / layout.threads)
        own += machine.block_barrier + machine.shared_latency
        if computed:
            # Computed tiles lie between two barriers: no fragments are loaded ahead.
            own += exchanged + machine.block_barrier + 2 * machine.shared_latency
        gathers = grid.problem.windows != (None, None)
        copying = (GATHERED if gathers else 1.0) * copying_seconds(grid)
        # Elements that are copied one by one wait in registers for products to end, and a warp that computes addresses
        # of windows starts no products.
        in_turn = gathers or grid.problem.row_bytes < ACCESS_WIDTHS[0]
        alone = own + copying if in_turn else max(own, copying)
        return StepTimes(
            tensor=tensor,
            shared=exchanged,
            copies=staged_seconds(grid),
            issue=max(instructions / machine.issue_per_sm, converting),
            special=functions,
            chain=max(alone, arrival_seconds(grid)),
        )


def _loaded_apart(grid: ContractionGrid) -> float:
    """Elements that threads load one by one in a step: `ldmatrix` transposes what has 16 bits, and nothing else."""
    if grid.problem.element.bytes == TRANSPOSED_BYTES:
        return 0.0
    warps, along_k = grid.schedule.layout.warps, grid.swapped(*grid.problem.k_contiguous)
    readers = (warps[-1], warps[-2])
    sides = zip(grid.tile, readers, along_k, strict=True)
    return grid.contraction.k * sum(extent * count for extent, count, contiguous in sides if not contiguous)


STRATEGY = MmaSchedules()


def mma_schedule(
    problem: ContractionProblem,
    m: int,
    n: int,
    *,
    stages: int = 3,
    split: int = 1,
    step_bytes: int = MMA_STEPS[-1],
    wide: bool = False,
) -> Schedule:
    """A tile for `mma.sync`, and that many bytes of a row of an operand a step.

    Warps have up to 64 x 32 accumulators. With 64 x 64, if `wide`, they read the least from shared memory, and have no
    registers left for operands that are computed, or for where tiles overrun an operand.
    """
    rows = min(m, 64)
    warps = (m // rows, max(1, n // (64 if wide else 32)))
    columns = n // warps[1]
    batch = (1,) * len(problem.batch)
    layout = BlockedLayout(
        vector=(*batch, 1, 2),
        lanes=(*batch, 8, 4),
        warps=(*batch, *warps),
        repeats=(*batch, rows // 16, columns // 8),
        blocks=(*batch, 1, 1),
        inner=(*batch, 2, 1),
    )
    step = max(16, step_bytes // problem.element.bytes)
    return Schedule((*batch, m, n), layout, contraction=ContractionSchedule(step, MMA_SYNC.name, stages, split))


def _fills(problem: ContractionProblem, m: int, n: int, k: int) -> bool:
    """Whether tiles, and steps of `k`, overrun neither operand."""
    ends = zip((problem.m, problem.n, problem.k), (m, n, k), strict=True)
    return all(extent is not None and extent % size == 0 for extent, size in ends)
