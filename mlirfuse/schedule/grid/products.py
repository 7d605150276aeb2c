"""Schedules of sums of products whose operands share no dimension that is kept: of two arrays with a few rows each.

What a thread reads of one operand meets all that it reads of the other in registers. It has a tile of all dimensions
in which memory is contiguous, so that it reads every operand by vectors, and lanes make whole sectors of these; where
registers do not hold all of the dimensions that are kept, lanes lie along those of one operand, and read the same of
the other one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from mlirfuse.schedule.grid.second_stage import PERIOD, legal, with_second_stage
from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.layout_builder import LayoutBuilder, halves
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.model.residency import estimated_blocks
from mlirfuse.schedule.orders.sliding import BASE_REGISTERS
from mlirfuse.schedule.orders.tiles import widest
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.schedule.predict.counts.accesses import held_elements, thread_access
from mlirfuse.schedule.predict.counts.space import known_extents
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import SECTOR, Target

FEWEST_SUMS, MOST_SUMS = 8, 128
"""Sums of a thread: at least, where lanes lie along what is kept and read the same, and at most, half of the registers
that it may have."""

FEWEST_WARPS, MOST_WARPS = 4, 16
"""Warps of a block."""


def product_loops(problem: Problem, loop: PersistentLoopProblem, target: Target) -> Iterator[Schedule]:
    """Legal loops whose threads have all of what is kept; none where an array varies along all of the space."""
    if not problem.shares_reads or loop.inner or None in problem.extents:
        return
    for layout in dict.fromkeys((*_tiles_of_thread(problem, loop), *_short_rows_of_thread(problem, loop))):
        for blocks in halves(_resident(problem, loop, layout, target)):
            if (schedule := _complete(problem, loop, layout, blocks, target)) is not None:
                yield schedule


def _tiles_of_thread(problem: Problem, loop: PersistentLoopProblem) -> Iterator[BlockedLayout]:
    """A thread's tile and lanes along all dimensions in which memory is contiguous; lanes along what is kept of one
    operand, too, which read the same of the other one.
    """
    extents = known_extents(problem)
    kept = [d for d in range(problem.rank) if d not in loop.dims and extents[d] > 1]
    reused = [d for d in kept if any(d not in a.dims for a in problem.reads)]
    others = [d for d in kept if d not in reused]
    for lanes, apart in product(product(range(WARP.bit_length()), repeat=len(reused)), (False, True)):
        sides = [1 << n for n in lanes]
        if prod(sides) > WARP or any(extents[d] % side for d, side in zip(reused, sides, strict=True)):
            continue
        if not FEWEST_SUMS <= prod(extents[d] // side for d, side in zip(reused, sides, strict=True)) <= MOST_SUMS // 2:
            continue
        for fill in _tiles(problem, loop, WARP // prod(sides)):
            for d, side in zip(reused, sides, strict=True):
                fill.lanes[d], fill.repeats[d] = side, extents[d] // side
            for d in others:
                (fill.warps if apart else fill.repeats)[d] = extents[d]
            yield from _with_warps(fill, loop)


def _short_rows_of_thread(problem: Problem, loop: PersistentLoopProblem) -> Iterator[BlockedLayout]:
    """Lanes along what is summed over, and a thread's whole rows of arrays that are contiguous along what is kept: as
    long as registers hold the products of all pairs, or of a part of one operand's elements with all of the other's.
    """
    extents = known_extents(problem)
    kept = [d for d in range(problem.rank) if d not in loop.dims and extents[d] > 1]
    vector_dim, width = problem.vector_dim, problem.vector
    if (
        vector_dim not in kept
        or extents[vector_dim] % width
        or any(a.order[0] in loop.dims for a in problem.reads if len(a.dims) > 1)
    ):
        return
    for d in kept:
        for lanes in (1 << n for n in range(WARP.bit_length())):
            divides = extents[d] % lanes == 0 and (d != vector_dim or lanes == 1)
            if not divides or not FEWEST_SUMS <= prod(extents[k] for k in kept) // lanes <= MOST_SUMS // 2:
                continue
            fill = LayoutBuilder(extents, vector_dim, width)
            for k in kept:
                fill.repeats[k] = extents[k] // (width if k == vector_dim else 1)
            fill.lanes[d], fill.repeats[d] = lanes, fill.repeats[d] // lanes
            fill.lanes_left = WARP // lanes
            fill.divide_lanes(*reversed(loop.dims))
            fill.rest_of_lanes(loop.dims[-1])
            yield from _with_warps(fill, loop)


def _with_warps(fill: LayoutBuilder, loop: PersistentLoopProblem) -> Iterator[BlockedLayout]:
    """The layouts with warps along the looped dimensions beside those that there are."""
    for warps in (prod(fill.warps) << n for n in range(4)):
        if FEWEST_WARPS <= warps <= MOST_WARPS:
            more = fill.copy()
            more.divide_warps(*reversed(loop.dims), most=warps)
            more.warps[loop.dims[0]] *= warps // prod(more.warps)
            yield more.layout()


def _tiles(problem: Problem, loop: PersistentLoopProblem, lanes: int) -> Iterator[LayoutBuilder]:
    """Vectors, runs and so many lanes along the looped dimensions: a thread has a tile of all dimensions along which
    arrays are contiguous, and lanes make whole sectors of its rows along each of them.
    """
    extents = known_extents(problem)
    reads = [a for a in problem.reads if a.dims]
    inner = list(dict.fromkeys(a.order[0] for a in reads if a.order[0] in loop.dims))
    most = {d: widest(problem, d, [n & -n for n in extents]) for d in inner}
    if not inner or min(most.values()) == 1:
        return
    along, *others = inner
    for halved in range(1 + len(inner)):
        # The longer sides are those along the first dimensions.
        sides = {d: most[d] >> (number >= len(inner) - halved) for number, d in enumerate(inner)}
        if min(sides.values()) == 1:
            continue
        fill = LayoutBuilder(extents, along, sides[along])
        for d in others:
            fill.run[d] = sides[d]
        fill.lanes_left = lanes
        for d in inner:
            row = sides[d] * min(a.bytes for a in reads if a.order[0] == d)
            fill.divide_lanes(d, most=max(1, SECTOR // row))
        if any(fill.span(d) * a.bytes < SECTOR for a in reads for d in inner if a.order[0] == d):
            continue
        for first in inner:
            more = fill.copy()
            more.divide_lanes(first, *inner, *reversed(loop.dims))
            if more.lanes_left == 1:
                yield more


def _resident(problem: Problem, loop: PersistentLoopProblem, layout: BlockedLayout, target: Target) -> int:
    """Blocks of an SM whose registers hold the sums and what is read in a step; 0 for none."""
    sums = prod(layout.fragments(d) * layout.vector[d] for d in range(problem.rank) if d not in loop.dims)
    reads = [_held_bytes(a, problem, layout) for a in problem.reads]
    held = loop.accumulator_bytes * sums + sum(reads)
    return estimated_blocks(problem, layout, BASE_REGISTERS + held / REGISTER_BYTES, target)


def _held_bytes(array: ArrayAccess, problem: Problem, layout: BlockedLayout) -> int:
    """Bytes of a thread's registers for what it reads of an array: one for each element that it reads alone."""
    alone = thread_access(array, layout, known_extents(problem)) == 1
    return held_elements(array, layout) * (max(REGISTER_BYTES, array.bytes) if alone else array.bytes)


def _complete(
    problem: Problem, loop: PersistentLoopProblem, layout: BlockedLayout, blocks: int, target: Target
) -> Schedule | None:
    """The schedule of a layout with so many blocks an SM; None if it is illegal."""
    tile = problem.tile_of(layout, loop.dims)
    rounds_often = loop.wide and (problem.tiles(tile, loop.dims) or 0) > PERIOD * target.sms * blocks
    period = PERIOD if rounds_often else 0
    return legal(problem, with_second_stage(problem, loop, layout, blocks, target, period=period), target)
