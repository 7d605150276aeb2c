"""Elementwise ops that compute their result in the order of an operand's axes, and a transposition behind them."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import linalg, tensor

from mlirfuse.analysis.loops.maps import projected_axes
from mlirfuse.analysis.loops.structure import reduces
from mlirfuse.analysis.memory.host_views import is_diagonal
from mlirfuse.dialect.copies import COPIED
from mlirfuse.passes.views.views import compose_transposes, fold_views
from mlirfuse.support.rewriting import copy_body, defining_op, erase, erase_dead

Axes = Sequence[int | None]


def axes_in_order_of(op: ir.Operation, number: int) -> list[Axes] | None:
    """The loop of each axis of an op's operands and result, were the result in the order of an operand; None where it
    is so already, of copies, and where the op is no elementwise one with a single result of all elements.

    Args:
        op: a `linalg.generic`.
        number: of the operand.
    """
    if is_diagonal(op) or COPIED in op.attributes:
        return None
    maps: list[Axes] = [projected_axes(m) for m in ir.ArrayAttr(op.attributes["indexing_maps"])]
    own, result = maps[number], maps[-1]
    start = defining_op(op.operands[len(op.operands) - 1])
    if reduces(op) or len(op.results) != 1 or start is None or start.name != "tensor.empty":
        return None
    if own == result or None in own or sorted(map(str, own)) != sorted(map(str, result)):
        return None
    return [*maps[:-1], own]


def reorder_result(op: ir.Operation, number: int) -> ir.Operation:
    """Replaces an op, for which `axes_in_order_of` holds, by one whose result has the order of an operand. A
    `linalg.transpose` gives what reads the result its order, and folds into readers that are `linalg.generic`s or
    transpose it too.
    """
    maps = list(ir.ArrayAttr(op.attributes["indexing_maps"]))
    own, result = projected_axes(maps[number]), projected_axes(maps[-1])
    old = op.results[0]
    type_ = ir.RankedTensorType(old.type)
    with ir.InsertionPoint(op), op.location:
        start = tensor.EmptyOp([type_.shape[result.index(loop)] for loop in own], type_.element_type).result
        inputs = list(op.operands)[:-1]
        new = linalg.GenericOp(
            [start.type], inputs, [start], ir.ArrayAttr.get([*maps[:-1], maps[number]]), op.attributes["iterator_types"]
        )
        copy_body(op, new.operation)
        order = [own.index(loop) for loop in result]
        empty = tensor.EmptyOp(list(type_.shape), type_.element_type).result
        transposed = linalg.transpose(new.results[0], outs=[empty], permutation=order).result[0]
    old.replace_all_uses_with(transposed)
    erase(op)
    readers = [use.owner.operation for use in transposed.uses]
    again = [reader for reader in readers if reader.name == "linalg.transpose"]
    for reader in readers:
        if reader.name == "linalg.generic":
            fold_views(reader)
    for reader in again:
        compose_transposes(reader)
    erase_dead([transposed.owner.operation, *again])
    return new.operation
