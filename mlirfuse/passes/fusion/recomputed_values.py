"""Which ops a kernel copies to recompute what another kernel stores for it, and what these read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlir import ir

from mlirfuse.analysis.loops.structure import structure_of
from mlirfuse.support.dtypes import element_bytes
from mlirfuse.support.rewriting import read_values


def is_argument(value: ir.Value) -> bool:
    """Whether a value is an argument of its kernel."""
    return isinstance(value.owner, ir.Block)


def is_leaf(value: ir.Value) -> bool:
    """Whether a value ends the recomputed expression: an argument, or a reduction's result."""
    if is_argument(value):
        return True
    structure = structure_of(value.owner.operation)
    return structure is not None and bool(structure.reduction_loops)


def ends_of(value: ir.Value, known: dict[ir.Value, frozenset[ir.Value]]) -> frozenset[ir.Value]:
    """Where a recomputed expression ends, such that the first kernel writes few bytes for it.

    These are leaves; but where a reduction's result, which is written and read, is rounded to fewer bytes than it and
    the arguments beside it have, the expression ends behind the rounding. What is broadcast to a value's extents is too
    small to count.

    Args:
        value: of the first kernel.
        known: the answers of before, which are added to.
    """
    if value not in known:
        if is_leaf(value):
            known[value] = frozenset((value,))
        else:
            below = frozenset[ir.Value]().union(*(ends_of(v, known) for v in read_values(value.owner.operation)))
            like = [end for end in below if _extents(end) == _extents(value)]
            wide = sum(element_bytes(end.type) * (1 if is_argument(end) else 2) for end in like)
            narrower = not all(map(is_argument, like)) and 2 * element_bytes(value.type) < wide
            known[value] = frozenset((value,)) if narrower else below
    return known[value]


def let_reduce(read: Sequence[ir.Value], known: dict[ir.Value, frozenset[ir.Value]]) -> None:
    """Has the reader reduce too what it reads as whole arrays in any case, beside the result of the reduction.

    Args:
        read: values of the first kernel that the reader reads.
        known: answers of `ends_of`, which are added to.
    """
    whole = frozenset[ir.Value]().union(*(ends_of(value, known) for value in read))
    for value in read:
        if is_leaf(value) and not is_argument(value):
            inputs = [v for v in read_values(value.owner.operation) if _extents(v)]
            below = frozenset[ir.Value]().union(*(ends_of(v, known) for v in inputs))
            if below and below <= whole - {value}:
                known[value] = below


def _extents(value: ir.Value) -> tuple[int, ...] | None:
    """Of an array; None of a number."""
    return tuple(ir.ShapedType(value.type).shape) if isinstance(value.type, ir.ShapedType) else None


def expression(
    values: Iterable[ir.Value], known: dict[ir.Value, frozenset[ir.Value]]
) -> tuple[list[ir.Operation], list[ir.Value]]:
    """The elementwise ops that compute values, producers first, and the ends of these expressions."""
    ops: dict[ir.Operation, None] = {}
    leaves: dict[ir.Value, None] = {}
    ends = frozenset[ir.Value]().union(*(ends_of(value, known) for value in values))

    def visit(value: ir.Value) -> None:
        if value in ends:
            leaves[value] = None
            return
        op = value.owner.operation
        if op not in ops:
            for operand in read_values(op):
                visit(operand)
            ops[op] = None

    for value in values:
        visit(value)
    return list(ops), list(leaves)
