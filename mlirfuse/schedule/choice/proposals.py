"""Every family's candidates for one problem: legal schedules, in no order, none of them ranked.

`choice.py` takes the one that is predicted to be the fastest, `mlirfuse tune` measures them in that order, and
`benchmarks/candidates.py` measures a sample of them, by which predictions are judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mlirfuse.schedule.elementwise import elementwise_schedules
from mlirfuse.schedule.grid.candidates import row_loops
from mlirfuse.schedule.grid.persistent import grid_persistent_schedules
from mlirfuse.schedule.grid.products import product_loops
from mlirfuse.schedule.grid.second_stage import second_stages, with_grid_reduction
from mlirfuse.schedule.grid.sliding import sliding_loops
from mlirfuse.schedule.grid.wide_rows import column_schedule, finer_schedule
from mlirfuse.schedule.model.machine import BLOCK_THREADS, REGISTER_BYTES
from mlirfuse.schedule.model.residency import allocated, registers_left, resident_blocks
from mlirfuse.schedule.orders.candidates import flat_schedules, in_grid_orders, ordered_candidates, window_candidates
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.rows.candidates import column_tile_schedules, flat_rows, row_candidates
from mlirfuse.schedule.rows.chunked import (
    MULTI_PASS_CLUSTERS,
    chunk_fits_registers,
    multi_pass_schedule,
    narrow_multi_pass_schedule,
    shared_schedule,
)
from mlirfuse.schedule.rows.register_tiles import register_tile_schedules
from mlirfuse.schedule.rows.streamed import streamed_schedules
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.target import Target

COMPENSATED = 2
"""Registers beside each accumulator of sums that are compensated: the sum of the periods before, and what it lacks."""

MOST_SELECTIONS = 256
"""Elements of a thread, times the parts that each is selected among, at most: no loop repeats the code, which at edges
of parts has all of them.
"""


@dataclass(frozen=True)
class Proposal:
    """A legal schedule, and the family that proposes it."""

    family: str
    schedule: Schedule


def proposals(problem: Problem, target: Target, grid_reduction: str = "auto") -> Iterator[Proposal]:
    """The legal schedules of every family for a kernel without contractions, each once.

    Partials of persistent loops are combined as is asked; `auto` is all of `second_stages`.
    """
    yield from block_proposals(problem, target)
    for loop in loops(problem, target):
        for schedule in combined(loop, problem, target, grid_reduction):
            yield Proposal("loop", schedule)


def combined(loop: Schedule, problem: Problem, target: Target, grid_reduction: str) -> Iterator[Schedule]:
    """A persistent loop with each second stage that is asked for.

    Where a block compensates sums, fewer blocks leave its threads the registers for that.
    """
    for stage in second_stages(loop, grid_reduction):
        schedule = with_grid_reduction(loop, stage, target)
        if schedule.loop_part.compensates and problem.persistent_loop is not None:
            threads, elements = loop.layout.threads, loop.layout.elements_per_thread
            registers = registers_left(threads, loop.blocks_per_sm, target)
            registers += COMPENSATED * elements * problem.persistent_loop.accumulator_bytes // REGISTER_BYTES
            blocks = max(1, resident_blocks(threads, allocated(registers), target))
            schedule = with_grid_reduction(replace(loop, blocks_per_sm=blocks), stage, target)
        yield schedule


def block_proposals(problem: Problem, target: Target) -> Iterator[Proposal]:
    """All but persistent loops that a second stage follows, each once."""
    seen: set[Schedule] = set()
    for family, schedules in _families(problem, target):
        for schedule in schedules:
            if schedule not in seen and not check_schedule(schedule, problem.extents, problem.reduced, target):
                seen.add(schedule)
                yield Proposal(family, schedule)


def _families(problem: Problem, target: Target) -> Iterator[tuple[str, Iterable[Schedule]]]:
    needs_grid = problem.persistent_loop is not None and not problem.loop_is_optional
    if not problem.reduced:
        plain = elementwise_schedules(problem, target)
        family = "transposed" if problem.transposed else "elementwise"
        yield family, _of_few(problem, in_grid_orders(problem, plain))
        yield "ordered", _of_few(problem, in_grid_orders(problem, ordered_candidates(problem)))
        yield "flat", _of_few(problem, flat_schedules(problem))
        return
    if problem.grid_persistent is not None:
        yield "grid_persistent", grid_persistent_schedules(problem, problem.grid_persistent, target)
    if problem.needs_grid_persistent:
        return
    if not needs_grid:
        yield "windows", window_candidates(problem)
        yield "rows", row_candidates(problem, target)
        yield "flat", flat_rows(problem, target)
        yield "chunked", _chunked(problem, target)
        yield "streamed", streamed_schedules(problem, target)
        yield "register_tiles", register_tile_schedules(problem, target)
        yield "column_tiles", column_tile_schedules(problem, target)
    elif len({part.dims for part in problem.reductions if part.dims}) == 1:  # extents known at run time
        yield "streamed", streamed_schedules(problem, target)
    if problem.persistent_loop is not None:
        yield "columns", filter(None, [column_schedule(problem)])


def _of_few(problem: Problem, schedules: Iterable[Schedule]) -> Iterable[Schedule]:
    """Schedules of few elements a thread, where each is selected among parts of arrays, or those of the fewest."""
    if not problem.checks:
        return schedules
    found = {schedule: schedule.layout.elements_per_thread for schedule in schedules}
    most = max(MOST_SELECTIONS // problem.checks, min(found.values(), default=0))
    return [schedule for schedule, elements in found.items() if elements <= most]


def _chunked(problem: Problem, target: Target) -> Iterator[Schedule]:
    """Rows in chunks: kept in shared memory, or read again for every reduction."""
    if (shared := shared_schedule(problem, target)) is not None:
        yield shared
    rows_again = problem.live_bytes and problem.vector_dim in problem.reduced
    clusters = MULTI_PASS_CLUSTERS if rows_again else MULTI_PASS_CLUSTERS[:1]
    for threads in (*BLOCK_THREADS, target.max_threads_per_block):
        found = [
            multi_pass_schedule(problem, target, threads=threads, vectors=vectors, cluster=cluster)
            for vectors in (1, 2, 4)
            for cluster in clusters
        ]
        found += [narrow_multi_pass_schedule(problem, target, d, threads=threads) for d in sorted(problem.reduced)]
        yield from (schedule for schedule in found if chunk_fits_registers(schedule, problem, target))


def loops(problem: Problem, target: Target) -> Iterator[Schedule]:
    """Legal persistent loops over tiles of all families, each with one second stage of those it may have."""
    loop = problem.persistent_loop
    if loop is None:
        return
    yield from row_loops(problem, loop, target)
    yield from sliding_loops(problem, loop, target)
    yield from product_loops(problem, loop, target)
    finer = finer_schedule(problem, target)
    if finer is not None:
        yield finer
