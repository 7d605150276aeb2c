"""Estimates the time of a contraction's schedule: a pure function of (schedule, problem, target).

Machine facts are in `schedule/model/`; the weights here were fitted to sweeps of `benchmarks/matmul.py` in bfloat16 on
an H200 (`benchmarks/results/`).
"""

from __future__ import annotations

from math import ceil, prod

from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.model.disagreeing import (
    CONTRACTION_CLUSTERS,
    CONTRACTION_LAUNCH,
    CP_ASYNC_BYTES_PER_SM,
    FLAGGED_MEETING,
    LAST_BLOCK_MEETING,
    SLICES_MEETING,
)
from mlirfuse.schedule.model.machine import ACCESS_WIDTHS, REGISTER_BYTES, WARPGROUP_ROWS
from mlirfuse.schedule.model.speeds import (
    CLUSTERED_SMS,
    COMPUTED_PER_SM,
    COMPUTING_FLOPS_PER_SM,
    DRAM_BYTES,
    DRAM_BYTES_PER_SM,
    ELEMENTS_BYTES_PER_SM,
    FLOPS_PER_SM,
    FMA_FLOP,
    FMA_LOAD,
    LAST_BLOCK_BYTES,
    MAPPED_BYTES_PER_SM,
    MAPPED_PIECES_BYTES_PER_SM,
    MAPPED_SECTORS_BYTES_PER_SM,
)
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.precision import TF32X3
from mlirfuse.target import LINE, SECTOR, Target
from mlirfuse.target.instructions import FAMILIES

UNKNOWN_EXTENT = 4096
"""What a dynamic extent is taken to be."""

MMA_WARPS = 8
"""Warps that `mma.sync` keeps an SM's tensor cores busy with: two for each of the four."""

SHARED_COPY = {1: 1.0, 2: 0.6, 4: 0.5}
"""Time of copying a row that the blocks of a cluster copy for each other, by their number, to that of one that each
block copies for itself."""

COMPUTING_STEP = 0.35e-6
"""Seconds of a step in which a block computes an operand, alone on its SM: its warps wait for each other at barriers.
"""

COMPUTING_BLOCKS = 4
"""Blocks of an SM that hide each other's waiting where blocks compute operands."""

WAVE = 2.0e-6
"""Seconds of a block's prologue and epilogue."""

EPILOGUE = 2.2e-6 / (128 * 256)
"""Seconds for each element of a tile between the products of two tiles of one block; consumer groups hide them."""

DIRECT, LAST_DIRECT, SHORT_DIRECT = 1.5e-10, 3.2e-15, 0.1e-10
"""Seconds for each element of a transposed tile whose results cannot be staged: before another tile; at the end, times
the tile's elements; and at the end of a tile with the 64 rows of one warpgroup."""

STAGED_COLUMNS = 8
"""The number of which the columns of 16-bit results are a multiple where results are staged: 16 bytes."""

NARROW = 0.12
"""Share by which products of a consumer group take longer for what its tile lacks of a square: such tiles read more of
one operand for each product."""

TOGETHER = 1.01
"""Time of products in a persistent loop whose warpgroups share each stage, to that of ping-pong consumer groups."""

STEP = 0.15e-6
"""Seconds that a step along k of `wgmma` takes at least, from a full stage to a free one."""

UNALIGNED = 1.05
"""Time of traffic to that of a split by a power of two, where the split is another number: blocks then read their steps
from anywhere in memory's pages."""

OVERLAP = 8
"""Exponent by which products, copies and traffic of device memory add up: the longest hides most of the others."""

ZEROS = 2.8
"""Time of a row past the end of an operand that copies by tensor maps fill with zeros, to that of a row that they copy.
"""

CLIPPED = 0.12
"""Time of a row past the end that is not copied, to that of a row that is, in the last of several tiles."""

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
    steps = ceil(ceil(problem.k / contraction.k) / contraction.split)
    size = problem.element.bytes
    products = 2 * m * n * contraction.k / _rate(schedule, problem)
    if contraction.family.is_warp_level and problem.computed_from == (None, None):
        products /= min(1.0, tiles_per_sm * schedule.layout.threads / (WARP * MMA_WARPS))
    if contraction.consumer_groups > 1:
        products *= 1 + NARROW * (1 - n / m)
    elif contraction.persistent and contraction.family.is_asynchronous:
        products *= TOGETHER
    sizes = [stored or size for stored in problem.computed_from]
    if contraction.swapped:
        sizes.reverse()
    rows, columns = extents[-2:]
    copied = zip(_copied_rows(schedule, problem, extents), sizes, _copied_bytes(schedule, problem), strict=True)
    copies = sum(n * size * contraction.k / rate for n, size, rate in copied)
    copies *= 1 + (CROWDED * _crowding(schedule, extents) ** 2 if contraction.streamed else 0.0)
    unaligned = UNALIGNED if contraction.split & (contraction.split - 1) else 1.0
    traffic = unaligned * prod(extents[:-2])
    traffic *= (rows * sizes[0] + columns * sizes[1]) * problem.k + rows * columns * size
    waves = ceil(tiles_per_sm / blocks_per_sm(problem))
    overheads = WAVE if contraction.persistent else waves * WAVE
    overheads += CONTRACTION_CLUSTERS if contraction.cluster > 1 else 0.0
    copying = tiles_per_sm * steps * copies
    stepping = tiles_per_sm * steps * STEP if contraction.family.is_asynchronous else 0.0
    works = (
        tiles_per_sm * steps * (products + _computing_seconds(schedule, problem)),
        copying,
        traffic / min(DRAM_BYTES, min(blocks, target.sms) * DRAM_BYTES_PER_SM),
        stepping,
        waves * steps * COMPUTING_STEP if problem.computed_from != (None, None) else 0.0,
    )
    if contraction.family.is_asynchronous and contraction.persistent and contraction.consumer_groups == 1:
        overheads += (tiles_per_sm - 1) * m * n * EPILOGUE
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


