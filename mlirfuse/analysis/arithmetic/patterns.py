"""Recognising arithmetic across elementwise tensor ops."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.loops.structure import is_unit_reshape, reduces, structure_of
from mlirfuse.support.rewriting import defining_op

WIDENING = frozenset({"arith.extf", "arith.extsi", "arith.extui"})
"""Widening casts, which are cheap to repeat."""


@dataclass(frozen=True)
class Difference:
    """A tensor x - m, computed elementwise; m may be broadcast.

    Attributes:
        source: x, in its own shape.
        subtracted: m, before reshapes that only add or drop extents of 1.
        read: the op that subtracts, and the operand number of x.
    """

    source: ir.Value
    subtracted: ir.Value
    read: tuple[ir.Operation, int]


def body_op(value: ir.Value) -> tuple[ir.Operation, ir.Operation] | None:
    """The generic and the scalar op of a tensor that is computed by one scalar op; None for any other tensor."""
    owner = defining_op(value)
    if owner is None or owner.name != "linalg.generic" or len(owner.results) != 1 or reduces(owner):
        return None
    ops = [o.operation for o in owner.regions[0].blocks[0].operations]
    inner = [o for o in ops[:-1] if o.name != "arith.constant"]
    if len(inner) != 1 or ops[-1].operands[0].owner != inner[0]:
        return None
    return owner, inner[0]


def tensor_operand(generic: ir.Operation, scalar: ir.Value) -> ir.Value | None:
    """The tensor operand that a body's block argument stands for; None for a computed or captured value."""
    block = generic.regions[0].blocks[0]
    if not isinstance(scalar.owner, ir.Block) or scalar.owner != block:
        return None
    return generic.operands[ir.BlockArgument(scalar).arg_number]


def through_unit_reshapes(value: ir.Value) -> ir.Value:
    """The value before reshapes that only add or drop extents of 1."""
    owner = defining_op(value)
    while owner is not None and is_unit_reshape(owner):
        value = owner.operands[0]
        owner = defining_op(value)
    return value


def squared_difference(value: ir.Value) -> Difference | None:
    """x and m if `value` is the elementwise square of x - m; None for anything else."""
    square = body_op(value)
    if square is None or square[1].name != "arith.mulf" or square[1].operands[0] != square[1].operands[1]:
        # A generic that squares a tensor may have the tensor as two operands.
        if square is None or square[1].name != "arith.mulf":
            return None
        first, second = (tensor_operand(square[0], o) for o in square[1].operands)
        if first is None or second is None or first != second:
            return None
    difference = tensor_operand(square[0], square[1].operands[0])
    return None if difference is None else difference_source(difference)


def difference_source(difference: ir.Value) -> Difference | None:
    """x and m if a tensor is x - m; None for anything else."""
    centred = body_op(difference)
    if centred is None or centred[1].name != "arith.subf":
        return None
    generic, subtraction = centred
    x, m = (tensor_operand(generic, o) for o in subtraction.operands)
    if x is None or m is None or x.type != difference.type or not _is_identity(generic, subtraction.operands[0]):
        return None
    number = ir.BlockArgument(subtraction.operands[0]).arg_number
    return Difference(x, through_unit_reshapes(m), (generic, number))


def is_scaled(value: ir.Value, count: int | None) -> ir.Operation | None:
    """The op that computes t if `value` is t / count or t * (1 / count), up to reshapes by extents of 1; else None."""
    found = body_op(value)
    if found is None or count is None:
        return None
    generic, op = found
    if op.name not in ("arith.divf", "arith.mulf"):
        return None
    total = tensor_operand(generic, op.operands[0])
    factor = _constant(op.operands[1])
    if total is None or factor is None:
        return None
    scaled = (op.name == "arith.divf" and factor == count) or (op.name == "arith.mulf" and factor * count == 1.0)
    return defining_op(through_unit_reshapes(total)) if scaled else None


Extents = tuple[tuple[ir.Value, int], ...]
"""(tensor, axis) pairs, of which each stands for an extent that run time knows."""


def is_mean_over(value: ir.Value) -> tuple[ir.Operation, int, Extents] | None:
    """The op that computes t if `value` is t / (number * extents), up to reshapes by extents of 1; that number, and the
    extents of run time; None for anything else.
    """
    owner = defining_op(through_unit_reshapes(value))
    if owner is None or owner.name != "linalg.generic" or len(owner.results) != 1 or reduces(owner):
        return None
    yielded = list(owner.regions[0].blocks[0].operations)[-1].operands[0]
    division = defining_op(yielded)
    if division is None or division.name != "arith.divf":
        return None
    total, factors = tensor_operand(owner, division.operands[0]), _extent_factors(division.operands[1])
    maker = None if total is None else defining_op(through_unit_reshapes(total))
    return None if factors is None or maker is None else (maker, *factors)


def _extent_factors(value: ir.Value) -> tuple[int, Extents] | None:
    """A scalar as a product of a number and extents, through casts; None if it is none."""
    maker = defining_op(value)
    if maker is None:
        return None
    if maker.name in _COUNT_CASTS:
        return _extent_factors(maker.operands[0])
    if maker.name == "tensor.dim":
        axis = defining_op(maker.operands[1])
        return None if axis is None else (1, ((maker.operands[0], ir.IntegerAttr(axis.attributes["value"]).value),))
    if maker.name == "arith.constant" and isinstance(maker.attributes["value"], ir.IntegerAttr):
        return ir.IntegerAttr(maker.attributes["value"]).value, ()
    if maker.name != "arith.muli":
        return None
    first, second = (_extent_factors(operand) for operand in maker.operands)
    return None if first is None or second is None else (first[0] * second[0], first[1] + second[1])


_COUNT_CASTS = frozenset({"arith.index_cast", "arith.sitofp", "arith.uitofp", "arith.truncf", "arith.extf"})
"""Casts between the types that a number of elements has."""


def _is_identity(generic: ir.Operation, scalar: ir.Value) -> bool:
    structure = structure_of(generic)
    assert structure is not None
    axes = structure.operand_axes[ir.BlockArgument(scalar).arg_number]
    return axes == structure.result_axes[0]


def _constant(value: ir.Value) -> float | None:
    owner = defining_op(value)
    if owner is None or owner.name != "arith.constant" or not isinstance(owner.attributes["value"], ir.FloatAttr):
        return None
    return ir.FloatAttr(owner.attributes["value"]).value
