"""Reductions that do nothing but combine the elements of one tensor."""

from __future__ import annotations

from mlir import ir

from mlirfuse.analysis.arithmetic.combining import COMBINING, neutral
from mlirfuse.analysis.loops.structure import OpStructure


def plain_reduction(structure: OpStructure) -> str | None:
    """The name of the combining op, if a reduction does nothing but combine the elements of its one input; else None.

    The input is read in its own shape, and the reduction starts from the neutral element.
    """
    op = structure.op
    if op.name != "linalg.generic" or not structure.reduction_loops or len(structure.operands) != 2:
        return None
    block = op.regions[0].blocks[0]
    ops = [o.operation for o in block.operations]
    if len(ops) != 2 or ops[0].name not in COMBINING or set(ops[0].operands) != set(block.arguments):
        return None
    init = structure.operands[1]
    if isinstance(init.owner, ir.Block) or init.owner.operation.name != "linalg.fill":
        return None
    start = init.owner.operation.operands[0].owner
    if isinstance(start, ir.Block) or start.operation.name != "arith.constant":
        return None
    kept = tuple(loop for loop in range(structure.loop_count) if loop not in structure.reduction_loops)
    if structure.result_axes[0] != kept or structure.operand_axes[0] != tuple(range(structure.loop_count)):
        return None
    element = ir.RankedTensorType(op.results[0].type).element_type
    value = start.operation.attributes["value"]
    return ops[0].name if value == neutral(ops[0].name, element) else None
