"""Schedules of sums of products whose operands share no dimension that is kept: of two arrays with a few rows each.

A thread has all of the dimensions that are kept, or its warp has some of them, so that what it reads of one operand
meets all that it reads of the other in registers. Lanes lie along the dimension that is innermost in one array, and
vectors along that of another, so that both are read in whole sectors whatever their orders are.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from mlirfuse.schedule.grid.second_stage import PERIOD, choose_second_stage
from mlirfuse.schedule.grid.shared_memory import legal_schedule
from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.model.residency import allocated, resident_blocks
from mlirfuse.schedule.orders.layouts import widest
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from mlirfuse.schedule.predict.counts.accesses import held_elements, thread_access
from mlirfuse.schedule.predict.counts.space import known_extents
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import SECTOR, Target

PIECES = (SECTOR // 2, SECTOR, 2 * SECTOR)
"""Bytes that a thread reads side by side in memory where vectors lie along another dimension than lanes."""

MOST_SUMS = 128
"""Sums of a thread, at most: half of the registers that it may have."""

FEWEST_WARPS, MOST_WARPS = 4, 16
"""Warps of a block."""

BASE_REGISTERS = 32
"""Registers of a thread beside its sums and what it reads in a step."""


def product_loops(problem: Problem, loop: PersistentLoopProblem, target: Target) -> Iterator[Schedule]:
    """Legal persistent loops whose threads have all of what is kept; none where an array varies along all of the space.

    Args:
        problem: the kernel.
        loop: what its persistent loop runs over.
        target: the architecture that schedules must be legal for.
    """
    if problem.shares_reads and not loop.inner and None not in problem.extents:
        for layout in dict.fromkeys(_layouts(problem, loop)):
            most = _resident(problem, loop, layout, target)
            while most:
                if (schedule := _complete(problem, loop, layout, most, target)) is not None:
                    yield schedule
                most //= 2


def _layouts(problem: Problem, loop: PersistentLoopProblem) -> Iterator[BlockedLayout]:
    """Every place of the dimensions that are kept, and every way along the others."""
    extents = known_extents(problem)
    kept = [d for d in range(problem.rank) if d not in loop.dims and extents[d] > 1]
    for places in product((False, True), repeat=len(kept)):
        in_thread = [d for d, apart in zip(kept, places, strict=True) if not apart]
        warps, repeats = [1] * problem.rank, [1] * problem.rank
        for d in kept:
            (repeats if d in in_thread else warps)[d] = extents[d]
        if prod(repeats) > MOST_SUMS or prod(warps) > MOST_WARPS:
            continue
        for vector, run, lanes in _ways(problem, loop):
            for more in (1, 2, 4, 8):
                if FEWEST_WARPS <= prod(warps) * more <= MOST_WARPS:
                    yield _layout(problem, loop, vector, run, lanes, warps, repeats, more)


def _ways(problem: Problem, loop: PersistentLoopProblem) -> Iterator[tuple[list[int], list[int], list[int]]]:
    """Vectors, repeats and lanes along the looped dimensions: a dimension is either lanes' or a thread's."""
    extents, ones = known_extents(problem), [1] * problem.rank
    reads = [a for a in problem.arrays if not a.written and a.dims]
    inner = list(dict.fromkeys(a.order[0] for a in reads if a.order[0] in loop.dims))
    order = [*inner, *(d for d in reversed(loop.dims) if d not in inner)]
    for along in inner if len(inner) > 1 else ():
        nbytes = max(a.bytes for a in reads if a.order[0] == along)
        others = [d for d in order if d != along]
        width = widest(problem, along, [n & -n for n in extents])
        if not others or width == 1:
            continue
        for piece in PIECES:
            repeats = max(1, piece // (width * nbytes))
            if extents[along] % (width * repeats) == 0:
                vector, run = list(ones), list(ones)
                vector[along], run[along] = width, repeats
                yield vector, run, _lanes(extents, others)


def _lanes(extents: tuple[int, ...], order: list[int]) -> list[int]:
    """A warp's lanes along the first of some dimensions, as far as it reaches, then along the others."""
    lanes, left = [1] * len(extents), WARP
    for d in order:
        while left > 1 and lanes[d] * 2 <= extents[d]:
            lanes[d] *= 2
            left //= 2
    lanes[order[-1]] *= left
    return lanes


def _layout(
    problem: Problem,
    loop: PersistentLoopProblem,
    vector: list[int],
    run: list[int],
    lanes: list[int],
    warps: list[int],
    repeats: list[int],
    more: int,
) -> BlockedLayout:
    """A layout with so many more warps along the looped dimensions: along those that lanes do not fill, from the
    innermost one on.
    """
    extents, warps = known_extents(problem), list(warps)
    free = [d for d in reversed(loop.dims) if vector[d] * run[d] == 1] or list(loop.dims)
    for d in free:
        while more > 1 and lanes[d] * warps[d] * 2 <= extents[d]:
            warps[d] *= 2
            more //= 2
    warps[free[-1]] *= more
    held = [r * n for r, n in zip(repeats, run, strict=True)]
    return BlockedLayout(tuple(vector), tuple(lanes), tuple(warps), tuple(held), (1,) * problem.rank)


def _resident(problem: Problem, loop: PersistentLoopProblem, layout: BlockedLayout, target: Target) -> int:
    """Blocks of an SM whose registers hold the sums and what is read in a step; 0 for none."""
    sums = prod(layout.fragments(d) for d in range(problem.rank) if d not in loop.dims)
    reads = [_held_bytes(a, problem, layout) for a in problem.arrays if not a.written]
    held = loop.accumulator_bytes * sums + sum(reads)
    registers = round(problem.register_scale * (BASE_REGISTERS + held / REGISTER_BYTES))
    if registers > target.max_registers_per_thread or layout.threads > target.max_threads_per_block:
        return 0
    return resident_blocks(layout.threads, allocated(registers), target)


def _held_bytes(array: ArrayAccess, problem: Problem, layout: BlockedLayout) -> int:
    """Bytes of a thread's registers for what it reads of an array: one for each element that it reads alone."""
    alone = thread_access(array, layout, known_extents(problem)) == 1
    return held_elements(array, layout) * (max(REGISTER_BYTES, array.bytes) if alone else array.bytes)


def _complete(
    problem: Problem, loop: PersistentLoopProblem, layout: BlockedLayout, blocks: int, target: Target
) -> Schedule | None:
    """The schedule of a layout with so many blocks an SM; None if it is illegal."""
    tile = tuple(n if d in loop.dims else problem.extents[d] or n for d, n in enumerate(layout.extents))
    second_stage_tile, second_stage_layout, reads = choose_second_stage(problem, loop, layout, blocks, target)
    rounds_often = loop.wide and (problem.tiles(tile, loop.dims) or 0) > PERIOD * target.sms * blocks
    plan = PersistentLoop(
        loop.dims,
        "grid_sync",
        second_stage_tile,
        second_stage_layout,
        second_stage_reads=reads,
        period=PERIOD if rounds_often else 0,
        consecutive=True,
    )
    return legal_schedule(problem, Schedule(tile, layout, blocks_per_sm=blocks, persistent_loop=plan), target)
