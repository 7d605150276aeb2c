"""Completing persistent loops: who adds up a grid's partials, in which tiles, and how many tiles are under way.

The time of a second stage is latency: after the last block has arrived, a block waits for the partials that it adds up
to come from the L2. So every block gets a slice of the columns where they suffice, its threads share the partials of
the slice, and each thread asks for all of its own before it adds the first. Asynchronous copies of tiles of rows into
shared memory keep bytes in flight without registers, two or three tiles deep.
"""

from __future__ import annotations

from math import gcd, prod
from typing import Any

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.layout_builder import LayoutBuilder
from mlirfuse.schedule.model.loops import are_apart, padding
from mlirfuse.schedule.model.residency import shared_left
from mlirfuse.schedule.model.shared_memory import persistent_loop_bytes
from mlirfuse.schedule.parts.persistent_loop import SUM_ROWS, PersistentLoop
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.target import SECTOR, Target

READ_REGISTERS = 64
"""Registers for the partials that a thread has asked for, at most; at most half of those that a thread may have."""

KNOWN_CLUSTER = 2
"""Blocks of a cluster up to which all SMs hold blocks of whole clusters: GPCs have pairs of SMs (TPCs), but differ in
how many, so that of larger clusters some SMs are left over."""

STAGES = 3
"""Tiles of a block under way: one in work, two loading."""

FEW_TILES = 16
"""Tiles of a block up to which one is loading and not two, where a tile is one row or unrolled rows: less work is left
when the last data arrive."""

PERIOD = 32
"""Tiles that a block adds up one by one before it stores a partial, where sums leave as wide as they are added up.

Of N random numbers, sums of n each that are added pairwise have the error variance of n / 2 + log2(N / n) roundings of
the whole; a pairwise sum of all has log2(N). Sums that leave narrower are rounded far more coarsely in the end.
"""


