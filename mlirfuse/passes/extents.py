"""Where the extents of tensors come from that the ops of a function make."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, tensor

from mlirfuse.analysis.kernels import body
from mlirfuse.analysis.structure import is_unit_reshape, structure_of
from mlirfuse.rewriting import defining_op, integer_of

_WITH_INIT = ("linalg.generic", "linalg.fill", "linalg.transpose")


def read_extents_of_inputs(function: ir.Operation) -> None:
    """Makes every `tensor.dim` of what an op computes, and the sizes of its unit reshapes, those of what it reads.

    Kernels take no index that the host computed, and a value of which only the extent is asked need not leave its
    kernel.
    """
    for op in body(function):
        if op.name == "tensor.dim":
            axis = integer_of(op.operands[1])
            extent = None if axis is None else _extent(op.operands[0], axis, op)
            if extent is not None:
                op.results[0].replace_all_uses_with(extent)
        elif op.name == "tensor.expand_shape" and is_unit_reshape(op):
            shape = ir.RankedTensorType(op.results[0].type)
            dynamic = [axis for axis in range(shape.rank) if shape.is_dynamic_dim(axis)]
            for number, axis in enumerate(dynamic, start=1):
                op.operands[number] = _source_extent(op, axis, op)


def _extent(value: ir.Value, axis: int, user: ir.Operation) -> ir.Value | None:
    """An extent of a value as an index in front of its user; None where `tensor.dim` of the value is to give it."""
    maker = defining_op(value)
    if maker is None or not ir.RankedTensorType(value.type).is_dynamic_dim(axis):
        return None
    if maker.name in _WITH_INIT:
        init = maker.operands[len(maker.operands) - len(maker.results) + ir.OpResult(value).result_number]
        return _extent(init, axis, user) or _dim(init, axis, user)
    if maker.name == "tensor.empty":
        type_ = ir.RankedTensorType(value.type)
        return maker.operands[sum(type_.is_dynamic_dim(before) for before in range(axis))]
    return _source_extent(maker, axis, user) if is_unit_reshape(maker) else None


def _source_extent(reshape: ir.Operation, axis: int, user: ir.Operation) -> ir.Value:
    """The extent along an axis of a unit reshape's result, which is one of its source."""
    structure = structure_of(reshape)
    assert structure is not None
    source_axes = structure.operand_axes[0]
    assert source_axes is not None
    source, number = reshape.operands[0], source_axes.index(structure.result_axes[0][axis])
    return _extent(source, number, user) or _dim(source, number, user)


def _dim(value: ir.Value, axis: int, user: ir.Operation) -> ir.Value:
    """`tensor.dim` in front of an op."""
    with ir.InsertionPoint(user), user.location:
        return tensor.DimOp(value, arith.ConstantOp(ir.IndexType.get(), axis).result).result
