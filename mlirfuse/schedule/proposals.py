"""Every family's candidates for one problem: legal schedules, in no order, none of them ranked.

`benchmarks/candidates.py` measures them, and the cost model is judged by what it says of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mlirfuse.schedule.grid.candidates import grid_candidates
from mlirfuse.schedule.grid.heuristics import complete
from mlirfuse.schedule.grid.second_stage import with_grid_reduction
from mlirfuse.schedule.grid.wide_rows import column_schedule, finer_schedule
from mlirfuse.schedule.heuristics import elementwise_schedule
from mlirfuse.schedule.orders.candidates import ordered_candidates
from mlirfuse.schedule.orders.windows import window_candidates
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.rows.candidates import row_candidates
from mlirfuse.schedule.rows.chunked import multi_pass_schedule, narrow_multi_pass_schedule, shared_schedule
from mlirfuse.schedule.rows.column_tiles import column_tile_schedule
from mlirfuse.schedule.rows.streamed import streamed_schedules
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.target import Target

GRID_STAGES = ("grid_sync", "last_block", "second_kernel")
"""Second stages of a grid reduction that give the same bits on every run."""

CHUNK_THREADS = (128, 256, 512, 1024)


@dataclass(frozen=True)
class Proposal:
    """A legal schedule, and the family that proposes it."""

    family: str
    schedule: Schedule


def proposals(problem: Problem, target: Target) -> Iterator[Proposal]:
    """The legal schedules of every family for a kernel without contractions, each once.

    Args:
        problem: the kernel's iteration space and traffic.
        target: the architecture.
    """
    seen: set[Schedule] = set()
    for family, schedules in _families(problem, target):
        for schedule in schedules:
            if schedule in seen or check_schedule(schedule, problem.extents, problem.reduced, target):
                continue
            seen.add(schedule)
            yield Proposal(family, schedule)


def _families(problem: Problem, target: Target) -> Iterator[tuple[str, Iterable[Schedule]]]:
    needs_grid = problem.persistent_loop is not None and not problem.loop_is_optional
    if not problem.reduced:
        yield "transposed" if problem.transposed else "elementwise", _elementwise(problem)
        return
    if not needs_grid:
        yield "windows", window_candidates(problem)
        yield "rows", (candidate.schedule for candidate in row_candidates(problem, target))
        yield "chunked", _chunked(problem, target)
        yield "streamed", streamed_schedules(problem, target)
        yield "column_tiles", filter(None, [column_tile_schedule(problem, target)])
    elif len({part.dims for part in problem.reductions if part.dims}) == 1:  # extents known at run time
        yield "streamed", streamed_schedules(problem, target)
    if problem.persistent_loop is not None:
        yield "columns", filter(None, [column_schedule(problem)])
        yield "loop", _loops(problem, target)


def _elementwise(problem: Problem) -> Iterator[Schedule]:
    """With vectors of every width, and without tiles that are transposed through shared memory."""
    yield from ordered_candidates(problem)
    while True:
        yield elementwise_schedule(problem)
        yield elementwise_schedule(replace(problem, transposed=None))
        if problem.vector == 1:
            return
        problem = replace(problem, vector=problem.vector // 2)


def _chunked(problem: Problem, target: Target) -> Iterator[Schedule]:
    """Rows in chunks: kept in shared memory, or read again for every reduction."""
    if (shared := shared_schedule(problem, target)) is not None:
        yield shared
    for threads in CHUNK_THREADS:
        for vectors in (1, 2, 4):
            yield multi_pass_schedule(problem, target, threads=threads, vectors=vectors)
        for dim in sorted(problem.reduced):
            yield narrow_multi_pass_schedule(problem, target, dim, threads=threads)


def _loops(problem: Problem, target: Target) -> Iterator[Schedule]:
    """Persistent loops over whole rows and parts of rows, with every second stage."""
    assert problem.persistent_loop is not None
    found = []
    if all(extent is not None for d, extent in enumerate(problem.extents) if d not in problem.persistent_loop.dims):
        candidates = grid_candidates(problem, problem.persistent_loop, target, 1.0)
        found = [complete(problem, problem.persistent_loop, candidate, target) for candidate in candidates]
    for schedule in (*found, finer_schedule(problem, target)):
        if schedule is not None:
            for stage in GRID_STAGES:
                yield with_grid_reduction(schedule, stage, target)
