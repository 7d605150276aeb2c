"""Whether two operations compute the same: a key that equal operations share."""

from __future__ import annotations

from collections.abc import Hashable

from mlir import ir


def operation_key(op: ir.Operation) -> Hashable:
    """A key of what an operation computes; operations without side effects that share it give the same results.

    The key has the name, attributes, result types, operands, and the same of all that is nested in its regions, whose
    own values count by where they are defined. It holds while no operand is replaced.
    """
    inside: dict[ir.Value, int] = {}
    return _key(op, inside)


def _key(op: ir.Operation, inside: dict[ir.Value, int]) -> Hashable:
    operands = tuple(inside.get(operand, operand) for operand in op.operands)
    # MLIR keeps one of equal attributes and types, so that they need not be printed to be compared.
    attributes = tuple((name, op.attributes[name]) for name in sorted(op.attributes))
    regions = []
    for region in op.regions:
        for block in region.blocks:
            types = []
            for argument in block.arguments:
                inside[argument] = len(inside)
                types.append(argument.type)
            ops = []
            for view in block.operations:
                ops.append(_key(view.operation, inside))
                for result in view.operation.results:
                    inside[result] = len(inside)
            regions.append((tuple(types), tuple(ops)))
    return op.name, attributes, tuple(result.type for result in op.results), operands, tuple(regions)
