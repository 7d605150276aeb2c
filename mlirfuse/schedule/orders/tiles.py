"""Tiles of which every array has runs of whole sectors, whatever its memory order, and layouts that follow an order:
lanes along the innermost dimensions, then warps, then a thread's repeats.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import prod

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.layout_builder import LayoutBuilder
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.schedule.problem import Problem

RUNS = (32, 64, 128)
"""Bytes that arrays have side by side in a tile, at least: one to four sectors."""

ELEMENTS = (512, 1024, 2048, 4096, 8192)
"""Elements of a tile: of smaller ones a block is not worth starting, and larger ones take the registers of a block."""

MOST_PADDING = 7
"""An extent is rounded up by one part of so many at most, to multiples that lanes divide."""

MOST_UNKNOWN = 16
"""Side of a tile along a dimension of unknown extent, which may be short, where its runs are long enough."""

SMALL = 4
"""Extents up to which a thread may hold a dimension whole."""


def orders(problem: Problem) -> list[tuple[int, ...]]:
    """The memory orders of the arrays over the whole space, the innermost dimension first: by bytes, results first."""
    weights: dict[tuple[int, ...], float] = {}
    for array in problem.whole_arrays:
        weights[array.order] = weights.get(array.order, 0) + array.bytes * (1.5 if array.written else 1.0)
    return sorted(weights, key=lambda order: -weights[order])


def tiles(problem: Problem, found: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """Tiles of several sizes in which arrays of all these orders have runs of several lengths."""
    yield from grown_tiles(problem, found, [1] * problem.rank)


def grown_tiles(problem: Problem, found: Sequence[tuple[int, ...]], held: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Tiles that are at least so many elements in each dimension, and have runs along the innermost of some orders.

    Args:
        problem: the kernel.
        found: orders of dimensions, the innermost first.
        held: sides of the smallest tile; those that are larger than 1 are not grown.
    """
    narrowest = min(a.bytes for a in problem.arrays)
    seen = set()
    for run in RUNS:
        base = list(held)
        for order in found:
            matching = [a.bytes for a in problem.whole_arrays if a.order == order]
            _cover(base, problem, order, -(-run // min(matching, default=narrowest)))
        for elements in ELEMENTS:
            tile = tuple(_grown(base, problem, found, elements * prod(held)))
            if tile not in seen:
                seen.add(tile)
                yield tile


def _cover(tile: list[int], problem: Problem, order: Sequence[int], elements: int) -> None:
    """Makes the tile at least so many elements long along the innermost dimensions of an order."""
    run = 1
    for d in order:
        needed = -(-elements // run)
        tile[d] = max(tile[d], _side(problem.extents[d], needed))
        run *= tile[d]
        if run >= elements:
            return


def _grown(base: Sequence[int], problem: Problem, found: Sequence[tuple[int, ...]], elements: int) -> list[int]:
    """The tile, made larger along the innermost dimensions of each order in turn, up to a number of elements."""
    tile, stuck = list(base), 0
    turn = 0
    while prod(tile) < elements and stuck < len(found):
        order = found[turn % len(found)]
        turn += 1
        d = next((d for d in order if _may_grow(tile[d], problem.extents[d], d == order[-1])), None)
        if d is None:
            stuck += 1
            continue
        stuck = 0
        tile[d] = _side(problem.extents[d], 2 * tile[d])
    return tile


def _may_grow(side: int, extent: int | None, is_last: bool) -> bool:
    """Whether a side may be longer: an unknown extent may be short, unless it is the outermost in memory."""
    return side < (extent or MOST_UNKNOWN) or (extent is None and is_last)


def _side(extent: int | None, needed: int) -> int:
    """The side of a tile along a dimension: a power of two of at least so many, or the whole of a short one."""
    power = 1 << max(0, needed - 1).bit_length()
    if extent is None or extent >= 2 * power:
        return power
    if extent <= power:
        return whole_side(extent)
    # Between one and two sides: the whole, if that pads less than two sides.
    return whole_side(extent) if whole_side(extent) < 2 * power and extent < 2 * power else power


def whole_side(extent: int) -> int:
    """An extent, rounded up to a multiple of a power of two where that pads little."""
    if extent <= SMALL or extent % 8 == 0:
        return extent
    for step in (32, 16, 8, 4, 2):
        rounded = -(-extent // step) * step
        if (rounded - extent) * MOST_PADDING <= extent:
            return rounded
    return extent


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
    order = [*order, *(d for d in reversed(range(len(tile))) if d not in order)]
    if tile[along] % vector:
        return None
    fill = LayoutBuilder(tile, along, vector)
    fill.divide_lanes(*(d for d in order if d not in whole))
    fill.divide_warps(*(d for d in order if d not in whole), most=threads // WARP)
    if fill.lanes_left > 1 or WARP * prod(fill.warps) != threads:
        return None
    fill.rest_in_repeats(*order)
    return fill.layout()


def layouts(problem: Problem, order: Sequence[int], tile: Sequence[int], threads: int) -> Iterator[BlockedLayout]:
    """Layouts of a tile for arrays of an order: with vectors along the innermost dimension, or along the next one where
    a thread holds the innermost ones whole, so that its elements are neighbours in memory.
    """
    for number, along in enumerate(order):
        whole = order[:number]
        # Pieces of vectors along an extent of run time are stored under conditions of their own, and not merged.
        most = widest(problem, along, tile) if not number or problem.extents[along] is not None else 1
        for vector in (most, most // 2, most // 4) if number else (most,):
            layout = ordered_layout(tile, order, along, vector, threads, whole) if vector else None
            if layout is not None:
                yield layout
        extent = problem.extents[along]
        if extent is None or extent > SMALL or tile[along] != extent:
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
