"""`fuse.cluster_barrier`: all threads of all blocks of a cluster meet.

```mlir
"fuse.cluster_barrier"() : () -> ()
```

Arrive with release and wait with acquire semantics at cluster scope: shared-memory writes before it, local or through
`fuse.cluster_store`, are visible to every thread of the cluster after it. It is also a block barrier. With the
attribute `warpgroups = 2 : i64` the first so many warpgroups of each block meet; the others must be about to end.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import OpDefinition

DEFINITION = OpDefinition("cluster_barrier")


def cluster_barrier(warpgroups: int | None = None) -> ir.Operation:
    """Builds the op at the current insertion point; for all threads, or for the first warpgroups of each block."""
    attributes = {}
    if warpgroups is not None:
        attributes["warpgroups"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), warpgroups)
    return ir.Operation.create(DEFINITION.full_name, attributes=attributes)
