"""Schedules of elementwise kernels whose arrays are contiguous along different dimensions."""

from __future__ import annotations

from dataclasses import replace

from mlirfuse.schedule.crossed_tiles import CrossedTiles
from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.problem import CrossedProblem, Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import LINE, SECTOR

SIDE = 64
"""Elements of a tile's row, if these are a line: fewer threads' worth of them are too few loads under way. H200, shares
of a copy's speed, by 32 and 64 elements of float32 x.T + 1 0.85 and 0.94, x + x.T 0.83 and 0.89; by 64 and 128 of
bfloat16 0.90 and 0.92, 0.85 and 0.82, batches of 1024 x 1024 0.98 and 0.94."""

MOST_SHARED = 48 << 10
"""Bytes of a block's tiles in shared memory: four blocks of a multiprocessor of sm_90 have room for theirs."""


def crossed_schedule(problem: Problem, threads: int, most_read: int) -> Schedule | None:
    """Square tiles whose rows are whole lines, along both dimensions in which arrays are contiguous.

    Args:
        problem: the kernel.
        threads: of a block, at most.
        most_read: bytes that a thread reads at most.

    Returns:
        The schedule; None where no array lies across the others, or rows of one are shorter than a sector.
    """
    crossed = problem.crossed
    if crossed is None:
        return None
    dims, side = (problem.vector_dim, crossed.dim), max(SIDE, LINE // crossed.narrowest)
    while side > 1 and _is_too_large(side, problem, crossed, threads, most_read):
        side //= 2
    if min(min(side, problem.extents[d] or side) for d in dims) * crossed.narrowest < SECTOR:
        return None
    sides = [min(side, _power_of_two_from(problem.extents[d])) for d in dims]
    tile = [1] * problem.rank
    for d, extent in zip(dims, sides, strict=True):
        tile[d] = extent
    widest = max(problem.vector, crossed.vector)
    warps = min(threads, sides[0] * sides[1] // widest) // WARP
    if not warps:
        return None
    straight = _layout(tile, problem.vector_dim, crossed.dim, problem.vector, warps)
    across = _layout(tile, crossed.dim, problem.vector_dim, crossed.vector, warps)
    crossed_tiles = CrossedTiles(crossed.dim, across, crossed.mirrored)
    if crossed_tiles.check_mirrored(tuple(tile), problem.extents):
        crossed_tiles = replace(crossed_tiles, mirrored=False)
    return Schedule(tuple(tile), straight, crossed=crossed_tiles)


def _is_too_large(side: int, problem: Problem, crossed: CrossedProblem, threads: int, most_read: int) -> bool:
    elements = side * side
    return elements * crossed.bytes > MOST_SHARED or elements // threads * problem.read_bytes > most_read


def _power_of_two_from(extent: int | None) -> int:
    """The smallest power of two that is not less than an extent."""
    return 1 << 30 if extent is None else 1 << (extent - 1).bit_length()


def _layout(tile: list[int], along: int, across: int, vector: int, warps: int) -> BlockedLayout:
    """The layout of a tile whose warps access rows along a dimension, as long as lanes reach, and as many as are left.

    All numbers are powers of two, and a thread has a vector at least.
    """
    rank = len(tile)
    vectors, lanes, by_warp, repeats = ([1] * rank for _ in range(4))
    vectors[along] = vector
    lanes[along] = min(WARP, tile[along] // vector)
    lanes[across] = WARP // lanes[along]
    by_warp[across] = min(warps, tile[across] // lanes[across])
    by_warp[along] = warps // by_warp[across]
    for d in (along, across):
        repeats[d] = tile[d] // (vectors[d] * lanes[d] * by_warp[d])
    return BlockedLayout(tuple(vectors), tuple(lanes), tuple(by_warp), tuple(repeats), (1,) * rank)
