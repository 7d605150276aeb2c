"""Schedules of grid persistent kernels, of one visit of tiles or two: pure functions of (problem, target).

Slices are narrow, so that each has few members, and wide enough for whole lines. Where tiles stay in shared
memory, a block's tiles are few and large: all of a tile is under way at once, and nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.layout_builder import LayoutBuilder
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.model.residency import SHARED_RESERVE, estimated_blocks, shared_left
from mlirfuse.schedule.model.shared_memory import copies_bytes, exchange_bytes
from mlirfuse.schedule.parts.grid_persistent import MOST_KEPT, GridPersistent
from mlirfuse.schedule.predict.counts.space import element_bytes
from mlirfuse.schedule.problem import GridPersistentProblem, Problem
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.target import LINE, Target

WARPS, REPEATS = (4, 8, 16, 32), (1, 2, 3, 4, 6, 8)
"""Warps of a block, and fragments of a thread along what is reduced."""

BASE_REGISTERS = 44
"""Registers of a thread beside its elements: addresses of tiles, of slots and of partial results, and masks."""


def grid_persistent_schedules(problem: Problem, own: GridPersistentProblem, target: Target) -> Iterator[Schedule]:
    """Legal schedules for every split of the columns into slices, every shape of tiles, and all blocks that fit."""
    for layout in dict.fromkeys(_layouts(problem, own, target)):
        tile = problem.tile_of(layout)
        for blocks in range(1, 1 + estimated_blocks(problem, layout, _registers(own, layout), target)):
            part = GridPersistent(own.dims)
            part = replace(part, kept_tiles=_kept_tiles(problem, own, layout, tile, part, blocks, target))
            schedule = Schedule(tile, layout, blocks_per_sm=blocks, grid_persistent=part)
            if check_schedule(schedule, problem.extents, problem.reduced, target) is None:
                yield schedule


def _layouts(problem: Problem, own: GridPersistentProblem, target: Target) -> Iterator[BlockedLayout]:
    """Vectors along the contiguous dimension; where that is not reduced, with every number of lanes in a slice."""
    columns = problem.vector_dim not in own.dims
    inner = max(own.dims) if columns else problem.vector_dim
    for lanes in (1, 2, 4, 8, 16, 32) if columns else (WARP,):
        for warps in WARPS:
            if warps * WARP > target.max_threads_per_block:
                continue
            for repeats in REPEATS:
                fill = LayoutBuilder(problem.extents, problem.vector_dim, problem.vector)
                fill.add_lanes(problem.vector_dim, most=lanes)
                if columns and (fill.lanes[problem.vector_dim] != lanes or _is_narrow(problem, fill)):
                    continue
                reduced = [inner, *sorted(set(own.dims) - {inner}, reverse=True)]
                fill.add_lanes(*reduced)
                fill.rest_of_lanes(reduced[-1])
                fill.add_warps(*reduced, most=warps)
                fill.warps[reduced[-1]] *= warps // prod(fill.warps)
                fill.add_repeats(*reduced, most=repeats)
                if prod(fill.warps) == warps and prod(fill.repeats) == repeats:
                    yield fill.layout()


def _is_narrow(problem: Problem, fill: LayoutBuilder) -> bool:
    """Whether a slice's rows of the narrowest array are narrower than a line, and than those of the array: blocks of
    different slices are not in step, and device memory is slower by half where they read a half of a line each.
    """
    dim = problem.vector_dim
    each = min((array.bytes for array in problem.whole_arrays), default=element_bytes(problem))
    return fill.left(dim) > 1 and fill.vector[dim] * fill.lanes[dim] * each < LINE


def _registers(own: GridPersistentProblem, layout: BlockedLayout) -> int:
    """Estimated registers of a thread: of its partial results and what it reads, or of a second visit's columns."""
    elements = layout.elements_per_thread
    kept = layout.held(set(range(layout.rank)) - set(own.dims))
    first = elements * (own.carried_bytes + own.first_bytes) / REGISTER_BYTES
    second = elements * own.second_bytes / REGISTER_BYTES + kept * own.column_values
    return round(BASE_REGISTERS + max(first, second))


def _kept_tiles(
    problem: Problem,
    own: GridPersistentProblem,
    layout: BlockedLayout,
    tile: tuple[int, ...],
    part: GridPersistent,
    blocks: int,
    target: Target,
) -> int:
    """Tiles of a block that shared memory has room for beside exchanges, and no more than a block has."""
    each = prod(layout.extents) * own.again_bytes
    exchanged = sum(copies_bytes(nbytes) for p in problem.reductions for nbytes in exchange_bytes(p, layout))
    room = shared_left(blocks, target) - SHARED_RESERVE - 2 * exchanged
    if not each or room < each:
        return 0
    found = min(MOST_KEPT, room // each)
    count = problem.tiles(tile, own.dims)
    if count is None:
        return found
    members = max(1, target.sms * blocks // prod(part.slices(tile, problem.extents)))
    return min(found, -(-count // members))
