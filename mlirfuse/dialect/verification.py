"""What IRDL cannot check of the dialect's ops: relations between types, and ranges of values."""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect import OPS
from mlirfuse.errors import IRError


def verify_fuse_ops(root: ir.Operation) -> None:
    """Checks every fuse op under `root`; raises `IRError` naming the first that is wrong and its location."""

    def visit(op: ir.Operation) -> ir.WalkResult:
        problem = OPS[op.name].problem(op) if op.name in OPS else None
        if problem is not None:
            failures.append(IRError(f"'{op.name}' op {problem}", where=op))
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    failures: list[IRError] = []
    root.walk(visit)
    if failures:
        raise failures[0]
