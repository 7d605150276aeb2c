"""Separates the final rounding of an elementwise op from its computation."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, linalg

from mlirfuse.analysis.arithmetic.casts import HALF
from mlirfuse.analysis.loops.structure import structure_of
from mlirfuse.support.rewriting import defining_op, erase


def peel_rounding(op: ir.Operation) -> None:
    """Splits the final rounding of an elementwise `linalg.generic` off into an op of its own.

    Splits only roundings to half precision whose result another op widens again, so that folding can drop the rounding.
    Roundings to float8 and float32 are always kept.
    """
    structure = structure_of(op) if op.name == "linalg.generic" and len(op.results) == 1 else None
    if structure is None or structure.reduction_loops:
        return
    block = op.regions[0].blocks[0]
    terminator = block.operations[len(block.operations) - 1].operation
    rounding = defining_op(terminator.operands[0])
    init = defining_op(op.operands[len(op.operands) - 1])
    if rounding is None or rounding.name != "arith.truncf" or init is None or init.name != "tensor.empty":
        return
    if rounding.results[0].type.width != HALF:
        return
    result = op.results[0]
    if len(block.operations) == 2 or not any(_widens(use) for use in result.uses):
        return
    narrow_type = ir.RankedTensorType(result.type)
    wide_type = ir.RankedTensorType.get(narrow_type.shape, rounding.operands[0].type)
    with ir.InsertionPoint(op), op.location:
        empty = ir.Operation.create("tensor.empty", results=[wide_type], operands=list(init.operands)).results[0]
    op.operands[len(op.operands) - 1] = empty
    block.arguments[len(block.arguments) - 1].set_type(wide_type.element_type)
    result.set_type(wide_type)
    terminator.operands[0] = rounding.operands[0]
    erase(rounding)
    with ir.InsertionPoint.after(op), op.location:
        again = _rounded(result, init.results[0], narrow_type)
    result.replace_all_uses_except(again.results[0], again)


def _rounded(value: ir.Value, init: ir.Value, type_: ir.RankedTensorType) -> ir.Operation:
    """An elementwise op that narrows a tensor's elements."""
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank))
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    op = linalg.GenericOp(
        [type_], [value], [init], ir.ArrayAttr.get([identity] * 2), ir.ArrayAttr.get([parallel] * type_.rank)
    )
    elements = [ir.RankedTensorType(value.type).element_type, type_.element_type]
    block = op.regions[0].blocks.append(*elements, arg_locs=[op.location] * 2)
    with ir.InsertionPoint(block):
        linalg.YieldOp([arith.TruncFOp(type_.element_type, block.arguments[0]).result])
    return op.operation


def _widens(use: ir.OpOperand) -> bool:
    """Whether an op does nothing with an input but widen its elements."""
    op, number = use.owner.operation, use.operand_number
    if op.name != "linalg.generic" or number >= len(op.operands) - len(op.results):
        return False
    users = [u.owner.name for u in op.regions[0].blocks[0].arguments[number].uses]
    return bool(users) and set(users) == {"arith.extf"}
