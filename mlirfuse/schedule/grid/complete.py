"""Completing layouts of persistent loops to schedules: pure functions of (problem, target).

A second stage combines the blocks' partial results. Asynchronous copies of tiles of rows into shared memory keep bytes
in flight without registers, two or three tiles deep.
"""

from __future__ import annotations

from math import prod
from typing import Any

from mlirfuse.schedule.grid.second_stage import choose_second_stage
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.model.loops import are_apart, padding, row_elements
from mlirfuse.schedule.model.residency import shared_left
from mlirfuse.schedule.model.shared_memory import persistent_loop_bytes
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.target import Target

CHUNK_ELEMENTS, SHARED_ACCUMULATORS, SHARED_ROW = 12 * 1024, 4, 512
"""Elements of a small chunk of the dynamic tail; bytes of an element's accumulators, and elements of a row, up to which
blocks share the tail. More chunks leave more partials for the second stage, and larger ones end less together."""

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
    """A persistent loop with a second stage, which may be illegal.

    Args:
        problem: the kernel.
        loop: what the loop runs over.
        layout: of a tile.
        resident: blocks that share an SM.
        target: the architecture.
        order: in which threads work.
        how: further fields of `PersistentLoop`.
    """
    tile, second, reads = choose_second_stage(problem, loop, layout, resident, target, how.get("slices", 1))
    fields = {"grid_reduction": "grid_sync", "period": PERIOD if loop.wide else 0, "second_stage_reads": reads, **how}
    plan = PersistentLoop(loop.dims, second_stage_tile=tile, second_stage_layout=second, **fields)
    tile = problem.tile_of(layout, loop.dims)
    return Schedule(tile, layout, order=order, blocks_per_sm=resident, persistent_loop=plan)


def legal(problem: Problem, schedule: Schedule, target: Target) -> Schedule | None:
    """A schedule with a persistent loop; None if it is illegal, or if its blocks lack shared memory."""
    is_legal = check_schedule(schedule, problem.extents, problem.reduced, target) is None
    return schedule if _fits(problem, schedule, target) and is_legal else None


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

    Args:
        problem: the kernel.
        loop: what the loop runs over.
        layout: of a tile.
        order: in which threads work.
        columns: where these keep what all tiles share.
        blocks: that share an SM.
        target: the architecture.
    """
    apart = are_apart(loop, layout, order)
    few = loop.accumulator_bytes <= SHARED_ACCUMULATORS and row_elements(problem) <= SHARED_ROW
    chunk = max(1, CHUNK_ELEMENTS // prod(layout.extents)) if apart and few and not loop.wide else 0
    # A block that takes chunks does not know its last tile. Costs of peeling were not fitted to order `depth`.
    peeled = order == "breadth" and loop.inner and not loop.wide and not chunk
    how = {"columns": columns, "peeled": peeled, "chunk": chunk}
    schedule = with_second_stage(problem, loop, layout, blocks, target, order=order, **how)
    none_abreast = layout.cluster == 1 and layout.is_alone(loop.dims) and order == "breadth"
    for stages in range(1 if problem.vector == 1 else STAGES, 1, -1):  # asynchronous copies move 4 bytes or more
        deep = schedule.with_loop(
            stages=stages,
            few_tiles=FEW_TILES if none_abreast and stages > 2 else 0,
            row_values="shared" if apart else "registers",
            # Deciding in each step if its tile leaves the L2 first costs more than it gains where rows do not fill
            # their threads, or those of several warps lie side by side.
            streamed=(apart or layout.is_alone(loop.dims)) and padding(problem, loop, layout) == 1,
        )
        if _fits(problem, deep, target):
            return legal(problem, deep, target)
    return legal(problem, schedule, target)


def _fits(problem: Problem, schedule: Schedule, target: Target) -> bool:
    needed = persistent_loop_bytes(problem, schedule.layout, schedule.loop_part)
    return needed <= shared_left(schedule.blocks_per_sm, target)
