"""Accesses of a tile program to the block's shared memory."""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.shared_memory import is_workgroup
from mlirfuse.support.rewriting import nested

WRITES = frozenset({"vector.transfer_write", "fuse.copy_fragments", "fuse.copy_tile"})
"""Ops that write to one of their operands, a buffer."""


def is_shared(buffer: ir.Value) -> bool:
    """Whether a value is a buffer in shared memory."""
    return is_workgroup(buffer.type)


def writes_shared(op: ir.Operation) -> bool:
    """Whether an op, or one inside it, may write shared memory."""
    return any(inner.name in WRITES and any(map(is_shared, inner.operands)) for inner in nested(op))
