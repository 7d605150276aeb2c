"""Tiles that a contraction may have: all that an instruction allows, and that fit a block, in both orientations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from mlirfuse.schedule.contractions.cost import MMA_WARPS
from mlirfuse.schedule.contractions.tiles import RESULT_STAGES, fma_schedule, mma_schedule, wgmma_schedule
from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.model.contraction_registers import PROMOTED_STEP_SETS, fits_promoted, fits_simt
from mlirfuse.schedule.model.machine import ACCESS_WIDTHS, SWIZZLE_BYTES, WIDEST_ACCESS
from mlirfuse.schedule.parts.contraction_checks import check_registers, tensor_core_misfit
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.precision import TF32X3
from mlirfuse.target import Target
from mlirfuse.target.instructions import MMA_SYNC, WGMMA

WGMMA_ROWS, WGMMA_COLUMNS = (64, 128, 256), (16, 32, 64, 128, 256)
BETWEEN_TILES = (
    *product((64, 128), (48, 80, 96, 112, 144, 160, 176, 192, 208, 224, 240)),
    *product((192,), (96, 112, 128, 144, 160, 176, 184, 192, 200)),
)
"""Tiles of sizes in between, for results of which other tiles leave SMs without work. Each block has one of these,
unsplit: a third warpgroup of 192 rows, and column counts that are no powers of two."""

WIDE_MMA_TILES = ((128, 256), (256, 128))
"""Tiles of which a warp has 64 x 64. No registers are left for splits, for operands that the kernel computes, or where
tiles overrun an operand."""
MMA_TILES = ((128, 128), (128, 64), (64, 128), (64, 64), (32, 64), (64, 32), (16, 64), (32, 32), (16, 32))
FMA_TILES = ((128, 128), (128, 64), (64, 64), (32, 32), (16, 32))

PING_PONG_ROWS, PING_PONG_COLUMNS = 128, (96, 112, 128)
"""Tiles of a warpgroup that alternates with another one (ping-pong): up to 128 accumulators a thread. With fewer
columns copies of the operands do not keep up."""

RING_BYTES = 192 * 1024
"""Bytes of shared memory of the ring of stages, where the rest is for results on their way out."""

STAGED_BYTES = 224 * 1024
"""Bytes of shared memory of the ring and of staged results together."""

MOST_STAGES = 16
DEEP_STAGES = 6
"""Stages that a ring has at least where a step along k is more than one swizzle atom."""

MMA_STAGES, FEWEST_MMA_STAGES = 4, 3
"""Stages of a ring for `mma.sync`, at most and at least: with fewer, a step's copies take longer than the step before.
"""

MMA_STEPS = (128, 64)
"""Bytes of an operand's row in one step: rows of whole 128 bytes are copied and read without bank conflicts."""

BY_ELEMENT = 32
"""Elements of an operand's row in one step where elements are copied one by one, of any type: each waits in a register
of its own."""

UNALIGNED_BYTES = MMA_STAGES * MMA_STEPS[0]
"""Bytes of an operand's row up to which steps are short where rows are aligned to fewer bytes than the widest copy. All
steps of such a row are under way before the first product, and each of its narrow copies takes registers for an address
and an end. Short steps also copy fewer zeros past the end of a row."""

MMA_ROW_PADDING = 16
"""Bytes between rows of a stage, which put eight rows of a column into different banks."""

SPARE_BYTES, REDUCTION_BYTES = 1024, 8192
"""Bytes of shared memory beside the ring: for exchanges between the blocks of a split, and the least for warps of a
tile that add up reductions."""

COMPUTED_STEP_BYTES = 128
"""Bytes of a row of an operand in one step, where steps have one barrier more."""

COMPUTED_STEPS = (COMPUTED_STEP_BYTES, 64)
"""The same in order of preference: the shorter one is for operands that are computed from wider types, where longer
ones do not fit shared memory."""

COMPUTED_SLOTS = 2
"""Steps of a computed operand that shared memory holds, beside the ring of what the operand is computed from."""


