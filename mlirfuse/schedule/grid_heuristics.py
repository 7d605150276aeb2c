"""Choosing how a persistent grid walks rows that it reduces: a pure function of (problem, target).

Measured on an H200 with RMSNorm and LayerNorm backward in bfloat16, 384 to 8192 columns: what decides is how many
bytes a multiprocessor has under way while it computes. Asynchronous copies into shared memory keep them so without
taking registers; some 8 K elements of a tile on a multiprocessor, two or three tiles deep, reach 0.87 to 0.97 of
`torch.add` of the same size. Tiles that are held by few threads, many elements each, or by many threads in one block,
are slower.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd, log2, prod

from mlirfuse.errors import ScheduleError
from mlirfuse.schedule.grid_walk import GridWalk
from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.problem import Problem, WalkProblem
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.schedule.spread import Spread
from mlirfuse.target import Target

TILE_ELEMENTS = 8192
"""Elements of the tiles that are in work on one multiprocessor."""

FRAGMENTS = 2
"""Fragments a thread holds of a tile: loops over fewer have too much overhead, over more too few threads."""

BASE_REGISTERS, ELEMENT_REGISTERS, PADDED_REGISTERS = 32, 0.75, 16
"""Registers of a thread besides totals and packed columns: addresses and row values; what is computed of an element; and
the masks of a row that does not fill its threads (ptxas 13.0, sm_90a, no spills)."""

WARPS_ALLOCATED = 4
"""Registers are given to so many warps at once: one to each of a multiprocessor's schedulers."""

STAGES = 3
"""Tiles of a block under way: one in work, two loading."""

SLICE_BYTES = 128
"""Bytes of a row of partial results that neighbouring lanes read together."""


def grid_schedule(problem: Problem, target: Target) -> Schedule:
    """The best schedule for a problem with a `walk`.

    Raises:
        ScheduleError: the kept columns of one row do not fit the registers of the largest cluster.
    """
    assert problem.walk is not None
    candidates = list(_candidates(problem, problem.walk, target))
    if not candidates:
        raise ScheduleError(
            f"no cluster of {target.max_cluster} holds a row of {_row_elements(problem)} elements with its totals",
            hint="reduce the rows in a function of its own",
        )
    return min(candidates, key=lambda c: c.cost).schedule


@dataclass(frozen=True)
class _Candidate:
    schedule: Schedule
    cost: float


