"""Several products that share an operand, scheduled as one product: their other operands, side by side, are one.

A tile of the joined product has the tiles of all products side by side, so that accumulators, stages and copies count
as they are. The kernel's schedule has the tile of one of the products.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import SWIZZLE_BYTES, WARPGROUP
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule


def joined(problem: ContractionProblem) -> ContractionProblem:
    """The product of the shared operand and all others side by side; a single product is itself."""
    if problem.products == 1:
        return problem
    rows, columns = problem.arrays
    m, n = (extent and extent * count for extent, count in zip((problem.m, problem.n), problem.arrays, strict=True))
    assert min(rows, columns) == 1
    return replace(problem, m=m, n=n, arrays=(1, 1))


def joined_schedule(schedule: Schedule, problem: ContractionProblem) -> Schedule:
    """The schedule whose tile has the tiles of all products of `problem` side by side."""
    if problem.products == 1:
        return schedule
    dim, count = _side(schedule, problem), problem.products
    repeats = _with(schedule.layout.repeats, dim, schedule.layout.repeats[dim] * count)
    tile = _with(schedule.tile, dim, schedule.tile[dim] * count)
    return replace(schedule, tile=tile, layout=replace(schedule.layout, repeats=repeats))


def apart(schedule: Schedule, problem: ContractionProblem) -> Schedule | None:
    """The schedule of a joined product with the tile of one product; None where a thread would not have the same
    elements of every product, or an operand's tile would have no whole swizzle atoms.
    """
    if problem.products == 1:
        return schedule
    dim, count = _side(schedule, problem), problem.products
    layout = _divided(schedule, dim, count)
    if layout is None or schedule.layout.extents != schedule.tile:
        return None
    tile = _with(schedule.tile, dim, schedule.tile[dim] // count)
    swizzled = schedule.contraction_part.family.is_asynchronous and not problem.k_contiguous[_number(problem)]
    if swizzled and tile[dim] * problem.element.bytes % SWIZZLE_BYTES:
        return None
    return replace(schedule, tile=tile, layout=layout)


def _divided(schedule: Schedule, dim: int, count: int) -> BlockedLayout | None:
    """The layout of one of `count` equal parts of a tile along `dim`, all of which the same threads hold: of fewer
    repeats, or else of fewer warps; None where neither can be divided.
    """
    layout = schedule.layout
    if layout.repeats[dim] % count == 0:
        return replace(layout, repeats=_with(layout.repeats, dim, layout.repeats[dim] // count))
    warps = _with(layout.warps, dim, layout.warps[dim] // count)
    whole = not schedule.contraction_part.family.is_asynchronous or prod(warps) % (WARPGROUP // WARP) == 0
    return replace(layout, warps=warps) if layout.warps[dim] % count == 0 and whole else None


def _number(problem: ContractionProblem) -> int:
    """0 where operands A differ, 1 where operands B do."""
    return 0 if problem.arrays[0] > 1 else 1


def _side(schedule: Schedule, problem: ContractionProblem) -> int:
    """The dimension of a schedule's tile along which the products' operands differ."""
    first = _number(problem) == (1 if schedule.contraction_part.swapped else 0)
    return len(schedule.tile) - (2 if first else 1)


def _with(values: tuple[int, ...], dim: int, value: int) -> tuple[int, ...]:
    return (*values[:dim], value, *values[dim + 1 :])
