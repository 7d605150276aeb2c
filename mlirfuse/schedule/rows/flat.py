"""Schedules of elementwise kernels whose rows are no whole vectors: tiles of several rows, accessed as one run."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.schedule.parts.flat_tiles import FlatTiles, flat_shape
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
    row, rows = problem.extents[-1], problem.extents[-2]
    vector = WIDEST_ACCESS // min(a.bytes for a in whole)
    plain = all(a.is_contiguous and a.alignment >= WIDEST_ACCESS and not a.windows for a in whole)
    if row is None or rows is None or not plain or row % vector == 0:
        return
    for across in (n for n in range(1, MOST_ACROSS + 1) if row % n == 0):
        down = 1
        while across * down <= MOST_WARPS and rows % (WARP * down) == 0:
            if row // across <= MOST_ELEMENTS and WARP * down * row % vector == 0:
                yield _schedule(problem, vector, across, down)
            down *= 2


def _schedule(problem: Problem, vector: int, across: int, down: int) -> Schedule:
    rank, row = problem.rank, problem.extents[-1] or 1
    ones = (1,) * (rank - 2)
    layout = BlockedLayout(
        (*ones, 1, 1), (*ones, WARP, 1), (*ones, down, across), (*ones, 1, row // across), (*ones, 1, 1)
    )
    (*_, elements), warps = flat_shape(layout.extents), across * down
    repeats = -(-elements // (vector * WARP * warps))
    ends = ((1, vector), (1, WARP), (1, warps), (1, repeats), (1, 1))
    flat = BlockedLayout(*((*ones, *end) for end in ends))
    assert prod(flat.extents) >= elements
    return Schedule(layout.extents, layout, flat=FlatTiles(flat))
