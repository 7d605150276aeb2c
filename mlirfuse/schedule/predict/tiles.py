"""The work of blocks with one tile each: elementwise kernels, and rows in registers."""

from __future__ import annotations

from math import log2, prod

from mlirfuse.schedule.predict.exchanges import NONE, exchange
from mlirfuse.schedule.predict.facts import ACCESS_INSTRUCTIONS, SHUFFLE_CYCLES, SHUFFLE_INSTRUCTIONS
from mlirfuse.schedule.predict.space import element_bytes, known_extents, resident, run_elements, sector_waste, tiles
from mlirfuse.schedule.predict.work import Work
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target


def tile_work(schedule: Schedule, problem: Problem, target: Target, registers: int | None) -> Work:
    """One tile a block or cluster, whose loads are all under way at once."""
    layout, extents = schedule.layout, known_extents(problem)
    rank = len(extents)
    total = prod(extents)
    clusters = tiles(extents, schedule.tile, range(rank))
    blocks = clusters * layout.cluster
    covered = clusters * prod(layout.extents)
    each = element_bytes(problem)
    read, written = total * problem.read_bytes, total * (problem.full_bytes - problem.read_bytes)
    waste = sector_waste(run_elements(extents, schedule.tile, problem.vector_dim) * each)
    exchanged = NONE
    for part in problem.reductions:
        exchanged = exchanged + exchange(part, layout)
    reductions = max(1, problem.dependent_reductions) if problem.reduced else 0
    lanes = prod(layout.lanes[d] for d in problem.reduced) if reductions else 1
    columns = (
        total / prod(n for d, n in enumerate(schedule.tile) if d not in problem.reduced) * problem.column_bytes
        if reductions
        else 0.0
    )
    accesses = (problem.full_bytes + problem.column_bytes) / each / max(layout.vector)
    shared = 0.0
    l2_read, l2_written = read * waste + columns, written * waste
    if problem.transposed is not None:
        t = problem.transposed
        if schedule.transposed is not None:
            shared = 2.0 * total * t.bytes
        else:
            run = min(schedule.tile[t.dim], extents[t.dim]) * t.narrowest
            l2_read += total * t.bytes * (sector_waste(run) - 1)
            accesses += t.bytes / t.narrowest * (1 - 1 / max(layout.vector))
    return Work(
        blocks=blocks,
        cluster=layout.cluster,
        threads=layout.threads,
        resident=resident(schedule, problem, target, registers),
        read=read,
        written=written,
        l2_read=l2_read,
        l2_written=l2_written,
        shared=exchanged.shared * blocks + shared,
        dsmem=exchanged.dsmem * blocks,
        instructions=covered * (problem.instructions + ACCESS_INSTRUCTIONS * accesses)
        + SHUFFLE_INSTRUCTIONS * exchanged.shuffles * blocks,
        special=covered * problem.special,
        double=covered * problem.double,
        rounds=1.0,
        l2_rounds=1.0 if problem.column_bytes - problem.early_column_bytes > 0 and reductions else 0.0,
        cycles=reductions * SHUFFLE_CYCLES * log2(lanes) + 4 * layout.elements_per_thread,
        barriers=reductions * (2 if exchanged.meets else 0) + (2 if schedule.transposed else 0),
        cluster_barriers=reductions if exchanged.joins else 0,
    )
