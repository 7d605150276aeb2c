"""The work of a persistent loop of resident blocks over tiles, and of adding up their partial results."""

from __future__ import annotations

from functools import lru_cache
from math import ceil, prod

from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from mlirfuse.schedule.predict.counts.accesses import add_strided
from mlirfuse.schedule.predict.counts.instructions import (
    STEP_INSTRUCTIONS,
    add_elements,
    add_exchanges,
    add_repeated,
    add_shared_elements,
    exchanges,
    own_waits,
    shared_out,
)
from mlirfuse.schedule.predict.counts.space import accesses, arrays, known_extents, tiles, wastes
from mlirfuse.schedule.predict.counts.windows import add_sliding_elements, add_sliding_traffic, shares
from mlirfuse.schedule.predict.work import LAST_BLOCK_MESSAGES, Device, Work
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem, RowReduction
from mlirfuse.schedule.schedule import Schedule


def loop_work(schedule: Schedule, problem: Problem, device: Device, registers: int | None) -> Work:
    """Blocks take tiles in turn; each leaves a partial result, and these are added up."""
    layout, extents, plan = schedule.layout, known_extents(problem), schedule.loop_part
    every = tiles(extents, schedule.tile, range(len(extents)))
    resident = device.asked(schedule, registers)
    slots = max(1, device.machine.sms_with(layout.cluster) * resident // layout.cluster)
    # A second kernel's host launches as many blocks as all SMs would hold, and each leaves a partial result.
    clusters = plan.blocks or min(every, slots)
    work = device.work(layout, clusters, resident)
    total = prod(extents)
    work.read, work.written = total * problem.read_bytes, total * (problem.full_bytes - problem.read_bytes)
    loop = next(p for p in (problem.persistent_loop, problem.finer_loop) if p is not None and p.dims == plan.dims)
    steps = ceil(ceil(every / plan.slices) / (clusters // plan.slices))
    if shares(problem):
        add_sliding_traffic(work, schedule, problem, extents, steps, device)
    else:
        _traffic(work, schedule, problem, extents, clusters * prod(schedule.tile) * loop.column_bytes)
    _steps(work, schedule, problem, loop, every, steps)
    stored = ceil(every / clusters / plan.period) if plan.period and not plan.compensates else 1
    partials = clusters // plan.slices * stored
    _second_stage(work, plan, problem, loop, extents, partials, slots)
    return work


def _traffic(work: Work, schedule: Schedule, problem: Problem, extents: tuple[int, ...], columns: int) -> None:
    """Adds the bytes of accesses, and of what all tiles share, which each block reads once."""
    sectors, written, lines = wastes(schedule, problem, extents)
    copies = 2 if schedule.loop_part.stages > 1 else 1  # to shared memory, and from it
    work.l2_read = work.read * sectors + columns
    work.l2_written = work.written * written
    work.l1 = (work.read * copies + work.written) * lines


def _steps(
    work: Work, schedule: Schedule, problem: Problem, loop: PersistentLoopProblem, every: int, steps: int
) -> None:
    """Adds the instructions and waits of so many tiles, of which one block has so many steps."""
    layout, plan = schedule.layout, schedule.loop_part
    inside, outside = _inside(problem, loop) if loop.inner else ((), problem.reductions)
    inner, once = exchanges(inside, layout, problem), exchanges(outside, layout, problem)
    within = max(1, problem.dependent_reductions - 1) if inside else 0
    staged = plan.stages > 1
    covered = every * prod(layout.extents)
    waits = own_waits(problem, layout)
    if shares(problem):
        waits = add_sliding_elements(work, schedule, problem, covered)
    else:
        reads, writes = arrays(problem)
        count = accesses((*reads, *writes), max(layout.vector)) * (2 if staged else 1)
        count += add_strided(work, schedule, problem, known_extents(problem)) / covered
        add_elements(work, problem, covered, count)
    add_shared_elements(work, problem, layout, loop.dims, every * layout.cluster / work.blocks)
    work.instructions += every * layout.threads * layout.cluster * STEP_INSTRUCTIONS
    if schedule.order == "depth":  # elements are as narrow as in memory across a reduction, and are converted anew
        add_repeated(work, problem, covered)
    if plan.columns == "shared":
        work.shared += covered * loop.column_bytes
    add_exchanges(work, inner, every * layout.cluster)
    add_exchanges(work, once, work.blocks)
    work.rounds = 1 + (steps - 1) / max(1, plan.stages - 1)
    work.waits = steps * (waits + inner.waits) + once.waits
    work.barriers = steps * within * inner.meets + once.meets
    work.cluster_barriers = steps * within * inner.joins
    work.releases = steps * inner.joins * (work.written > 0)
    work.steps, work.ahead, work.iterations = steps, plan.stages - 1, steps


@lru_cache(maxsize=64)
def _inside(problem: Problem, loop: PersistentLoopProblem) -> tuple[tuple[RowReduction, ...], tuple[RowReduction, ...]]:
    """The reductions that each tile has of its own, and those that the loop adds up."""
    inside = tuple(part for part in problem.reductions if not part.dims <= set(loop.dims))
    return inside, tuple(part for part in problem.reductions if part not in inside)


def _second_stage(
    work: Work,
    plan: PersistentLoop,
    problem: Problem,
    loop: PersistentLoopProblem,
    extents: tuple[int, ...],
    partials: int,
    slots: int,
) -> None:
    """Adds how partial results are combined: slices of the columns, of which all partials are read in some rounds.

    All resident clusters share in the slices, whether they had tiles or not, or one has them all.
    """
    kept = [d for d in loop.kept if d not in loop.dims]
    slices = tiles(extents, plan.second_stage_tile, kept)
    whole = prod([extents[d] for d in kept])
    _, outside = _inside(problem, loop)
    absent = sum(part.bytes * (whole - prod([extents[d] for d in kept if d in part.kept])) for part in outside)
    nbytes = partials * max(0, whole * loop.accumulator_bytes - absent)
    work.l2_read += nbytes
    work.l2_written += nbytes
    rounds = ceil(partials / (plan.second_stage_tile[plan.dims[0]] * plan.second_stage_reads))
    alone = plan.grid_reduction in ("last_block", "atomics")
    in_turn = slices if alone else ceil(slices / slots)
    work.reads = rounds * in_turn
    work.serial = nbytes / work.cluster * in_turn / slices
    first, own = plan.dims[0], plan.second_stage_layout
    if own.warps[first] > 1:
        each = own.elements_per_thread * loop.accumulator_bytes * shared_out(own.warps[first], own.lanes[first])
        work.gathered = work.reads * own.threads * each
    work.grid_barriers = int(plan.grid_reduction == "grid_sync")
    work.messages = LAST_BLOCK_MESSAGES * alone
    work.kernels = 2 if plan.has_second_kernel else 1
