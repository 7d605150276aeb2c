"""Schedules of elementwise kernels whose arrays are contiguous along different dimensions."""

from __future__ import annotations

from dataclasses import replace

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.parts.transposed_tiles import TransposedTiles
from mlirfuse.schedule.problem import Problem, TransposedProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import LINE, SECTOR

SIDE = 64
"""Elements of a tile's row, if these are a line: smaller tiles have too few loads under way."""

MOST_SHARED = 48 << 10
"""Bytes of a block's tiles in shared memory, so that four blocks fit an SM of sm_90."""


def transposed_schedule(problem: Problem, threads: int, most_read: int) -> Schedule | None:
    """Square tiles whose rows are whole lines, along both dimensions in which arrays are contiguous.

    Args:
        problem: the kernel.
        threads: of a block, at most.
        most_read: bytes that a thread reads at most.

    Returns:
        The schedule; None where no array is transposed, or rows of one are shorter than a sector.
    """
    transposed = problem.transposed
    if transposed is None:
        return None
    dims, side = (problem.vector_dim, transposed.dim), max(SIDE, LINE // transposed.narrowest)
    while side > 1 and _is_too_large(side, problem, transposed, threads, most_read):
        side //= 2
    if min(min(side, problem.extents[d] or side) for d in dims) * transposed.narrowest < SECTOR:
        return None
    sides = [min(side, _power_of_two_from(problem.extents[d])) for d in dims]
    tile = [1] * problem.rank
    for d, extent in zip(dims, sides, strict=True):
        tile[d] = extent
    widest = max(problem.vector, transposed.vector)
    warps = min(threads, sides[0] * sides[1] // widest) // WARP
    if not warps:
        return None
    straight = _layout(tile, problem.vector_dim, transposed.dim, problem.vector, warps)
    across = _layout(tile, transposed.dim, problem.vector_dim, transposed.vector, warps)
    transposed_tiles = TransposedTiles(transposed.dim, across, transposed.mirrored)
    if transposed_tiles.check_mirrored(tuple(tile), problem.extents):
        transposed_tiles = replace(transposed_tiles, mirrored=False)
    return Schedule(tuple(tile), straight, transposed=transposed_tiles)


def _is_too_large(side: int, problem: Problem, transposed: TransposedProblem, threads: int, most_read: int) -> bool:
    elements = side * side
    return elements * transposed.bytes > MOST_SHARED or elements // threads * problem.read_bytes > most_read


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
