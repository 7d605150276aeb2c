"""Schedules of elementwise kernels whose rows are no whole vectors: tiles of several rows, accessed as one run."""

from __future__ import annotations

from collections.abc import Iterator

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule

MOST_WARPS = 16
"""Warps of a block."""

MOST_ACROSS = 8
"""Warps that share a row."""

MOST_ELEMENTS = 64
"""Elements of a thread, which has parts of one row or of a few."""


def flat_schedules(problem: Problem) -> Iterator[Schedule]:
    """Tiles of whole rows whose lanes have a row each, so that what varies by rows is loaded once a thread.

    None where rows are whole vectors, or arrays over the whole space are not contiguous and aligned.
    """
    whole = [a for a in problem.whole_arrays if a.order and a.order[0] == problem.rank - 1]
    if problem.rank < 2 or problem.reduced or problem.transposed is not None or not whole:
        return
    row, rows = problem.extents[-1], problem.expected[-2]
    plain = all(a.is_contiguous and not a.windows for a in whole)
    if row is None or not plain or row % (WIDEST_ACCESS // min(a.bytes for a in whole)) == 0:
        return
    for across in (n for n in range(1, MOST_ACROSS + 1) if row % n == 0 and row // n <= MOST_ELEMENTS):
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
