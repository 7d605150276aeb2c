"""Layouts that follow a memory order: lanes along the innermost dimensions, then warps, then a thread's repeats."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.schedule.orders.tiles import SMALL
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.schedule.problem import Problem

MOST_WHOLE = 8
"""Elements of the innermost dimensions that a thread holds whole, at most: more of them take its registers."""


def ordered_layout(
    tile: Sequence[int], order: Sequence[int], along: int, vector: int, threads: int, whole: Collection[int] = ()
) -> BlockedLayout | None:
    """The layout of a tile whose lanes follow a memory order; None where the tile's sides do not divide so.

    Args:
        tile: the tile, which the layout covers exactly.
        order: dimensions, the innermost in memory first; those that are missing follow, the last one first.
        along: the dimension of vectors.
        vector: elements of one.
        threads: of the block.
        whole: dimensions of which a thread holds all.
    """
    rank = len(tile)
    order = [*order, *(d for d in reversed(range(rank)) if d not in order)]
    vectors, lanes, warps = [1] * rank, [1] * rank, [1] * rank
    if tile[along] % vector:
        return None
    vectors[along] = vector
    left = [n // v for n, v in zip(tile, vectors, strict=True)]
    for parts, total in ((lanes, WARP), (warps, threads // WARP)):
        for d in order:
            while total > 1 and d not in whole and left[d] % 2 == 0:
                parts[d] *= 2
                left[d] //= 2
                total //= 2
        if total > 1:
            return None
    return BlockedLayout(tuple(vectors), tuple(lanes), tuple(warps), tuple(left), (1,) * rank)


def layouts(problem: Problem, order: Sequence[int], tile: Sequence[int], threads: int) -> Iterator[BlockedLayout]:
    """Layouts of a tile for arrays of an order: with vectors along the innermost dimension, or along the next one where
    a thread holds the innermost ones whole, so that its elements are neighbours in memory.
    """
    held = 1
    for number, along in enumerate(order):
        whole = order[:number]
        most = widest(problem, along, tile)
        for vector in (most, most // 2, most // 4) if number else (most,):
            layout = ordered_layout(tile, order, along, vector, threads, whole) if vector else None
            if layout is not None:
                yield layout
        extent = problem.extents[along]
        if extent is None or extent > SMALL or tile[along] != extent:
            return
        held *= extent
        if held > MOST_WHOLE:
            return


def widest(problem: Problem, along: int, tile: Sequence[int]) -> int:
    """Elements of the widest vector along a dimension that the arrays, the tile and the extents allow."""
    touching = [a for a in problem.arrays if along in a.dims]
    vector = WIDEST_ACCESS // min((a.bytes for a in touching), default=WIDEST_ACCESS)
    for array in touching:
        if array.order[0] == along and array.strides[-1] == 1:
            vector = min(vector, _aligned(array, problem))
    extent = problem.extents[along]
    while vector > 1 and (tile[along] % vector or (extent is not None and extent % vector)):
        vector //= 2
    return max(1, vector)


def _aligned(array: ArrayAccess, problem: Problem) -> int:
    """Elements that all accesses along an array's innermost dimension are aligned to."""
    aligned = min(WIDEST_ACCESS, array.alignment)
    for stride, dim in zip(array.strides[:-1], array.dims[:-1], strict=True):
        if stride is not None:
            step = stride * array.bytes
        else:
            inner = [problem.extents[d] for d in array.dims[array.dims.index(dim) + 1 :]]
            step = array.bytes if array.is_contiguous else aligned
            for extent in inner if array.is_contiguous else ():
                step *= extent or 1
        while step % aligned:
            aligned //= 2
    return max(1, aligned // array.bytes)
