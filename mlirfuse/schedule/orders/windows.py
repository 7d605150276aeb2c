"""Schedules of reductions over few elements, which one thread reduces alone: colours, windows, small matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from math import prod

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.orders.candidates import FEWEST, THREADS
from mlirfuse.schedule.orders.tiles import SMALL, grown_tiles, ordered_layout, widest
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule

MOST_REDUCED = 64
"""Elements that a thread reduces, at most."""

MOST_BYTES = 128
"""Bytes that a thread reads of several windows, at most: it has them all under way at once."""


def window_candidates(problem: Problem) -> Iterator[Schedule]:
    """Tiles whose reduced dimensions one thread holds, with lanes along the others in the order of an array's memory.

    A thread also holds other small dimensions whole where its elements are then side by side in memory, or where it
    uses what it reads several times. There are none where the reduced dimensions are dynamic, or more than a few
    elements.
    """
    sides = [problem.extents[d] for d in problem.reduced]
    if not problem.arrays or not sides or None in sides or prod(n for n in sides if n is not None) > MOST_REDUCED:
        return
    if problem.persistent_loop is not None and not problem.loop_is_optional:
        return
    kept = problem.whole - problem.reduced
    if not kept:
        return
    orders = list(dict.fromkeys(order for a in problem.arrays if (order := _kept(a.order, kept))))
    found = [order for order in orders if len(order) == max(map(len, orders))]
    small = frozenset(d for d in kept if (extent := problem.extents[d]) is not None and extent <= SMALL)
    for whole in dict.fromkeys((frozenset[int](), *_prefixes(found, small), small)):
        if kept - whole:
            yield from _holding(problem, found, whole)


def _holding(problem: Problem, found: Sequence[tuple[int, ...]], small: frozenset[int]) -> Iterator[Schedule]:
    """Candidates of which a thread holds the reduced dimensions, and some small ones."""
    whole = small | problem.reduced
    held = [problem.extents[d] or 1 if d in whole else 1 for d in range(problem.rank)]
    orders = list(dict.fromkeys(tuple(d for d in order if d not in small) for order in found))
    orders = [order for order in orders if order]
    for tile in grown_tiles(problem, orders, held):
        for threads in THREADS:
            for order in orders:
                for layout in _layouts(problem, order, tile, threads, whole):
                    if layout.elements_per_thread >= FEWEST and _is_held(problem, layout):
                        yield Schedule(tile, layout)


def _is_held(problem: Problem, layout: BlockedLayout) -> bool:
    """Whether a thread can hold what it reads: so many bytes, or one window, however wide."""
    held = [layout.held([d]) for d in range(problem.rank)]
    if all(n <= SMALL for d, n in enumerate(held) if d not in problem.reduced) and prod(held) <= MOST_REDUCED:
        return True
    return sum(a.bytes * prod(held[d] for d in a.dims) for a in problem.reads) <= MOST_BYTES


def _layouts(
    problem: Problem, order: Sequence[int], tile: Sequence[int], threads: int, whole: frozenset[int]
) -> Iterator[BlockedLayout]:
    along = order[0]
    vector = widest(problem, along, tile)
    while vector:
        layout = ordered_layout(tile, order, along, vector, threads, whole)
        if layout is not None:
            yield layout
        vector //= 2


def _kept(order: Sequence[int], kept: Set[int]) -> tuple[int, ...]:
    """An order without the dimensions that are reduced."""
    return tuple(d for d in order if d in kept)


def _prefixes(found: Sequence[tuple[int, ...]], small: frozenset[int]) -> Iterator[frozenset[int]]:
    """The small dimensions that are innermost in memory."""
    for order in found:
        inner = next((n for n, d in enumerate(order) if d not in small), len(order))
        yield frozenset(order[:inner])
