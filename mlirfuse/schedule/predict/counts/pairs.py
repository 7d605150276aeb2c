"""What is counted for blocks that loop over what is reduced, of arrays of which none varies along the whole space: of
pairs of rows, for one. The results of a thread's register tile share what it reads.
"""

from __future__ import annotations

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.model.loops import steps_at_once
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.schedule.predict.counts.accesses import held_elements, thread_access
from mlirfuse.schedule.predict.counts.instructions import add_shared_elements
from mlirfuse.schedule.predict.counts.space import known_extents
from mlirfuse.schedule.predict.counts.windows import unevenness
from mlirfuse.schedule.predict.facts import (
    ACCESS_INSTRUCTIONS,
    DEPENDENT_CYCLES,
    SPECIAL_INSTRUCTIONS,
    THREAD_INSTRUCTIONS,
)
from mlirfuse.schedule.predict.work import Work
from mlirfuse.schedule.problem import Problem


def in_steps(problem: Problem) -> tuple[list[ArrayAccess], list[ArrayAccess]]:
    """The arrays that each step of the loop reads, and those that no step changes, which are read before."""
    looped = [a for a in problem.reads if not problem.reduced.isdisjoint(a.dims)]
    return looped, [a for a in problem.reads if a not in looped]


def unrolled_steps(problem: Problem, layout: BlockedLayout, steps: int) -> int:
    """Of so many steps those that become one (`fuse-unroll-loops`)."""
    extents, (looped, _) = known_extents(problem), in_steps(problem)
    loads = [held_elements(a, layout) / thread_access(a, layout, extents) for a in looped]
    uses = [layout.elements_per_thread / held_elements(a, layout) for a in looped]
    code = _computing(problem, layout)
    return min(steps, steps_at_once(max(loads, default=1.0), code, min(uses, default=1.0)))


def add_pairs(work: Work, problem: Problem, layout: BlockedLayout, steps: int, at_once: int) -> float:
    """Adds the instructions for so many steps of each block, of which some become one, and share addresses.

    Returns:
        Instructions of one thread in a step that wait for one another: for one element, or a warp's own, of which it
        issues one a cycle.
    """
    looped, stays = in_steps(problem)
    share = ACCESS_INSTRUCTIONS / at_once + 1 - 1 / at_once  # each load is an instruction of its own
    loading = _reading(problem, looped, layout, share)
    of_step = loading + _computing(problem, layout)
    before = THREAD_INSTRUCTIONS + _reading(problem, stays, layout, ACCESS_INSTRUCTIONS)
    threads, uneven = work.blocks * work.threads, unevenness(work)
    covered = steps * threads * layout.elements_per_thread
    work.instructions += threads * before + uneven * threads * steps * (loading + _each(problem, layout))
    work.special += covered * problem.special
    work.double += covered * problem.double
    add_shared_elements(work, problem, layout, problem.reduced, steps)
    work.instructions += work.special  # which are issued as well: these kernels are bound by that
    shared = sum(s.instructions + SPECIAL_INSTRUCTIONS * s.special for s in problem.shared_instructions)
    return max(problem.sliding_instructions[0] + shared, of_step / DEPENDENT_CYCLES)


def _reading(problem: Problem, arrays: list[ArrayAccess], layout: BlockedLayout, access: float) -> float:
    """Instructions of a thread to read arrays, and for what is computed of each element alone."""
    extents, (_, read), taps = known_extents(problem), problem.sliding_instructions, sum(a.taps for a in problem.reads)
    return sum((access / thread_access(a, layout, extents) + read / taps) * held_elements(a, layout) for a in arrays)


def _each(problem: Problem, layout: BlockedLayout) -> float:
    """Instructions of a thread in a step for each element of the space."""
    return problem.sliding_instructions[0] * layout.elements_per_thread


def _computing(problem: Problem, layout: BlockedLayout) -> float:
    """Instructions of a thread in a step beside reading, what elements share included."""
    shared = [s for s in problem.shared_instructions if not s.dims.isdisjoint(problem.reduced)]
    return _each(problem, layout) + sum(layout.held(s.dims) * s.instructions for s in shared)
