"""The ops that a reduction may combine elements with, and which one a reduction's body uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import vector

from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.errors import PassError
from mlirfuse.support.rewriting import clone, defining_op


@dataclass(frozen=True)
class CombiningOp:
    """An op that a reduction may combine elements with.

    Attributes:
        kind: the op's combining kind in the vector dialect.
        neutral: the neutral element: a float, or a function of an integer type's width in bits.
    """

    kind: vector.CombiningKind
    neutral: float | Callable[[int], int]


COMBINING: Mapping[str, CombiningOp] = {
    "arith.addf": CombiningOp(vector.CombiningKind.ADD, 0.0),
    "arith.addi": CombiningOp(vector.CombiningKind.ADD, lambda width: 0),
    "arith.mulf": CombiningOp(vector.CombiningKind.MUL, 1.0),
    "arith.muli": CombiningOp(vector.CombiningKind.MUL, lambda width: 1),
    "arith.maximumf": CombiningOp(vector.CombiningKind.MAXIMUMF, float("-inf")),
    "arith.minimumf": CombiningOp(vector.CombiningKind.MINIMUMF, float("inf")),
    "arith.maxsi": CombiningOp(vector.CombiningKind.MAXSI, lambda width: -(1 << (width - 1))),
    "arith.minsi": CombiningOp(vector.CombiningKind.MINSI, lambda width: (1 << (width - 1)) - 1),
    "arith.andi": CombiningOp(vector.CombiningKind.AND, lambda width: -1),
    "arith.ori": CombiningOp(vector.CombiningKind.OR, lambda width: 0),
}
"""All ops that a reduction may use."""


@dataclass(frozen=True)
class Combiner:
    """A reduction's combining step.

    Attributes:
        op: the body op that combines the accumulator with the next element.
        element: the operand that is not the accumulator.
    """

    op: ir.Operation
    element: ir.Value

    @property
    def name(self) -> str:
        return self.op.name


def combiner_of(structure: OpStructure) -> Combiner:
    """The combining step of a reducing `linalg.generic` with one result.

    Raises:
        PassError: the body is not `yield combine(accumulator, element)` with a known combining op.
    """
    block = structure.op.regions[0].blocks[0]
    accumulator = block.arguments[len(block.arguments) - 1]
    yielded = block.operations[len(block.operations) - 1].operation.operands[0]
    op = defining_op(yielded)
    if op is not None and op.name in COMBINING and len(structure.op.results) == 1:
        others = [operand for operand in op.operands if operand != accumulator]
        if len(others) == 1 and len(list(accumulator.uses)) == 1:
            return Combiner(op, others[0])
    raise PassError(
        "the body of a reduction must combine the accumulator once with an element, and yield the result",
        where=structure.op,
        hint=f"end the body with one of {', '.join(COMBINING)}",
    )


def combined(combiner: Combiner, operands: dict[ir.Value, ir.Value]) -> ir.Value:
    """The combining op at the insertion point, on other values in place of the accumulator and the element."""
    mapping = dict(operands)
    clone(combiner.op, mapping)
    return mapping[combiner.op.results[0]]


def joins_addition(element: ir.Value) -> bool:
    """Whether an element is a product that may become part of the addition that alone takes it."""
    op = defining_op(element)
    if op is None or op.name != "arith.mulf" or "contract" not in str(op.attributes["fastmath"]):
        return False
    return [use.owner.operation.name for use in element.uses] == ["arith.addf"]


def neutral(name: str, element_type: ir.Type) -> ir.Attribute:
    """The neutral element of a combining op, as an attribute of the element type."""
    value = COMBINING[name].neutral
    if isinstance(value, float):
        return ir.FloatAttr.get(element_type, value)
    return ir.IntegerAttr.get(element_type, value(ir.IntegerType(element_type).width))
