"""Uses of a tile after the reductions that it lives across."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.passes.layouts.reduction_points import REDUCTIONS, varies


@dataclass(frozen=True)
class UsesAfterReduction:
    """The uses of a tile between one reduction and the next, where the tile was made before the first.

    Attributes:
        reduction: the last reduction before the uses.
        first: the op of the first use.
        uses: (op, operand number) pairs.
    """

    reduction: ir.Operation
    first: ir.Operation
    uses: Sequence[tuple[ir.Operation, int]]


def blocks(op: ir.Operation) -> Iterator[ir.Block]:
    """Every block inside an op, outermost first."""
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.operations:
                yield from blocks(inner.operation)


def uses_after_reductions(block: ir.Block, value: ir.Value) -> list[UsesAfterReduction]:
    """The uses in `block` of a value defined there that a reduction separates from the definition.

    Only reductions along which the value varies count: of any other, a thread holds as many elements of the result as
    of the value.
    """
    ops = [op.operation for op in block.operations]
    position = {op: i for i, op in enumerate(ops)}
    start = position[value.owner.operation]
    reductions = [i for i, op in enumerate(ops) if i > start and op.name in REDUCTIONS and varies(value, op)]
    groups: dict[int, list[tuple[int, int]]] = {}
    for use in value.uses:
        user = position.get(use.owner.operation)
        passed = [r for r in reductions if user is not None and r < user]
        if user is not None and passed:
            groups.setdefault(passed[-1], []).append((user, use.operand_number))
    return [
        UsesAfterReduction(ops[r], ops[min(user for user, _ in uses)], [(ops[user], number) for user, number in uses])
        for r, uses in groups.items()
    ]
