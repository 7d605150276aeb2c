"""Choosing a contraction's schedule: a pure function of (problem, target).

Candidates are all tiles that an instruction allows, in both orientations, with the splits that fill the device; the
cost model takes the one with the least estimated time. Its constants are fitted to sweeps on an H200
(benchmarks/matmul.py, bf16, 2026-11).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, prod

from mlirfuse.precision import TF32X3
from mlirfuse.schedule.contraction import LONGEST_SUM, ContractionProblem, check_contraction, tensor_core_misfit
from mlirfuse.schedule.contraction_tiles import fma_schedule, mma_schedule, wgmma_schedule, with_slices
from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

WGMMA_ROWS, WGMMA_COLUMNS = (64, 128, 256), (16, 32, 64, 128, 256)
WIDE_MMA_TILES = ((128, 256), (256, 128))
"""Those of which a warp has 64 x 64. No registers are left for splits, for factors that are computed, or for where
tiles overrun a factor."""
MMA_TILES = ((128, 128), (128, 64), (64, 128), (64, 64), (32, 64), (64, 32), (16, 64), (32, 32), (16, 32))
FMA_TILES = ((128, 128), (64, 64), (32, 32), (16, 32))

MOST_ACCUMULATORS = 32768
"""Elements of a tile: 256 a thread of two warpgroups is more than they have registers for."""

SHARED_REGISTERS, MOST_REGISTERS, OTHER_REGISTERS = 472, 240, 40
"""Registers for a thread of each warpgroup of consumers, for one of them, and those that are no sums."""

PROMOTED_STEP_SETS, PROMOTED_SETS = 3, 2
"""Times that a thread has its sums: where every step's are promoted while the next step's are under way, and else."""

RING_BYTES = 192 * 1024
"""Shared memory of the ring of stages; the rest is for results on their way out."""

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
"""Shared memory beside the ring: for the meeting of splits, and for warps of a tile that add up totals."""

MOST_SPLIT = 256

UNKNOWN_EXTENT = 4096
"""What a dynamic extent is taken to be."""

FLOPS_PER_SM = {"wgmma": 5.9e12, "mma": 3.8e12, "fma": 0.3e12}
"""Sustained over long products of 16-bit factors (`fma`: of 32-bit ones), per second; of `mma` without copies."""

COMPUTING_FLOPS_PER_SM = 2.1e12
"""The same of `mma` where steps have a second barrier, behind factors that are computed."""

MMA_WARPS = 8
"""Warps that `mma.sync` keeps an SM's tensor cores busy with: two for each of the four."""

L2_BYTES_PER_SM = 145e9
CP_ASYNC_BYTES_PER_SM = 42e9
"""Of copies by tensor maps, and by threads, which read 5.5 TB/s from the L2 of an H200 whatever the tile."""

ELEMENTS_BYTES_PER_SM, FEWEST_ASYNC_BYTES = 17e9, 4
"""Of copies that go through registers, element by element, because rows are aligned to fewer bytes than these."""

DRAM_BYTES = 4.1e12
"""Bytes per second."""

COMPUTED_PER_SM = 30e9
"""Elements of factors per second that one SM computes, between its products: bytes that are scaled, in f16."""

COMPUTED_STEP_BYTES = 128
"""Bytes of a row of a factor in one step, where steps have one barrier more."""

COMPUTING_STEP = 0.35e-6
"""Seconds of a step in which a block computes a factor, alone on its SM: it waits for itself at barriers."""

COMPUTING_BLOCKS = 4
"""Blocks of an SM that hide each other's waiting then."""

LAUNCH, ROUND, MEETING = 3.0e-6, 2.0e-6, 3.5e-6
"""Seconds: a launch, a block's prologue and epilogue, and blocks of a tile that wait for each other's parts."""

MAIL = 2.5e-6
"""Seconds: parts of a tile on their way to the blocks that add them up."""

STEP = 0.15e-6
"""Seconds that a step along k of `wgmma` takes at least, from a full stage to a free one."""

LAST_ARRIVER_BYTES = 57e9
"""Bytes per second of parts that one block adds up."""

UNALIGNED = 1.02
"""Time of a stream of which blocks read every so many'th step, that number being no power of two: what they read at
one time then begins anywhere in memory's pages. 128x128x262144 took 36.0 us in 32 parts, and 36.9 in 33."""

