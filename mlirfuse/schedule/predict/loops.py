"""The work of a persistent loop of resident blocks over tiles, and of adding up their partial results."""

from __future__ import annotations

from math import ceil, prod

from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from mlirfuse.schedule.predict.device import Device
from mlirfuse.schedule.predict.exchanges import exchanges, shared_out
from mlirfuse.schedule.predict.facts import ACCESS_INSTRUCTIONS, INDEPENDENT, SPECIAL_INSTRUCTIONS
from mlirfuse.schedule.predict.space import (
    element_bytes,
    known_extents,
    line_waste,
    runs,
    sector_waste,
    tiles,
    warp_part,
)
from mlirfuse.schedule.predict.work import Work
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem
from mlirfuse.schedule.schedule import Schedule


def loop_work(schedule: Schedule, problem: Problem, device: Device, registers: int | None) -> Work:
    """Blocks take tiles in turn; each leaves a partial result, and these are added up."""
    layout, extents, plan = schedule.layout, known_extents(problem), schedule.persistent_loop
    assert plan is not None
    loop = next(p for p in (problem.persistent_loop, problem.finer_loop) if p is not None and p.dims == plan.dims)
    total = prod(extents)
    every = tiles(extents, schedule.tile, range(len(extents)))
    resident = max(1, schedule.blocks_per_sm)
    if registers is not None:
        resident = min(resident, device.resident(layout.threads, registers))
    sms = device.sms(layout.cluster)
    # A second kernel's host launches as many blocks as all SMs would hold, and each leaves a partial result.
    slots = sms * resident // layout.cluster
    clusters = plan.blocks or min(every, slots)
    steps = ceil(every / clusters)
    blocks = clusters * layout.cluster
    covered = every * prod(layout.extents)
    each = element_bytes(problem)
    read, written = total * problem.read_bytes, total * (problem.full_bytes - problem.read_bytes)
    work = Work(blocks, layout.cluster, layout.threads, resident, sms, read, written)
    inside = [part for part in problem.reductions if not part.dims <= set(plan.dims)] if loop.inner else []
    inner = exchanges(inside, layout, problem)
    once = exchanges([part for part in problem.reductions if part not in inside], layout, problem)
    within = max(1, problem.dependent_reductions - 1) if inside else 0
    kept = prod([extents[d] for d in loop.kept if d not in loop.dims])
    partials = clusters * kept * loop.accumulator_bytes
    warp_run, warps_apart = (n * each for n in runs(extents, warp_part(schedule), problem.vector_dim))
    staged = plan.stages > 1
    tile_run, tiles_apart = (n * each for n in runs(extents, schedule.tile, problem.vector_dim))
    work.l2_read = read * sector_waste(tile_run, tiles_apart) + partials
    work.l2_read += clusters * prod(schedule.tile) * loop.column_bytes
    work.l2_written = written * sector_waste(warp_run, warps_apart) + partials
    work.l1 = (read * (2 if staged else 1) + written) * line_waste(warp_run, warps_apart)
    work.shared = inner.shared * every * layout.cluster + once.shared * blocks
    work.dsmem = inner.dsmem * every * layout.cluster + once.dsmem * blocks
    accesses = problem.full_bytes / each / max(layout.vector) * (2 if staged else 1)
    work.instructions = covered * (problem.instructions + ACCESS_INSTRUCTIONS * accesses)
    work.instructions += inner.instructions * every * layout.cluster + once.instructions * blocks
    work.special = covered * problem.special + inner.special * every * layout.cluster + once.special * blocks
    work.double = covered * problem.double
    own = INDEPENDENT * layout.elements_per_thread * (problem.instructions + SPECIAL_INSTRUCTIONS * problem.special)
    work.rounds = 1 + (steps - 1) / max(1, plan.stages - 1)
    work.waits = steps * (own + inner.waits) + once.waits
    work.barriers = steps * (within * inner.meets) + once.meets
    work.cluster_barriers = steps * within * inner.joins
    work.releases = steps * inner.joins * (written > 0)
    work.ahead = staged
    _second_stage(work, plan, loop, extents, clusters, slots)
    return work


def _second_stage(
    work: Work,
    plan: PersistentLoop,
    loop: PersistentLoopProblem,
    extents: tuple[int, ...],
    clusters: int,
    slots: int,
) -> None:
    """Adds how partial results are combined: slices of the columns, of which all partials are read in some rounds.

    All resident clusters share in the slices, whether they had tiles or not, or one has them all.
    """
    kept = [d for d in loop.kept if d not in loop.dims]
    slices = tiles(extents, plan.second_stage_tile, kept)
    rounds = ceil(clusters / (plan.second_stage_tile[plan.dims[0]] * plan.second_stage_reads))
    alone = plan.grid_reduction in ("last_block", "atomics")
    in_turn = slices if alone else ceil(slices / slots)
    work.reads = rounds * in_turn
    work.serial = clusters * prod([extents[d] for d in kept]) * loop.accumulator_bytes / work.cluster * in_turn / slices
    first, own = plan.dims[0], plan.second_stage_layout
    if own.warps[first] > 1:
        each = own.elements_per_thread * loop.accumulator_bytes * shared_out(own.warps[first], own.lanes[first])
        work.gathered = work.reads * own.threads * each
    work.grid_barriers = int(plan.grid_reduction == "grid_sync")
    work.messages = int(alone)
    work.kernels = 2 if plan.grid_reduction == "second_kernel" else 1
