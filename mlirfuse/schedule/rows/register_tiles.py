"""Schedules of reductions of which no array varies along the whole space: of pairs of rows, such as distances.

A thread has a register tile of results, as in a SIMT GEMM: what it reads of one array meets all that it reads of the
other. Lanes along contiguous memory read whole sectors, and the others lie along the results, so that a warp reads each
sector once for several of them, from the L1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.layout_builder import LayoutBuilder
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.predict.counts.accesses import held_elements
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.rows.streamed import leaves_remainders
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.target import SECTOR, Target

FEWEST_RESULTS, MOST_RESULTS = 8, 64
"""Results of a thread along the dimensions along which it reads arrays once."""

LONGEST_SIDE = 16
"""Results of a thread along one of these dimensions, at most."""

MOST_REGISTERS = 160
"""Registers of a thread for its results and what it reads in a step, at most."""

WARPS = (4, 8)
"""Warps of a block."""


def register_tile_schedules(problem: Problem, target: Target) -> Iterator[Schedule]:
    """Legal loops over what is reduced; none where an array that is read varies along the whole space."""
    if not problem.reduced or not problem.shares_reads:
        return
    for layout in dict.fromkeys(_layouts(problem)):
        schedule = Schedule(problem.tile_of(layout), layout, "multi_pass")
        if leaves_remainders(schedule, problem) or registers(problem, layout) > MOST_REGISTERS:
            continue
        if not check_schedule(schedule, problem.extents, problem.reduced, target):
            yield schedule


def registers(problem: Problem, layout: BlockedLayout) -> float:
    """Registers of a thread for partial results, and for what it reads in a step."""
    # What is reduced of extents that are known at run time is added up in two levels.
    levels = 2 if any(problem.extents[d] is None for d in problem.reduced) else 1
    results = [part.bytes * layout.held(part.kept) for part in problem.reductions]
    read = [max(REGISTER_BYTES, a.bytes) * held_elements(a, layout) for a in problem.reads]
    return problem.register_scale * (levels * sum(results) + sum(read)) / REGISTER_BYTES


def _layouts(problem: Problem) -> Iterator[BlockedLayout]:
    """Every register tile, with lanes along memory, most of them along results, or all of them along what is reduced,
    and warps along results, or along what is reduced.
    """
    inner, vector = problem.vector_dim, problem.vector
    kept, reduced = problem.outwards(problem.whole - problem.reduced), problem.outwards(problem.reduced)
    reads = [a for a in problem.reads if a.dims]
    reused = [d for d in kept if any(d not in a.dims for a in reads)]
    if inner in problem.reduced:
        vector = 1  # each element of a vector would have partial results of its own
        narrowest = min(a.bytes for a in reads)
        contiguous = [n * SECTOR // narrowest for n in (1, 2) if n * SECTOR // narrowest <= WARP]
    else:
        contiguous = [WARP, WARP // 4]
    along = [(inner, n) for n in contiguous] + [(d, WARP) for d in reduced if d != inner]
    for sides in _register_tiles(problem, reused):
        if sides[inner] % vector:
            continue
        for (first, lanes), warps, apart in product(along, WARPS, (False, True)):
            fill = LayoutBuilder(problem.extents, inner, vector)
            for d, side in enumerate(sides):
                fill.repeats[d] = side // fill.vector[d]
            fill.add_lanes(first, most=lanes)
            fill.deal_lanes([d for d in reused if d != inner] or reused)
            fill.add_lanes(*kept, *reduced)
            fill.rest_of_lanes(inner)
            fill.deal_warps(reduced if apart else reused, most=warps)
            fill.add_warps(*kept, *reduced, most=warps)
            yield fill.layout()


def _register_tiles(problem: Problem, reused: Sequence[int]) -> Iterator[list[int]]:
    """Results along two of the dimensions, or along one where there is no other: powers of two, or all of a few."""
    for number, first in enumerate(reused):
        for second in reused[number + 1 :] or (reused[:1] if len(reused) == 1 else ()):
            for one, other in product(_sides(problem, first), _sides(problem, second) if second != first else (1,)):
                sides = [1] * problem.rank
                sides[second], sides[first] = other, one
                if FEWEST_RESULTS <= one * other <= MOST_RESULTS:
                    yield sides


def _sides(problem: Problem, dim: int) -> list[int]:
    extent = problem.extents[dim] or LONGEST_SIDE
    whole = {extent} if extent <= LONGEST_SIDE else set()
    return sorted({1 << n for n in range(LONGEST_SIDE.bit_length()) if 1 << n <= extent} | whole)
