"""Estimates the time of a contraction's schedule: a pure function of (schedule, problem, target).

Machine facts are in `schedule/model/`; the weights here were fitted to sweeps of `benchmarks/matmul.py` in bfloat16 on
an H200 (`benchmarks/results/`).
"""

from __future__ import annotations

from math import ceil, prod

from mlirfuse.schedule.contractions.family import family_schedules
from mlirfuse.schedule.contractions.grid import UNKNOWN_EXTENT
from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.model.disagreeing import (
    CONTRACTION_CLUSTERS,
    CONTRACTION_LAUNCH,
    FLAGGED_MEETING,
    LAST_BLOCK_MEETING,
    SLICES_MEETING,
)
from mlirfuse.schedule.model.machine import WARPGROUP_ROWS
from mlirfuse.schedule.model.speeds import (
    CLUSTERED_SMS,
    COMPUTED_PER_SM,
    DRAM_BYTES,
    DRAM_BYTES_PER_SM,
    LAST_BLOCK_BYTES,
)
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

COMPUTING_STEP = 0.35e-6
"""Seconds of a step in which a block computes an operand, alone on its SM: its warps wait for each other at barriers.
"""

COMPUTING_BLOCKS = 4
"""Blocks of an SM that hide each other's waiting where blocks compute operands."""

WAVE = 2.0e-6
"""Seconds of a block's prologue and epilogue."""

DIRECT, LAST_DIRECT, SHORT_DIRECT = 1.5e-10, 3.2e-15, 0.1e-10
"""Seconds for each element of a transposed tile whose results cannot be staged: before another tile; at the end, times
the tile's elements; and at the end of a tile with the 64 rows of one warpgroup."""

STAGED_COLUMNS = 8
"""The number of which the columns of 16-bit results are a multiple where results are staged: 16 bytes."""

UNALIGNED = 1.05
"""Time of traffic to that of a split by a power of two, where the split is another number: blocks then read their steps
from anywhere in memory's pages."""

OVERLAP = 8
"""Exponent by which products, copies and traffic of device memory add up: the longest hides most of the others."""

CROWDED = 0.8
"""Share by which copies take longer of rows that all blocks copy at one time, where operands come from device memory:
copies of the same lines queue at the parts of the L2 that hold these. In between the share grows with the square of the
share of blocks."""


def tile_count(schedule: Schedule, problem: ContractionProblem) -> int:
    """Tiles of the result; dynamic extents are taken to be `UNKNOWN_EXTENT`."""
    return prod(-(-extent // size) for extent, size in zip(extents_of(schedule, problem), schedule.tile, strict=True))


def extents_of(schedule: Schedule, problem: ContractionProblem) -> list[int]:
    """Of the result, in the order of the schedule's tile; dynamic ones are taken to be `UNKNOWN_EXTENT`."""
    assert schedule.contraction is not None
    outer = [problem.n, problem.m] if schedule.contraction.swapped else [problem.m, problem.n]
    return [extent or UNKNOWN_EXTENT for extent in (*problem.batch, *outer)]


def contraction_seconds(schedule: Schedule, problem: ContractionProblem, target: Target) -> float:
    """Estimated time: waves of blocks over the SMs, limited by products, the L2 or device memory."""
    contraction = schedule.contraction
    assert contraction is not None
    *_, m, n = schedule.tile
    extents = extents_of(schedule, problem)
    tiles = tile_count(schedule, problem)
    blocks = tiles * contraction.split
    tiles_per_sm = -(-blocks // int(target.sms * CLUSTERED_SMS[contraction.cluster]))
    steps = ceil(problem.steps(contraction.k) / contraction.split)
    size = problem.element.bytes
    family = family_schedules(contraction.instruction)
    products = family.product_seconds(schedule, problem, tiles_per_sm)
    sizes = [stored or size for stored in problem.computed_from]
    if contraction.swapped:
        sizes.reverse()
    rows, columns = extents[-2:]
    copied = zip(family.copies(schedule, problem, extents), sizes, strict=True)
    copies = sum(copied_rows * size * contraction.k / rate for (copied_rows, rate), size in copied)
    copies *= 1 + (CROWDED * _crowding(schedule, extents) ** 2 if contraction.streamed else 0.0)
    unaligned = UNALIGNED if contraction.split & (contraction.split - 1) else 1.0
    traffic = unaligned * prod(extents[:-2])
    traffic *= (rows * sizes[0] + columns * sizes[1]) * problem.summed + rows * columns * size
    waves = ceil(tiles_per_sm / blocks_per_sm(problem))
    overheads = WAVE if contraction.persistent else waves * WAVE
    overheads += CONTRACTION_CLUSTERS if contraction.cluster > 1 else 0.0
    copying = tiles_per_sm * steps * copies
    works = (
        tiles_per_sm * steps * (products + _computing_seconds(schedule, problem)),
        copying,
        traffic / min(DRAM_BYTES, min(blocks, target.sms) * DRAM_BYTES_PER_SM),
        tiles_per_sm * steps * family.step_seconds,
        waves * steps * COMPUTING_STEP if problem.computed_from != (None, None) else 0.0,
    )
    if contraction.persistent and contraction.consumer_groups == 1:
        overheads += (tiles_per_sm - 1) * m * n * family.epilogue_seconds
    is_staged = problem.n is not None and problem.n % STAGED_COLUMNS == 0
    if contraction.swapped and contraction.split == 1 and not is_staged:
        last = m * n * LAST_DIRECT if m > WARPGROUP_ROWS else SHORT_DIRECT
        overheads += m * n * ((tiles_per_sm - 1) * DIRECT + last)
    seconds = CONTRACTION_LAUNCH + overheads + sum(work**OVERLAP for work in works) ** (1 / OVERLAP)
    if contraction.split == 1:
        return seconds
    part = m * n * problem.accumulator.bytes
    if contraction.reduction == "flagged":
        return seconds + FLAGGED_MEETING + 3 * blocks * part / DRAM_BYTES
    if contraction.reduction == "grid_sync":
        return seconds + SLICES_MEETING + 2 * blocks * part / DRAM_BYTES
    return seconds + LAST_BLOCK_MEETING + contraction.split * part / LAST_BLOCK_BYTES


def _crowding(schedule: Schedule, extents: list[int]) -> float:
    """The share of blocks that copy the same row at the same time; the mean over the rows of a block."""
    assert schedule.contraction is not None
    ends = list(zip(extents[-2:], schedule.tile[-2:], strict=True))
    copied = [min(extent, tile) for extent, tile in ends]
    shared = sum(rows / ceil(extent / tile) for rows, (extent, tile) in zip(copied, ends, strict=True))
    # Blocks of different batches and slices of k have no rows in common.
    return shared / sum(copied) / (prod(extents[:-2]) * schedule.contraction.split)


def blocks_per_sm(problem: ContractionProblem) -> int:
    """Blocks that an SM is given at a time."""
    return 1 if problem.computed_from == (None, None) else COMPUTING_BLOCKS


def _computing_seconds(schedule: Schedule, problem: ContractionProblem) -> float:
    """Seconds in which a block computes operands for one step along k; a single warp has no other warp to hide its
    waiting.
    """
    assert schedule.contraction is not None
    outer = schedule.tile[-1:-3:-1] if schedule.contraction.swapped else schedule.tile[-2:]
    rows = sum(n for n, stored in zip(outer, problem.computed_from, strict=True) if stored is not None)
    rate = COMPUTED_PER_SM if schedule.layout.threads > WARP else COMPUTED_PER_SM / 2
    return rows * schedule.contraction.k / rate
