"""Combines partial results of reductions, one for each part along an axis, on tensors."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.analysis.arithmetic.combining import combiner_of
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.passes.splitting.tensor_reductions import Beside, reduce_rows


def combined(
    reduction: OpStructure, partials: Sequence[ir.Value], axis: int, elements: int | None, beside: Beside | None
) -> list[ir.Value]:
    """The results of a reduction, at the insertion point.

    Args:
        reduction: a reducing `linalg.generic`, or a joint reduction.
        partials: its results of all parts.
        axis: of the partial results, along which the parts are.
        elements: that are reduced to one partial result; a number for `fuse.moments`.
        beside: what shares the loops, so that all reductions of a kernel have one iteration space; None for the first.
    """
    if reduction.op.name == "fuse.exp_sum":
        maxima, sums = partials
        return _exp_sum(maxima, sums, axis, beside)
    if reduction.op.name == "fuse.moments":
        assert elements is not None  # the split asked
        sums, squares = partials
        return _moments(sums, squares, axis, elements, beside)
    (partial,) = partials
    return [
        reduce_rows(combiner_of(reduction).name, partial, [], [axis], lambda arguments: arguments[0], beside=beside)
    ]


def _exp_sum(maxima: ir.Value, sums: ir.Value, axis: int, beside: Beside | None) -> list[ir.Value]:
    """The largest maximum, and the sums of exponentials rescaled to it.

    A part of minus infinities only, whose sum is no number, adds nothing unless all parts are so.
    """
    element = ir.RankedTensorType(maxima.type).element_type

    def rescaled(arguments: Sequence[ir.Value]) -> ir.Value:
        own, total, largest = arguments
        zero, lowest = (arith.ConstantOp(element, ir.FloatAttr.get(element, n)).result for n in (0.0, float("-inf")))
        scaled = arith.MulFOp(total, math.ExpOp(arith.SubFOp(own, largest).result).result).result
        is_lowest = arith.CmpFOp(arith.CmpFPredicate.OEQ, own, lowest).result
        is_largest = arith.CmpFOp(arith.CmpFPredicate.OEQ, own, largest).result
        return arith.SelectOp(is_largest, total, arith.SelectOp(is_lowest, zero, scaled).result).result

    largest = reduce_rows("arith.maximumf", maxima, [], [axis], lambda arguments: arguments[0], beside=beside)
    return [largest, reduce_rows("arith.addf", maxima, [largest], [axis], rescaled, [sums])]


def _moments(sums: ir.Value, squares: ir.Value, axis: int, elements: int, beside: Beside | None) -> list[ir.Value]:
    """The sum, and the sum of squared deviations from the mean: those of the parts, and of the parts' means."""
    type_ = ir.RankedTensorType(sums.type)
    element, parts = type_.element_type, type_.shape[axis]

    def deviation(arguments: Sequence[ir.Value]) -> ir.Value:
        own, square, total = arguments
        each, every = (
            arith.ConstantOp(element, ir.FloatAttr.get(element, float(n))).result for n in (elements, elements * parts)
        )
        apart = arith.SubFOp(arith.DivFOp(own, each).result, arith.DivFOp(total, every).result).result
        return arith.AddFOp(square, arith.MulFOp(arith.MulFOp(apart, apart).result, each).result).result

    total = reduce_rows("arith.addf", sums, [], [axis], lambda arguments: arguments[0], beside=beside)
    return [total, reduce_rows("arith.addf", sums, [total], [axis], deviation, [squares])]
