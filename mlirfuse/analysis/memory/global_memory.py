"""Accesses of one thread's code to global memory, which other blocks and kernels see."""

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
"""Ops on memrefs that access no memory."""

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
"""Ops that write global memory, and neither read it nor wait."""


def touches_global_memory(op: ir.Operation) -> bool:
    """Whether an op, without the ops inside it, may access global memory, according to the types of its operands."""
    types = [operand.type for operand in op.operands]
    return op.name not in _ADDRESSES and any(isinstance(t, ir.MemRefType) and not is_workgroup(t) for t in types)


def writes_global_memory(op: ir.Operation) -> bool:
    """Whether an op, or one inside it, is known to write global memory, and neither to read it nor to wait."""
    return any(inner.name in _WRITES and touches_global_memory(inner) for inner in nested(op))


def reads_global_memory(op: ir.Operation) -> bool:
    """Whether an op, or one inside it, may read global memory, or wait for a write to it."""
    return any(inner.name not in _WRITES and touches_global_memory(inner) for inner in nested(op))


_READS = frozenset(
    {
        "fuse.async_load",
        "fuse.prefetch_rows",
        "fuse.prefetch_tile",
        "memref.dim",
        "memref.load",
        "vector.load",
        "vector.maskedload",
    }
)
"""Ops that only read the memory of a memref operand, or its shape."""


def reads_only(load: ir.Operation) -> bool:
    """Whether a load is of an argument of the kernel that the kernel only reads, so that it may move."""
    source = load.operands[0]
    return isinstance(source.owner, ir.Block) and all(use.owner.operation.name in _READS for use in source.uses)
