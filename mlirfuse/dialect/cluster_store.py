"""`fuse.cluster_store`: writes one value into the shared memory of a block of the same cluster.

```mlir
"fuse.cluster_store"(%value, %buffer, %index, %rank)
    : (f32, memref<64xf32, #gpu.address_space<workgroup>>, index, index) -> ()
```

Stores `value` at `buffer[index]` of the block whose rank in the cluster is `rank`, which may be the thread's own. All
blocks of a cluster run the same kernel, so `buffer` names the same allocation in each. The store is relaxed: it is
visible to the receiver after both blocks have passed the next `fuse.cluster_barrier`.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition
from mlirfuse.dialect.shared_memory import is_workgroup


def _verify(op: ir.Operation) -> str | None:
    value, buffer = (operand.type for operand in list(op.operands)[:2])
    if not is_workgroup(buffer) or ir.MemRefType(buffer).rank != 1:
        return f"buffer {buffer} must be a memref of rank 1 in workgroup memory"
    if ir.MemRefType(buffer).element_type != value:
        return f"a value of {value} for elements of {buffer}"
    return None


DEFINITION = OpDefinition(
    "cluster_store",
    operands=(("value", SINGLE), ("buffer", SINGLE), ("index", SINGLE), ("rank", SINGLE)),
    verify=_verify,
)


def cluster_store(value: ir.Value, buffer: ir.Value, index: ir.Value, rank: ir.Value) -> None:
    """Builds the op at the current insertion point."""
    ir.Operation.create(DEFINITION.full_name, operands=[value, buffer, index, rank])
