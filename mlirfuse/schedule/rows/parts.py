"""Choosing how many parts a long row is reduced in, where nobody knows how many rows there will be: a pure function.

A block or cluster a row leaves most of the device idle where rows are few, and a grid loops overrows of a known number
only. Parts of one size do for any number of rows, and another kernel adds up what each is reduced to.

H200, us, sums of bfloat16 by one cluster a row and so: 2 x 4194304 59.2 and 6.3, 16 x 1048576 18.4 and 9.9, 64 x
1000000 42.7 and 31.1, 512 x 1048576 251 and 238, 256 x 262144 40.6 and 32.3, 8192 x 131072 596 and 471; where it gains
nothing, in 8 x 262144, 3.2 and 3.3. Parts of 16, 32 and 64 KB take as long. Columns that blocks reduce alone gain
little so, and lose more: of 64 x 3136 x 64 10.8 and 10.4, of 1024 x 3136 x 64 96 and 110.
"""

from __future__ import annotations

from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.rows.candidates import row_candidates
from mlirfuse.target import Target

MOST_BYTES, LEAST_BYTES = 32 * 1024, 4 * 1024
"""Bytes of a part, at most and at least: numbers with no divisor in between are not split."""


def row_parts(problem: Problem, target: Target) -> int:
    """How many parts of one length each row is reduced in; 1 where rows stay whole.

    Rows stay whole where a block holds one alone, where something of them is needed again, where the grid loops
    overthem, as it does those of a known number, and where memory is not contiguous along them.
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
