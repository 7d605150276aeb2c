"""Schedules of kernels whose arrays lie in different memory orders, and of reductions over few elements, which a thread
reduces alone: colours, windows, small matrices; rows in tiles that are runs of memory, and the order of blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from math import prod

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.layout_builder import LayoutBuilder, halves
from mlirfuse.schedule.model.machine import BLOCK_THREADS, REGISTER_BYTES, WIDEST_ACCESS
from mlirfuse.schedule.model.registers import HELD_REGISTERS, MOST_ELEMENTS
from mlirfuse.schedule.orders.tiles import SMALL, grown_tiles, layouts, ordered_layout, orders, tiles, widest
from mlirfuse.schedule.parts.array_access import follows, split_sectors
from mlirfuse.schedule.parts.transposed_tiles import MOST_TRANSPOSED, TransposedTiles
from mlirfuse.schedule.predict.counts.accesses import held_bytes
from mlirfuse.schedule.predict.counts.space import known_extents, with_extents
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule

FEWEST, MOST_BYTES = 4, 32
"""Elements of a thread, at least, and bytes that it reads, at most: more are under way with more threads."""

ROWS = (2, 4, 8, 16)
"""Rows of a thread that holds single elements of each."""

PLANES = (1, 2, 4)
"""Planes that these rows lie in."""

MOST_REDUCED = 64
"""Elements that a thread reduces, at most."""

MOST_WINDOW_BYTES = 128
"""Bytes that a thread reads of several windows, at most: it has them all under way at once."""


def ordered_candidates(problem: Problem) -> Iterator[Schedule]:
    """Tiles in which each array has whole sectors, read and written directly or through shared memory.

    Where they lie in one order, tiles of rows that are too short or unaligned for vectors have several rows a thread.
    """
    found = orders(problem)
    if not found:
        return
    if len(found) < 2:
        yield from _rows(problem)
        return
    for tile in tiles(problem, found[:3]):
        elements = prod(tile)
        for threads in BLOCK_THREADS[:2]:
            if FEWEST * threads <= elements and elements * problem.read_bytes <= MOST_BYTES * threads:
                yield from _of_tile(problem, found, tile, threads)


def _rows(problem: Problem) -> Iterator[Schedule]:
    """One element after another along a row, and several rows a thread; of windows, which share rows, in several planes
    too, as far as a thread has registers for all that it reads: the assembler loads it all ahead.
    """
    outer = [d for d, extent in enumerate(problem.extents) if extent != 1 and d != problem.vector_dim]
    shared = any(a.taps > 1 for a in problem.arrays)
    if not outer or (problem.vector * problem.read_bytes >= WIDEST_ACCESS // 2 and not shared):
        return
    for vector in _vectors(problem) if shared else (problem.vector,):
        for rows in (1, *ROWS) if shared else ROWS:
            for planes in PLANES if shared and len(outer) > 1 else PLANES[:1]:
                fill = LayoutBuilder(problem.extents, problem.vector_dim, vector)
                fill.add_lanes(problem.vector_dim)
                fill.add_warps(problem.vector_dim, most=BLOCK_THREADS[0] // WARP, even=shared)
                fill.rest_of_lanes(outer[-1])
                fill.add_warps(outer[-1], most=BLOCK_THREADS[0] // WARP)
                for dim, most in zip(reversed(outer), (rows, planes), strict=False):
                    fill.add_repeats(dim, most=most)
                layout = fill.layout()
                if (rows, planes) == (1, 1) or held_bytes(problem, layout) <= REGISTER_BYTES * HELD_REGISTERS:
                    yield Schedule(problem.tile_of(layout), layout)


def _vectors(problem: Problem) -> Iterator[int]:
    """Elements side by side of a thread that accesses windows: up to the widest access to an array with windows,
    whatever results are aligned to, and down to a register, or to what these are aligned to; of rows whose length run
    time has to say, as many as these.
    """
    if problem.extents[problem.vector_dim] is None:
        return halves(problem.vector)
    windows = [a.bytes for a in problem.arrays if a.taps > 1]
    least = min(problem.vector, max(1, REGISTER_BYTES // min(windows)))
    return (vector for vector in halves(WIDEST_ACCESS // min(windows)) if vector >= least)


def _of_tile(
    problem: Problem, found: Sequence[tuple[int, ...]], tile: tuple[int, ...], threads: int
) -> Iterator[Schedule]:
    for order in found[:2]:
        for layout in layouts(problem, order, tile, threads):
            yield Schedule(tile, layout)
            for other in found:
                if other != order:
                    yield from _staged(problem, tile, layout, other)


def _staged(
    problem: Problem, tile: tuple[int, ...], layout: BlockedLayout, order: tuple[int, ...]
) -> Iterator[Schedule]:
    """With arrays of another order through shared memory."""
    inner = tuple(d for d in order if tile[d] > 1)
    held = sum(a.bytes for a in problem.whole_arrays if a.order == order)
    if not inner or held * prod(tile) > MOST_TRANSPOSED:
        return
    for across in layouts(problem, order, tile, layout.threads):
        if across != layout:
            yield Schedule(tile, layout, transposed=TransposedTiles(inner[0], across, then=inner[1:]))


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
        for threads in BLOCK_THREADS[:2]:
            for order in orders:
                for layout in _layouts(problem, order, tile, threads, whole):
                    if layout.elements_per_thread >= FEWEST and _is_held(problem, layout):
                        yield Schedule(tile, layout)


def _is_held(problem: Problem, layout: BlockedLayout) -> bool:
    """Whether a thread can hold what it reads: so many bytes, or one window, however wide."""
    held = [layout.held([d]) for d in range(problem.rank)]
    if all(n <= SMALL for d, n in enumerate(held) if d not in problem.reduced) and prod(held) <= MOST_REDUCED:
        return True
    return sum(a.bytes * prod(held[d] for d in a.dims) for a in problem.reads) <= MOST_WINDOW_BYTES


def _layouts(
    problem: Problem, order: Sequence[int], tile: Sequence[int], threads: int, whole: frozenset[int]
) -> Iterator[BlockedLayout]:
    for vector in halves(widest(problem, order[0], tile)):
        layout = ordered_layout(tile, order, order[0], vector, threads, whole)
        if layout is not None:
            yield layout


def _kept(order: Sequence[int], kept: Set[int]) -> tuple[int, ...]:
    """An order without the dimensions that are reduced."""
    return tuple(d for d in order if d in kept)


def _prefixes(found: Sequence[tuple[int, ...]], small: frozenset[int]) -> Iterator[frozenset[int]]:
    """The small dimensions that are innermost in memory."""
    for order in found:
        inner = next((n for n, d in enumerate(order) if d not in small), len(order))
        yield frozenset(order[:inner])


def in_grid_orders(problem: Problem, schedules: Iterable[Schedule]) -> Iterator[Schedule]:
    """Schedules of one tile a block as they are, and with blocks first along the dimension along which the tiles of a
    result share sectors: the L2 has the rest of a sector then when the next block writes it.
    """
    extents, every = known_extents(with_extents(problem)), range(problem.rank)
    for schedule in schedules:
        yield schedule
        if schedule.transposed is not None and schedule.transposed.mirrored:
            continue
        shared = [split_sectors(array, schedule.tile, extents) for array in problem.writes]
        for split in dict.fromkeys(found[0] for found in shared if found is not None):
            if any(schedule.tile[d] < extents[d] for d in follows(every, split)):
                yield replace(schedule, grid_order=(*(d for d in every if d != split), split))


MOST_WARPS = 16
"""Warps of a block."""


def flat_schedules(problem: Problem) -> Iterator[Schedule]:
    """Tiles of whole rows whose lanes have a row each, or a part of one where a block's warps share it.

    None where rows are whole vectors, or arrays over the whole space are not contiguous and aligned, or more than rows
    is reduced.
    """
    inner = problem.rank - 1
    whole = [a for a in problem.whole_arrays if a.order and a.order[0] == inner]
    if problem.rank < 2 or problem.reduced - {inner} or problem.transposed is not None or not whole:
        return
    row, rows = problem.extents[-1], problem.expected[-2]
    plain = all(a.is_contiguous and not a.windows for a in whole)
    if row is None or not plain or row % (WIDEST_ACCESS // min(a.bytes for a in whole)) == 0:
        return
    for across in (n for n in range(1, MOST_WARPS + 1) if row % n == 0 and row // n <= MOST_ELEMENTS):
        down = 1
        while across * down <= MOST_WARPS and (rows is None or down == 1 or WARP * down <= rows):
            yield _schedule(problem, across, down)
            down *= 2


def _schedule(problem: Problem, across: int, down: int) -> Schedule:
    row, ones = problem.extents[-1] or 1, (1,) * (problem.rank - 2)
    layout = BlockedLayout(
        (*ones, 1, 1), (*ones, WARP, 1), (*ones, down, across), (*ones, 1, row // across), (*ones, 1, 1)
    )
    tile = (*ones, min(WARP * down, problem.extents[-2] or WARP * down), row)
    return Schedule(tile, layout, flat=True)
