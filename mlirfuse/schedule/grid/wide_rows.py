"""Choosing schedules for reductions over a grid without whole rows in tiles: pure functions of (problem, target).

Reductions along rows, alone or with others, loop over tiles of a part of a row. Reductions of columns alone leave so
many columns that each block can reduce some of them without other blocks.
"""

from __future__ import annotations

from dataclasses import replace

from mlirfuse.schedule.grid.second_stage import legal, with_second_stage
from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.layout_builder import LayoutBuilder
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.model.registers import HELD_REGISTERS, LOOP_BREADTH_BASE
from mlirfuse.schedule.model.residency import estimated_blocks
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

FINER_WARPS, FINER_ELEMENTS, FINER_BLOCKS = 8, 16, 6
"""Warps of a block, elements a thread holds of a tile, and blocks of an SM, of a persistent loop over parts of rows."""

COLUMN_WARPS, COLUMN_ELEMENTS = 16, 8
"""Warps of a block that reduces some columns, each over rows of its own, and elements that a thread loads at once of a
tensor."""

LONG_WARPS, LONG_ELEMENTS, FEW_PARTS = 8, 32, 64
"""The same where all lanes of a warp lie along columns, so that no lanes share in adding up the warps' partials, and a
thread's columns have more than `FEW_PARTS` of these. Fewer warps leave less to add up at the end of the rows, and each
thread loads as much more at once."""


def finer_schedule(problem: Problem, target: Target) -> Schedule | None:
    """A persistent loop over parts of rows; None where rows are not reduced, or what is kept of them fits no block."""
    persistent_loop = problem.finer_loop
    if persistent_loop is None:
        return None
    dim, each = problem.vector_dim, persistent_loop.accumulator_bytes + problem.read_bytes
    most = _elements(FINER_ELEMENTS, each)
    fill = LayoutBuilder(problem.extents, dim, min(problem.vector, most))
    fill.add_lanes(dim)
    fill.rest_of_lanes(persistent_loop.dims[-1])
    fill.rest_in_repeats(*(set(range(problem.rank)) - set(persistent_loop.dims)))
    fill.add_repeats(dim, most=most // fill.layout().elements_per_thread)
    fill.add_warps(dim, most=FINER_WARPS)
    layout = fill.layout()
    registers = LOOP_BREADTH_BASE + layout.elements_per_thread * each // REGISTER_BYTES
    blocks = min(FINER_BLOCKS, estimated_blocks(problem, layout, registers, target))
    if not blocks:
        return None
    own = replace(problem, persistent_loop=persistent_loop)
    schedule = with_second_stage(own, persistent_loop, layout, blocks, target)
    return legal(own, replace(schedule, tile=problem.tile_of(layout)), target)


def _elements(most: int, each: int) -> int:
    """Elements of a thread, of `each` bytes each, that `HELD_REGISTERS` hold; a power of two."""
    while most > 1 and most * each > HELD_REGISTERS * REGISTER_BYTES:
        most //= 2
    return most


def column_schedule(problem: Problem) -> Schedule | None:
    """Some columns a block, whose rows it loops over alone; None where more than one looped dimension is reduced."""
    persistent_loop = problem.persistent_loop
    assert persistent_loop is not None
    if problem.reduced != set(persistent_loop.dims) or len(persistent_loop.dims) > 1:
        return None
    (rows,), dim = persistent_loop.dims, problem.vector_dim
    each = 2 * persistent_loop.accumulator_bytes  # a thread's reductions, and those of the chunks at hand
    most = _elements(COLUMN_ELEMENTS, each)
    fill = LayoutBuilder(problem.extents, dim, min(problem.vector, most))
    fill.add_lanes(*sorted(range(problem.rank), key=lambda d: (d != dim, d != rows, -d)))
    if fill.lanes[dim] == WARP and COLUMN_WARPS * fill.vector[dim] > FEW_PARTS and dim != rows:
        fill.add_warps(rows, most=LONG_WARPS)
        fill.add_repeats(rows, most=_elements(LONG_ELEMENTS, each) // fill.vector[dim])
    else:
        fill.add_warps(rows, most=COLUMN_WARPS)
        if dim != rows:
            fill.add_repeats(dim, most=most // (2 * max(fill.vector)))
        fill.repeats[rows] = max(1, most // fill.layout().elements_per_thread)
    layout = fill.layout()
    return Schedule(problem.tile_of(layout), layout, "multi_pass")
