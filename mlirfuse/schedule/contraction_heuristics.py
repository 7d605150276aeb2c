"""Choosing a contraction's schedule: a pure function of (problem, target).

Candidates are all tiles that an instruction allows, in both orientations, with the splits that fill the device; the
cost model (`contraction_cost.py`) takes the one with the least estimated time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import ceil, prod

from mlirfuse.precision import TF32X3
from mlirfuse.schedule.contraction import (
    LONGEST_SUM,
    ContractionProblem,
    check_contraction,
    check_registers,
    tensor_core_misfit,
)
from mlirfuse.schedule.contraction_cost import (
    FEWEST_ASYNC_BYTES,
    MMA_WARPS,
    SHARED_COPY,
    blocks_per_sm,
    contiguous_bytes,
    contraction_seconds,
    extents_of,
    tile_count,
)
from mlirfuse.schedule.contraction_tiles import (
    PANEL_BYTES,
    REGISTER_BYTES,
    RESULT_STAGES,
    fma_schedule,
    mma_schedule,
    wgmma_schedule,
    with_slices,
)
from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import LINE, Target

WGMMA_ROWS, WGMMA_COLUMNS = (64, 128, 256), (16, 32, 64, 128, 256)
BETWEEN_TILES = (
    *product((64, 128), (48, 80, 96, 112, 144, 160, 176, 192, 208, 224, 240)),
    *product((192,), (96, 112, 128, 144, 160, 176, 184, 192, 200)),
)
"""Tiles in between, for results of which others leave multiprocessors without work. Each block has one of these: in two
rounds 2048x1536x4096 took 42 to 46 us in tiles of 128x96, and 40 in one of 128x192. Where k is split they were seen to
gain nothing. Of 192 rows a third warpgroup has 64, and a tile up to 1.17 times what is the most of other tiles: in one
round of these 2240x2048x2048 takes 27.2 us as `x @ w`, and 59.5 in teams; 2104x2104x2104 by clusters of two 31.3, and
40.3; 192x14336x4096 37.2 and 41.8. In two rounds 3072x3072x3072 took 92.4, and 86.6 in teams (H200, bf16)."""

CLUSTERS, CLUSTER_COLUMNS = tuple(blocks for blocks in SHARED_COPY if blocks > 1), 128
"""Blocks whose tiles are neighbours, and that copy the factor that they share for each other; and columns of such
tiles, at least: 3072x3072x3000 took 132 us in 256x64 by clusters of four, and 97 in 128x128 (H200, bf16)."""

WIDE_MMA_TILES = ((128, 256), (256, 128))
"""Those of which a warp has 64 x 64. No registers are left for splits, for factors that are computed, or for where
tiles overrun a factor."""
MMA_TILES = ((128, 128), (128, 64), (64, 128), (64, 64), (32, 64), (64, 32), (16, 64), (32, 32), (16, 32))
FMA_TILES = ((128, 128), (128, 64), (64, 64), (32, 32), (16, 32))

TEAM_ROWS, TEAM_COLUMNS = 128, (96, 112, 128)
"""Tiles of a warpgroup that takes turns with another one: up to 128 accumulators a thread. 4096^3 takes 203 us where
128x256 takes 208, with a GELU 206 and 225; 4096x4096x1024 52.4 and 57.5; in tf32 400 and 408, in float8 104 and 110.
With fewer columns than these factors do not come fast enough: 2048x5120x5120 takes 166, 177 and 186 us with 128, 96
and 80, of which the last has the fewest products to do (H200)."""

SHARED_REGISTERS, MOST_REGISTERS, OTHER_REGISTERS = 472, 240, 40
"""Registers for a thread of each warpgroup of consumers, for one of them, and those that are no sums."""

PROMOTED_STEP_SETS, PROMOTED_SETS = 3, 2
"""Times that a thread has its sums: where every step's are promoted while the next step's are under way, and else."""

RING_BYTES = 192 * 1024
"""Shared memory of the ring of stages, where the rest is for results on their way out."""

STAGED_BYTES = 224 * 1024
"""Of the ring and of these results together."""

MOST_STAGES = 16
DEEP_STAGES = 6
"""Stages that a ring has at least where a step along k is more than one panel."""

MMA_STAGES, FEWEST_MMA_STAGES = 4, 3
"""Stages of a ring for `mma.sync`; with fewer a step's copies take longer than the step before."""

