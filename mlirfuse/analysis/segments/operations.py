"""Which operations of the user ops belong to, where fusion is off and each operation is a kernel of its own."""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from mlirfuse.dialect.attributes import OPERATION


def operation_of(op: ir.Operation) -> int | None:
    """The number of the user's call that made an op; None where fusion is on, and for ops that passes made."""
    number = op.attributes.get(OPERATION)
    return None if number is None else ir.IntegerAttr(number).value


def separated(first: Iterable[ir.Operation], second: Iterable[ir.Operation]) -> str | None:
    """Why ops of two groups may not share a kernel, or None: fusion is off, and different calls made them.

    Ops that have no number, such as constants, count only in a group without any number.
    """
    numbers = [{operation_of(op) for op in ops} - {None} for ops in (first, second)]
    return None if numbers[0] == numbers[1] else "fusion is off"
