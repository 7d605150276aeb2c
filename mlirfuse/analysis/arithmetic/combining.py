"""Combining kinds: what a reduction's body does, and the neutral element of it."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import vector

from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.errors import PassError
from mlirfuse.support.rewriting import defining_op

KINDS: dict[str, vector.CombiningKind] = {
    "arith.addf": vector.CombiningKind.ADD,
    "arith.addi": vector.CombiningKind.ADD,
    "arith.mulf": vector.CombiningKind.MUL,
    "arith.muli": vector.CombiningKind.MUL,
    "arith.maximumf": vector.CombiningKind.MAXIMUMF,
    "arith.minimumf": vector.CombiningKind.MINIMUMF,
    "arith.maxsi": vector.CombiningKind.MAXSI,
    "arith.minsi": vector.CombiningKind.MINSI,
    "arith.andi": vector.CombiningKind.AND,
    "arith.ori": vector.CombiningKind.OR,
}
"""The vector dialect's combining kind of each op that a reduction may use."""


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
    if op is not None and op.name in KINDS and len(structure.op.results) == 1:
        others = [operand for operand in op.operands if operand != accumulator]
        if len(others) == 1 and len(list(accumulator.uses)) == 1:
            return Combiner(op, others[0])
    raise PassError(
        "the body of a reduction must combine its accumulator once with an element",
        where=structure.op,
        hint=f"end the body in one of {', '.join(KINDS)}",
    )


def neutral(name: str, element_type: ir.Type) -> ir.Attribute:
    """The neutral element of a combining op, as an attribute of the element type."""
    if isinstance(element_type, ir.IntegerType):
        width = element_type.width
        values = {
            "arith.addi": 0,
            "arith.muli": 1,
            "arith.maxsi": -(1 << (width - 1)),
            "arith.minsi": (1 << (width - 1)) - 1,
            "arith.andi": -1,
            "arith.ori": 0,
        }
        return ir.IntegerAttr.get(element_type, values[name])
    floats = {"arith.addf": 0.0, "arith.mulf": 1.0, "arith.maximumf": float("-inf"), "arith.minimumf": float("inf")}
    return ir.FloatAttr.get(element_type, floats[name])
