"""What rows in registers cost, relative to streaming them."""

from __future__ import annotations

from math import log2, prod

from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.model.disagreeing import ROWS_IN_FLIGHT
from mlirfuse.schedule.model.speeds import CLUSTER_LAUNCH, DRAM_BYTES, DRAM_BYTES_PER_SM, SHARED_SPEED
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.rows.candidates import LONG_ROW, Candidate
from mlirfuse.schedule.rows.row_alignment import ROW_BYTES, has_costly_ends
from mlirfuse.target import LINE, SECTOR, Target

SMALL_THREADS = 96

IN_FLIGHT_COLUMN = 0.4
"""By what share of `ROWS_IN_FLIGHT` an SM must hold more for a vector of column operands to each byte that is read:
rows then stay longer."""


STRADDLING = 0.36
"""What one sector more costs of those that a warp accesses at once, where rows begin inside of sectors."""

EXCHANGED = 4
"""Bytes of a number that warps exchange. Every thread reads what all warps along the reduced dimensions have of each of
its results: one number of a row, a whole vector of columns."""


def row_cost(candidate: Candidate, problem: Problem, target: Target) -> float:
    """Time relative to streaming the rows; lower is better.

    Rows of which there are so few that SMs idle take as long as one of them, or as the blocks that share it.
    """
    cost = _streaming_cost(candidate, problem)
    schedule = candidate.schedule
    tiles = problem.tiles(schedule.tile, set(range(problem.rank)) - problem.reduced)
    if tiles is None or tiles >= target.sms:
        return cost
    cluster = schedule.layout.cluster
    streaming = prod(extent or 1 for extent in problem.extents) * problem.full_bytes / DRAM_BYTES
    alone = prod(schedule.tile) * problem.full_bytes / cluster / DRAM_BYTES_PER_SM
    start = CLUSTER_LAUNCH if cluster > 1 else 0.0
    return cost + (max(0.0, alone - streaming) + start) / streaming


def _streaming_cost(candidate: Candidate, problem: Problem) -> float:
    """What slows kernels of many rows down.

    The weights were fitted to a fused LayerNorm in half precision over twelve sizes and all splits on an H200.
    """
    layout = candidate.schedule.layout
    rows = prod(n for d, n in enumerate(candidate.schedule.tile) if d not in problem.reduced)
    row_bytes = problem.row_elements * max(problem.read_bytes, 1)
    # Padding is loaded from the cache and computed, but moves no memory.
    padding = 0.5 + 0.5 / candidate.efficiency
    # With too little work a thread the reductions' fixed cost shows, with too much few threads hide latency.
    is_long = problem.row_elements * problem.read_bytes > LONG_ROW
    ideal = ROW_BYTES if has_costly_ends(layout) else 56 if is_long else 32
    share = log2(rows * row_bytes / (layout.threads * layout.cluster) / ideal)
    work = 1.0 + (0.05 * share if share > 0 else -0.18 * share)
    # Too few rows on an SM do not cover the time that a row stays, which is longer where weights are read again.
    columns = problem.column_bytes * problem.vector / 16  # operands, in vectors of 16 bytes
    wanted = ROWS_IN_FLIGHT * (1.0 + IN_FLIGHT_COLUMN * columns / max(problem.read_bytes, 1))
    under_way = candidate.blocks * rows * row_bytes / layout.cluster
    coverage = 1.0 + 0.2 * max(0.0, wanted / under_way - 1.0)
    # One block alone on an SM loads nothing while it reduces.
    overlap = 1.0 + 0.4 / candidate.blocks**3
    # Blocks of a cluster start together, and wait for each other at every dependent reduction.
    cluster = 1.0 + (0.12 + 0.01 * layout.cluster) * problem.dependent_reductions if layout.cluster > 1 else 1.0
    # Few threads a block: more blocks to start.
    small = 1.025 if layout.threads < SMALL_THREADS else 1.0
    halved = 1.015 if prod(layout.lanes[d] for d in problem.reduced) < WARP else 1.0
    narrow = 1.03 if max(layout.vector) < max(problem.vector, problem.unaligned_vector) else 1.0
    # Where rows begin inside of sectors, each access of a warp touches one sector more, which another access shares.
    elements = max(layout.vector) * prod(layout.lanes[d] for d in problem.reduced)
    sectors = elements / problem.line * (LINE // SECTOR) if problem.line else 0.0
    straddling = 1.0 if not problem.line or layout.is_shifted else 1.0 + STRADDLING / sectors
    # Warps along what is reduced exchange partials of each column.
    kept = prod(n * layout.repeats[d] for d, n in enumerate(layout.vector) if d not in problem.reduced)
    told = EXCHANGED * layout.threads * prod(layout.warps[d] for d in problem.reduced) * (kept - 1)
    exchange = 1.0 + told / (SHARED_SPEED * rows * row_bytes)
    # Masks of a row that does not fill its threads take registers, which are short where part of it is spilled to
    # shared memory.
    masked = 1.02 if candidate.schedule.shared_spill and candidate.efficiency < 1.0 else 1.0
    return padding * work * coverage * overlap * cluster * small * halved * narrow * straddling * masked * exchange
