"""The operands of a contraction: arguments, or elementwise expressions of arguments.

An expression, such as a cast, a scale or an activation, is applied to an operand's elements before they are multiplied.
The expression may have any elementwise ops that run along dimensions of the operand only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.contractions.contraction import Contraction, contraction_in
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.structure import RENAMING_OPS, OpStructure, structure_of
from mlirfuse.errors import PassError
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.postorder import postorder
from mlirfuse.support.rewriting import defining_op

Axes = tuple[int | None, ...]
"""The dimension of an iteration space that each axis of a value runs along; None where it has one element."""


@dataclass(frozen=True)
class ContractionOperand:
    """An operand of a contraction.

    Attributes:
        value: the contraction's operand.
        ops: the ops that compute the operand, in program order; empty for an argument, or a view of one.
        source: the argument itself, or the widest argument of the expression with all dimensions of the operand; the
            source's memory order is used for the operand.
        axes: the dimension of each axis of the source.
        whole: the arguments of the expression with all dimensions of the operand, among them the source.
    """

    value: ir.Value
    ops: tuple[OpStructure, ...]
    source: ir.Value
    axes: Axes
    whole: tuple[ir.Value, ...] = ()


def operand_of(space: IterationSpace, contraction: Contraction, number: int) -> ContractionOperand:
    """An operand by its operand number; raises `PassError` if no argument has all dimensions of the operand."""
    op = contraction.structure.op
    value = op.operands[number]
    ops = producers(value)
    if all(s.op.name in RENAMING_OPS for s in ops):
        first = ops[0].op if ops else op
        source = first.operands[0] if ops else value
        return ContractionOperand(value, (), source, space.use_axes[(first, 0 if ops else number)])
    dims = {d for d in space.value_axes[value] if d is not None}
    whole = [(argument, axes) for argument, axes in _leaves(space, ops) if dims <= set(axes)]
    if not whole:
        raise PassError(f"no argument has all dimensions of operand {number} of the contraction", where=op)
    source, axes = max(whole, key=lambda leaf: from_mlir(ir.RankedTensorType(leaf[0].type).element_type).bytes)
    return ContractionOperand(value, ops, source, axes, tuple(argument for argument, _ in dict.fromkeys(whole)))


def producers(value: ir.Value) -> tuple[OpStructure, ...]:
    """The structured ops that compute a value of a kernel, in program order."""
    found: dict[ir.Operation, OpStructure] = {}

    def before(op: ir.Operation) -> list[ir.Operation]:
        structure = structure_of(op)
        if structure is None:
            return []
        found[op] = structure
        return [maker for operand in structure.operands if (maker := defining_op(operand)) is not None]

    maker = defining_op(value)
    order = postorder([] if maker is None else [maker], before)
    return tuple([found[op] for op in order if op in found])


def unfit_producers(space: IterationSpace, structures: Sequence[OpStructure]) -> str | None:
    """Why ops cannot run in a contraction's kernel before the contraction, or None.

    Ops that compute an operand run on the operand's tiles. These cover only a part of each dimension, and the two
    operands have different tiles. Ops after the contraction run on the result's tile.
    """
    contraction = contraction_in(space, structures)
    if contraction is None:
        return "no contraction is among the ops"
    if len(contraction.pairs) > 1:
        return "several products share an operand, and their kernel computes none"
    product = contraction.structure
    before = structures[: [s.op for s in structures].index(product.op)]
    operands = [{s.op for s in producers(product.op.operands[number])} for number in (0, 1)]
    if operands[0] & operands[1]:
        return "both operands are computed by one op"
    for s in before:
        if s.reduction_loops:
            return "it reduces before the contraction"
        computes = next((number for number in (0, 1) if s.op in operands[number]), None)
        dims = {d for d in space.loops[s.op] if d is not None}
        if computes is None:
            if dims & set(contraction.summed):
                return "it runs along a dimension that a contraction sums over"
            continue
        if contraction.outer_k:
            return "a contraction that sums over several dimensions computes no operand"
        users = {use.owner.operation for result in s.op.results for use in result.uses}
        if not users <= operands[computes] | {product.op}:
            return "an op that computes an operand has another use"
        if not dims <= {d for d in space.value_axes[product.op.operands[computes]] if d is not None}:
            return "an operand's elements depend on more than its own dimensions"
    return None


def _leaves(space: IterationSpace, ops: Sequence[OpStructure]) -> list[tuple[ir.Value, Axes]]:
    """The tensor arguments that ops read, with the dimensions of their axes."""
    return [
        (operand, space.use_axes[(s.op, number)])
        for s in ops
        for number, operand in enumerate(s.operands)
        if (s.op, number) in space.use_axes and isinstance(operand.owner, ir.Block) and _is_tensor(operand)
    ]


def _is_tensor(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)
