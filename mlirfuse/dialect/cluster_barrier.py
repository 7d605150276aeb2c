"""`fuse.cluster_barrier`: a barrier of all threads of a cluster.

```mlir
"fuse.cluster_barrier"() : () -> ()
```

Arrives with release and waits with acquire semantics at cluster scope: shared-memory writes before the op, local or
through `fuse.cluster_store`, are visible to every thread of the cluster after it. The op is also a block barrier. With
the attribute `warpgroups = 2 : i64`, only the first two warpgroups of each block take part; the others must be about to
end.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import OpDefinition

DEFINITION = OpDefinition("cluster_barrier")


def cluster_barrier(warpgroups: int | None = None) -> ir.Operation:
    """Builds the op at the current insertion point, for all threads, or for the first `warpgroups` of each block."""
    attributes = {}
    if warpgroups is not None:
        attributes["warpgroups"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), warpgroups)
    return ir.Operation.create(DEFINITION.full_name, attributes=attributes)
