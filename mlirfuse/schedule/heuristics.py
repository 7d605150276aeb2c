"""Choosing a schedule: pure functions of (problem, target), tested without a GPU.

Two families. An elementwise kernel streams: every thread moves one vector, in many small blocks. A kernel with
reductions keeps rows on chip: the row is spread over as many threads as make the best use of the register file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log2, prod

from mlirfuse.schedule.estimate import registers_per_thread
from mlirfuse.schedule.grid_heuristics import grid_schedule
from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.schedule.spread import Spread
from mlirfuse.target import Target

ELEMENTWISE_THREADS = 256
"""Threads of an elementwise block: with 16 bytes a thread it matches cudaMemcpyAsync on an H200 (peers-h200.md)."""

MIN_THREADS = 64
"""Blocks smaller than this leave an SM short of threads, because it holds 32 blocks at most."""


def choose_schedule(problem: Problem, target: Target) -> Schedule:
    """The schedule that the cost model likes best."""
    if problem.walk:
        return grid_schedule(problem, target)
    if not problem.reduced:
        return elementwise_schedule(problem)
    candidates = list(row_candidates(problem, target))
    alone = [c for c in candidates if c.schedule.layout.cluster == 1]
    shared = shared_schedule(problem, target)
    # H200, 256 MB of rows: two rows on an SM in registers reach 0.96 of a copy, rows staged in shared memory 0.93 to
    # 0.96, one row in registers 0.93, a row over a cluster 0.80 to 0.87; softmax, with a round more, keeps that order.
    for choice in ([c for c in alone if _resident(c, target) > 1], shared, alone, candidates):
        if isinstance(choice, Schedule):
            return choice
        if choice:
            return min(choice, key=lambda c: row_cost(c, problem, target)).schedule
    return chunked_schedule(problem, "reread")


def elementwise_schedule(problem: Problem) -> Schedule:
    """One vector a thread, threads along the contiguous dimension first and then outwards."""
    fill = Spread(problem.extents, problem.vector_dim, problem.vector)
    order = [problem.vector_dim, *(d for d in reversed(range(problem.rank)) if d != problem.vector_dim)]
    for dim in order:
        fill.add_lanes(dim)
    for dim in order:
        fill.add_warps(dim, ELEMENTWISE_THREADS // WARP)
    fill.rest_of_lanes(order[-1])
    layout = fill.layout()
    return Schedule(tuple(min(n, e or n) for n, e in zip(layout.extents, problem.extents, strict=True)), layout)


@dataclass(frozen=True)
class Candidate:
    """A schedule and what the cost model needs to know of it.

    Attributes:
        schedule: the schedule.
        registers: estimated registers of a thread, rounded up as the hardware allocates them.
        efficiency: share of the threads' fragments that are not padding.
    """

    schedule: Schedule
    registers: int
    efficiency: float


LONG_ROW = 9 * 1024
"""Bytes read of a row from which on registers are short (H200: rows of 8 KB gain from breadth, of 10 KB from depth)."""


def row_candidates(problem: Problem, target: Target) -> Iterator[Candidate]:
    """Persistent schedules with every split of a row over a cluster, warps and repeats that fits the registers."""
    order = "depth" if problem.row_elements * problem.read_bytes > LONG_ROW else "breadth"
    cluster = 1
    while cluster <= target.max_cluster:
        for warps in range(1, target.max_threads_per_block // WARP + 1):
            schedule = _row_schedule(problem, warps, cluster, order)
            if schedule is None or check_schedule(schedule, problem.extents, problem.reduced, target):
                continue
            layout = schedule.layout
            registers = _allocated(registers_per_thread(problem, layout, order))
            blocks = resident_blocks(layout.threads, registers, target)
            if not blocks or prod(layout.repeats) > MOST_FRAGMENTS or layout.elements_per_thread > MOST_ELEMENTS:
                continue
            # Left alone, ptxas spends registers that more blocks could use; small threads it fits by itself.
            fitted = replace(schedule, blocks_per_sm=blocks if registers > UNHINTED else 0)
            yield Candidate(fitted, registers, prod(schedule.tile) / prod(layout.extents))
        cluster *= 2


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


CHUNK_THREADS = 512
CHUNK_VECTORS = 2
"""Vectors a thread loads in one step of a chunked walk: 512 threads have 16 KB under way, in each of several blocks."""

SHARED_RESERVE = 2048
"""Shared memory left for the exchange between warps, bytes."""

UNHINTED = 48
"""Registers up to which ptxas is given no limit: below it a limit gains nothing, and costs spills."""

MOST_ELEMENTS = 56
"""Elements a thread may hold of a persistent row: beyond it estimates are no longer to be trusted."""

MOST_FRAGMENTS = 32
"""Fragments a thread may hold of a persistent row: beyond it the unrolled code outgrows the instruction cache."""


def _allocated(registers: int) -> int:
    """Registers are given to threads eight at a time."""
    return -(-registers // 8) * 8


def row_cost(candidate: Candidate, problem: Problem, target: Target) -> float:
    """Time relative to streaming the rows, from what slows such kernels down; lower is better.

    The weights are fitted to a sweep of a fused LayerNorm in half precision over twelve sizes and all splits on an
    H200 (benchmarks/results/layernorm-sweep.json).
    """
    layout = candidate.schedule.layout
    blocks = resident_blocks(layout.threads, candidate.registers, target)
    rows = prod(n for d, n in enumerate(candidate.schedule.tile) if d not in problem.reduced)
    row_bytes = problem.row_elements * max(problem.read_bytes, 1)
    # Padding is loaded from the cache and computed, but moves no memory.
    padding = 0.55 + 0.45 / candidate.efficiency
    # Too little work a thread: the reductions' fixed cost shows. Too much: few threads hide each other's latency.
    ideal = 56 if candidate.schedule.order == "depth" else 36
    share = log2(rows * row_bytes / (layout.threads * layout.cluster) / ideal)
    work = 1.0 + (0.05 * share if share > 0 else -0.15 * share)
    resident = blocks * layout.threads / target.threads_per_sm
    occupancy = 1.0 + 0.4 * max(0.0, 0.45 - resident) if candidate.schedule.order == "breadth" else 1.0
    # One block alone on an SM loads nothing while it reduces.
    overlap = 1.0 + 0.4 / blocks**3
    # Blocks of a cluster start together, and wait for each other at every round of reductions.
    cluster = 1.0 + (0.12 + 0.01 * layout.cluster) * problem.rounds if layout.cluster > 1 else 1.0
    return padding * work * occupancy * overlap * cluster


def _resident(candidate: Candidate, target: Target) -> int:
    return resident_blocks(candidate.schedule.layout.threads, candidate.registers, target)


def resident_blocks(threads: int, registers: int, target: Target) -> int:
    """Blocks of an SM that its registers and threads allow; 0 if not even one.

    Each of an SM's four partitions has a quarter of the registers and takes whole warps.
    """
    if registers > target.max_registers_per_thread:
        return 0
    warps = PARTITIONS * (target.registers_per_sm // PARTITIONS // (registers * WARP))
    return min(warps * WARP // threads, target.threads_per_sm // threads, target.blocks_per_sm)


PARTITIONS = 4
"""Partitions of an SM, each with a scheduler and registers of its own."""


def _row_schedule(problem: Problem, warps: int, cluster: int, order: str) -> Schedule | None:
    """A row over `warps` warps of each of `cluster` blocks; small rows are stacked until the block is large enough."""
    outer = [d for d in range(problem.rank) if d not in problem.reduced]
    fill = Spread(problem.extents, problem.vector_dim, problem.vector)
    inner = sorted(problem.reduced, reverse=True)
    if problem.vector_dim in outer:
        inner = [problem.vector_dim, *inner]
    for dim in inner:
        fill.add_lanes(dim)
    row_lanes = WARP // fill.lanes_left
    if fill.lanes_left > 1 and outer:
        fill.rest_of_lanes(outer[-1])
    else:
        fill.rest_of_lanes(inner[0])
    for dim in inner:
        if dim in problem.reduced:
            fill.add_blocks(dim, cluster)
    if prod(fill.blocks) != cluster:
        return None
    for dim in inner:
        if dim in problem.reduced:
            fill.add_warps(dim, warps)
    if prod(fill.warps) != warps:
        return None
    for dim in problem.reduced:
        fill.rest_in_repeats(dim)
    rows = max(1, MIN_THREADS // (WARP * warps)) if outer else 1
    if rows > 1 and (row_lanes < WARP or warps == 1):
        fill.warps[outer[-1]] *= rows
    layout = fill.layout()
    tile = tuple(
        extent if d in problem.reduced and extent is not None else min(layout.extents[d], extent or layout.extents[d])
        for d, extent in enumerate(problem.extents)
    )
    return Schedule(tile, layout, order=order)
