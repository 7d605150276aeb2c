"""The work of blocks that go over their rows in chunks, once for every reduction, and keep them nowhere or on chip."""

from __future__ import annotations

from math import log2, prod

from mlirfuse.schedule.predict.exchanges import NONE, exchange
from mlirfuse.schedule.predict.facts import (
    ACCESS_INSTRUCTIONS,
    LOADS_AHEAD,
    SHUFFLE_CYCLES,
    SHUFFLE_INSTRUCTIONS,
    UNROLLED_INSTRUCTIONS,
    WORKING_SET,
)
from mlirfuse.schedule.predict.space import element_bytes, known_extents, resident, run_elements, sector_waste, tiles
from mlirfuse.schedule.predict.work import Work
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target


def chunk_work(schedule: Schedule, problem: Problem, target: Target, registers: int | None) -> Work:
    """Rows in chunks: `multi_pass` reads each again for every further reduction and for what is written."""
    layout, extents = schedule.layout, known_extents(problem)
    total = prod(extents)
    outer = [d for d in range(len(extents)) if d not in problem.reduced]
    clusters = tiles(extents, schedule.tile, outer)
    blocks = clusters * layout.cluster
    steps = tiles(extents, schedule.tile, problem.reduced)
    covered = clusters * steps * prod(layout.extents)
    each = element_bytes(problem)
    read, written = total * problem.read_bytes, total * (problem.full_bytes - problem.read_bytes)
    waste = sector_waste(run_elements(extents, schedule.tile, problem.vector_dim) * each)
    reductions = max(1, problem.dependent_reductions)
    again = reductions - 1 + (1 if written or problem.live_bytes else 0)
    row = problem.row_elements * problem.read_bytes
    kept = row + 2048 if schedule.persistence == "shared" else 0
    holds = resident(schedule, problem, target, registers, kept)
    in_work = min(clusters, holds * target.sms / layout.cluster) * prod(schedule.tile[d] for d in outer) * row
    fits = in_work < WORKING_SET * target.l2_bytes
    rereads = 0 if schedule.persistence == "shared" else again
    exchanged = NONE
    for part in problem.reductions:
        exchanged = exchanged + exchange(part, layout)
    columns = clusters * steps * prod(schedule.tile[d] for d in problem.reduced) * problem.column_bytes
    passes = 1 + again
    width = max(layout.vector)
    fragments = layout.elements_per_thread / width * max(1.0, problem.read_bytes / each)
    accesses = (
        (problem.read_bytes * (1 + rereads) + problem.column_bytes + problem.full_bytes - problem.read_bytes)
        / each
        / width
    )
    work = layout.elements_per_thread * (problem.instructions + ACCESS_INSTRUCTIONS * accesses) / passes
    ahead = max(1.0, LOADS_AHEAD / fragments) if work < UNROLLED_INSTRUCTIONS * 4 else 1.0
    rounds = max(1.0, steps / ahead)
    near = rereads * rounds if fits else 0.0
    lanes = prod(layout.lanes[d] for d in problem.reduced)
    return Work(
        blocks=blocks,
        cluster=layout.cluster,
        threads=layout.threads,
        resident=holds,
        read=read if fits else read * (1 + rereads),
        written=written,
        l2_read=read * waste * (1 + rereads) + columns,
        l2_written=written * waste,
        shared=exchanged.shared * blocks + (again * read if schedule.persistence == "shared" else 0),
        dsmem=exchanged.dsmem * blocks,
        instructions=covered * (problem.instructions + ACCESS_INSTRUCTIONS * accesses)
        + SHUFFLE_INSTRUCTIONS * exchanged.shuffles * blocks,
        special=covered * problem.special,
        double=covered * problem.double,
        rounds=rounds * (1 if fits else 1 + rereads),
        l2_rounds=near,
        cycles=reductions * SHUFFLE_CYCLES * log2(lanes) + steps * work,
        barriers=reductions * (2 if exchanged.meets else 0),
        cluster_barriers=reductions if exchanged.joins else 0,
    )
