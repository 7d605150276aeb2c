"""Schedules of sums over windows that a result of each tap is made of: gradients of depthwise filters, for example.

A thread has a run of neighbours along the innermost dimension in which windows slide, and all elements of a window
there, so that it loads what windows have in common once. It adds the products of its run to its accumulators.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import inf, prod
from typing import Any

from mlirfuse.schedule.grid.second_stage import legal, with_second_stage
from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.layout_builder import LayoutBuilder, halves
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.model.residency import estimated_blocks
from mlirfuse.schedule.orders.sliding import BASE_REGISTERS, MOST_PRODUCTS
from mlirfuse.schedule.predict.counts.accesses import held_bytes, held_elements
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import SECTOR, Target

LONGEST_RUN = 16
"""Neighbours of a thread, at most, of which the longest run that divides the extent is a candidate."""

FEWEST_THREADS, MOST_WARPS = 128, 16
"""Threads of a block, and its warps where the dimensions that are kept do not need more."""

ROWS_AHEAD = 2
"""Rows of windows of a thread that are under way while it takes another one."""

COMPENSATED = 3
"""Numbers for each accumulator, where a block adds up its periods."""


def sliding_loops(problem: Problem, loop: PersistentLoopProblem, target: Target) -> Iterator[Schedule]:
    """Legal persistent loops in which windows slide along a thread's run; none for a kernel without such windows.

    Runs divide the extents, so that no index is clamped, and equal loads are seen to be equal.
    """
    pairs = next((a.pairs for a in problem.arrays if a.slides), [])
    pairs = [pair if pair[0] in loop.dims else pair[::-1] for pair in pairs]
    taps = [tap for _, tap in pairs]
    kept = problem.whole - set(loop.dims)
    if any(d not in loop.dims for d, _ in pairs) or kept - {problem.vector_dim} != set(taps) or loop.inner:
        return
    if not pairs or problem.vector_dim not in kept or None in problem.extents:
        return
    for layout in dict.fromkeys(_layouts(problem, loop, pairs)):
        for blocks in halves(_resident(problem, loop, layout, target, pairs)):
            if (schedule := _complete(problem, loop, layout, blocks, target)) is not None:
                yield schedule


def _layouts(problem: Problem, loop: PersistentLoopProblem, pairs: list[tuple[int, int]]) -> Iterator[BlockedLayout]:
    """Every vector and run, with the outer taps in a thread, over lanes, or over warps."""
    extents = [extent or 1 for extent in problem.extents]
    (slid, inner), *outer = pairs
    vectors = [problem.vector >> n for n in range(3) if problem.vector >> n]
    run = max(n for n in range(1, LONGEST_RUN + 1) if extents[slid] % n == 0)
    channels = [(vector, *factors) for vector in vectors for factors in _slices(problem, vector)]
    for (vector, along, warps), places in product(channels, _places(len(outer))):
        start = LayoutBuilder(extents, problem.vector_dim, vector)
        start.add_lanes(problem.vector_dim, most=along)
        start.warps[problem.vector_dim] = warps
        start.repeats[slid], start.repeats[inner] = run, extents[inner]
        for (_, tap), place in zip(outer, places, strict=True):
            if place == "thread":
                start.rest_in_repeats(tap)
                continue
            if place == "lanes":
                start.add_lanes(tap)
            start.warps[tap] = start.left(tap)
        free = [d for d in reversed(loop.dims) if d != slid] or [problem.vector_dim]
        for more in (1, 2, 4, 8):
            fill = start.copy()
            fill.divide_lanes(*free)
            fill.rest_of_lanes(free[-1])
            warps_in_all = more * prod(fill.warps)
            fill.divide_warps(*free, most=warps_in_all)
            fill.warps[free[-1]] *= warps_in_all // prod(fill.warps)
            layout = fill.layout()
            few = more == 1 or warps_in_all <= MOST_WARPS
            if few and layout.elements_per_thread <= MOST_PRODUCTS:
                yield layout


def _slices(problem: Problem, vector: int) -> Iterator[tuple[int, int]]:
    """Lanes and warps along the vectors' dimension, whole or a slice of it: the fewest of each number of slices."""
    left = -(-(problem.extents[problem.vector_dim] or 1) // vector)
    nbytes = vector * max(a.bytes for a in problem.arrays)
    for lanes in (1 << n for n in range(WARP.bit_length())):
        found = dict[int, int]()
        for warps in range(min(-(-left // lanes), MOST_WARPS), 0, -1):
            found[-(-left // (lanes * warps))] = warps
        if -(-left // lanes) > MOST_WARPS:
            found[1] = -(-left // lanes)
        for slices, warps in found.items():
            if lanes < 2 * left and (slices == 1 or nbytes * lanes * warps >= SECTOR):
                yield lanes, warps


def _places(count: int) -> Iterator[tuple[str, ...]]:
    """Where the outer taps are, of each dimension in which windows slide: those of the next one in any place."""
    for place in ("thread", "lanes", "warps"):
        yield (place, *("warps",) * (count - 1))[:count]


def _resident(
    problem: Problem, loop: PersistentLoopProblem, layout: BlockedLayout, target: Target, pairs: list[tuple[int, int]]
) -> int:
    """Blocks of an SM whose registers hold the accumulators and what is read in a step; 0 for none."""
    if not FEWEST_THREADS <= layout.threads <= target.max_threads_per_block:
        return 0
    summed = {d for d in loop.dims if layout.is_alone([d])}
    accumulators = (COMPENSATED if loop.wide else 1) * sum(
        part.bytes * layout.held((part.kept | part.dims) - summed) for part in problem.reductions
    )
    held = accumulators + min(held_bytes(problem, layout), _bytes_by_rows(problem, layout, pairs))
    return estimated_blocks(problem, layout, BASE_REGISTERS + held / REGISTER_BYTES, target)


def _bytes_by_rows(problem: Problem, layout: BlockedLayout, pairs: list[tuple[int, int]]) -> float:
    """Bytes of a thread that has several rows of a window and takes them one after the other: for a row of windows, and
    all that is read of other arrays, as wide as it is computed with, and for further rows that are under way.
    """
    outer = {d for pair in pairs[1:] for d in pair}
    if not any(layout.repeats[tap] > 1 for _, tap in pairs[1:]):
        return inf
    row = replace(layout, repeats=tuple(1 if d in outer else n for d, n in enumerate(layout.repeats)))
    reads = problem.reads
    others = sum(max(REGISTER_BYTES, a.bytes) * held_elements(a, layout) for a in reads if not a.slides)
    rows = [(max(REGISTER_BYTES, a.bytes) + ROWS_AHEAD * a.bytes) * held_elements(a, row) for a in reads if a.slides]
    return others + sum(rows)


def _complete(
    problem: Problem, loop: PersistentLoopProblem, layout: BlockedLayout, blocks: int, target: Target
) -> Schedule | None:
    """The schedule of a layout with so many blocks an SM; None if it is illegal."""
    extents = [extent or 1 for extent in problem.extents]
    tile = tuple(n if d in loop.dims else min(extents[d], n) for d, n in enumerate(layout.extents))
    slices, most = -(-extents[problem.vector_dim] // tile[problem.vector_dim]), target.sms * blocks
    if slices > most or any(problem.vector_dim not in part.kept for part in problem.reductions):
        return None
    how: dict[str, Any] = {"grid_reduction": "second_kernel", "blocks": most - most % slices} if slices > 1 else {}
    schedule = with_second_stage(problem, loop, layout, blocks, target, consecutive=True, slices=slices, **how)
    return legal(problem, replace(schedule, tile=tile), target)
