"""How a row is spread over a cluster, warps, lanes and repeats, and small rows over the warps that are left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.layout_builder import LayoutBuilder
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.rows.row_alignment import access_of_rows
from mlirfuse.schedule.schedule import Schedule

MIN_THREADS = 64
"""Threads of a block, at least: an SM holds 32 blocks at most, and smaller ones leave it short of threads."""

MIN_BYTES = 4096
"""Bytes that a block moves at least where rows are small: a device starts few blocks a nanosecond."""

HALF_WARPS, HALF_THREADS, FEW_ELEMENTS = range(1, 7), 128, 16
"""Warps of which half the lanes may be on one row and half on another; about how many threads' rows are stacked then;
and elements a thread up to which that number is the least, not the most."""

MANY_ELEMENTS = 32
"""Elements a thread from which on rows of two warps come two to a block."""


@dataclass(frozen=True)
class Split:
    """How a row is split up.

    Attributes:
        warps: warps of each block.
        cluster: blocks.
        vector: elements that a thread moves at once.
        lanes: lanes of each warp.
        line: elements to multiples of which rows of whole vectors are shifted; 0 where they are not.
        across: lanes of each warp along contiguous memory, at most, where that is not what is reduced.
        rows: rows of each thread.
    """

    warps: int
    cluster: int
    vector: int
    lanes: int = WARP
    line: int = 0
    across: int = WARP
    rows: int = 1


def unaligned_vector(problem: Problem) -> int:
    """Elements of a vector where rows are shifted or realigned; 0 where they are not."""
    return problem.unaligned_vector if access_of_rows(problem) else 0


def spread_row(problem: Problem, split: Split) -> LayoutBuilder | None:
    """A row that is split up so, before small ones are stacked; None where a row is smaller than the split."""
    of_one_warp = Split(1, split.cluster, split.vector, split.lanes, split.line, split.across)
    warp = _spread_over_blocks(problem, of_one_warp)
    if warp is None:
        return None
    fill = warp.copy()
    for dim in _inner(problem):
        if dim in problem.reduced:
            fill.add_warps(dim, split.warps)
    if prod(fill.warps) != split.warps:
        return None
    for dim in problem.reduced:
        fill.rest_in_repeats(dim)
    return fill


def _inner(problem: Problem) -> list[int]:
    """The dimensions that lanes and warps lie along, the first ones first."""
    inner = sorted(problem.reduced, reverse=True)
    return inner if problem.vector_dim in problem.reduced else [problem.vector_dim, *inner]


@lru_cache(maxsize=64)  # splits differ in their warps mostly
def _spread_over_blocks(problem: Problem, split: Split) -> LayoutBuilder | None:
    """A row over one warp of each block, not to be changed; None where it is smaller than that."""
    cluster, lanes = split.cluster, split.lanes
    outer = [d for d in range(problem.rank) if d not in problem.reduced]
    slack = split.line - split.vector if split.line else max(0, unaligned_vector(problem) - 1)
    covered = [n if n is None or d != problem.vector_dim else n + slack for d, n in enumerate(problem.extents)]
    fill = LayoutBuilder(covered, problem.vector_dim, split.vector)
    inner = _inner(problem)
    for dim in inner:
        along_row = lanes * fill.lanes_left // WARP  # what is left of the lanes over a row
        fill.add_lanes(dim, along_row if dim in problem.reduced else split.across)
    if lanes < WARP and (problem.vector_dim in outer or not outer or fill.lanes_left * lanes != WARP):
        return None
    if fill.lanes_left > 1 and outer:
        fill.rest_of_lanes(outer[-1])
    else:
        fill.rest_of_lanes(inner[0])
    for dim in inner:
        if dim in problem.reduced:
            fill.add_blocks(dim, cluster)
    return fill if prod(fill.blocks) == cluster else None


def row_schedule(problem: Problem, split: Split, fill: LayoutBuilder, order: str, most_threads: int) -> Schedule:
    """The schedule of a row that is spread; small ones are stacked until the block is large enough, or full.

    Args:
        problem: the problem.
        split: how the row is split up.
        fill: the row, spread so.
        order: in which threads work.
        most_threads: of a block.
    """
    warps, lanes = split.warps, split.lanes
    outer = [d for d in range(problem.rank) if d not in problem.reduced]
    if outer:
        elements = prod(fill.repeats) * prod(fill.vector)
        stacked = _stacked_rows(warps, lanes, elements)
        if problem.vector_dim in problem.reduced:
            wanted = -(-MIN_BYTES // (WARP * warps * elements * problem.full_bytes))
            stacked = max(stacked, min(wanted, most_threads // (WARP * warps)))
        fill.warps[outer[-1]] *= stacked
        fill.repeats[outer[-1]] *= split.rows
    layout = fill.layout()
    if how := "shift_to" if split.line else access_of_rows(problem):
        unit = 1 if how == "realigned" else split.line or split.vector
        layout = replace(layout, **{how: tuple(unit if d == problem.vector_dim else 0 for d in range(problem.rank))})
    tile = tuple(
        extent if d in problem.reduced and extent is not None else min(layout.extents[d], extent or layout.extents[d])
        for d, extent in enumerate(problem.extents)
    )
    return Schedule(tile, layout, order=order)


def _stacked_rows(warps: int, lanes: int, elements: int) -> int:
    """Warps that a block has over rows, each over as many rows as it has lanes for.

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
