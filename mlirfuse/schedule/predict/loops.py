"""The work of a persistent loop of resident blocks over tiles, and of adding up their partial results."""

from __future__ import annotations

from math import ceil, log2, prod

from mlirfuse.schedule.predict.exchanges import NONE, exchange
from mlirfuse.schedule.predict.facts import ACCESS_INSTRUCTIONS, SHUFFLE_CYCLES, SHUFFLE_INSTRUCTIONS
from mlirfuse.schedule.predict.space import element_bytes, known_extents, run_elements, sector_waste, tiles
from mlirfuse.schedule.predict.work import Work
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target


def loop_work(schedule: Schedule, problem: Problem, target: Target, registers: int | None) -> Work:
    """Blocks take tiles in turn; each leaves a partial result, and these are added up."""
    layout, extents, plan = schedule.layout, known_extents(problem), schedule.persistent_loop
    assert plan is not None
    loop = next(p for p in (problem.persistent_loop, problem.finer_loop) if p is not None and p.dims == plan.dims)
    total = prod(extents)
    parts = tiles(extents, schedule.tile, [d for d in range(len(extents)) if d not in plan.dims])
    every = tiles(extents, schedule.tile, plan.dims) * parts
    holds = max(1, schedule.blocks_per_sm)
    clusters = min(every, target.sms * holds // layout.cluster)
    steps = ceil(every / clusters)
    blocks = clusters * layout.cluster
    covered = every * prod(layout.extents)
    each = element_bytes(problem)
    read, written = total * problem.read_bytes, total * (problem.full_bytes - problem.read_bytes)
    waste = sector_waste(run_elements(extents, schedule.tile, problem.vector_dim) * each)
    inner = NONE
    for part in loop.inner_reductions:
        inner = inner + exchange(part, layout)
    once = NONE
    for part in problem.reductions:
        if part.dims <= frozenset(plan.dims):
            once = once + exchange(part, layout)
    lanes = prod(layout.lanes[d] for d in range(len(extents)) if d not in plan.dims)
    within = max(0, problem.dependent_reductions - 1) if loop.inner else 0
    kept = prod(extents[d] for d in loop.kept if d not in loop.dims)
    partials = clusters * kept * loop.accumulator_bytes
    rounds, serial = _second_stage(schedule, loop, extents, clusters, target)
    accesses = problem.full_bytes / each / max(layout.vector)
    ahead = max(1, plan.stages - 1)
    return Work(
        blocks=blocks,
        cluster=layout.cluster,
        threads=layout.threads,
        resident=holds,
        read=read,
        written=written,
        l2_read=read * waste + partials + blocks * prod(schedule.tile) / layout.cluster * loop.column_bytes,
        l2_written=written * waste + partials,
        shared=inner.shared * every * layout.cluster + once.shared * blocks + (2 * read if plan.stages > 1 else 0),
        dsmem=inner.dsmem * every * layout.cluster + once.dsmem * blocks,
        instructions=covered * (problem.instructions + ACCESS_INSTRUCTIONS * accesses)
        + SHUFFLE_INSTRUCTIONS * (inner.shuffles * every * layout.cluster + once.shuffles * blocks),
        special=covered * problem.special,
        double=covered * problem.double,
        rounds=1 + (steps - 1) / ahead,
        cycles=steps * within * SHUFFLE_CYCLES * log2(lanes)
        + steps * layout.elements_per_thread * problem.instructions,
        barriers=steps * within * (1 if inner.meets else 0) + steps * (plan.stages > 1),
        cluster_barriers=steps * within * (1 if inner.joins else 0) + (1 if layout.cluster > 1 else 0),
        grid_barriers=int(plan.grid_reduction == "grid_sync"),
        messages=int(plan.grid_reduction in ("last_block", "atomics")),
        reads=rounds,
        serial=serial,
        kernels=2 if plan.grid_reduction == "second_kernel" else 1,
    )


def _second_stage(
    schedule: Schedule, loop: PersistentLoopProblem, extents: tuple[int, ...], clusters: int, target: Target
) -> tuple[int, float]:
    """Latencies of reads of partials, one after the other, and bytes that one block reads."""
    plan = schedule.persistent_loop
    assert plan is not None
    kept = sorted(loop.kept - set(loop.dims))
    slices = tiles(extents, plan.second_stage_tile, kept)
    each = ceil(clusters / (plan.second_stage_tile[plan.dims[0]] * plan.second_stage_reads))
    nbytes = clusters * prod(extents[d] for d in kept) * loop.accumulator_bytes
    if plan.grid_reduction in ("last_block", "atomics"):
        return each * slices, float(nbytes)
    return each * ceil(slices / clusters), nbytes / max(1, min(slices, clusters))
