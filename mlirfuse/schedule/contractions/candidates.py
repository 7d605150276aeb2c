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

WGMMA_ROWS, WGMMA_COLUMNS = (64, 128, 256), (16, 32, 64, 128, 256)
BETWEEN_TILES = (
    *product((64, 128), (48, 80, 96, 112, 144, 160, 176, 192, 208, 224, 240)),
    *product((192,), (96, 112, 128, 144, 160, 176, 184, 192, 200)),
)
"""Tiles in between, for results of which others leave SMs without work. Each block has one of these: in two
waves 2048x1536x4096 took 42 to 46 us in tiles of 128x96, and 40 in one of 128x192. Where k is split they were seen to
gain nothing. Of 192 rows a third warpgroup has 64, and a tile up to 1.17 times what is the most of other tiles: in one
wave of these 2240x2048x2048 takes 27.2 us as `x @ w`, and 59.5 in ping-pong; 2104x2104x2104 by clusters of two 31.3,
and 40.3; 192x14336x4096 37.2 and 41.8. In two waves 3072x3072x3072 took 92.4, and 86.6 in ping-pong (H200, bf16)."""

WIDE_MMA_TILES = ((128, 256), (256, 128))
"""Those of which a warp has 64 x 64. No registers are left for splits, for operands that are computed, or for where
tiles overrun an operand."""
MMA_TILES = ((128, 128), (128, 64), (64, 128), (64, 64), (32, 64), (64, 32), (16, 64), (32, 32), (16, 32))
FMA_TILES = ((128, 128), (128, 64), (64, 64), (32, 32), (16, 32))

PING_PONG_ROWS, PING_PONG_COLUMNS = 128, (96, 112, 128)
"""Tiles of a warpgroup that alternates with another one (ping-pong): up to 128 accumulators a thread. 4096^3 takes 203
us where 128x256 takes 208, with a GELU 206 and 225; 4096x4096x1024 52.4 and 57.5; in tf32 400 and 408, in float8 104
and 110. With fewer columns than these operands do not come fast enough: 2048x5120x5120 takes 166, 177 and 186 us with
128, 96 and 80, of which the last has the fewest products to do (H200)."""

RING_BYTES = 192 * 1024
"""Shared memory of the ring of stages, where the rest is for results on their way out."""

STAGED_BYTES = 224 * 1024
"""Of the ring and of these results together."""

MOST_STAGES = 16
DEEP_STAGES = 6
"""Stages that a ring has at least where a step along k is more than one swizzle atom."""

MMA_STAGES, FEWEST_MMA_STAGES = 4, 3
"""Stages of a ring for `mma.sync`; with fewer a step's copies take longer than the step before."""

MMA_STEPS = (128, 64)
"""Bytes of an operand's row in one step: rows of whole 128 bytes are copied and read without bank conflicts."""

BY_ELEMENT = 32
"""Elements of an operand's row in one step where these are copied one by one, of any type: each waits in a register of
its own, and with 64 of float8 threads of 128x128 spilled 120 bytes."""

UNALIGNED_BYTES = MMA_STAGES * MMA_STEPS[0]
"""Bytes of an operand's row up to which steps are short where rows are aligned to fewer bytes than copies have. All of
these steps are under way before the first product, in copies of 8 or 4 bytes with an address and an end each, and in
steps of 128 bytes a thread of 128x128 has too many: 2048x1544x68 spilled. Short ones copy fewer zeros behind the end,
too: of 68 columns of 16 bits 96, and not 128."""

MMA_ROW_PADDING = 16
"""Bytes between rows of a stage, which put eight rows of a column into different banks."""

SPARE_BYTES, REDUCTION_BYTES = 1024, 8192
"""Shared memory beside the ring: for the meeting of splits, and the least for warps of a tile that add up
reductions."""

COMPUTED_STEP_BYTES = 128
"""Bytes of a row of an operand in one step, where steps have one barrier more."""

COMPUTED_STEPS = (COMPUTED_STEP_BYTES, 64)
"""The same, and what there is shared memory for where the kernel computes operands from wider types than theirs."""

COMPUTED_SLOTS = 2
"""Steps of an operand that the kernel computes which shared memory holds, beside the ring of what it is computed
from."""


def tiles(problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    """A schedule for every tile; none is split along k, and none walks."""
    return (schedule for schedule in _of_instruction(problem, target) if _fits(schedule, problem, target))


def is_between(schedule: Schedule) -> bool:
    """Whether the tile is one of those of which each block has one."""
    assert schedule.contraction is not None
    return schedule.contraction.instruction == "wgmma" and schedule.tile[-2:] in BETWEEN_TILES


def is_wide_mma(schedule: Schedule) -> bool:
    """Whether the tile is one of those for whose splits threads have no registers."""
    assert schedule.contraction is not None
    return schedule.contraction.instruction == "mma" and schedule.tile[-2:] in WIDE_MMA_TILES


def _of_instruction(problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    if tensor_core_misfit("mma", problem) is not None:
        tiles = (fma_schedule(problem, m, n) for m, n in FMA_TILES)
        yield from (schedule for schedule in tiles if fits_simt(schedule.layout, problem.accumulator.bytes, target))
        return
    found = False
    fits = target.chip == "sm_90a" and tensor_core_misfit("wgmma", problem) is None
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
    """Shared memory of a ring: where what an epilogue reads comes through the subtiles of results, consumer groups have
    all subtiles.

    With five stages of 128x128 where six would fit, products alone take 1 % more time. But a residual, or a gate, costs
    5 and 13 % of 8192x4096x1024 so, and else 18 and 25; 1 to 3 % of 4096^3 either way (H200, bf16).
    """
    subtiles = -(-n * problem.residual_bytes // SWIZZLE_BYTES)
    if consumer_groups == 1 or not 0 < subtiles <= RESULT_STAGES:
        return RING_BYTES
    return STAGED_BYTES - consumer_groups * subtiles * m * SWIZZLE_BYTES


def _fits(schedule: Schedule, problem: ContractionProblem, target: Target) -> bool:
    """Whether a block has shared memory for its ring, for operands that it computes, and for reductions of its tile."""
    contraction = schedule.contraction
    assert contraction is not None
    padding = 0 if contraction.instruction == "wgmma" else MMA_ROW_PADDING
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
