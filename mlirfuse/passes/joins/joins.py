"""Makes and rewrites arrays joined of parts: ops that select, at each place, among views of the parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith, linalg

from mlirfuse.analysis.joined_views import selected_views
from mlirfuse.analysis.kernels import body, host_functions
from mlirfuse.dialect.attributes import OPERATION
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.pointwise import pointwise
from mlirfuse.support.rewriting import erase_dead
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


def rewrite_joins(
    rewriter: Pass,
    module: ir.Operation,
    remarks: Remarks,
    rewritten: Callable[[ir.Operation, Sequence[ir.Operation]], ir.Value | str],
    done: str,
) -> None:
    """Puts what is made of each join and its views, before the join, in its place; or remarks why nothing is made."""
    for function in host_functions(module):
        joins = 0
        for op in body(function):
            views = selected_views(op, lambda value: value) if op.name == "linalg.generic" else ""
            if isinstance(views, str) or OPERATION in op.attributes:
                continue
            joins += 1
            with ir.InsertionPoint(op), op.location:
                new = rewritten(op, views)
            if isinstance(new, str):
                remarks.declined(rewriter, new, op)
                continue
            op.results[0].replace_all_uses_with(new)
            remarks.applied(rewriter, done, op)
        if joins:
            erase_dead([op for op in body(function) if op.results])
        else:
            remarks.declined(rewriter, "no arrays are joined", function)
