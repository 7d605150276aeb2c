"""Moves `tensor.expand_shape` behind the ops that read its result, which then run on the joined loops; and
`tensor.collapse_shape` before sums of its source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType

from mlir import ir
from mlir.dialects import linalg, tensor

from mlirfuse.analysis.kernels import body
from mlirfuse.analysis.loops.maps import projected_axes, projection
from mlirfuse.analysis.loops.structure import is_constant, reduces
from mlirfuse.analysis.memory.host_views import is_diagonal
from mlirfuse.dialect.gathered_view import DEFINITION
from mlirfuse.passes.graph.reordered_results import Axes, axes_in_order_of, reorder_result
from mlirfuse.support.reshapes import reassociation
from mlirfuse.support.rewriting import copy_body, defining_op, erase, nested

EXPAND = "tensor.expand_shape"
GATHERED = DEFINITION.full_name


def collapse_readers(expand: ir.Operation) -> None:
    """Rewrites the readers of an expanded value, and theirs, on the value's joined dimensions where they can be.

    A reader can if it is a `linalg.generic` whose loops over the dimensions of a group are all parallel or all
    reductions, and whose other operands and results have all of the group's dimensions side by side, or none. For this
    the result of an elementwise one is put in the value's order, and transposed. What reads a gathered view stays: such
    a view is not in memory, so that it has no reshapes, and numbers its dimensions itself.
    """
    expanded = [expand]
    for op in body(expand.parent.operation):
        if op.name != "linalg.generic":
            continue
        makers = [defining_op(operand) for operand in op.operands]
        number = next((n for n, maker in enumerate(makers) if maker is not None and maker in expanded), None)
        if number is None or any(inner.name == "linalg.index" for inner in nested(op)):
            continue
        if any(maker is not None and maker.name == GATHERED for maker in makers):
            continue
        groups = _groups(op, number, makers[number])
        if groups is None and (axes := axes_in_order_of(op, number)) is not None:
            groups = _groups(op, number, makers[number], axes)
            op = op if groups is None else reorder_result(op, number)
        if groups is None:
            continue
        expanded += _rewrite(op, groups)
    for op in reversed(expanded):
        if not list(op.results[0].uses):
            erase(op)


def collapse_sums(collapse: ir.Operation) -> None:
    """Rewrites the ops that sum up a value, or an elementwise function of it, over whole groups of its dimensions, so
    that they read a collapsed view of the value. Only results of the same type remain: their dimensions are those of
    the view.
    """
    value = collapse.operands[0]
    while (found := _next_sum(collapse)) is not None:
        op, groups = found
        maker = defining_op(value)
        if maker is None:
            collapse.move_before(collapse.block.operations[0].operation)
        else:
            collapse.move_after(maker)
        for expand in _rewrite(op, groups, {value: collapse.results[0]}):
            collapse_readers(expand)


def _next_sum(collapse: ir.Operation) -> tuple[ir.Operation, list[list[int]]] | None:
    """The first op that `collapse_sums` rewrites, and its loops by the axis of the view that they belong to."""
    value = collapse.operands[0]
    for op in body(collapse.parent.operation):
        number = next((n for n, operand in enumerate(op.operands) if operand == value), None)
        if number is None or not _is_summed(op, number, collapse) or len(op.operands) - len(op.results) != 1:
            continue
        groups = _groups(op, number, collapse)
        assert groups is not None  # of what is summed
        return op, groups
    return None


def _is_summed(op: ir.Operation, number: int, collapse: ir.Operation) -> bool:
    """Whether an op sums up an operand over whole groups of its dimensions, or computes element by element what nothing
    but such sums read.
    """
    if op.name != "linalg.generic" or any(inner.name == "linalg.index" for inner in nested(op)):
        return False
    groups = _groups(op, number, collapse)
    if groups is None:
        return False
    maps = [projected_axes(m) for m in ir.ArrayAttr(op.attributes["indexing_maps"])]
    results = maps[len(op.operands) - len(op.results) :]
    if reduces(op):
        return all(len(run) == 1 for axes in results for run in _runs(axes, groups) or [])
    readers = [use for result in op.results for use in result.uses]
    if not readers or any(axes != maps[number] for axes in results):
        return False
    return all(_is_summed(use.owner.operation, use.operand_number, collapse) for use in readers)


def _groups(
    op: ir.Operation, number: int, reshape: ir.Operation | None, maps: Sequence[Axes] | None = None
) -> list[list[int]] | None:
    """The loops of an op by the axis of a collapsed value that they belong to; None where they cannot be joined.

    Args:
        op: the op.
        number: the number of its operand that is expanded, or collapsed.
        reshape: what expands or collapses it.
        maps: the loop of each axis of its operands and results, if not the op's own.
    """
    assert reshape is not None  # the operand's producer
    if is_diagonal(op):
        return None
    maps = maps or [projected_axes(m) for m in ir.ArrayAttr(op.attributes["indexing_maps"])]
    kinds = [str(kind) for kind in ir.ArrayAttr(op.attributes["iterator_types"])]
    types = [v.type for v in op.operands]
    if not all(
        isinstance(t, ir.RankedTensorType) and t.has_static_shape for t in types if isinstance(t, ir.ShapedType)
    ):
        return None
    own = maps[number]
    groups: list[list[int]] = []
    for axes in reassociation(reshape):
        loops = [loop for a in axes if (loop := own[a]) is not None]
        if len(loops) != len(axes) or len({kinds[loop] for loop in loops}) > 1:
            return None
        groups.append(loops)
    known = {loop for group in groups for loop in group}
    groups += [[loop] for loop in range(len(kinds)) if loop not in known]
    if any(_runs(axes, groups) is None for axes in maps):
        return None
    return groups


def _runs(axes: Sequence[int | None], groups: Sequence[Sequence[int]]) -> list[list[int]] | None:
    """The axes of a value that become one, in order; None where a group is split, or partly missing."""
    runs: list[list[int]] = []
    at = 0
    while at < len(axes):
        group = next((g for g in groups if axes[at] in g), None)
        size = 1 if group is None else len(group)
        if group is not None and list(axes[at : at + size]) != list(group):
            return None
        runs.append(list(range(at, at + size)))
        at += size
    return runs


def _rewrite(
    op: ir.Operation, groups: Sequence[Sequence[int]], known: Mapping[ir.Value, ir.Value] = MappingProxyType({})
) -> list[ir.Operation]:
    """Replaces an op by one over the joined loops, of which `known` gives collapsed operands; returns the reshapes of
    its results.
    """
    maps = [projected_axes(m) for m in ir.ArrayAttr(op.attributes["indexing_maps"])]
    kinds = list(ir.ArrayAttr(op.attributes["iterator_types"]))
    order = sorted(range(len(groups)), key=lambda g: groups[g][0])
    number = {loop: position for position, g in enumerate(order) for loop in groups[g]}
    runs = [_runs(axes, groups) or [] for axes in maps]
    joined = [
        projection(len(groups), [None if (loop := axes[run[0]]) is None else number[loop] for run in of])
        for axes, of in zip(maps, runs, strict=True)
    ]
    inputs = len(op.operands) - len(op.results)
    with ir.InsertionPoint(op), op.location:
        values = [known[v] if v in known else collapsed(v, of) for v, of in zip(op.operands, runs, strict=True)]
        new = linalg.GenericOp(
            [v.type for v in values[inputs:]],
            values[:inputs],
            values[inputs:],
            ir.ArrayAttr.get(joined),
            ir.ArrayAttr.get([kinds[groups[g][0]] for g in order]),
        )
        copy_body(op, new.operation)
        made: list[ir.Operation] = []
        for old, result, of in zip(op.results, new.results, runs[inputs:], strict=True):
            if len(of) == old.type.rank:
                old.replace_all_uses_with(result)
                continue
            reshape = tensor.ExpandShapeOp(old.type, result, of, [], list(old.type.shape))
            old.replace_all_uses_with(reshape.result)
            made.append(reshape.operation)
    erase(op)
    return made


def collapsed(value: ir.Value, runs: Sequence[Sequence[int]]) -> ir.Value:
    """A view of an operand whose axes are joined; the source of an expanded value, and a new constant."""
    type_ = value.type
    if not isinstance(type_, ir.RankedTensorType) or len(runs) == type_.rank:
        return value
    shape = [prod(type_.shape[axis] for axis in run) for run in runs]
    joined = ir.RankedTensorType.get(shape, type_.element_type)
    maker = defining_op(value)
    if maker is not None and maker.name == EXPAND and maker.operands[0].type == joined:
        return maker.operands[0]
    if maker is not None and is_constant(value):
        empty = tensor.EmptyOp(shape, type_.element_type).result
        return empty if maker.name == "tensor.empty" else linalg.fill(maker.operands[0], outs=[empty])
    return tensor.CollapseShapeOp(joined, value, [list(run) for run in runs]).result
