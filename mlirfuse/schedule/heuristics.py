"""Choosing a schedule: pure functions of (problem, target), tested without a GPU.

Two families. An elementwise kernel streams: every thread moves one vector, in many small blocks. A kernel with
reductions keeps rows on chip: the row is spread over as many threads as make the best use of the register file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log2, prod

from mlirfuse.errors import ScheduleError
from mlirfuse.schedule.estimate import registers_per_thread
from mlirfuse.schedule.grid_heuristics import SQUEEZED, grid_schedule, too_wide
from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.odd_rows import MOST_HELD, ROW_BYTES, access_of_rows, has_costly_ends, staged_bytes
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.schedule.spread import Spread
from mlirfuse.schedule.wide_rows import column_schedule, fills, finer_schedule
from mlirfuse.target import Target

ELEMENTWISE_THREADS = 256
"""Threads of an elementwise block: with 16 bytes a thread it matches cudaMemcpyAsync on an H200 (peers-h200.md)."""

MIN_THREADS = 64
"""Blocks smaller than this leave an SM short of threads, because it holds 32 blocks at most."""


def choose_schedule(problem: Problem, target: Target) -> Schedule:
    """The schedule that the cost model likes best.

    Raises:
        ScheduleError: what a grid reduces fits no cluster in whole rows, and nothing narrower either.
    """
    if problem.walk:
        return _choose_walk(problem, target)
    if not problem.reduced:
        return elementwise_schedule(problem)
    candidates = list(row_candidates(problem, target))
    alone = [c for c in candidates if c.schedule.layout.cluster == 1]
    shared = shared_schedule(problem, target)
    pairs = [c for c in alone if c.blocks > 1]
    # H200, 256 MB of rows, as shares of a copy: two rows on an SM in registers 0.96, one row 0.92 to 0.95 (0.83 to 0.89
    # with half of it parked), rows walked in chunks in shared memory 0.89 to 0.95, a row over a cluster 0.65 to 0.85.
    free = [c for c in pairs if not c.schedule.parked]
    # Blocks of a cluster that park part of skewed rows spill: ptxas is short of registers for their ends.
    split = [c for c in candidates if not c.schedule.parked] if _skewed_vector(problem) else []
    for choice in (free, pairs, alone, shared, split, candidates):
        if isinstance(choice, Schedule):
            return choice
        if choice:
            return min(choice, key=lambda c: row_cost(c, problem, target)).schedule
    return chunked_schedule(problem, "reread")


def _choose_walk(problem: Problem, target: Target) -> Schedule:
    """The schedule of reductions that no block could do alone where rows are many."""
    assert problem.walk is not None
    columns = column_schedule(problem)
    if columns is not None and fills(columns, problem, target):
        return columns
    chosen = grid_schedule(problem, target) or finer_schedule(problem, target) or columns
    if chosen is None and not problem.walk.inner:
        # Totals alone have no other form, as those that are fused with reductions of rows do.
        chosen = grid_schedule(problem, target, SQUEEZED)
    if chosen is None:
        raise ScheduleError(too_wide(problem, target), hint="reduce the rows in a function of its own")
    return chosen


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
        blocks: blocks that an SM will hold at once.
        efficiency: share of the threads' fragments that are not padding.
    """

    schedule: Schedule
    blocks: int
    efficiency: float


FINER_VECTOR = 8
"""Elements of a vector that may be halved, and whose rows may be over half a warp, where rows then fill their threads.

These divide into rows what whole warps of whole vectors leave padding in (H200, LayerNorm with fused adds in half
precision, half warps: 1280 columns 0.97 of a copy against 0.93; half vectors: 3200 columns 0.97 against 0.91; both:
1600 columns 0.94 against 0.92).
"""

HALF_WARPS, HALF_THREADS, FEW_ELEMENTS = range(1, 7), 128, 16
"""Warps of which half the lanes may be on one row and half on another; about how many threads' rows are stacked then;
and elements a thread up to which that is the least, not the most (H200, blocks of 96 threads against 192: 768 columns
with 16 elements a thread 0.90 of a copy against 0.92, 960 columns with 20 elements 0.95 against 0.91)."""

MOST_FINE = 40
"""Elements a thread of such rows: 52 take 128 registers, and are no faster than padding (H200, 832 columns)."""

MANY_ELEMENTS = 32
"""Elements a thread from which on rows of two warps come two to a block (H200, 1600 columns: 0.92 against 0.91)."""

LONG_ROW, LONG_SKEWED_ROW = 12 * 1024, 8 * 1024
"""Bytes read of a row from which on registers are short (H200: rows of 10 KB gain from breadth, 24 KB from depth).

Of skewed rows all loads are under way early in any case (softmax of 4097 columns: 0.90 of a copy against 0.86).
"""


