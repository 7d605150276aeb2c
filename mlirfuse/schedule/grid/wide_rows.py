"""Choosing schedules for reductions over a grid without whole rows in tiles: pure functions of (problem, target).

What is reduced along rows too, or alone, is walked in tiles of a part of a row. What is not leaves so many columns that
each block can reduce some of them alone.

H200, TB/s: sums of columns in half precision by blocks alone, by a persistent loop over whole rows, by PyTorch: 65536
columns 4.06, 3.99, 3.54; 131072 columns 3.95, 3.70, 3.86; 200000 columns 3.66, none, 3.74 (single precision 4.28, none,
4.24); 140001 columns, element by element, 2.69, 2.68, 2.61. Sums of everything by parts of rows, by whole rows, by
PyTorch: 131072 columns 4.13, 3.94, 4.02; 200000 columns 3.75, none, 3.91 (single precision 4.28, none, 4.20).
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, prod

from mlirfuse.schedule.grid.second_stage import PERIOD, choose_second_stage
from mlirfuse.schedule.grid.shared_memory import persistent_loop_bytes
from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.layout_builder import LayoutBuilder
from mlirfuse.schedule.model.grid_registers import BREADTH_BASE
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.model.residency import blocks_by_registers, shared_left
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.target import Target

FINER_WARPS, FINER_ELEMENTS, FINER_BLOCKS = 8, 16, 6
"""Warps of a block, elements a thread holds of a tile, and blocks of an SM, of a persistent loop over parts of rows: 48
KB of half precision are under way on an SM. With 32 elements in fewer blocks it takes between 2 % less and 40 % more
time."""

COLUMN_WARPS, COLUMN_BLOCKS, COLUMN_ELEMENTS = 16, 2, 8
"""Warps of a block that reduces some columns, each over rows of its own, blocks of an SM that ptxas leaves room
for, and elements that a thread loads at once of a tensor: with 16 it takes 2 to 20 % more time."""

LONG_WARPS, LONG_ELEMENTS, FEW_PARTS = 8, 32, 64
"""The same where all lanes of a warp lie along columns, so that none shares in adding up what the warps have, and
these would have more numbers of a thread's columns than that: few warps leave less to add up at the end of the rows,
and each thread loads as much more at once.

H200, sums of columns in bfloat16, us by 16 warps with 8 elements and so: 128 x 65536 10.2 and 7.3, 1024 x 65536 37.4
and 35.0, 512 x 131072 41.1 and 36.2, 8192 x 65536 244 and 248; over the second dimension of 64 x 512 x 1024 20.6 and
18.2. Where lanes lie along rows too: of 64 x 3136 x 64 10.8 and 16.3, of 1024 x 3136 x 64 95.9 and 102.7. Of few
numbers, in single precision: 128 x 32768 5.9 and 6.0, 8192 x 32768 236 and 244."""

HELD_REGISTERS = 96
"""Registers of a thread for reductions and what is read, at most."""

KEPT_REGISTERS = 4
"""Registers of a thread for each row beside the first of which reductions are kept: where it is, and where its total
goes. Without them ptxas spilled 60 bytes of tiles of four rows."""

FILLED = 0.9
"""Share of the blocks' places on the device that columns must fill, last wave included, to be reduced without a
persistent loop where there could be one."""


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
    blocks = min(FINER_BLOCKS, blocks_by_registers(layout.threads, registers, target))
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
    schedule = Schedule(tile, layout, blocks_per_sm=blocks, persistent_loop=plan)
    fits = persistent_loop_bytes(own, layout, plan) <= shared_left(blocks, target)
    return schedule if fits and check_schedule(schedule, problem.extents, problem.reduced, target) is None else None


def _elements(most: int, each: int) -> int:
    """Elements of a thread, of so many bytes each, that `HELD_REGISTERS` hold; a power of two."""
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


def fills(schedule: Schedule, problem: Problem, target: Target) -> bool:
    """Whether what `column_schedule` chose keeps the device busy to the end: few columns leave places of blocks empty.

    Nor do rows along which memory is contiguous, of which there may be few.
    """
    if problem.vector_dim in problem.reduced:
        return False
    sizes = enumerate(zip(problem.extents, schedule.tile, strict=True))
    blocks = prod(-(-(extent or 1) // n) for d, (extent, n) in sizes if d not in problem.reduced)
    waves = blocks / (target.sms * COLUMN_BLOCKS)
    return waves >= FILLED * ceil(waves)
