"""Choosing schedules for reductions over a grid without whole rows in tiles: pure functions of (problem, target).

Reductions along rows, alone or with others, loop over tiles of a part of a row. Reductions of columns alone leave so
many columns that each block can reduce some of them without other blocks.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from mlirfuse.schedule.grid.second_stage import PERIOD, choose_second_stage
from mlirfuse.schedule.grid.shared_memory import legal_schedule
from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.layout_builder import LayoutBuilder
from mlirfuse.schedule.model.grid_registers import BREADTH_BASE
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.model.residency import allocated, resident_blocks
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
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

HELD_REGISTERS = 96
"""Registers of a thread for reductions and what is read, at most."""

KEPT_REGISTERS = 4
"""Registers of a thread for each row beside the first of which reductions are kept: an address of the row and of its
result."""


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
    for kept in set(range(problem.rank)) - set(persistent_loop.dims):
        fill.rest_in_repeats(kept)
    fill.repeats[dim] *= max(1, min(most // fill.layout().elements_per_thread, fill.left(dim)))
    fill.add_warps(dim, FINER_WARPS)
    layout = fill.layout()
    tile = tuple(min(n, e or n) for n, e in zip(layout.extents, problem.extents, strict=True))
    kept = prod(layout.extents[d] for d in range(problem.rank) if d not in persistent_loop.dims)
    registers = BREADTH_BASE + layout.elements_per_thread * each // REGISTER_BYTES + KEPT_REGISTERS * (kept - 1)
    registers = round(problem.register_scale * registers)
    blocks = min(FINER_BLOCKS, resident_blocks(layout.threads, allocated(registers), target))
    if not blocks or registers > target.max_registers_per_thread:
        return None
    own = replace(problem, persistent_loop=persistent_loop)
    second_stage_tile, second_stage_layout, reads = choose_second_stage(own, persistent_loop, layout, blocks, target)
    period = PERIOD if persistent_loop.wide else 0
    plan = PersistentLoop(
        persistent_loop.dims,
        "grid_sync",
        second_stage_tile,
        second_stage_layout,
        second_stage_reads=reads,
        period=period,
    )
    return legal_schedule(own, Schedule(tile, layout, blocks_per_sm=blocks, persistent_loop=plan), target)


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
    most = _elements(
        COLUMN_ELEMENTS, 2 * persistent_loop.accumulator_bytes
    )  # a thread's reductions, and those of the chunks at hand
    fill = LayoutBuilder(problem.extents, dim, min(problem.vector, most))
    for d in sorted(range(problem.rank), key=lambda d: (d != dim, d != rows, -d)):
        fill.add_lanes(d)
    if fill.lanes[dim] == WARP and COLUMN_WARPS * fill.vector[dim] > FEW_PARTS and dim != rows:
        fill.add_warps(rows, LONG_WARPS)
        most = _elements(LONG_ELEMENTS, 2 * persistent_loop.accumulator_bytes)
        fill.repeats[rows] = min(max(1, most // fill.vector[dim]), fill.left(rows))
        return _chunks(problem, fill)
    fill.add_warps(rows, COLUMN_WARPS)
    if dim != rows:
        fill.repeats[dim] = min(max(1, most // (2 * max(fill.vector))), fill.left(dim))
    fill.repeats[rows] = max(1, most // fill.layout().elements_per_thread)
    return _chunks(problem, fill)


def _chunks(problem: Problem, fill: LayoutBuilder) -> Schedule:
    layout = fill.layout()
    tile = tuple(min(n, e or n) for n, e in zip(layout.extents, problem.extents, strict=True))
    return Schedule(tile, layout, "multi_pass")
