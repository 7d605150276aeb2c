"""`fuse.cluster_barrier`: all threads of all blocks of a cluster meet.

```mlir
"fuse.cluster_barrier"() : () -> ()
```

Arrive with release and wait with acquire semantics at cluster scope: shared-memory writes before it, local or through
`fuse.cluster_store`, are visible to every thread of the cluster after it. It is also a block barrier.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import OpDefinition

DEFINITION = OpDefinition("cluster_barrier")


def cluster_barrier() -> None:
    """Builds the op at the current insertion point."""
    ir.Operation.create(DEFINITION.full_name)
