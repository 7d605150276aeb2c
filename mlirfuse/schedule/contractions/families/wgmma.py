"""Schedules of products by `wgmma`: warpgroups multiply stages that a producer fills through tensor maps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from mlirfuse.schedule.contractions.family import FamilySchedules
from mlirfuse.schedule.contractions.grid import ContractionGrid
from mlirfuse.schedule.contractions.stages import (
    MOST_STAGES,
    STAGED_BYTES,
    argument_stage_bytes,
    is_residual_staged,
    result_stage_bytes,
    staged_arguments,
)
from mlirfuse.schedule.contractions.step_times import (
    CLUSTER_WAIT,
    StepTimes,
    arrival_seconds,
    check_fragments,
    mapped_seconds,
    product_flops,
    tensor_rate,
    unsupported_type,
)
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.model.machine import SWIZZLE_BYTES, WARPGROUP, WARPGROUP_ROWS, WIDEST_ACCESS
from mlirfuse.schedule.model.registers import (
    PRODUCT_REGISTERS,
    PROMOTED_SETS,
    PROMOTED_STEP_SETS,
    accumulator_registers,
    consumer_registers,
    fits_promoted,
)
from mlirfuse.schedule.model.residency import registers_shared_out
from mlirfuse.schedule.parts.contraction import ContractionSchedule
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.precision import TF32X3
from mlirfuse.target import Target
from mlirfuse.target.instructions import WGMMA

WGMMA_ROWS, WGMMA_COLUMNS = (64, 128, 256), (16, 32, 64, 128, 256)
BETWEEN_TILES = (
    *product((64, 128), (48, 80, 96, 112, 144, 160, 176, 192, 208, 224, 240)),
    *product((192,), (96, 112, 128, 144, 160, 176, 184, 192, 200)),
)
"""Tiles of sizes in between, for results of which other tiles leave SMs without work. Each block has one of these,
unsplit: a third warpgroup of 192 rows, and column counts that are no powers of two."""

PING_PONG_ROWS, PING_PONG_COLUMNS = 128, (96, 112, 128)
"""Tiles of a warpgroup that alternates with another one (ping-pong): up to 128 accumulators a thread. With fewer
columns copies of the operands do not keep up."""

RING_BYTES = 192 * 1024
"""Bytes of shared memory of the ring of stages, where the rest is for results on their way out."""

FEWEST_STAGES = 3
"""Stages that a ring keeps beside stages of the epilogue's arguments, at least."""

DEEP_STAGES = 6
"""Stages that a ring has at least where a step along k is more than one swizzle atom."""

INT8_COLUMNS = 16
"""The number of which the columns of a `wgmma` of int8 are a multiple (PTX ISA)."""

LONGEST_FLOAT8_SUM = 256
"""Elements of k that an accumulator sums up of float8 operands, of whose sums Hopper's tensor cores keep some 14 bits.
"""

READ_A, READ_B = 1.3, 0.55
"""Bytes of shared memory's bandwidth that `wgmma` takes for a byte of A and of B."""

WRITTEN = 0.75
"""The same for a byte that tensor maps write: some go to banks that reads leave free. A lone warpgroup multiplies steps
of 64 x 64 x 128 in 350 cycles, of which reads have 240."""

DROOP = 0.12
"""Share by which the clock drops where all SMs multiply: the power limit."""

KEPT_STAGES = 2
"""Stages that products read: a stage is freed a step later, when the next step's products have begun."""

STEP_CYCLES = 250
"""Cycles of a step at least: waiting for its stage, a chain of four `wgmma`, and freeing the stage before."""