def tiles(problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    """A schedule for every tile, unsplit and without a persistent loop."""
    return (schedule for schedule in _of_instruction(problem, target) if _fits(schedule, problem, target))


def is_between(schedule: Schedule) -> bool:
    """Whether the tile is one of `BETWEEN_TILES`."""
    assert schedule.contraction is not None
    return schedule.contraction.family.is_asynchronous and schedule.tile[-2:] in BETWEEN_TILES


def is_wide_mma(schedule: Schedule) -> bool:
    """Whether the tile is one of `WIDE_MMA_TILES`, for whose splits threads have no registers."""
    assert schedule.contraction is not None
    return schedule.contraction.family.is_warp_level and schedule.tile[-2:] in WIDE_MMA_TILES


def _of_instruction(problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    if tensor_core_misfit(MMA_SYNC.name, problem) is not None:
        tiles = (fma_schedule(problem, m, n) for m, n in FMA_TILES)
        yield from (schedule for schedule in tiles if fits_simt(schedule.layout, problem.accumulator.bytes, target))
        return
    found = False
    fits = WGMMA.exists_on(target) and tensor_core_misfit(WGMMA.name, problem) is None
    if fits and problem.row_bytes == 16 and not problem.reversed and problem.computed_from == (None, None):
        for swapped in (False, True):
            for schedule in _wgmma_tiles(problem, target, swapped):
                found = True
                yield schedule
    if not found:
        yield from _mma_tiles(problem, target)


def _mma_tiles(problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    if problem.computed_from != (None, None):
        for m, n in MMA_TILES:
            steps = [mma_schedule(problem, m, n, step_bytes=size) for size in COMPUTED_STEPS]
            yield next((schedule for schedule in steps if _fits(schedule, problem, target)), steps[-1])
        return
    if problem.precision == TF32X3:
        yield from (mma_schedule(problem, m, n) for m, n in MMA_TILES)
        return
    if problem.row_bytes < ACCESS_WIDTHS[0]:
        step_bytes = BY_ELEMENT * problem.element.bytes
        yield from (mma_schedule(problem, m, n, step_bytes=step_bytes) for m, n in MMA_TILES)
        return
    short = problem.k * problem.element.bytes <= (
        MMA_STEPS[-1] if problem.row_bytes == WIDEST_ACCESS else UNALIGNED_BYTES
    )
    for wide, (m, n) in [*((True, tile) for tile in WIDE_MMA_TILES), *((False, tile) for tile in MMA_TILES)]:
        for step_bytes in MMA_STEPS[-1:] if short else MMA_STEPS:
            if wide and not _fills(problem, m, n, step_bytes // problem.element.bytes):
                continue
            smallest = mma_schedule(problem, m, n, wide=wide)
            blocks = max(1, MMA_WARPS * WARP // smallest.layout.threads)
            spare = (
                max(REDUCTION_BYTES, _exchanged_bytes(smallest, problem)) if problem.accumulator_bytes else SPARE_BYTES
            )
            memory = min(target.shared_per_block, target.shared_per_sm // blocks) - spare
            stages = min(MMA_STAGES, memory // ((m + n) * (step_bytes + MMA_ROW_PADDING)))
            if stages >= FEWEST_MMA_STAGES:
                yield mma_schedule(problem, m, n, stages=stages, step_bytes=step_bytes, wide=wide)
                break


def _fills(problem: ContractionProblem, m: int, n: int, k: int) -> bool:
    """Whether tiles, and steps of `k`, overrun neither operand."""
    ends = zip((problem.m, problem.n, problem.k), (m, n, k), strict=True)
    return all(extent is not None and extent % size == 0 for extent, size in ends)


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
        # An operand whose rows (or columns) are contiguous is swizzled in atoms of 64 of them.
        if any(not k and size % step for k, size in zip(contiguous, (m, n), strict=True)):
            continue
        # Sums that are promoted at every step stay accurate where steps are short.
        for atoms in (1,) if problem.promotes or count > 1 else (1, 2):
            stages = min(MOST_STAGES, _ring_bytes(problem, m, n, count) // ((m + n) * SWIZZLE_BYTES * atoms))
            schedule = wgmma_schedule(problem, m, n, stages=stages, swapped=swapped, atoms=atoms, consumer_groups=count)
            assert schedule.contraction is not None
            too_large = check_registers(schedule.contraction, schedule.layout, 1, target)
            if not too_large and (atoms == 1 or stages >= DEEP_STAGES):
                yield schedule


def _ring_bytes(problem: ContractionProblem, m: int, n: int, consumer_groups: int) -> int:
    """Bytes of shared memory of a ring. Consumer groups have all subtiles of their results in shared memory where
    arguments of the epilogue come through these: a residual that waits for a subtile costs more than a stage less.
    """
    subtiles = -(-n * problem.residual_bytes // SWIZZLE_BYTES)
    if consumer_groups == 1 or not 0 < subtiles <= RESULT_STAGES:
        return RING_BYTES
    return STAGED_BYTES - consumer_groups * subtiles * m * SWIZZLE_BYTES


def _fits(schedule: Schedule, problem: ContractionProblem, target: Target) -> bool:
    """Whether a block has shared memory for its ring, for operands that it computes, and for reductions of its tile."""
    contraction = schedule.contraction
    assert contraction is not None
    padding = 0 if contraction.family.is_asynchronous else MMA_ROW_PADDING
    own = contraction.k * problem.element.bytes + padding
    ring = 0
    extents = reversed(schedule.tile[-2:]) if contraction.swapped else schedule.tile[-2:]
    for rows, sources in zip(extents, problem.sources, strict=True):
        staged = sum(contraction.k * size + padding for size in sources)
        ring += rows * (contraction.stages * staged + COMPUTED_SLOTS * own if sources else contraction.stages * own)
    return ring + _exchanged_bytes(schedule, problem) + SPARE_BYTES <= target.shared_per_block


def _exchanged_bytes(schedule: Schedule, problem: ContractionProblem) -> int:
    """Shared memory through which the warps of a block add up reductions of its tile."""
    assert schedule.contraction is not None
    over = problem.reduced_over[::-1] if schedule.contraction.swapped else problem.reduced_over
    dims = [d for d, reduced in enumerate(over, len(problem.batch)) if reduced]
    return problem.accumulator_bytes * schedule.layout.exchanged(dims)
