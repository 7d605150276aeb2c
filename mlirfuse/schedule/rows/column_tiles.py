"""Choosing schedules for reductions across contiguous memory whose data is needed again: pure functions of (problem,
target).

A softmax over the first dimension reads a column, which no warp reads alone without wasting most of each sector. Where
blocks hold narrow column tiles whole, memory is read once, and a sector's columns belong to one block.
"""

from __future__ import annotations

from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.rows.candidates import fitted
from mlirfuse.schedule.rows.layouts import Split, row_schedule, spread_row
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.target import Target

TILE_COLUMNS = 32
"""Columns of a column tile: two sectors of half precision."""

MOST_ELEMENTS = 128
"""Elements that a thread holds of a column tile, some of them spilled to shared memory."""

WAYS = ((8, 1), (8, 2), (8, 4), (8, 8), (16, 8), (32, 8))
"""Warps of a block and blocks of a cluster, in the order in which they are tried: the first ones reduce short columns
best."""


def column_tile_schedule(problem: Problem, target: Target) -> Schedule | None:
    """Column tiles in registers; None where no cluster holds one, or nothing is needed again."""
    if problem.vector_dim in problem.reduced or not problem.live_bytes:
        return None
    if any(problem.extents[d] is None for d in problem.reduced):
        return None
    across = max(1, TILE_COLUMNS // problem.vector)
    for warps, cluster in WAYS:
        split = Split(warps, cluster, problem.vector, across=across)
        fill = spread_row(problem, split)
        if cluster > target.max_cluster or fill is None:
            continue
        schedule = row_schedule(problem, split, fill, "depth", target.max_threads_per_block)
        if schedule.layout.elements_per_thread > MOST_ELEMENTS:
            continue
        if check_schedule(schedule, problem.extents, problem.reduced, target):
            continue
        # Of those with the fewest fragments spilled to shared memory, what lets an SM load while it reduces.
        candidates = list(fitted(schedule, problem, target))
        pairs = [c for c in candidates if c.blocks > 1]
        if pairs:
            return pairs[0].schedule
    return None
