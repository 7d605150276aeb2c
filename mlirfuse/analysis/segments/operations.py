"""Which ops share no kernel: those of different calls where fusion is off, and those whose results are stored."""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from mlirfuse.dialect.attributes import OPERATION, STORED


def operation_of(op: ir.Operation) -> int | None:
    """The number of the user's call that made an op; None where fusion is on, and for ops that passes made."""
    number = op.attributes.get(OPERATION)
    return None if number is None else ir.IntegerAttr(number).value


def separated(first: Iterable[ir.Operation], second: Iterable[ir.Operation]) -> str | None:
    """Why ops of two groups may not share a kernel, or None: fusion is off, and different calls made them, or only the
    ops of one group are to store their results.

    Ops that have no number, such as constants, count only in a group without any number.
    """
    groups = [list(ops) for ops in (first, second)]
    numbers = [{operation_of(op) for op in ops} - {None} for ops in groups]
    if numbers[0] != numbers[1]:
        return "fusion is off"
    stored = [any(STORED in op.attributes for op in ops) for ops in groups]
    return None if stored[0] == stored[1] else "one stores what the other would compute again and again"
