"""Moves ops that only a branch uses into the branch, as LLVM does with all ops but inline PTX."""

from __future__ import annotations

from collections.abc import Collection

from mlir import ir

PURE = ("affine.", "arith.", "math.", "vector.")
_ACCESSES = (
    "vector.load",
    "vector.store",
    "vector.maskedload",
    "vector.maskedstore",
    "vector.gather",
    "vector.scatter",
)


def sink(block: ir.Block, loads: Collection[ir.Operation]) -> None:
    """Moves loads of a block, and pure ops, to the start of a branch where only that branch uses them.

    Args:
        block: the block with the ops to move.
        loads: vector loads of memory that nothing writes while the block runs.
    """
    for op in reversed([op.operation for op in block.operations]):
        users = [use.owner.operation for result in op.results for use in result.uses]
        if not users or not (_is_pure(op) or op in loads):
            continue
        into, branch = users[0].block, users[0].parent
        if branch.name == "scf.if" and branch.block == block and all(user.block == into for user in users):
            op.move_before(into.operations[0])


def _is_pure(op: ir.Operation) -> bool:
    return op.name.startswith(PURE) and op.name not in _ACCESSES
