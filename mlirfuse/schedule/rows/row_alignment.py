"""How rows that start at addresses of any alignment are accessed: a pure function of the problem.

Rows of an odd number of elements can be accessed element by element; shifted, so that their vectors are aligned, which
leaves all masks and counts to run time, and what all rows share to be shifted to each of them; or realigned in shared
memory when they are loaded and stored, which costs the same whatever meets them
(`distribution/unaligned/unaligned_rows.py`).
"""

from __future__ import annotations

from math import prod

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.problem import Problem

REALIGNED_VECTOR, REALIGNED_ROWS = 8, range(768, 40 * 1024)
"""Elements of a vector from which on realigning rows pays, and of the rows that one block holds, in large shares a
thread.

H200, LayerNorm with weight and bias, shares of a copy: half precision, 1001 columns 0.88 against 0.76 element by
element, 4097 columns 0.86 against 0.76 (0.81 with weight and bias shifted), 16385 columns 0.69 against 0.59, 32769
columns 0.58 against 0.50, but 257 columns 0.42 against 0.73; single precision, 4097 columns 0.81 against 0.85.
"""

MOST_SHIFTED = 1
"""Operands that all rows share, such as weights, up to which shifting rows pays where they are not realigned: each is
shifted into place in registers. Where there is none nothing is better (softmax of 4097 columns: 0.93 of a copy,
realigned 0.88)."""

ROW_BYTES = 96
"""Bytes of a row a thread that are best in long vectors: what a row's ends take is the same for few and for many.

H200, half precision, shares of a copy: LayerNorm of 4097 columns with 48 elements a thread 0.86, 24 0.78; of 8193
columns 0.82 and 0.56; softmax of 4097 columns 0.93 and 0.73. In single precision fewer are better, as of other rows.
"""


MOST_HELD = 48
"""Elements of such rows that a thread may hold in registers: of more, ptxas spills some while their ends are loaded."""


def access_of_rows(problem: Problem) -> str:
    """The field of `BlockedLayout` that says how rows are accessed; empty where all align, or for single elements."""
    if not problem.unaligned_vector:
        return ""
    widest = max(problem.read_bytes, problem.full_bytes - problem.read_bytes)
    if problem.column_bytes and problem.unaligned_vector >= REALIGNED_VECTOR and problem.row_elements in REALIGNED_ROWS:
        return "realigned"
    return "shift_to" if problem.column_bytes <= MOST_SHIFTED * widest else ""


def has_costly_ends(layout: BlockedLayout) -> bool:
    """Whether the ends of rows are what a thread's share of a row is chosen by."""
    return any(layout.anywhere) and not layout.is_shifted_to_lines and max(layout.vector) >= REALIGNED_VECTOR


def staged_bytes(problem: Problem, layout: BlockedLayout) -> int:
    """Bytes of shared memory through which a block stores rows that are realigned."""
    written = problem.full_bytes - problem.read_bytes
    return prod(layout.extents) * written if layout.is_realigned else 0
