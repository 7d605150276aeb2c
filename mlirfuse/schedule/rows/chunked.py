"""Schedules of rows that do not fit the registers, and are processed in chunks."""

from __future__ import annotations

from collections.abc import Sequence

from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.layout_builder import LayoutBuilder
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.model.residency import SHARED_RESERVE
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

MULTI_PASS_CLUSTERS = (4, 2, 1)
"""Blocks that share a row which is read again for every reduction: with more of them fewer rows are in work, so that
the L2 still holds a row when it is read again, and few rows reach more of the device; with fewer they exchange less."""

CHUNK_THREADS, CHUNK_VECTORS = 512, 2
"""Threads of a block, and vectors that each loads in one step of a pass over chunks."""


def shared_schedule(problem: Problem, target: Target) -> Schedule | None:
    """Rows processed in chunks and kept in shared memory between the passes; None where two do not fit an SM, or where
    no array has rows of its own.
    """
    row_bytes = problem.row_elements * problem.read_bytes
    if problem.vector_dim not in problem.reduced or not problem.live_bytes or problem.shares_reads:
        return None
    if 2 * (row_bytes + SHARED_RESERVE) > target.shared_per_sm:
        return None
    return _whole_rows(problem, "shared", 1, CHUNK_THREADS, CHUNK_VECTORS)


def multi_pass_schedule(
    problem: Problem,
    target: Target,
    *,
    threads: int = CHUNK_THREADS,
    vectors: int = CHUNK_VECTORS,
    cluster: int = MULTI_PASS_CLUSTERS[0],
) -> Schedule:
    """Rows processed in chunks, and read again for every reduction and for what is written, by the blocks of a cluster.

    A block has so many threads, each of which loads so many vectors in one step; `cluster` blocks share a row at most.
    """
    return _whole_rows(problem, "multi_pass", min(cluster, target.max_cluster), threads, vectors)


def narrow_multi_pass_schedule(problem: Problem, target: Target, chunked: int, *, threads: int) -> Schedule:
    """Chunks of the fewest elements a thread: the threads of a block hold the other reduced dimensions than `chunked`,
    and what is left of them the chunk.
    """
    held = problem.outwards(problem.reduced - {chunked})
    fill = LayoutBuilder(problem.extents, problem.vector_dim, problem.vector)
    fill.add_lanes(*held, *({problem.vector_dim} - problem.reduced), chunked)
    fill.rest_of_lanes(chunked)
    return _chunks(
        problem, fill, "multi_pass", held, chunked, threads, 1, min(MULTI_PASS_CLUSTERS[0], target.max_cluster)
    )


def _whole_rows(problem: Problem, persistence: str, cluster: int, threads: int, vectors: int) -> Schedule:
    """Chunks of what a cluster's blocks load at once."""
    inner = sorted(problem.reduced, reverse=True)
    order = [*({problem.vector_dim} - problem.reduced), *inner]
    fill = LayoutBuilder(problem.extents, problem.vector_dim, problem.vector)
    fill.add_lanes(*order)
    fill.rest_of_lanes(order[0])
    chunked = max(problem.reduced, key=lambda d: problem.extents[d] or 0)
    held = [d for d in inner if d != chunked]
    return _chunks(problem, fill, persistence, held, chunked, threads, vectors, cluster)


def _chunks(
    problem: Problem,
    fill: LayoutBuilder,
    persistence: str,
    held: Sequence[int],
    chunked: int,
    threads: int,
    vectors: int,
    cluster: int,
) -> Schedule:
    """Lanes that are dealt out already, then warps and repeats along what is held whole, and along chunks what is left
    of the warps, so many vectors, and blocks.
    """
    for dim in held:
        fill.add_warps(dim, most=threads // WARP)
        fill.rest_in_repeats(dim)
    fill.add_warps(chunked, most=threads // WARP)
    fill.add_repeats(chunked, most=vectors)
    while cluster > fill.left(chunked):
        cluster //= 2
    fill.add_blocks(chunked, most=cluster)
    layout = fill.layout()
    sizes = zip(layout.extents, problem.extents, layout.vector, strict=True)
    return Schedule(tuple(_even(*size) for size in sizes), layout, persistence)


def _even(covered: int, extent: int | None, vector: int) -> int:
    """Elements of a tile along a dimension: as many as the layout covers, or as few as leave no remainder in the same
    number of steps, which would be reduced by itself.
    """
    if extent is None or extent <= covered:
        return min(covered, extent or covered)
    size, rest = divmod(extent, -(-extent // covered))
    return covered if rest or size % vector else size


def chunk_fits_registers(schedule: Schedule, problem: Problem, target: Target) -> bool:
    """Whether a thread's partial results and what it reads of a chunk fit its registers."""
    each = sum(part.bytes for part in problem.reductions) + problem.read_bytes
    registers = min(target.max_registers_per_thread, target.registers_per_sm // schedule.layout.threads)
    return schedule.layout.elements_per_thread * each <= registers * REGISTER_BYTES
