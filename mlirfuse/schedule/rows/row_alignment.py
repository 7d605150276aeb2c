"""How rows that start at addresses of any alignment are accessed: a pure function of the problem.

Rows of an odd number of elements can be accessed element by element; shifted, so that their vectors are aligned, which
leaves masks and counts to run time, and every column operand to be shifted to each row; or realigned in shared memory
when they are loaded and stored, at the same cost whatever the column operands
(`distribution/unaligned/unaligned_rows.py`).
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.problem import Problem

REALIGNED_VECTOR, REALIGNED_ROWS = 8, range(768, 40 * 1024)
"""Elements of a vector from which on realigning rows pays, and of the rows that one block holds with enough elements a
thread."""

MOST_SHIFTED = 1
"""Operands that all rows share, such as weights, up to which shifting rows pays where rows are not realigned: each
operand is shifted into place in registers."""

ROW_BYTES = 96
"""Bytes of a row a thread that are best in long vectors: a row's ends cost the same for few elements and for many."""

MOST_HELD = 48
"""Elements of such rows that a thread may hold in registers: with more, ptxas spills some while the ends are loaded."""


@lru_cache(maxsize=64)
def access_of_rows(problem: Problem) -> str:
    """The field of `BlockedLayout` that says how rows are accessed; empty where all align, or for single elements."""
    if not problem.unaligned_vector:
        return ""
    widest = max(problem.read_bytes, problem.full_bytes - problem.read_bytes)
    if problem.column_bytes and problem.unaligned_vector >= REALIGNED_VECTOR and problem.row_elements in REALIGNED_ROWS:
        return "realigned"
    return "shift_to" if problem.column_bytes <= MOST_SHIFTED * widest else ""


def has_costly_ends(layout: BlockedLayout) -> bool:
    """Whether a thread's share of a row is chosen by the cost of the row's ends."""
    return any(layout.anywhere) and not layout.is_shifted_to_lines and max(layout.vector) >= REALIGNED_VECTOR


def staged_bytes(problem: Problem, layout: BlockedLayout) -> int:
    """Bytes of shared memory through which a block stores rows that are realigned."""
    written = problem.full_bytes - problem.read_bytes
    return prod(layout.extents) * written if layout.is_realigned else 0