def _candidates(problem: Problem, walk: WalkProblem, target: Target) -> Iterator[_Candidate]:
    """Every split of a row over warps and blocks of a cluster, and every number of rows side by side, that fits."""
    cluster = 1
    while cluster <= target.max_cluster:
        for warps in range(1, target.max_threads_per_block // WARP + 1):
            for rows in (1, 2, 4, 8, 16):
                layout = _layout(problem, walk, warps, rows, cluster)
                if layout is None or layout.threads > target.max_threads_per_block:
                    continue
                candidate = _candidate(problem, walk, layout, target)
                if candidate is not None:
                    yield candidate
        cluster *= 2


def _layout(problem: Problem, walk: WalkProblem, warps: int, rows: int, cluster: int) -> BlockedLayout | None:
    """Rows over `warps` warps of `cluster` blocks, `rows` times as many side by side; None if some would idle."""
    fill = Spread(problem.extents, problem.vector_dim, problem.vector)
    inner = [d for d in range(problem.rank) if d not in walk.dims]
    inner.sort(key=lambda d: (d != problem.vector_dim, -d))
    for dim in inner:
        fill.add_lanes(dim)
    fill.rest_of_lanes(walk.dims[-1])
    for dim in inner:
        fill.add_blocks(dim, cluster)
    for dim in inner:
        fill.add_warps(dim, warps)
    if prod(fill.blocks) != cluster or prod(fill.warps) != warps:
        return None
    for dim in inner:
        fill.rest_in_repeats(dim)
    fill.add_warps(walk.dims[-1], warps * rows)
    return fill.layout() if prod(fill.warps) == warps * rows else None


def _candidate(problem: Problem, walk: WalkProblem, layout: BlockedLayout, target: Target) -> _Candidate | None:
    """A layout as a schedule with as many blocks and stages as fit; None if not even one block does."""
    held = layout.elements_per_thread
    threads = -(-layout.threads // (WARP * WARPS_ALLOCATED)) * WARP * WARPS_ALLOCATED
    registers = _registers(problem, walk, layout)
    blocks = min(
        target.registers_per_sm // (registers * threads),
        target.threads_per_sm // layout.threads,
        max(1, TILE_ELEMENTS // (held * layout.threads)),
    )
    if blocks < 1 or registers > target.max_registers_per_thread:
        return None
    tile = tuple(
        (extent if d not in walk.dims else layout.extents[d]) or layout.extents[d]
        for d, extent in enumerate(problem.extents)
    )
    finish_tile, finish_layout = _finish(problem, walk, layout, target)
    schedule = Schedule(
        tile,
        layout,
        order="depth",
        blocks_per_sm=blocks,
        walk=GridWalk(walk.dims, "slices", finish_tile, finish_layout, _stages(problem, layout, blocks, target)),
    )
    if check_schedule(schedule, problem.extents, problem.reduced, target):
        return None
    rows = prod(layout.extents[d] for d in walk.dims)
    padding = prod(layout.extents) / (rows * _row_elements(problem))
    in_work = held * layout.threads * blocks
    cost = (
        padding
        + 0.10 * abs(log2(in_work / TILE_ELEMENTS))
        + 0.06 * abs(log2(prod(layout.repeats) / FRAGMENTS))
        + 0.05 * log2(blocks)
        + 0.20 * log2(layout.cluster)
    )
    return _Candidate(schedule, cost)


def _registers(problem: Problem, walk: WalkProblem, layout: BlockedLayout) -> int:
    """Estimated registers of a thread, rounded up as they are allocated."""
    carried = (walk.total_bytes + walk.column_bytes) / 4
    registers = BASE_REGISTERS + (carried + ELEMENT_REGISTERS) * layout.elements_per_thread
    if any(layout.extents[d] != extent for d, extent in enumerate(problem.extents) if d not in walk.dims):
        registers += PADDED_REGISTERS
    return -(-round(registers) // 8) * 8


def _stages(problem: Problem, layout: BlockedLayout, blocks: int, target: Target) -> int:
    """How many tiles of each block fit the shared memory; 1 where asynchronous copies are not to be had."""
    tile_bytes = prod(layout.extents) // layout.cluster * problem.read_bytes
    exchange = prod(layout.extents) // layout.cluster * 4  # where warps hold rows side by side, their parts meet here
    room = target.shared_per_sm // blocks - exchange - 2048
    stages = min(STAGES, room // max(1, tile_bytes))
    return stages if stages > 1 and problem.vector > 1 else 1


def _finish(
    problem: Problem, walk: WalkProblem, layout: BlockedLayout, target: Target
) -> tuple[tuple[int, ...], BlockedLayout]:
    """Slices of the columns, enough for all multiprocessors, and the blocks' parts of them over all threads."""
    extents = [extent if d in walk.kept else 1 for d, extent in enumerate(problem.extents)]
    first = walk.dims[0]
    extents[first] = None
    columns = problem.vector_dim if problem.vector_dim in walk.kept else max(walk.kept, default=first)
    if columns == first:
        fill = Spread(extents, problem.rank - 1, 1)
    else:
        width = extents[columns] or 1
        fill = Spread(extents, columns, gcd(width, 4))
        lanes = max(SLICE_BYTES // 16, width // (4 * target.sms))
        while fill.lanes[columns] < lanes and fill.lanes_left > 1 and fill.left(columns) > 1:
            fill.lanes[columns] *= 2
            fill.lanes_left //= 2
        fill.blocks[columns] = layout.cluster
    if columns == first:
        fill.blocks[problem.rank - 1] = layout.cluster
    fill.rest_of_lanes(first)
    fill.warps[first] = layout.threads // WARP
    finish = fill.layout()
    tile = tuple(
        finish.extents[d] if d == first else min(finish.extents[d], extent or 1) for d, extent in enumerate(extents)
    )
    return tile, finish


def _row_elements(problem: Problem) -> int:
    assert problem.walk is not None
    return prod(extent or 1 for d, extent in enumerate(problem.extents) if d not in problem.walk.dims)
