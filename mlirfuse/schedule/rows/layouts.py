"""How a row is spread over a cluster, warps, lanes and repeats, and small rows over the warps that are left.

Rows that start at addresses of any alignment can be accessed element by element; shifted, so that their vectors are
aligned, which leaves masks and counts to run time, and every column operand to be shifted to each row; or realigned in
shared memory when they are loaded and stored, at the same cost whatever the column operands
(`distribution/unaligned/unaligned_rows.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.layout_builder import LayoutBuilder
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.schedule.problem import Problem
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

REALIGNED_VECTOR, REALIGNED_ROWS = 8, range(768, 40 * 1024)
"""Elements of a vector from which on realigning rows pays, and of the rows that one block holds with enough elements a
thread."""

MOST_HELD = 48
"""Elements of such rows that a thread may hold in registers: with more, ptxas spills some while the ends are loaded."""


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
        along: which of the dimensions that are not reduced these lie along.
    """

    warps: int
    cluster: int
    vector: int
    lanes: int = WARP
    line: int = 0
    across: int = WARP
    rows: int = 1
    along: int = -1


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
    fill.add_warps(*_reduced(problem), most=split.warps)
    if prod(fill.warps) != split.warps:
        return None
    fill.rest_in_repeats(*problem.reduced)
    return fill


def _reduced(problem: Problem) -> list[int]:
    """The dimensions that warps lie along, the first ones first."""
    return sorted(problem.reduced, reverse=True)


@lru_cache(maxsize=64)  # splits differ in their warps mostly
def _spread_over_blocks(problem: Problem, split: Split) -> LayoutBuilder | None:
    """A row over one warp of each block, not to be changed; None where it is smaller than that."""
    cluster, lanes = split.cluster, split.lanes
    outer = [d for d in range(problem.rank) if d not in problem.reduced]
    slack = split.line - split.vector if split.line else max(0, unaligned_vector(problem) - 1)
    covered = [n if n is None or d != problem.vector_dim else n + slack for d, n in enumerate(problem.extents)]
    fill = LayoutBuilder(covered, problem.vector_dim, split.vector)
    if problem.vector_dim in outer:
        fill.add_lanes(problem.vector_dim, most=split.across)
    for dim in _reduced(problem):
        fill.add_lanes(dim, most=lanes * fill.lanes_left // WARP)  # what is left of the lanes over a row
    if lanes < WARP and (problem.vector_dim in outer or not outer or fill.lanes_left * lanes != WARP):
        return None
    fill.rest_of_lanes(outer[-1] if outer else _reduced(problem)[0])
    fill.add_blocks(*_reduced(problem), most=cluster)
    return fill if prod(fill.blocks) == cluster else None


def row_schedule(problem: Problem, split: Split, fill: LayoutBuilder, order: str, most_threads: int) -> Schedule:
    """The schedule of a row that is spread; small ones are stacked until the block is large enough, or full.

    `fill` is the row, spread as `split` says; `order` is that in which threads work.
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
        fill.repeats[outer[split.along]] *= split.rows
    layout = fill.layout()
    if how := "shift_to" if split.line else access_of_rows(problem):
        unit = 1 if how == "realigned" else split.line or split.vector
        layout = replace(layout, **{how: tuple(unit if d == problem.vector_dim else 0 for d in range(problem.rank))})
    return Schedule(problem.tile_of(layout), layout, order=order)


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


@lru_cache(maxsize=64)
def access_of_rows(problem: Problem) -> str:
    """The field of `BlockedLayout` that says how rows are accessed; empty where all align, or for single elements."""
    if not problem.unaligned_vector:
        return ""
    widest = max(problem.read_bytes, problem.full_bytes - problem.read_bytes)
    if problem.column_bytes and problem.unaligned_vector >= REALIGNED_VECTOR and problem.row_elements in REALIGNED_ROWS:
        return "realigned"
    # Each operand that all rows share, such as weights, is shifted into place in registers: shifting pays for one.
    return "shift_to" if problem.column_bytes <= widest else ""


def has_costly_ends(layout: BlockedLayout) -> bool:
    """Whether a thread's share of a row is chosen by the cost of the row's ends."""
    return any(layout.anywhere) and not layout.is_shifted_to_lines and max(layout.vector) >= REALIGNED_VECTOR


def staged_bytes(problem: Problem, layout: BlockedLayout) -> int:
    """Bytes of shared memory through which a block stores rows that are realigned."""
    written = problem.full_bytes - problem.read_bytes
    return prod(layout.extents) * written if layout.is_realigned else 0


def flat_bytes(problem: Problem, layout: BlockedLayout) -> int:
    """Bytes of shared memory through which a block moves tiles that are runs of memory, with vectors at their ends."""
    varies = {d for d, side in enumerate(layout.extents) if side > 1}
    moved = [array.bytes for array in problem.arrays if varies <= set(array.dims)]
    return sum(prod(layout.extents) * nbytes + WIDEST_ACCESS for nbytes in moved)