class WgmmaSchedules(FamilySchedules):
    """Tiles of 64 rows a warpgroup, in both orientations; ping-pong consumer groups for some of 128 rows."""

    def unsupported(self, problem: ContractionProblem) -> str | None:
        if reason := unsupported_type(WGMMA.name, problem):
            return reason
        if problem.element.bits == 16:
            return None
        if not all(problem.k_contiguous):
            return f"wgmma multiplies {problem.element.name} only where k is contiguous in both operands"
        if problem.precision == TF32X3:
            return "wgmma reads operands from shared memory, and cannot split them for 3xtf32"
        return None

    def tiles(self, problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
        """None where tensor maps do not describe the operands, or the kernel computes them."""
        if problem.row_bytes < WIDEST_ACCESS or problem.unmapped or problem.computed_from != (None, None):
            return
        for swapped in (False, True):
            yield from _wgmma_tiles(problem, target, swapped)

    def check(self, contraction: ContractionSchedule, layout: BlockedLayout, problem: ContractionProblem) -> str | None:
        if problem.element.name == "int8" and layout.extents[-1] % INT8_COLUMNS:
            return f"wgmma has products of int8 with multiples of {INT8_COLUMNS} columns, not {layout.extents[-1]}"
        if problem.promotes and not 0 < contraction.k * contraction.promote <= LONGEST_FLOAT8_SUM:
            return f"sums of {problem.element.name} are promoted after {LONGEST_FLOAT8_SUM} elements of k at most"
        return check_fragments(contraction, layout, problem)

    def check_registers(
        self, contraction: ContractionSchedule, layout: BlockedLayout, blocks_per_sm: int, target: Target
    ) -> str | None:
        """Why threads have no registers for the accumulators of one `wgmma`, or None.

        ptxas counts those that threads are launched with, when the producer has as many as consumers.
        """
        threads = layout.threads * contraction.consumer_groups + WGMMA.producer_threads
        launched = registers_shared_out(threads, max(1, blocks_per_sm), target)
        columns = layout.extents[-1]
        if columns // 2 + PRODUCT_REGISTERS <= launched:
            return None
        return (
            f"threads of a block of {threads} are launched with {launched} registers, which are too few for the "
            f"{columns // 2} accumulators that each has of {columns} columns: choose fewer columns or rows"
        )

    def spare_registers(self, schedule: Schedule, problem: ContractionProblem, target: Target) -> int:
        contraction, layout = schedule.contraction_part, schedule.layout
        warpgroups = layout.threads * contraction.consumer_groups // WARPGROUP
        return consumer_registers(warpgroups) - accumulator_registers(layout, problem.accumulator.bytes)

    def is_for_one_wave(self, schedule: Schedule) -> bool:
        return schedule.tile[-2:] in BETWEEN_TILES

    def may_split(self, schedule: Schedule) -> bool:
        return schedule.tile[-2:] not in BETWEEN_TILES

    def may_promote(self, schedule: Schedule) -> bool:
        """A consumer group's threads have twice the sums that others have of a tile, and so no registers."""
        *_, m, n = schedule.tile
        return schedule.contraction_part.consumer_groups == 1 and fits_promoted(m, n, PROMOTED_SETS)

    def step_times(self, grid: ContractionGrid) -> StepTimes:
        """Each warpgroup reads its rows of A and all of B from shared memory for every `wgmma`."""
        machine, contraction, problem = grid.machine, grid.contraction, grid.problem
        rows, columns = grid.tile
        tensor = product_flops(grid.schedule) / tensor_rate(machine, WGMMA.name, problem)
        if contraction.promote:
            tensor += rows * columns / (contraction.promote * machine.f32_fma_per_sm)
        warpgroups = rows / WARPGROUP_ROWS
        row_bytes = contraction.k * problem.element.bytes
        waits = CLUSTER_WAIT if contraction.cluster > 1 else 1.0
        longer = waits / (1 - DROOP * grid.load)
        read = warpgroups * row_bytes * (READ_A * WARPGROUP_ROWS + READ_B * columns)
        return StepTimes(
            tensor=longer * tensor,
            shared=longer * (read + WRITTEN * sum(grid.step_bytes)) / machine.shared_bandwidth_per_sm,
            copies=waits * mapped_seconds(grid),
            chain=waits * max(STEP_CYCLES / machine.clock, arrival_seconds(grid, KEPT_STAGES)),
        )


STRATEGY = WgmmaSchedules()


def wgmma_schedule(
    problem: ContractionProblem,
    m: int,
    n: int,
    *,
    stages: int = 4,
    split: int = 1,
    swapped: bool = False,
    atoms: int = 1,
    blocks_per_sm: int = 1,
    consumer_groups: int = 1,
) -> Schedule:
    """A tile for `wgmma`: a warpgroup has 64 rows, and where blocks or consumer groups share an SM 64 for each.

    A step along k is so many swizzle atoms of 128 bytes, after which sums are promoted if they must be.
    """
    batch, sharing = (1,) * len(problem.batch), blocks_per_sm * consumer_groups
    layout = BlockedLayout(
        vector=(*batch, 1, 2),
        lanes=(*batch, 8, 4),
        warps=(*batch, m // (16 * sharing), 1),
        repeats=(*batch, sharing, n // 8),
        blocks=(*batch, 1, 1),
        inner=(*batch, 2, 1),
    )
    step = atoms * SWIZZLE_BYTES // problem.element.bytes
    contraction = ContractionSchedule(
        step,
        WGMMA.name,
        stages,
        split,
        persistent=consumer_groups > 1,
        promote=int(problem.promotes),
        consumer_groups=consumer_groups,
        swapped=swapped,
    )
    resident = blocks_per_sm if blocks_per_sm > 1 else 0
    # Fragments go through a consumer group's epilogue one by one: the other group's products hide it, and few registers
    # are left beside 128 accumulators.
    order = "depth" if consumer_groups > 1 else "breadth"
    return Schedule((*batch, m, n), layout, order=order, blocks_per_sm=resident, contraction=contraction)


def _wgmma_tiles(problem: ContractionProblem, target: Target, swapped: bool) -> Iterator[Schedule]:
    contiguous = problem.k_contiguous[::-1] if swapped else problem.k_contiguous
    step = SWIZZLE_BYTES // problem.element.bytes
    tiles = [*product(WGMMA_ROWS, WGMMA_COLUMNS), *BETWEEN_TILES]
    consumer_groups = (
        [] if problem.promotes or problem.accumulator_bytes else [(PING_PONG_ROWS, n) for n in PING_PONG_COLUMNS]
    )
    for count, (m, n) in [*((1, tile) for tile in tiles), *((2, tile) for tile in consumer_groups)]:
        if problem.promotes and not fits_promoted(m, n, PROMOTED_STEP_SETS):
            continue
        if problem.element.name == "int8" and n % INT8_COLUMNS:
            continue
        # An operand whose rows (or columns) are contiguous is swizzled in atoms of 64 of them.
        if any(not k and size % step for k, size in zip(contiguous, (m, n), strict=True)):
            continue
        # Sums that are promoted at every step stay accurate where steps are short.
        for atoms in (1,) if problem.promotes or count > 1 else (1, 2):
            if problem.step_divides % (atoms * step):
                continue
            stages = min(MOST_STAGES, _ring_bytes(problem, m, count) // ((m + n) * SWIZZLE_BYTES * atoms))
            schedule = wgmma_schedule(problem, m, n, stages=stages, swapped=swapped, atoms=atoms, consumer_groups=count)
            too_large = STRATEGY.check_registers(schedule.contraction_part, schedule.layout, 1, target)
            if too_large:
                continue
            if atoms == 1 or stages >= DEEP_STAGES:
                yield schedule
            if problem.staged_arguments or problem.residual_bytes:
                yield from _with_argument_stages(schedule, problem)


def _with_argument_stages(schedule: Schedule, problem: ContractionProblem) -> Iterator[Schedule]:
    """The schedule with stages of arguments of the epilogue in place of some of the ring's, if enough are left, and an
    argument has stages by it that has none without.
    """
    contraction = schedule.contraction_part
    staged = schedule.with_contraction(argument_stages=True)
    rows, columns = schedule.tile[-2:]
    room = STAGED_BYTES - result_stage_bytes(staged, problem) - argument_stage_bytes(staged, problem)
    stages = min(contraction.stages, room // ((rows + columns) * contraction.k * problem.element.bytes))
    gains = staged_arguments(staged, problem) or not is_residual_staged(schedule, problem)
    if stages >= FEWEST_STAGES and gains:
        yield staged.with_contraction(argument_stages=True, stages=stages)


def _ring_bytes(problem: ContractionProblem, m: int, consumer_groups: int) -> int:
    """Bytes of shared memory of a ring that leaves each of several results a subtile."""
    return min(RING_BYTES, STAGED_BYTES - problem.work.results * consumer_groups * m * SWIZZLE_BYTES)
