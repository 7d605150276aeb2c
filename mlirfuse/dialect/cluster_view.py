"""`fuse.cluster_view`: a view for loads from the shared memory of a block of the same cluster.

```mlir
%peer = "fuse.cluster_view"(%buffer, %rank)
    : (memref<128x136xf32, #gpu.address_space<workgroup>>, index) -> memref<128x136xf32, 7>
```

The result views `buffer` of the block whose rank in the cluster is `rank`, which may be the thread's own. Another
block's writes are visible after the next `fuse.cluster_barrier`. A block may not end, or write the buffer again, before
the other blocks have read it, so a barrier is needed in between.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition
from mlirfuse.dialect.shared_memory import is_workgroup

CLUSTER_SPACE = 7
"""NVPTX's address space of a cluster's shared memory."""


def view_type(buffer: ir.MemRefType) -> ir.MemRefType:
    """The type of a view of a buffer in workgroup memory."""
    space = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), CLUSTER_SPACE)
    return ir.MemRefType.get(buffer.shape, buffer.element_type, memory_space=space)


def _verify(op: ir.Operation) -> str | None:
    buffer, result = op.operands[0].type, op.results[0].type
    if not is_workgroup(buffer):
        return f"buffer {buffer} must be a memref in workgroup memory"
    if not ir.MemRefType(buffer).has_static_shape:
        return f"buffer {buffer} must have a static shape"
    with op.location:
        wanted = view_type(ir.MemRefType(buffer))
    return None if result == wanted else f"result {result} must be {wanted}"


DEFINITION = OpDefinition(
    "cluster_view",
    operands=(("buffer", SINGLE), ("rank", SINGLE)),
    results=(("view", SINGLE),),
    verify=_verify,
)


def cluster_view(buffer: ir.Value, rank: ir.Value) -> ir.Value:
    """Builds the op at the current insertion point."""
    return ir.Operation.create(
        DEFINITION.full_name, results=[view_type(ir.MemRefType(buffer.type))], operands=[buffer, rank]
    ).results[0]
