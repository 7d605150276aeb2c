"""Schedules of reductions over any dimensions in any memory order: blocks stream what they reduce, in loops.

Lanes follow memory: along the dimension in which it is contiguous, whether reduced or kept, then along the next ones.
A block has a tile of what is kept and loops over what is reduced, so that its code does not grow with extents. Warps
along what is kept have nothing to exchange; warps along what is reduced make more blocks of few results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import prod

from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.layout_builder import LayoutBuilder
from mlirfuse.schedule.model.machine import BLOCK_THREADS, REGISTER_BYTES, WIDEST_ACCESS
from mlirfuse.schedule.model.registers import HELD_REGISTERS
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.target import LINE, Target

MOST_FRAGMENTS = 16
"""Loads of a thread under way, at most: more of narrow ones gain nothing."""

FEWEST_BLOCKS = 2
"""Blocks for each SM, at least, that loop over run-time extents without sharing them with other blocks."""

FEWER = 4
"""Share of the fragments that fit a thread's registers, as its inverse, that other candidates load at once: more blocks
fit an SM then."""


def streamed_schedules(problem: Problem, target: Target, *, few: bool = False) -> tuple[Schedule, ...]:
    """Schedules of blocks that loop over the reduced dimensions.

    None where nothing is reduced, or where rows along contiguous memory are needed again, which other families keep on
    chip.

    Args:
        problem: the kernel's iteration space and traffic; all reductions are over the same dimensions.
        target: the architecture.
        few: whether only a sample is wanted, which tells how fast a problem can be: blocks of one size, whose warps lie
            all along what is kept or all along what is reduced, with the most loads under way.
    """
    return _legal(replace(problem, register_scale=1.0), target, few)


@lru_cache(maxsize=8)  # choices that are made again after spills only estimate other registers
def _legal(problem: Problem, target: Target, few: bool) -> tuple[Schedule, ...]:
    if not problem.reduced or (problem.live_bytes and problem.vector_dim in problem.reduced):
        return ()
    return tuple(
        schedule
        for schedule in dict.fromkeys(_splits(problem, target, few=few))
        if not leaves_remainders(schedule, problem)
        and not _leaves_sms_idle(schedule, problem, target)
        and not check_schedule(schedule, problem.extents, problem.reduced, target)
    )


def _splits(problem: Problem, target: Target, *, few: bool) -> Iterator[Schedule]:
    """Lanes along contiguous memory, the others along memory or along what is reduced, and warps along either."""
    most = _most_fragments(problem)
    for contiguous in sorted(_contiguous_lanes(problem)):
        for along_memory in (True, False) if contiguous < WARP and not few else (True,):
            for threads in BLOCK_THREADS[:1] if few else BLOCK_THREADS:
                warps = min(threads, target.max_threads_per_block) // WARP
                for kept in {1, warps} if few else {1, 1 << warps.bit_length() // 2, warps}:
                    for fragments in {most} if few else {most, max(1, most // FEWER)}:
                        yield _schedule(problem, contiguous, along_memory, (kept, warps // kept), fragments)


def _most_fragments(problem: Problem) -> int:
    """Vectors that a thread can add up side by side; a power of two."""
    # What is reduced of extents that are known at run time is added up in two levels.
    levels = 2 if any(problem.extents[d] is None for d in problem.reduced) else 1
    each = levels * sum(part.bytes for part in problem.reductions) + problem.read_bytes
    most = HELD_REGISTERS * REGISTER_BYTES // (each * problem.vector)
    return min(MOST_FRAGMENTS, 1 << max(1, most).bit_length() - 1)


def _contiguous_lanes(problem: Problem) -> set[int]:
    """Lanes along contiguous memory: as many as have work, as many as leave none idle, and those of a cache line."""
    extent = problem.extents[problem.vector_dim]
    vectors = WARP if extent is None else -(-extent // problem.vector)
    most = min(WARP, 1 << (vectors - 1).bit_length())
    return {most, min(most, vectors & -vectors), min(most, LINE // WIDEST_ACCESS)}


def _schedule(
    problem: Problem, contiguous: int, along_memory: bool, warps: tuple[int, int], fragments: int
) -> Schedule:
    """A schedule of so many lanes along contiguous memory, warps along what is kept and what is reduced, and fragments
    of a thread; what finds no room along its dimensions goes to the others.
    """
    fill = LayoutBuilder(problem.extents, problem.vector_dim, problem.vector)
    first, *others = problem.outwards(range(problem.rank))
    reduced = problem.outwards(problem.reduced)
    kept = [d for d in (first, *others) if d not in problem.reduced]
    fill.add_lanes(first, most=contiguous)
    fill.add_lanes(*(others if along_memory else sorted(others, key=lambda d: d not in problem.reduced)))
    fill.rest_of_lanes(first)
    fill.add_warps(*kept, most=warps[0])
    fill.add_warps(*reduced, *kept, most=prod(warps))
    for dim in (*reduced, *kept):
        room = fragments // prod(fill.repeats)
        fill.repeats[dim] *= 1 << min(room, fill.left(dim)).bit_length() - 1
    layout = fill.layout()
    return Schedule(problem.tile_of(layout), layout, "multi_pass")


def _leaves_sms_idle(schedule: Schedule, problem: Problem, target: Target) -> bool:
    """Whether blocks are too few for long run-time extents, which a persistent loop shares between blocks."""
    if not any(problem.extents[d] is None for d in problem.reduced):
        return False
    blocks = problem.tiles(schedule.tile, set(range(problem.rank)) - problem.reduced)
    return blocks is not None and blocks < FEWEST_BLOCKS * target.sms


def leaves_remainders(schedule: Schedule, problem: Problem) -> bool:
    """Whether tiles leave remainders in several reduced dimensions, of which loops allow one."""
    sizes = ((problem.extents[d], schedule.tile[d]) for d in problem.reduced)
    return sum(size > 1 and (extent is None or extent % size > 0) for extent, size in sizes) > 1
