"""Orders in which the arrays of a contraction lie so that dimensions of one role are one: for copies, no IR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

Dims = tuple[int, ...]
"""Dimensions of an iteration space, outermost first."""


@dataclass(frozen=True)
class ArrayOrders:
    """The orders of a contraction's arrays; None for an array that stays as it is.

    Attributes:
        operands: of A and B.
        result: of the result.
    """

    operands: tuple[Dims | None, Dims | None]
    result: Dims | None = None


def array_orders(left: Dims, right: Dims, result: Dims, *, along_k: bool = False) -> list[ArrayOrders]:
    """Other orders of a contraction's arrays, in which dimensions of m, of n or of k are neighbours that can be merged.

    Operands have batch dimensions outside, then their own in the result's order and the summed ones in the order of
    either operand, or these two exchanged. Where the result's own order keeps dimensions of m, or of n, apart, results
    in the operands' orders come as well. Arrays that lie so already stay.

    Args:
        left: the dimensions of operand A, in the order of its memory, without those of one element.
        right: the same of operand B.
        result: the same of the result.
        along_k: whether operands that are not contiguous along k may move for this alone.
    """
    found = dict.fromkeys(_all_orders(left, right, result, along_k))
    found.pop(ArrayOrders((None, None)), None)
    return list(found)


def _all_orders(left: Dims, right: Dims, result: Dims, along_k: bool) -> Iterator[ArrayOrders]:
    batch = tuple(d for d in result if d in left and d in right)
    in_result = [
        tuple(d for d in result if d in own and d not in other) for own, other in ((left, right), (right, left))
    ]
    in_operands = [tuple(d for d in own if d in result and d not in batch) for own in (left, right)]
    summed = [tuple(d for d in own if d not in result) for own in (left, right)]
    for kept in (True, False):
        m, n = in_result if kept else in_operands
        order = None if kept else (*batch, *n, *m) if result and result[-1] in m else (*batch, *m, *n)
        if order == result:
            continue
        for k in summed:
            choices = (_choices(own, batch, outer, k, along_k) for own, outer in ((left, m), (right, n)))
            yield from (ArrayOrders((first, second), order) for first, second in product(*choices))


def _choices(own: Dims, batch: Dims, outer: Dims, summed: Dims, along_k: bool) -> list[Dims | None]:
    """The orders of an operand: its own, and others where its own merges not all that these do.

    A copy that keeps the last dimension moves whole lines, and instructions of all types take operands that are
    contiguous along k.
    """
    orders = [(*batch, *outer, *summed), (*batch, *summed, *outer)]
    if own in orders:
        return [None, orders[0]] if along_k and own == orders[1] != orders[0] else [None]
    return [None, orders[0]] if own[-1:] == summed[-1:] else [None, *dict.fromkeys(orders)]