MMA_STEPS = (128, 64)
"""Bytes of a factor's row in one step: rows of whole 128 bytes are copied and read without bank conflicts."""

MMA_ROW_PADDING = 16
"""Bytes between rows of a stage, which put eight rows of a column into different banks."""

SPARE_BYTES, TOTALS_BYTES = 1024, 8192
"""Shared memory beside the ring: for the meeting of splits, and the least for warps of a tile that add up totals."""

MOST_SPLIT = 256

COMPUTED_STEP_BYTES = 128
"""Bytes of a row of a factor in one step, where steps have one barrier more."""

COMPUTED_STEPS = (COMPUTED_STEP_BYTES, 64)
"""The same, and what there is shared memory for where the kernel computes factors from wider types than theirs."""

COMPUTED_SLOTS = 2
"""Steps of a factor that the kernel computes which shared memory holds, beside the ring of what it is computed from."""

RASTER = 8
"""Rows of tiles that blocks go through together where there are several rounds of them."""

SQUARE = 4
"""Rows of tiles that blocks go through together where all of them run at once."""


def choose_contraction(problem: ContractionProblem, target: Target) -> Schedule:
    """The schedule with the least estimated time."""
    return min(candidates(problem, target), key=lambda s: contraction_seconds(s, problem, target))


def candidates(problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    """Every schedule that is worth estimating."""
    for schedule in _splits(problem, target):
        yield _promoting(_in_squares(schedule, problem), problem)


def _in_squares(schedule: Schedule, problem: ContractionProblem) -> Schedule:
    """The schedule of one round with any sixteen blocks that follow each other on a square of tiles.

    Such blocks are spread over the whole chip, and read the same steps of four tiles of each factor at one time. What
    that gains depends on where in memory these lie (H200, bf16, us, three placements each, row by row and so):
    512x512x8192 11.3 to 12.9 and 11.1 to 11.7, 128x512x16384 10.6 and 9.3, 256x1024x8192 14.3 to 14.9 and 11.5 to 11.8;
    column by column and so: 512x1024x4096 10.5 and 9.8, 1024x512x4096 10.4 to 11.7 and 9.5 to 10.2. Rows of at most
    four tiles are squares as they are: 1024x256x8192 11.4, and 11.6 to 12.2 so. A last row of tiles by itself is none:
    320x2080x4096 took 14.8 in 64x80 with its fifth row alone, and 12.1 with five rows together, 320x4160x14336 78.9 and
    60.4 in 64x160. Where the tiles of a split are counted at run time, further divisions are not worth it.
    """
    contraction = schedule.contraction
    assert contraction is not None
    is_short = extents_of(schedule, problem)[-1] <= SQUARE * schedule.tile[-1]
    counted = contraction.split > 1 and None in (problem.m, problem.n)
    if contraction.instruction == "fma" or max(contraction.raster, contraction.cluster) > 1 or is_short or counted:
        return schedule
    rows = ceil(extents_of(schedule, problem)[-2] / schedule.tile[-2])
    return replace(schedule, contraction=replace(contraction, raster=SQUARE + (rows > SQUARE and rows % SQUARE == 1)))


def _promoting(schedule: Schedule, problem: ContractionProblem) -> Schedule:
    """The schedule with long sums promoted whose errors would show, if registers allow."""
    contraction = schedule.contraction
    assert contraction is not None
    steps = LONGEST_SUM // contraction.k
    is_long = ceil(ceil(problem.k / contraction.k) / contraction.split) > steps
    *_, m, n = schedule.tile
    # A team's threads have twice the sums that others have of a tile.
    fits = contraction.instruction == "wgmma" and contraction.teams == 1 and fits_promoted(m, n, PROMOTED_SETS)
    promotes = problem.errors_show and not problem.element.is_float8 and is_long and fits
    return replace(schedule, contraction=replace(contraction, promote=steps)) if promotes else schedule


def fits_promoted(m: int, n: int, sets: int) -> bool:
    """Whether threads have registers for so many sets of sums: a warpgroup has 64 rows, of which a thread has n / 2."""
    return sets * n // 2 + OTHER_REGISTERS <= min(MOST_REGISTERS, SHARED_REGISTERS // (m // 64))


def _splits(problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    """Every tile, whole, and with its steps along k spread over blocks."""
    known = None not in (*problem.batch, problem.m, problem.n)
    for schedule in _tiles(problem, target):
        assert schedule.contraction is not None
        if not _fits(schedule, problem, target):
            continue
        tiles = tile_count(schedule, problem)
        if known:
            yield from _in_clusters(schedule, problem, target)
        if schedule.contraction.teams > 1:
            if tiles > target.sms:
                yield _walking(schedule, in_rounds=True)
            continue
        between = schedule.contraction.instruction == "wgmma" and schedule.tile[-2:] in BETWEEN_TILES
        if between and (tiles > target.sms or not known):
            continue
        yield _streaming(_walking(schedule, tiles > target.sms), problem, target)
        if between or (schedule.contraction.instruction == "mma" and schedule.tile[-2:] in WIDE_MMA_TILES):
            continue
        blocks = target.sms * blocks_per_sm(problem)
        most = min(MOST_SPLIT, blocks // tiles, problem.k // schedule.contraction.k // MIN_STEPS)
        # Blocks that wait for each other must all be resident, which is known only where the grid's size is.
        meets = known and not problem.total_bytes
        for split in {2, most, *(1 << bit for bit in range(1, 9))}:
            if 1 < split <= most:
                parts = replace(schedule, contraction=replace(schedule.contraction, split=split))
                yield _streaming(parts, problem, target)
                if meets and schedule.contraction.instruction == "wgmma":
                    yield from (_streaming(meeting, problem, target) for meeting in _meetings(parts, problem, target))


def _fits(schedule: Schedule, problem: ContractionProblem, target: Target) -> bool:
    """Whether a block has shared memory for its ring, for factors that it computes, and for totals of its tile."""
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
    """Shared memory through which the warps of a block add up totals of its tile."""
    assert schedule.contraction is not None
    over = problem.total_over[::-1] if schedule.contraction.swapped else problem.total_over
    dims = [d for d, reduced in enumerate(over, len(problem.batch)) if reduced]
    return problem.total_bytes * schedule.layout.exchanged(dims)


def _streaming(schedule: Schedule, problem: ContractionProblem, target: Target) -> Schedule:
    """The schedule with factors that are the first to leave the L2, where nobody would find them in it again.

    Blocks that run together read a part of a factor together. Factors of more than half of the L2, whose two sides both
    keep what both have read, are gone when the next kernel starts. What gains then are partial tiles, which stay, and
    the stream itself: eight products of that size in one round took 0.3 to 3 % less time (H200, bf16). Splits gain
    where factors and partial tiles take a quarter of it, too: 128x512x16384 took 9.5 us and not 9.8, 512x512x8192 10.8
    and not 11.3, 256x512x8192 8.1 and not 8.4, with factors from device memory.
    """
    contraction = schedule.contraction
    assert contraction is not None
    *batch, rows, columns = extents_of(schedule, problem)
    factors = prod(batch) * (rows + columns) * problem.k * problem.element.bytes
    blocks = tile_count(schedule, problem) * contraction.split
    parts = blocks * prod(schedule.tile) * problem.accumulator.bytes
    gone = 2 * factors > target.l2_bytes or (contraction.split > 1 and 4 * (factors + parts) > target.l2_bytes)
    if contraction.instruction != "wgmma" or not gone or blocks > target.sms:
        return schedule
    return replace(schedule, contraction=replace(contraction, streamed=True))


def _in_clusters(schedule: Schedule, problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    """The schedules of unsplit tiles whose blocks copy the factor of the tile's rows for their neighbours, too.

    Only where copies take long because rows are no multiple of a line: else blocks that wait for each other are slower,
    in teams of 128x128 by clusters of two 4096^3 takes 202 us and not 199, 8192^3 1656 and 1643 (H200, bf16).
    """
    contraction = schedule.contraction
    assert contraction is not None
    is_slow = contraction.instruction == "wgmma" and any(n % LINE for n in contiguous_bytes(problem))
    if not is_slow or problem.total_bytes or schedule.tile[-1] < CLUSTER_COLUMNS:
        return
    columns = ceil(extents_of(schedule, problem)[-1] / schedule.tile[-1])
    for cluster in CLUSTERS:
        if columns % cluster == 0 and cluster <= target.max_cluster:
            yield _walking(replace(schedule, contraction=replace(contraction, cluster=cluster)), in_rounds=True)


def _walking(schedule: Schedule, in_rounds: bool) -> Schedule:
    """The schedule of unsplit tiles: where there are many, close ones run at the same time, and a grid walks them."""
    contraction = schedule.contraction
    assert contraction is not None
    if contraction.instruction == "fma" or not in_rounds:
        return schedule
    persistent = contraction.instruction == "wgmma"
    return replace(schedule, contraction=replace(contraction, raster=RASTER, persistent=persistent))


def _meetings(schedule: Schedule, problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    """The schedules of a split whose parts meet by slices, and through mailboxes where these can take them.

    Such blocks stage no results, and the ring has all of the shared memory: with 9 stages of 64x128 instead of 8
    256x256x131072 took 37.2 us and not 38.2, with 7 of 64x64 instead of 6 512x512x8192 10.6 and not 10.8, 256x512x8192
    7.6 and not 7.8 (H200, bf16).
    """
    contraction = schedule.contraction
    assert contraction is not None
    stage_bytes = sum(schedule.tile[-2:]) * contraction.k * problem.element.bytes
    stages = min(MOST_STAGES, (target.shared_per_block - SPARE_BYTES) // stage_bytes)
    deep = replace(schedule, contraction=replace(contraction, stages=stages))
    yield with_slices(deep)
    by_mail = with_slices(deep, "mailboxes")
    assert by_mail.contraction is not None
    if check_contraction(by_mail.contraction, by_mail.tile, by_mail.layout, problem) is None:
        yield by_mail


MIN_STEPS = 4
"""Steps along k that a split leaves each block at least."""


def _tiles(problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    if tensor_core_misfit("mma", problem) is not None:
        tiles = (fma_schedule(problem, m, n) for m, n in FMA_TILES)
        yield from (schedule for schedule in tiles if _has_registers(schedule, problem, target))
        return
    found = False
    fits = target.chip == "sm_90a" and tensor_core_misfit("wgmma", problem) is None
    if fits and problem.row_bytes == 16 and problem.computed_from == (None, None):
        for swapped in (False, True):
            for schedule in _wgmma_tiles(problem, target, swapped):
                found = True
                yield schedule
    if not found:
        yield from _mma_tiles(problem, target)


def _has_registers(schedule: Schedule, problem: ContractionProblem, target: Target) -> bool:
    """Whether threads of scalar products have registers for their sums, and for those of one step."""
    sums = 2 * schedule.layout.elements_per_thread * problem.accumulator.bytes // REGISTER_BYTES
    most = min(target.max_registers_per_thread, target.registers_per_sm // schedule.layout.threads)
    return sums + OTHER_REGISTERS <= most


def _mma_tiles(problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    if problem.computed_from != (None, None):
        for m, n in MMA_TILES:
            steps = [mma_schedule(problem, m, n, step_bytes=size) for size in COMPUTED_STEPS]
            yield next((schedule for schedule in steps if _fits(schedule, problem, target)), steps[-1])
        return
    if problem.precision == TF32X3 or problem.row_bytes < FEWEST_ASYNC_BYTES:
        yield from (mma_schedule(problem, m, n) for m, n in MMA_TILES)
        return
    short = problem.k * problem.element.bytes <= MMA_STEPS[-1]
    for wide, (m, n) in [*((True, tile) for tile in WIDE_MMA_TILES), *((False, tile) for tile in MMA_TILES)]:
        for step_bytes in MMA_STEPS[-1:] if short else MMA_STEPS:
            if wide and not _fills(problem, m, n, step_bytes // problem.element.bytes):
                continue
            smallest = mma_schedule(problem, m, n, wide=wide)
            blocks = max(1, MMA_WARPS * WARP // smallest.layout.threads)
            spare = max(TOTALS_BYTES, _exchanged_bytes(smallest, problem)) if problem.total_bytes else SPARE_BYTES
            memory = min(target.shared_per_block, target.shared_per_sm // blocks) - spare
            stages = min(MMA_STAGES, memory // ((m + n) * (step_bytes + MMA_ROW_PADDING)))
            if stages >= FEWEST_MMA_STAGES:
                yield mma_schedule(problem, m, n, stages=stages, step_bytes=step_bytes, wide=wide)
                break


def _fills(problem: ContractionProblem, m: int, n: int, k: int) -> bool:
    """Whether tiles, and steps of `k`, overrun neither factor."""
    ends = zip((problem.m, problem.n, problem.k), (m, n, k), strict=True)
    return all(extent is not None and extent % size == 0 for extent, size in ends)


def _wgmma_tiles(problem: ContractionProblem, target: Target, swapped: bool) -> Iterator[Schedule]:
    contiguous = problem.k_contiguous[::-1] if swapped else problem.k_contiguous
    step = PANEL_BYTES // problem.element.bytes
    tiles = [*product(WGMMA_ROWS, WGMMA_COLUMNS), *BETWEEN_TILES]
    teams = [] if problem.promotes or problem.total_bytes else [(TEAM_ROWS, n) for n in TEAM_COLUMNS]
    for count, (m, n) in [*((1, tile) for tile in tiles), *((2, tile) for tile in teams)]:
        if problem.promotes and not fits_promoted(m, n, PROMOTED_STEP_SETS):
            continue
        # A factor whose rows (or columns) are contiguous is swizzled in panels of 64 of them.
        if any(not k and size % step for k, size in zip(contiguous, (m, n), strict=True)):
            continue
        # Sums that are promoted at every step stay accurate where steps are short.
        for panels in (1,) if problem.promotes or count > 1 else (1, 2):
            stages = min(MOST_STAGES, _ring_bytes(problem, m, n, count) // ((m + n) * PANEL_BYTES * panels))
            schedule = wgmma_schedule(problem, m, n, stages=stages, swapped=swapped, panels=panels, teams=count)
            assert schedule.contraction is not None
            too_large = check_registers(schedule.contraction, schedule.layout, 1, target)
            if not too_large and (panels == 1 or stages >= DEEP_STAGES):
                yield schedule


def _ring_bytes(problem: ContractionProblem, m: int, n: int, teams: int) -> int:
    """Shared memory of a ring: where what an epilogue reads comes through the panels of results, teams have all panels.

    With five stages of 128x128 where six would fit, products alone take 1 % more time. But a residual, or a gate, costs
    5 and 13 % of 8192x4096x1024 so, and else 18 and 25; 1 to 3 % of 4096^3 either way (H200, bf16).
    """
    panels = -(-n * problem.residual_bytes // PANEL_BYTES)
    if teams == 1 or not 0 < panels <= RESULT_STAGES:
        return RING_BYTES
    return STAGED_BYTES - teams * panels * m * PANEL_BYTES
