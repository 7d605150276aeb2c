"""Makes arrays joined of parts: ops that select, at each place, among views of the parts."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, linalg

from mlirfuse.support.pointwise import pointwise
from mlirfuse.tiling.tiles import zero


def joined(views: Sequence[ir.Value], checks: Sequence[ir.Value], type_: ir.RankedTensorType) -> ir.Value:
    """At each place the element of the view that is inside of its part."""
    operands = [*views, *checks]
    op = pointwise(operands, type_.element_type)
    types = [ir.RankedTensorType(value.type).element_type for value in (*operands, *op.results)]
    block = op.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    with ir.InsertionPoint(block):
        found: ir.Value = arith.ConstantOp(type_.element_type, zero(type_.element_type)).result
        *given, _ = list(block.arguments)
        for part, check in zip(given[: len(views)], given[len(views) :], strict=True):
            found = arith.SelectOp(check, part, found).result
        linalg.YieldOp([found])
    return op.results[0]


def copied(view: ir.Value) -> ir.Value:
    """A view's elements; a view itself is in no memory."""
    element = ir.RankedTensorType(view.type).element_type
    op = pointwise([view], element)
    block = op.regions[0].blocks.append(element, element, arg_locs=[op.location] * 2)
    with ir.InsertionPoint(block):
        linalg.YieldOp([block.arguments[0]])
    return op.results[0]