def choose_second_stage(
    problem: Problem,
    persistent_loop: PersistentLoopProblem,
    layout: BlockedLayout,
    blocks_per_sm: int,
    target: Target,
    slices: int = 1,
) -> tuple[tuple[int, ...], BlockedLayout, int]:
    """The tile of a second stage, its layout over the threads of a block, and how many such tiles are read at once.

    Of blocks that have slices each leaves a part of a partial.
    """
    extents = [extent if d in persistent_loop.kept else 1 for d, extent in enumerate(problem.extents)]
    first = persistent_loop.dims[0]
    extents[first] = None
    blocks = _clusters(layout, blocks_per_sm, target)
    columns = (
        problem.vector_dim if problem.vector_dim in persistent_loop.kept else max(persistent_loop.kept, default=first)
    )
    if columns == first:
        fill = LayoutBuilder(extents, problem.rank - 1, 1)
        fill.blocks[problem.rank - 1] = layout.cluster
    else:
        fill = LayoutBuilder(extents, columns, gcd(extents[columns] or 1, 4))
        fill.blocks[columns] = layout.cluster
        vector = fill.vector[columns]
        kept = [columns, *sorted(persistent_loop.kept - {columns, *persistent_loop.dims}, reverse=True)]
        numbers = prod(extents[d] or 1 for d in kept)
        lanes = max(SECTOR // (4 * vector), -(-numbers // (vector * blocks * layout.cluster)))
        for d in kept:
            while prod(fill.lanes) < lanes and fill.lanes_left > 1 and fill.left(d) > 1:
                fill.lanes[d] *= 2
                fill.lanes_left //= 2
    fill.rest_of_lanes(first)
    fill.warps[first] = layout.threads // WARP
    second_stage = fill.layout()
    tile = tuple(
        second_stage.extents[d] if d == first else min(second_stage.extents[d], extent or 1)
        for d, extent in enumerate(extents)
    )
    registers = min(READ_REGISTERS, target.registers_per_sm // (blocks_per_sm * layout.threads) // 2)
    return tile, second_stage, _reads(persistent_loop, second_stage, -(-blocks // slices // tile[first]), registers)


def second_stages(schedule: Schedule, asked: str) -> tuple[str, ...]:
    """The second stage that is asked for; of `auto` those that give the same bits on every run.

    The host of a second kernel has to know how many blocks are resident, and does for clusters of up to `KNOWN_CLUSTER`
    blocks. It is the only one of blocks that have slices.
    """
    if schedule.persistent_loop is not None and schedule.persistent_loop.slices > 1:
        return ("second_kernel",) if asked in ("auto", "second_kernel") else ()
    if asked != "auto":
        return (asked,)
    if schedule.layout.cluster > KNOWN_CLUSTER:
        return ("grid_sync", "last_block")
    return ("grid_sync", "last_block", "second_kernel")


def with_grid_reduction(schedule: Schedule, grid_reduction: str, target: Target) -> Schedule:
    """The schedule of a persistent loop with another second stage.

    A second kernel takes one partial from each block that the device holds, so that long sums stay as they are. So do
    atomic additions, which leave `SUM_ROWS` rows of sums: a thread reads all of these in its columns at once.
    """
    loop = schedule.loop_part
    changes: dict[str, Any] = {}
    if grid_reduction == "last_block" and loop.period:
        # In a branch that one block takes ptxas has fewer registers for reads than in the whole kernel.
        changes["second_stage_reads"] = max(1, loop.second_stage_reads // 2)
    if grid_reduction == "second_kernel":
        clusters = _clusters(schedule.layout, schedule.blocks_per_sm, target)
        changes["blocks"] = clusters - clusters % loop.slices
    if grid_reduction == "atomics":
        tile, layout = _row_of_sums(schedule, loop.dims)
        changes |= {"second_stage_tile": tile, "second_stage_layout": layout}
        changes |= {"second_stage_reads": SUM_ROWS, "period": 0}
    if grid_reduction == loop.grid_reduction and not changes:
        return schedule
    return schedule.with_loop(grid_reduction=grid_reduction, **changes)


def _clusters(layout: BlockedLayout, blocks_per_sm: int, target: Target) -> int:
    """Blocks, or clusters of them, that the device holds."""
    return target.sms * blocks_per_sm // layout.cluster


def _row_of_sums(schedule: Schedule, dims: tuple[int, ...]) -> tuple[tuple[int, ...], BlockedLayout]:
    """A tile of one row along the looped dimensions over all threads of the persistent loop, and its layout."""
    loop_layout = schedule.layout
    extents = [1 if d in dims else n for d, n in enumerate(schedule.tile)]
    kept = sorted(set(range(len(extents))) - set(dims), key=lambda d: (d != loop_layout.vector_dim, -d))
    columns = kept[0] if kept else dims[0]
    fill = LayoutBuilder(extents, columns, gcd(extents[columns], 4))
    fill.blocks = list(loop_layout.blocks)
    fill.add_lanes(*kept)
    fill.rest_of_lanes(dims[0])
    warps = loop_layout.threads // WARP
    for dim in kept:
        fill.warps[dim] = max(n for n in range(1, warps + 1) if warps % n == 0 and n <= fill.left(dim))
        warps //= fill.warps[dim]
    fill.warps[dims[0]] *= warps
    layout = fill.layout()
    return tuple(min(covered, n) for covered, n in zip(layout.extents, extents, strict=True)), layout


def _reads(persistent_loop: PersistentLoopProblem, second_stage: BlockedLayout, steps: int, registers: int) -> int:
    """How many tiles to read at once, of `steps`: as many as fit, and no more than reads of equal size need.

    Where blocks store several partials there are more steps, and what is read at once is added pairwise: all that fit.
    """
    at_once = max(1, registers * 4 // (second_stage.elements_per_thread * persistent_loop.accumulator_bytes))
    if persistent_loop.wide:
        return at_once
    reads = -(-steps // at_once)
    return -(-steps // reads)


def with_second_stage(
    problem: Problem,
    loop: PersistentLoopProblem,
    layout: BlockedLayout,
    resident: int,
    target: Target,
    *,
    order: str = "breadth",
    **how: Any,
) -> Schedule:
    """A persistent loop over tiles of a layout, with a second stage, which may be illegal.

    `resident` blocks share an SM, whose threads work in an order; `how` are further fields of `PersistentLoop`.
    """
    tile, second, reads = choose_second_stage(problem, loop, layout, resident, target, how.get("slices", 1))
    fields = {"grid_reduction": "grid_sync", "period": PERIOD if loop.wide else 0, "second_stage_reads": reads, **how}
    plan = PersistentLoop(loop.dims, second_stage_tile=tile, second_stage_layout=second, **fields)
    return Schedule(
        problem.tile_of(layout, loop.dims), layout, order=order, blocks_per_sm=resident, persistent_loop=plan
    )


def legal(problem: Problem, schedule: Schedule, target: Target) -> Schedule | None:
    """A schedule with a persistent loop; None if it is illegal, or if its blocks lack shared memory."""
    is_legal = check_schedule(schedule, problem.extents, problem.reduced, target) is None
    return schedule if is_legal and _fits(problem, schedule, target) else None


def staged(
    problem: Problem,
    loop: PersistentLoopProblem,
    layout: BlockedLayout,
    order: str,
    columns: str,
    blocks: int,
    target: Target,
) -> Schedule | None:
    """A loop over rows with a second stage and as many stages as shared memory has room for; None if it is illegal.

    So many blocks share an SM, whose threads work in an order, and keep what all tiles share in `columns`.
    """
    apart = are_apart(loop, layout, order)
    peeled = order == "breadth" and loop.inner and not loop.wide  # costs of peeling were not fitted to order `depth`
    schedule = with_second_stage(problem, loop, layout, blocks, target, order=order, columns=columns, peeled=peeled)
    none_abreast = layout.cluster == 1 and layout.is_alone(loop.dims) and order == "breadth"
    most = STAGES if problem.vector > 1 and problem.copied else 1  # asynchronous copies move 4 bytes or more
    for stages in range(most, 1, -1):
        deep = schedule.with_loop(
            stages=stages,
            few_tiles=FEW_TILES if none_abreast and stages > 2 else 0,
            row_values="shared" if apart else "registers",
            # Deciding in each step if its tile leaves the L2 first costs more than it gains where rows do not fill
            # their threads, or those of several warps lie side by side.
            streamed=(apart or layout.is_alone(loop.dims)) and padding(problem, loop, layout) == 1,
        )
        if _fits(problem, deep, target):
            schedule = deep
            break
    return legal(problem, schedule, target)


def _fits(problem: Problem, schedule: Schedule, target: Target) -> bool:
    """Whether the blocks of an SM share its memory."""
    needed = persistent_loop_bytes(problem, schedule.layout, schedule.loop_part)
    return needed <= shared_left(schedule.blocks_per_sm, target)
