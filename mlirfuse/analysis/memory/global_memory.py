"""Which ops of one thread's code touch memory that other blocks and kernels see."""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.shared_memory import is_workgroup
from mlirfuse.support.rewriting import nested

_ADDRESSES = frozenset(
    f"memref.{name}"
    for name in (
        "cast",
        "collapse_shape",
        "dim",
        "expand_shape",
        "extract_aligned_pointer_as_index",
        "reinterpret_cast",
        "subview",
        "transpose",
    )
)
"""Ops that take memrefs and touch no memory."""

_WRITES = frozenset(
    {
        "fuse.accumulate",
        "fuse.async_store",
        "fuse.flagged_store",
        "fuse.semaphore_arrive",
        "memref.store",
        "vector.store",
    }
)
"""Ops that write global memory, and of which nothing waits for what they find there."""


def touches_global_memory(op: ir.Operation) -> bool:
    """Whether an op may access memory that is not the block's, in whatever way the type says so; not ops inside it."""
    types = [operand.type for operand in op.operands]
    return op.name not in _ADDRESSES and any(isinstance(t, ir.MemRefType) and not is_workgroup(t) for t in types)


def writes_global_memory(op: ir.Operation) -> bool:
    """Whether an op, or one inside of it, is known to write such memory and to read none."""
    return any(inner.name in _WRITES and touches_global_memory(inner) for inner in nested(op))


def reads_global_memory(op: ir.Operation) -> bool:
    """Whether an op, or one inside of it, may read such memory or wait for what is written there."""
    return any(inner.name not in _WRITES and touches_global_memory(inner) for inner in nested(op))