COPIES_DELAY = 0.15
"""Share of the time of copies from the L2 by which they delay its own reads of device memory."""

OVERLAP = 6
"""Exponent by which products, copies and traffic of device memory add up: the longest hides most of the others."""

RASTER = 8
"""Rows of tiles that blocks go through together where there are several rounds of them."""

OVERHANG = 2.0
"""Time of a step whose copies reach past the end of a factor: filling with zeros was seen to cost more than copying."""


def choose_contraction(problem: ContractionProblem, target: Target) -> Schedule:
    """The schedule with the least estimated time."""
    return min(candidates(problem, target), key=lambda s: contraction_seconds(s, problem, target))


def candidates(problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    """Every schedule that is worth estimating."""
    for schedule in _splits(problem, target):
        yield _promoting(schedule, problem)


def _promoting(schedule: Schedule, problem: ContractionProblem) -> Schedule:
    """The schedule with long sums promoted whose errors would show, if registers allow."""
    contraction = schedule.contraction
    assert contraction is not None
    steps = LONGEST_SUM // contraction.k
    is_long = ceil(ceil(problem.k / contraction.k) / contraction.split) > steps
    *_, m, n = schedule.tile
    fits = contraction.instruction == "wgmma" and fits_promoted(m, n, PROMOTED_SETS)
    promotes = problem.errors_show and not problem.element.is_float8 and is_long and fits
    return replace(schedule, contraction=replace(contraction, promote=steps)) if promotes else schedule


def fits_promoted(m: int, n: int, sets: int) -> bool:
    """Whether threads have registers for so many sets of sums: a warpgroup has 64 rows, of which a thread has n / 2."""
    return sets * n // 2 + OTHER_REGISTERS <= min(MOST_REGISTERS, SHARED_REGISTERS // (m // 64))


def _splits(problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    """Every tile, whole, and with its steps along k spread over blocks."""
    for schedule in _tiles(problem, target):
        assert schedule.contraction is not None
        tiles = tile_count(schedule, problem)
        yield _streaming(_walking(schedule, tiles > target.sms), problem, target)
        if schedule.contraction.instruction == "mma" and schedule.tile[-2:] in WIDE_MMA_TILES:
            continue
        blocks = target.sms * _blocks_per_sm(problem)
        most = min(MOST_SPLIT, blocks // tiles, problem.k // schedule.contraction.k // MIN_STEPS)
        # Blocks that wait for each other must all be resident, which is known only where the grid's size is.
        meets = None not in (*problem.batch, problem.m, problem.n) and not problem.totals
        for split in {2, most, *(1 << bit for bit in range(1, 9))}:
            if 1 < split <= most:
                parts = replace(schedule, contraction=replace(schedule.contraction, split=split))
                yield _streaming(parts, problem, target)
                if meets and schedule.contraction.instruction == "wgmma":
                    yield _streaming(_meeting(parts, problem), problem, target)


def _streaming(schedule: Schedule, problem: ContractionProblem, target: Target) -> Schedule:
    """The schedule with factors that are the first to leave the L2, where nobody would find them in it again.

    Blocks that run together read a part of a factor together. Factors of more than half of the L2, whose two sides both
    keep what both have read, are gone when the next kernel starts. What gains then are partial tiles, which stay, and
    the stream itself: eight products of that size in one round took 0.3 to 3 % less time (H200, bf16).
    """
    contraction = schedule.contraction
    assert contraction is not None
    *batch, rows, columns = _extents(schedule, problem)
    factors = prod(batch) * (rows + columns) * problem.k * problem.element.bytes
    rounds = tile_count(schedule, problem) * contraction.split / target.sms
    if contraction.instruction != "wgmma" or 2 * factors <= target.l2_bytes or rounds > 1:
        return schedule
    return replace(schedule, contraction=replace(contraction, streamed=True))


def _walking(schedule: Schedule, in_rounds: bool) -> Schedule:
    """The schedule of unsplit tiles: close ones run at the same time, and where there are many a grid walks them."""
    assert schedule.contraction is not None
    if schedule.contraction.instruction == "fma":
        return schedule
    persistent = in_rounds and schedule.contraction.instruction == "wgmma"
    return replace(schedule, contraction=replace(schedule.contraction, raster=RASTER, persistent=persistent))


def _meeting(schedule: Schedule, problem: ContractionProblem) -> Schedule:
    """The schedule of a split whose parts meet through mailboxes, or by slices where these cannot take them."""
    by_mail = with_slices(schedule, "mailboxes")
    assert by_mail.contraction is not None
    if check_contraction(by_mail.contraction, by_mail.tile, by_mail.layout, problem) is None:
        return by_mail
    return with_slices(schedule)


MIN_STEPS = 4
"""Steps along k that a split leaves each block at least."""


def _tiles(problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    if tensor_core_misfit("mma", problem) is not None:
        yield from (fma_schedule(problem, m, n) for m, n in FMA_TILES)
        return
    found = False
    fits = target.chip == "sm_90a" and tensor_core_misfit("wgmma", problem) is None
    if fits and problem.row_bytes == 16 and problem.computed_from == (None, None):
        for swapped in (False, True):
            for schedule in _wgmma_tiles(problem, swapped):
                found = True
                yield schedule
    if not found:
        yield from _mma_tiles(problem, target)


def _mma_tiles(problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    if problem.computed_from != (None, None):
        yield from (mma_schedule(problem, m, n, step_bytes=COMPUTED_STEP_BYTES) for m, n in MMA_TILES)
        return
    if problem.precision == TF32X3 or problem.row_bytes < FEWEST_ASYNC_BYTES:
        yield from (mma_schedule(problem, m, n) for m, n in MMA_TILES)
        return
    spare = TOTALS_BYTES if problem.totals else SPARE_BYTES
    short = problem.k * problem.element.bytes <= MMA_STEPS[-1]
    for wide, (m, n) in [*((True, tile) for tile in WIDE_MMA_TILES), *((False, tile) for tile in MMA_TILES)]:
        for step_bytes in MMA_STEPS[-1:] if short else MMA_STEPS:
            if wide and not _fills(problem, m, n, step_bytes // problem.element.bytes):
                continue
            blocks = max(1, MMA_WARPS * WARP // mma_schedule(problem, m, n, wide=wide).layout.threads)
            memory = min(target.shared_per_block, target.shared_per_sm // blocks) - spare
            stages = min(MMA_STAGES, memory // ((m + n) * (step_bytes + MMA_ROW_PADDING)))
            if stages >= FEWEST_MMA_STAGES:
                yield mma_schedule(problem, m, n, stages=stages, step_bytes=step_bytes, wide=wide)
                break


def _fills(problem: ContractionProblem, m: int, n: int, k: int) -> bool:
    """Whether tiles, and steps of `k`, overrun neither factor."""
    ends = zip((problem.m, problem.n, problem.k), (m, n, k), strict=True)
    return all(extent is not None and extent % size == 0 for extent, size in ends)


def _wgmma_tiles(problem: ContractionProblem, swapped: bool) -> Iterator[Schedule]:
    contiguous = problem.k_contiguous[::-1] if swapped else problem.k_contiguous
    for m in WGMMA_ROWS:
        for n in WGMMA_COLUMNS:
            if problem.promotes and not fits_promoted(m, n, PROMOTED_STEP_SETS):
                continue
            step = 128 // problem.element.bytes
            # A factor whose rows (or columns) are contiguous is swizzled in panels of 64 of them.
            if m * n > MOST_ACCUMULATORS or any(
                not k and size % step for k, size in zip(contiguous, (m, n), strict=True)
            ):
                continue
            # Sums that are promoted at every step stay accurate where steps are short.
            for panels in (1,) if problem.promotes else (1, 2):
                stages = min(MOST_STAGES, RING_BYTES // ((m + n) * 128 * panels))
                if panels == 1 or stages >= DEEP_STAGES:
                    yield wgmma_schedule(problem, m, n, stages=stages, swapped=swapped, panels=panels)


def tile_count(schedule: Schedule, problem: ContractionProblem) -> int:
    """Tiles of the result; dynamic extents are taken to be `UNKNOWN_EXTENT`."""
    return prod(-(-extent // size) for extent, size in zip(_extents(schedule, problem), schedule.tile, strict=True))


def _extents(schedule: Schedule, problem: ContractionProblem) -> list[int]:
    assert schedule.contraction is not None
    outer = [problem.n, problem.m] if schedule.contraction.swapped else [problem.m, problem.n]
    return [extent or UNKNOWN_EXTENT for extent in (*problem.batch, *outer)]


def contraction_seconds(schedule: Schedule, problem: ContractionProblem, target: Target) -> float:
    """Estimated time: rounds of blocks over the SMs, limited by products, the L2 or device memory."""
    contraction = schedule.contraction
    assert contraction is not None
    *_, m, n = schedule.tile
    extents = _extents(schedule, problem)
    tiles = tile_count(schedule, problem)
    blocks = tiles * contraction.split
    rounds = -(-blocks // target.sms)
    steps = ceil(ceil(problem.k / contraction.k) / contraction.split)
    size = problem.element.bytes
    products = 2 * m * n * contraction.k / _rate(contraction.instruction, problem)
    if contraction.instruction == "mma" and problem.computed_from == (None, None):
        products /= min(1.0, rounds * schedule.layout.threads / (WARP * MMA_WARPS))
    sizes = [stored or size for stored in problem.computed_from]
    if contraction.swapped:
        sizes.reverse()
    copies = (m * sizes[0] + n * sizes[1]) * contraction.k / _copied_bytes(contraction.instruction, problem)
    if contraction.instruction == "wgmma" and (m > extents[-2] or n > extents[-1]):
        copies *= OVERHANG
    rows, columns = extents[-2:]
    unaligned = UNALIGNED if contraction.split & (contraction.split - 1) else 1.0
    traffic = unaligned * prod(extents[:-2])
    traffic *= (rows * sizes[0] + columns * sizes[1]) * problem.k + rows * columns * size
    waves = ceil(rounds / _blocks_per_sm(problem))
    overheads = ROUND if contraction.persistent else waves * ROUND
    copying = rounds * steps * copies
    taking_turns = rounds * steps * STEP if contraction.instruction == "wgmma" else 0.0
    works = (
        rounds * steps * (products + _computing_seconds(schedule, problem)),
        copying,
        traffic / DRAM_BYTES + COPIES_DELAY * copying,
        taking_turns,
        waves * steps * COMPUTING_STEP if problem.computed_from != (None, None) else 0.0,
    )
    seconds = LAUNCH + overheads + sum(work**OVERLAP for work in works) ** (1 / OVERLAP)
    if contraction.split == 1:
        return seconds
    part = m * n * problem.accumulator.bytes
    if contraction.reduction == "mailboxes":
        return seconds + MAIL + 2 * blocks * part / DRAM_BYTES
    if contraction.reduction == "slices":
        return seconds + MEETING + 2 * blocks * part / DRAM_BYTES
    return seconds + MEETING + contraction.split * part / LAST_ARRIVER_BYTES


def _rate(instruction: str, problem: ContractionProblem) -> float:
    """Operations per second that one SM sustains."""
    rate = FLOPS_PER_SM[instruction]
    if instruction == "fma":
        return rate
    if instruction == "mma" and problem.computed_from != (None, None):
        rate = COMPUTING_FLOPS_PER_SM
    rate *= 2 / problem.element.bytes
    return rate / 3 if problem.precision == TF32X3 else rate


def _copied_bytes(instruction: str, problem: ContractionProblem) -> float:
    """Bytes of factors per second that one SM copies to shared memory."""
    if instruction != "mma" or problem.computed_from != (None, None):
        return L2_BYTES_PER_SM
    return CP_ASYNC_BYTES_PER_SM if problem.row_bytes >= FEWEST_ASYNC_BYTES else ELEMENTS_BYTES_PER_SM


def _blocks_per_sm(problem: ContractionProblem) -> int:
    """Blocks that an SM is given at a time."""
    return 1 if problem.computed_from == (None, None) else COMPUTING_BLOCKS


def _computing_seconds(schedule: Schedule, problem: ContractionProblem) -> float:
    """Time in which a block computes factors for one step along k; a single warp has nobody to fill its waits."""
    assert schedule.contraction is not None
    outer = schedule.tile[-1:-3:-1] if schedule.contraction.swapped else schedule.tile[-2:]
    rows = sum(n for n, stored in zip(outer, problem.computed_from, strict=True) if stored is not None)
    rate = COMPUTED_PER_SM if schedule.layout.threads > WARP else COMPUTED_PER_SM / 2
    return rows * schedule.contraction.k / rate