def _copied_rows(schedule: Schedule, problem: ContractionProblem, extents: list[int]) -> list[float]:
    """Rows of each operand, weighted by what their copies take: of the mean block in persistent loops, else of slow
    blocks.

    No rows past the end are copied where k is contiguous and the extent is known (`TileOperand.last_rows`).
    """
    contraction = schedule.contraction
    assert contraction is not None
    if not contraction.family.is_asynchronous:
        return list(schedule.tile[-2:])
    clips = [k and extent is not None for k, extent in zip(problem.k_contiguous, (problem.m, problem.n), strict=True)]
    if contraction.swapped:
        clips.reverse()
    ends = zip(extents[-2:], schedule.tile[-2:], clips, strict=True)
    first, second = (_rows_of_a_block(*end, is_mean=contraction.persistent) for end in ends)
    return [first * SHARED_COPY[contraction.cluster], second]


def _rows_of_a_block(extent: int, tile: int, clips: bool, *, is_mean: bool) -> float:
    """Weighted rows of one operand by its extent, of the mean block or of slow ones; `clips` where zeros are not
    copied.
    """
    count, over = ceil(extent / tile), -extent % tile
    if clips:
        return extent / count if is_mean or count == 1 else tile + CLIPPED * over
    last = tile + (ZEROS - 1) * over
    mean = (tile * (count - 1) + last) / count
    return mean if is_mean else (mean + last) / 2


def _crowding(schedule: Schedule, extents: list[int]) -> float:
    """The share of blocks that copy the same row at the same time; the mean over the rows of a block."""
    assert schedule.contraction is not None
    ends = list(zip(extents[-2:], schedule.tile[-2:], strict=True))
    copied = [min(extent, tile) for extent, tile in ends]
    shared = sum(rows / ceil(extent / tile) for rows, (extent, tile) in zip(copied, ends, strict=True))
    # Blocks of different batches and slices of k have no rows in common.
    return shared / sum(copied) / (prod(extents[:-2]) * schedule.contraction.split)


def _rate(schedule: Schedule, problem: ContractionProblem) -> float:
    """Operations per second that one SM sustains."""
    assert schedule.contraction is not None
    instruction, layout = schedule.contraction.instruction, schedule.layout
    if not FAMILIES[instruction].is_tensor_core:
        rows, columns = (layout.fragments(d) * layout.vector[d] for d in (layout.rank - 2, layout.rank - 1))
        registers = max(1, problem.accumulator.bytes // REGISTER_BYTES)
        return 1 / (registers * (FMA_FLOP + FMA_LOAD * (rows + columns) / (rows * columns)))
    rate = FLOPS_PER_SM[instruction]
    if FAMILIES[instruction].is_warp_level and problem.computed_from != (None, None):
        rate = COMPUTING_FLOPS_PER_SM
    rate *= 2 / problem.element.bytes
    return rate / 3 if problem.precision == TF32X3 else rate


def _copied_bytes(schedule: Schedule, problem: ContractionProblem) -> list[float]:
    """Bytes of each operand per second that one SM copies to shared memory."""
    assert schedule.contraction is not None
    if schedule.contraction.family.is_asynchronous:
        rates = [_mapped_bytes(n) for n in contiguous_bytes(problem)]
        return rates[::-1] if schedule.contraction.swapped else rates
    if not schedule.contraction.family.is_warp_level or problem.computed_from != (None, None):
        return [MAPPED_BYTES_PER_SM] * 2
    return [CP_ASYNC_BYTES_PER_SM if problem.row_bytes >= ACCESS_WIDTHS[0] else ELEMENTS_BYTES_PER_SM] * 2


def contiguous_bytes(problem: ContractionProblem) -> list[int]:
    """Bytes of a row of each operand, along which its memory is contiguous; of whole lines where that is not known."""
    outer = (problem.m, problem.n)
    extents = [problem.k if k else extent for k, extent in zip(problem.k_contiguous, outer, strict=True)]
    return [(extent or LINE) * problem.element.bytes for extent in extents]


def _mapped_bytes(row_bytes: int) -> float:
    """Bytes per second that tensor maps copy to one SM, of rows of `row_bytes`."""
    if row_bytes % LINE == 0:
        return MAPPED_BYTES_PER_SM
    return MAPPED_PIECES_BYTES_PER_SM if row_bytes % SECTOR else MAPPED_SECTORS_BYTES_PER_SM


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
