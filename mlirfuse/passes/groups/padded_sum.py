"""Rewrites a sum of products over a gathered view to one with more channels."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlir import ir

from mlirfuse.dialect.gathered_view import gathered_view
from mlirfuse.passes.groups.grouped_sum import RESULT, Axes, arrays, view_of
from mlirfuse.passes.groups.regrouping import copy_of, erase_views, summed, through_casts
from mlirfuse.support.rewriting import erase


@dataclass(frozen=True)
class PaddedSum:
    """A sum of products, one loop of which gets more iterations, over zeros.

    Attributes:
        op: the `linalg.generic`.
        axes: of operand A, operand B and the result the loop of each axis; None where it has one element.
        extents: the extent of each loop.
        loop: the loop over channels.
        view: the number of the gathered view that has them.
        other: the number of the one other array that has them.
        wide: the loop's new extent.
    """

    op: ir.Operation
    axes: tuple[Axes, Axes, Axes]
    extents: tuple[int, ...]
    loop: int
    view: int
    other: int
    wide: int

    @property
    def channels(self) -> int:
        """The loop's extent."""
        return self.extents[self.loop]

    @property
    def padded_extents(self) -> tuple[int, ...]:
        """The new extent of each loop."""
        return tuple(self.wide if loop == self.loop else extent for loop, extent in enumerate(self.extents))

    def can_widen(self, number: int) -> bool:
        """Whether an operand is zero where the loop passes its extent, read as a view of what it is made of."""
        source, gather = view_of(arrays(self.op)[number])
        if gather.joins_components:
            return False
        dim = ir.AffineExpr.get_dim(self.axes[number].index(self.loop))
        shape = ir.RankedTensorType(source.type).shape
        return any(expr == dim and n == self.channels for expr, n in zip(gather.map.results, shape, strict=True))

    def apply(self) -> None:
        """Replaces the sum, and the casts of its result if channels are columns of it."""
        op, operands = self.op, list(arrays(self.op)[:RESULT])
        with ir.InsertionPoint(op), op.location:
            views = [self._operand(number) for number in (0, 1)]
            shape = [1 if loop is None else self.padded_extents[loop] for loop in self.axes[RESULT]]
            value = summed(op, views, shape, op.attributes["indexing_maps"], op.attributes["iterator_types"])
        chain = [op]
        if self.other == RESULT:
            chain, value = through_casts(op, value)
            with ir.InsertionPoint(chain[-1]), chain[-1].location:
                value = copy_of(_with_extent(value, self.axes[RESULT].index(self.loop), self.channels))
        chain[-1].results[0].replace_all_uses_with(value)
        for each in reversed(chain):
            erase(each)
        for operand in operands:
            erase_views(operand)

    def _operand(self, number: int) -> ir.Value:
        value = arrays(self.op)[number]
        if number not in (self.view, self.other):
            return value
        wider = _with_extent(value, self.axes[number].index(self.loop), self.wide)
        return wider if number == self.view else copy_of(wider)


def _with_extent(value: ir.Value, dim: int, extent: int) -> ir.Value:
    """A gathered view of what a value is made of, with another extent of one dimension."""
    source, gather = view_of(value)
    basis: tuple[tuple[int, ...], ...] = (*gather.basis[:dim], (extent,), *gather.basis[dim + 1 :])
    return gathered_view(source, replace(gather, basis=basis))
