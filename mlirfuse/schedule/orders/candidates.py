"""Schedules of elementwise kernels whose arrays lie in different memory orders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.layout_builder import LayoutBuilder
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.schedule.orders.tiles import layouts, orders, tiles
from mlirfuse.schedule.parts.transposed_tiles import TransposedTiles
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule

THREADS = (256, 128)

FEWEST, MOST_BYTES = 4, 32
"""Elements of a thread, at least, and bytes that it reads, at most: more are under way with more threads."""

ROWS = (2, 4, 8, 16)
"""Rows of a thread that holds single elements of each."""

MOST_SHARED = 48 << 10
"""Bytes of a block's tiles in shared memory, so that four blocks fit an SM of sm_90."""


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
        for threads in THREADS:
            if FEWEST * threads <= elements and elements * problem.read_bytes <= MOST_BYTES * threads:
                yield from _of_tile(problem, found, tile, threads)


def _rows(problem: Problem) -> Iterator[Schedule]:
    """One element after another along a row, and several rows a thread."""
    outer = [d for d, extent in enumerate(problem.extents) if extent != 1 and d != problem.vector_dim]
    if not outer or problem.vector * problem.read_bytes >= WIDEST_ACCESS // 2:
        return
    for rows in ROWS:
        fill = LayoutBuilder(problem.extents, problem.vector_dim, problem.vector)
        fill.add_lanes(problem.vector_dim)
        fill.add_warps(problem.vector_dim, most=THREADS[0] // WARP)
        fill.rest_of_lanes(outer[-1])
        fill.add_warps(outer[-1], most=THREADS[0] // WARP)
        fill.add_repeats(outer[-1], most=rows)
        layout = fill.layout()
        yield Schedule(problem.tile_of(layout), layout)


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
    if not inner or held * prod(tile) > MOST_SHARED:
        return
    for across in layouts(problem, order, tile, layout.threads):
        if across != layout:
            yield Schedule(tile, layout, transposed=TransposedTiles(inner[0], across, then=inner[1:]))
