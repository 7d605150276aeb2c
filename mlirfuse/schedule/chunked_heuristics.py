"""Schedules of rows that do not fit the registers, and are walked in chunks."""

from __future__ import annotations

from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.residency import SHARED_RESERVE
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.schedule.spread import Spread
from mlirfuse.target import Target

CHUNK_THREADS = 512
CHUNK_VECTORS = 2
"""Vectors a thread loads in one step of a chunked walk: 512 threads have 16 KB under way, in each of several blocks."""


def shared_schedule(problem: Problem, target: Target) -> Schedule | None:
    """Rows walked in chunks and kept in shared memory between the walks; None where two do not fit an SM."""
    row_bytes = problem.row_elements * problem.read_bytes
    if problem.vector_dim not in problem.reduced or not problem.live_bytes:
        return None
    if 2 * (row_bytes + SHARED_RESERVE) > target.shared_per_sm:
        return None
    return chunked_schedule(problem, "shared")


def chunked_schedule(problem: Problem, persistence: str) -> Schedule:
    """Rows walked in chunks of what a block loads at once."""
    fill = Spread(problem.extents, problem.vector_dim, problem.vector)
    inner = sorted(problem.reduced, reverse=True)
    if problem.vector_dim not in problem.reduced:
        inner = [problem.vector_dim, *inner]
    for dim in inner:
        fill.add_lanes(dim)
    fill.rest_of_lanes(inner[0])
    walked = max(problem.reduced, key=lambda d: problem.extents[d] or 0)
    for dim in sorted(problem.reduced - {walked}, reverse=True):
        fill.add_warps(dim, CHUNK_THREADS // WARP)
        fill.rest_in_repeats(dim)
    fill.add_warps(walked, CHUNK_THREADS // WARP)
    fill.repeats[walked] = min(CHUNK_VECTORS, fill.left(walked))
    layout = fill.layout()
    tile = tuple(min(n, e or n) for n, e in zip(layout.extents, problem.extents, strict=True))
    return Schedule(tile, layout, persistence)
