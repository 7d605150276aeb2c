"""Choosing how many parts a long row is reduced in, where the number of rows is unknown: a pure function.

A block or cluster a row leaves most of the device idle where rows are few, and a grid loops over rows of a known number
only. Parts of one size do for any number of rows, and another kernel adds up what each is reduced to. Columns that
blocks reduce without each other gain nothing from parts.
"""

from __future__ import annotations

from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.rows.candidates import row_candidates
from mlirfuse.target import Target

MOST_BYTES, LEAST_BYTES = 32 * 1024, 4 * 1024
"""Bytes of a part, at most and at least: numbers with no divisor in between are not split."""


def row_parts(problem: Problem, target: Target) -> int:
    """How many parts of one length each row is reduced in; 1 where rows stay whole.

    Rows stay whole where one block holds a row, where something of a row is needed again, where the grid loops over
    rows, as it does over those of a known number, and where memory is not contiguous along rows.
    """
    if (
        problem.reduced != {problem.vector_dim}
        or problem.dependent_reductions > 1
        or problem.live_bytes
        or problem.column_bytes
    ):
        return 1
    if problem.persistent_loop is None or not problem.loop_is_optional or None not in problem.extents:
        return 1
    length, each = problem.row_elements // problem.vector, problem.vector * max(1, problem.read_bytes)
    if length * each <= MOST_BYTES:
        return 1
    if any(candidate.schedule.layout.cluster == 1 for candidate in row_candidates(problem, target)):
        return 1
    fewest, most = -(-length * each // MOST_BYTES), length * each // LEAST_BYTES
    return next((parts for parts in range(fewest, most + 1) if length % parts == 0), 1)
