"""Schedules of reductions across contiguous memory whose data is needed again: pure functions of (problem, target).

A softmax over the first dimension reads a column, which no warp reads alone without wasting most of each sector. Where
blocks hold narrow column tiles whole, memory is read once, and a sector's columns belong to one block.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlirfuse.schedule.predict.counts.space import element_bytes
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.rows.candidates import fitted
from mlirfuse.schedule.rows.layouts import Split, row_schedule, spread_row
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.target import Target

TILE_BYTES = (64, 128)
"""Bytes of a row of a column tile, of the narrowest array: two sectors or more, as device memory has them together."""

MOST_ELEMENTS = 128
"""Elements that a thread holds of a column tile, some of them spilled to shared memory."""

FEWEST_ELEMENTS = 16
"""Elements of a thread below which a tile has too few loads under way for its exchanges."""

WAYS = ((8, 1), (8, 2), (8, 4), (8, 8), (16, 8), (32, 8))
"""Warps of a block and blocks of a cluster."""


def column_tile_schedules(problem: Problem, target: Target) -> Iterator[Schedule]:
    """Column tiles in registers; none where no cluster holds one, or nothing is needed again."""
    if problem.vector_dim in problem.reduced or not problem.live_bytes:
        return
    if any(problem.extents[d] is None for d in problem.reduced):
        return
    narrowest = min((a.bytes for a in problem.arrays if problem.vector_dim in a.dims), default=element_bytes(problem))
    for across in (max(1, nbytes // narrowest // problem.vector) for nbytes in TILE_BYTES):
        for warps, cluster in WAYS:
            split = Split(warps, cluster, problem.vector, across=across)
            fill = spread_row(problem, split)
            if cluster > target.max_cluster or fill is None:
                continue
            schedule = row_schedule(problem, split, fill, "depth", target.max_threads_per_block)
            if not FEWEST_ELEMENTS <= schedule.layout.elements_per_thread <= MOST_ELEMENTS:
                continue
            if not check_schedule(schedule, problem.extents, problem.reduced, target):
                yield from (candidate.schedule for candidate in fitted(schedule, problem, target))
