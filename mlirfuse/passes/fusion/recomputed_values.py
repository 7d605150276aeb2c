"""Which ops a kernel copies to recompute what another kernel stores for it, and what these read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlir import ir

from mlirfuse.analysis.loops.structure import structure_of
from mlirfuse.support.dtypes import element_bytes
from mlirfuse.support.postorder import postorder
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

    def before(each: ir.Value) -> list[ir.Value]:
        return [] if each in known or is_leaf(each) else read_values(each.owner.operation)

    for each in postorder([value], before):
        if each in known:
            continue
        if is_leaf(each):
            known[each] = frozenset((each,))
            continue
        below = frozenset[ir.Value]().union(*(known[v] for v in read_values(each.owner.operation)))
        like = [end for end in below if _extents(end) == _extents(each)]
        wide = sum(element_bytes(end.type) * (1 if is_argument(end) else 2) for end in like)
        narrower = not all(map(is_argument, like)) and 2 * element_bytes(each.type) < wide
        known[each] = frozenset((each,)) if narrower else below
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
    values = list(values)
    ends = frozenset[ir.Value]().union(*(ends_of(value, known) for value in values))
    order = list(postorder(values, lambda value: [] if value in ends else read_values(value.owner.operation)))
    ops = dict.fromkeys(value.owner.operation for value in order if value not in ends)
    return list(ops), [value for value in order if value in ends]
