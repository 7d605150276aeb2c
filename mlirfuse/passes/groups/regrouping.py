"""Views of values whose groups are counted otherwise, copies of such views, their end, and sums over them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir
from mlir.dialects import linalg, tensor

from mlirfuse.analysis.memory.host_views import RESHAPES
from mlirfuse.dialect.gathered_view import DEFINITION
from mlirfuse.passes.graph.collapsed_epilogues import EXPAND
from mlirfuse.passes.groups.grouped_sum import RESULT, cast_of
from mlirfuse.support.pointwise import pointwise
from mlirfuse.support.reshapes import reassociation
from mlirfuse.support.rewriting import copy_body, defining_op, erase


def regrouped(value: ir.Value, run: range, extents: Sequence[int]) -> ir.Value:
    """A view of a value with axes of other extents, of the same product, in place of a run of its axes."""
    type_, maker = ir.RankedTensorType(value.type), defining_op(value)
    if maker is not None and maker.name == EXPAND and list(run) in reassociation(maker):
        groups, source = reassociation(maker), maker.operands[0]
    else:
        groups = [[axis] for axis in range(run.start)] + [list(run)] + [[axis] for axis in range(run.stop, type_.rank)]
        source = _collapsed(value, groups)
    shape = [*type_.shape[: run.start], *extents, *type_.shape[run.stop :]]
    shift, own = len(extents) - len(run), list(range(run.start, run.start + len(extents)))
    new = [own if g == list(run) else [a if a < run.start else a + shift for a in g] for g in groups]
    if all(len(group) == 1 for group in new):
        return source
    return tensor.ExpandShapeOp(ir.RankedTensorType.get(shape, type_.element_type), source, new, [], shape).result


def _collapsed(value: ir.Value, groups: Sequence[Sequence[int]]) -> ir.Value:
    type_ = ir.RankedTensorType(value.type)
    if len(groups) == type_.rank:
        return value
    shape = [prod(type_.shape[axis] for axis in group) for group in groups]
    return tensor.CollapseShapeOp(ir.RankedTensorType.get(shape, type_.element_type), value, groups).result


def copy_of(view: ir.Value) -> ir.Value:
    """A copy of a gathered view, which is in memory."""
    type_ = ir.RankedTensorType(view.type)
    copy = pointwise([view], type_.element_type)
    block = copy.regions[0].blocks.append(*[type_.element_type] * 2, arg_locs=[ir.Location.current] * 2)
    with ir.InsertionPoint(block):
        linalg.YieldOp([block.arguments[0]])
    return copy.results[0]


def summed(
    op: ir.Operation, operands: Sequence[ir.Value], shape: Sequence[int], maps: ir.ArrayAttr, iterators: ir.ArrayAttr
) -> ir.Value:
    """The sum that an op makes, of other operands, from the same constant.

    Args:
        op: a `linalg.generic` whose initial value is a `linalg.fill`.
        operands: in the place of the op's inputs.
        shape: of the result.
        maps: the indexing maps of the operands and the result.
        iterators: the loops' iterator types.
    """
    start = defining_op(op.operands[RESULT])
    assert start is not None  # checked by product_loops
    empty = tensor.EmptyOp(list(shape), ir.RankedTensorType(op.results[0].type).element_type).result
    init = linalg.fill(start.operands[0], outs=[empty])
    new = linalg.GenericOp([init.type], list(operands), [init], maps, iterators)
    copy_body(op, new.operation)
    return new.results[0]


def through_casts(op: ir.Operation, value: ir.Value) -> tuple[list[ir.Operation], ir.Value]:
    """An op with the casts of its result, one after the other, and the same casts of a value in its place."""
    chain = [op]
    while (cast := cast_of(chain[-1])) is not None:
        with ir.InsertionPoint(cast), cast.location:
            value = elementwise(cast, value)
        chain.append(cast)
    return chain, value


def elementwise(op: ir.Operation, value: ir.Value) -> ir.Value:
    """An elementwise op of one operand, of another operand."""
    new = pointwise([value], ir.RankedTensorType(op.results[0].type).element_type)
    copy_body(op, new.operation)
    return new.results[0]


def erase_views(value: ir.Value) -> None:
    """Erases the views that make a value, as far as nobody reads them."""
    maker = defining_op(value)
    if maker is not None and maker.name in (DEFINITION.full_name, *RESHAPES) and not list(value.uses):
        source = maker.operands[0]
        erase(maker)
        erase_views(source)