def row_candidates(problem: Problem, target: Target) -> Iterator[Candidate]:
    """Persistent schedules with every split of a row over a cluster, warps and repeats that fits the registers."""
    skewed = _skewed_vector(problem)
    long = LONG_SKEWED_ROW if skewed else LONG_ROW
    order = "depth" if problem.row_elements * problem.read_bytes > long else "breadth"
    cluster = 1
    while cluster <= target.max_cluster:
        for warps in range(1, target.max_threads_per_block // WARP + 1):
            for vector, lanes in _grains(problem, warps, cluster):
                schedule = _row_schedule(problem, warps, cluster, order, vector, lanes)
                if schedule is None or check_schedule(schedule, problem.extents, problem.reduced, target):
                    continue
                fine = lanes < WARP or vector < problem.vector
                if not fine or _divides(schedule.layout, problem):
                    yield from _fitted(schedule, problem, target)
        cluster *= 2


def _grains(problem: Problem, warps: int, cluster: int) -> Iterator[tuple[int, int]]:
    """Elements of a vector, and lanes of a warp over a row, that are worth a try."""
    skewed = _skewed_vector(problem)
    yield skewed or problem.vector, WARP
    if skewed or cluster > 1 or problem.vector < FINER_VECTOR:
        return
    yield problem.vector // 2, WARP
    if warps in HALF_WARPS:
        yield problem.vector, WARP // 2
        yield problem.vector // 2, WARP // 2


def _divides(layout: BlockedLayout, problem: Problem) -> bool:
    """Whether a layout finer than whole vectors over whole warps leaves no padding, in few elements a thread."""
    return layout.extents[problem.vector_dim] == problem.row_elements and layout.elements_per_thread <= MOST_FINE


def _skewed_vector(problem: Problem) -> int:
    """Elements of a vector where rows are shifted or moved; 0 where they are not."""
    return problem.skewed_vector if access_of_rows(problem) else 0


def _fitted(schedule: Schedule, problem: Problem, target: Target) -> Iterator[Candidate]:
    """The schedule with as few fragments parked in shared memory as each number of resident blocks needs."""
    layout = schedule.layout
    fragments, width = prod(layout.repeats), max(layout.vector)
    parks = schedule.order == "depth" and width * problem.live_bytes >= NARROWEST_PARKED
    most = fragments - 1 if parks else 0
    slot = layout.threads * width * problem.parked_bytes
    most_held = MOST_HELD if has_costly_ends(layout) else MOST_ELEMENTS
    reached = 0
    for parked in range(most + 1 if fragments <= MOST_FRAGMENTS else 0):
        shared = parked * slot + staged_bytes(problem, layout) + SHARED_RESERVE
        registers = _allocated(registers_per_thread(problem, layout, schedule.order, parked))
        blocks = min(resident_blocks(layout.threads, registers, target), target.shared_per_sm // shared)
        held = layout.elements_per_thread - parked * width
        if shared > target.shared_per_block or held > most_held or blocks <= reached:
            continue
        if parked and registers <= FEW_REGISTERS:
            break
        reached = blocks
        # ptxas must know how many blocks are meant to be resident: alone, it saves registers where loads should
        # overlap, and spends them where another block would fit.
        fitted = replace(schedule, blocks_per_sm=blocks, parked=parked, in_order=_keeps_order(problem, layout, parked))
        yield Candidate(fitted, blocks, prod(schedule.tile) / prod(layout.extents))


def _keeps_order(problem: Problem, layout: BlockedLayout, parked: int) -> bool:
    """Whether parked fragments are loaded and stored in program order.

    It pays where they are computed from several loads, so that ptxas, left alone, is short of registers (H200, shares
    of a copy, LayerNorm with fused adds of 131072 columns: 0.74 against 0.69). Else it costs what loads are ahead less
    (softmax of 131072 columns: 0.87 against 0.90).
    """
    return bool(parked and problem.early_column_bytes) and not any(layout.anywhere)


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

NARROWEST_PARKED = 4
"""Bytes of a fragment: what fills no register is not worth an access of shared memory."""

MOST_ELEMENTS = 64
"""Elements a thread may hold of a persistent row in registers: estimates were fitted up to there."""

FEW_REGISTERS = 56
"""Registers that a thread needs for what it is computing: parking more than what is beyond them saves none."""

MOST_FRAGMENTS = 32
"""Fragments a thread may hold of a persistent row: beyond it the unrolled code outgrows the instruction cache."""


def _allocated(registers: int) -> int:
    """Registers are given to threads eight at a time."""
    return -(-registers // 8) * 8


def row_cost(candidate: Candidate, problem: Problem, target: Target) -> float:
    """Time relative to streaming the rows, from what slows such kernels down; lower is better.

    The weights are fitted to sweeps of a fused LayerNorm in half precision over twelve sizes and all splits on an H200.
    """
    layout = candidate.schedule.layout
    rows = prod(n for d, n in enumerate(candidate.schedule.tile) if d not in problem.reduced)
    row_bytes = problem.row_elements * max(problem.read_bytes, 1)
    # Padding is loaded from the cache and computed, but moves no memory.
    padding = 0.5 + 0.5 / candidate.efficiency
    # Too little work a thread: the reductions' fixed cost shows. Too much: few threads hide each other's latency.
    is_long = problem.row_elements * problem.read_bytes > LONG_ROW
    ideal = ROW_BYTES if has_costly_ends(layout) else 56 if is_long else 32
    share = log2(rows * row_bytes / (layout.threads * layout.cluster) / ideal)
    work = 1.0 + (0.05 * share if share > 0 else -0.18 * share)
    # Too few rows on an SM do not cover the time that a row is there, which is longer where weights are read again.
    columns = problem.column_bytes * problem.vector / 16  # operands, in vectors of 16 bytes
    wanted = IN_FLIGHT * (1.0 + IN_FLIGHT_COLUMN * columns / max(problem.read_bytes, 1))
    under_way = candidate.blocks * rows * row_bytes / layout.cluster
    coverage = 1.0 + 0.2 * max(0.0, wanted / under_way - 1.0)
    # One block alone on an SM loads nothing while it reduces.
    overlap = 1.0 + 0.4 / candidate.blocks**3
    # Blocks of a cluster start together, and wait for each other at every round of reductions.
    cluster = 1.0 + (0.12 + 0.01 * layout.cluster) * problem.rounds if layout.cluster > 1 else 1.0
    # Few threads a block: more blocks to start (H200, 1024 columns: 0.97 of a copy for 128 threads, 0.95 for 64).
    small = 1.025 if layout.threads < SMALL_THREADS else 1.0
    halved = 1.015 if prod(layout.lanes[d] for d in problem.reduced) < WARP else 1.0
    narrow = 1.03 if max(layout.vector) < max(problem.vector, problem.skewed_vector) else 1.0
    # Masks of a row that does not fill its threads take registers, which are short where part of it is parked.
    masked = 1.02 if candidate.schedule.parked and candidate.efficiency < 1.0 else 1.0
    return padding * work * coverage * overlap * cluster * small * halved * narrow * masked


SMALL_THREADS = 96

IN_FLIGHT, IN_FLIGHT_COLUMN = 28 * 1024, 0.4
"""Bytes of rows that an SM must hold to keep memory busy, and what share more for a column operand at each byte.

H200, LayerNorm with fused adds, shares of a copy by KB of rows on an SM: half precision 32 KB 0.85, 38 KB 0.90, 44 KB
0.93, 50 KB and more 0.95; single precision 38 KB 0.99. RMSNorm in half precision: 34 KB 0.99.
"""


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


def _stacked_rows(warps: int, lanes: int, elements: int) -> int:
    """Warps that a block has over rows, each over as many as it has lanes for.

    Args:
        warps: warps over a row.
        lanes: lanes of a warp over a row.
        elements: elements that a thread holds.
    """
    if lanes < WARP:
        less, more = HALF_THREADS // (WARP * warps), -(-HALF_THREADS // (WARP * warps))
        return more if elements <= FEW_ELEMENTS else max(1, less)
    if warps == 2 and elements >= MANY_ELEMENTS:
        return 2
    return max(1, MIN_THREADS // (WARP * warps)) if warps == 1 else 1


def _row_schedule(problem: Problem, warps: int, cluster: int, order: str, vector: int, lanes: int) -> Schedule | None:
    """A row in vectors of `vector` elements over `lanes` lanes of `warps` warps of each of `cluster` blocks.

    Small rows are stacked until the block is large enough; None where a row is not that large.
    """
    outer = [d for d in range(problem.rank) if d not in problem.reduced]
    skewed = _skewed_vector(problem)
    slack = max(0, skewed - 1)
    covered = [n if n is None or d != problem.vector_dim else n + slack for d, n in enumerate(problem.extents)]
    fill = Spread(covered, problem.vector_dim, vector)
    inner = sorted(problem.reduced, reverse=True)
    if problem.vector_dim in outer:
        inner = [problem.vector_dim, *inner]
    for dim in inner:
        fill.add_lanes(dim, lanes)
    if lanes < WARP and (len(inner) > 1 or not outer or fill.lanes_left * lanes != WARP):
        return None
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
    if outer:
        fill.warps[outer[-1]] *= _stacked_rows(warps, lanes, prod(fill.repeats) * prod(fill.vector))
    layout = fill.layout()
    if skewed:
        along = tuple(int(d == problem.vector_dim) for d in range(problem.rank))
        layout = replace(layout, **{access_of_rows(problem): along})
    tile = tuple(
        extent if d in problem.reduced and extent is not None else min(layout.extents[d], extent or layout.extents[d])
        for d, extent in enumerate(problem.extents)
    )
    return Schedule(tile, layout, order=order)
