"""Schedules of rows that are no whole vectors, and start at any address: tiles of several rows are one run of memory.

Threads move a tile in whole vectors, through shared memory, and then have a row each, or a part of one. What varies by
rows is loaded once a thread, and a thread reduces what it has of a row alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.schedule.model.registers import MOST_ELEMENTS
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule

MOST_WARPS = 16
"""Warps of a block."""


def flat_schedules(problem: Problem) -> Iterator[Schedule]:
    """Tiles of whole rows whose lanes have a row each, or a part of one where a block's warps share it.

    None where rows are whole vectors, or arrays over the whole space are not contiguous and aligned, or more than rows
    is reduced.
    """
    inner = problem.rank - 1
    whole = [a for a in problem.whole_arrays if a.order and a.order[0] == inner]
    if problem.rank < 2 or problem.reduced - {inner} or problem.transposed is not None or not whole:
        return
    row, rows = problem.extents[-1], problem.expected[-2]
    plain = all(a.is_contiguous and not a.windows for a in whole)
    if row is None or not plain or row % (WIDEST_ACCESS // min(a.bytes for a in whole)) == 0:
        return
    for across in (n for n in range(1, MOST_WARPS + 1) if row % n == 0 and row // n <= MOST_ELEMENTS):
        down = 1
        while across * down <= MOST_WARPS and (rows is None or down == 1 or WARP * down <= rows):
            yield _schedule(problem, across, down)
            down *= 2


def _schedule(problem: Problem, across: int, down: int) -> Schedule:
    row, ones = problem.extents[-1] or 1, (1,) * (problem.rank - 2)
    layout = BlockedLayout(
        (*ones, 1, 1), (*ones, WARP, 1), (*ones, down, across), (*ones, 1, row // across), (*ones, 1, 1)
    )
    tile = (*ones, min(WARP * down, problem.extents[-2] or WARP * down), row)
    return Schedule(tile, layout, flat=True)
