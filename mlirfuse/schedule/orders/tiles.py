"""Tiles of which every array has runs of whole sectors, whatever its memory order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
            tile = tuple(_grown(base, problem, found, elements * _product(held)))
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
    while _product(tile) < elements and stuck < len(found):
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


def _product(tile: Sequence[int]) -> int:
    product = 1
    for n in tile:
        product *= n
    return product
