"""The schedules that keep the least in registers, for kernels whose other schedules spill: pure functions, no IR."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from mlirfuse.errors import ScheduleError
from mlirfuse.schedule.choice.choice import choose_schedule
from mlirfuse.schedule.elementwise import elementwise_schedule
from mlirfuse.schedule.grid.persistent import grid_persistent_schedules
from mlirfuse.schedule.model.machine import BLOCK_THREADS
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.rows.chunked import chunk_fits_registers, multi_pass_schedule, narrow_multi_pass_schedule
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

DOUBLINGS = 6
"""How often the estimated registers are doubled, in search of the persistent loop that keeps the least in registers."""


def low_register_schedules(problem: Problem, target: Target, grid_reduction: str) -> Iterator[Schedule]:
    """Schedules of the family that holds the least, with fewer elements a thread from one to the next.

    Elementwise kernels have narrow vectors of arrays that are not transposed; rows are read again for every reduction,
    so that no element lives across one; persistent loops spread a row over as many threads as can hold it, and grids
    that visit their tiles twice have the smallest tiles. One block an SM is asked for: left to itself, ptxas may aim at
    fewer registers than it has, and spill around calls.
    """
    if not problem.reduced:
        plain = replace(problem, transposed=None)
        yield from (_alone(elementwise_schedule(narrow)) for narrow in (*_narrower(plain), plain))
        return
    if problem.grid_persistent is not None and problem.needs_grid_persistent:
        found = grid_persistent_schedules(problem, problem.grid_persistent, target)
        alone = (schedule for schedule in found if schedule.blocks_per_sm == 1)
        yield from sorted(alone, key=lambda schedule: schedule.layout.elements_per_thread)
        return
    yield from map(_alone, _multi_pass(problem, target))
    if problem.persistent_loop is not None:
        for narrow in (*_narrower(problem), problem):
            yield from _leanest_loop(narrow, target, grid_reduction)


def _alone(schedule: Schedule) -> Schedule:
    """The schedule with all registers of an SM for one block."""
    return replace(schedule, blocks_per_sm=1)


def _narrower(problem: Problem) -> Iterator[Problem]:
    """The problem with vectors of half as many elements, again and again; those of one element last."""
    while problem.vector > 1:
        problem = replace(problem, vector=problem.vector // 2, unaligned_vector=0, line=0)
        yield problem


def _multi_pass(problem: Problem, target: Target) -> Iterator[Schedule]:
    """Rows that are read again for every reduction: a vector a thread, of few threads, and then narrower vectors.

    Then, as reduced dimensions that are not chunked stay whole in every tile, chunks of the fewest elements a thread,
    along each dimension that may be chunked: along which memory is contiguous last.
    """
    narrower = list(_narrower(problem))
    loop = problem.persistent_loop
    if loop is None or problem.loop_is_optional or problem.reduced == set(loop.dims):
        yield multi_pass_schedule(problem, target)
        for narrow in (problem, *narrower):
            yield multi_pass_schedule(narrow, target, threads=BLOCK_THREADS[0], vectors=1)
    for chunked in sorted(_chunkable(problem), key=lambda d: (d == problem.vector_dim, d)):
        for narrow in (problem, *narrower):
            schedule = narrow_multi_pass_schedule(narrow, target, chunked, threads=BLOCK_THREADS[0])
            if chunk_fits_registers(schedule, narrow, target):  # else as much is spilled, in far more code
                yield schedule


def _chunkable(problem: Problem) -> frozenset[int]:
    """The dimensions that every reduction runs over: of the others, a chunk has results that later chunks lack.

    Where an extent is dynamic, that dimension alone, of which no tile holds all.
    """
    dynamic = {d for d in problem.reduced if problem.extents[d] is None}
    dims = frozenset.intersection(*(each.dims for each in problem.reductions)) if problem.reductions else frozenset()
    return dims & (dynamic or dims) if len(dynamic) < 2 else frozenset()


def _leanest_loop(problem: Problem, target: Target, grid_reduction: str) -> Iterator[Schedule]:
    """The persistent loop for the largest register estimate for which there is one."""
    factor, leanest = problem.register_scale, None
    with suppress(ScheduleError):
        for _ in range(DOUBLINGS):
            schedule = choose_schedule(replace(problem, register_scale=factor), target, grid_reduction)
            if schedule.persistent_loop is None:
                break
            leanest = schedule
            factor *= 2
    if leanest is not None:
        yield leanest
