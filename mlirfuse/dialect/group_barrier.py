"""`fuse.group_barrier`: a barrier among the first warpgroups of a block.

```mlir
"fuse.group_barrier"() {warpgroups = 2 : i64} : () -> ()
```

As `gpu.barrier`, for the block's first `warpgroups` warpgroups: shared and global memory that one of their threads
wrote before is visible to all of them afterwards. The block's other threads do not take part. Reached in convergence.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import OpDefinition
from mlirfuse.dialect.shared_memory import count_problem

DEFINITION = OpDefinition(
    "group_barrier", attributes=("warpgroups",), verify=lambda op: count_problem(op, "warpgroups")
)


def group_barrier(warpgroups: int) -> None:
    """Builds the op at the current insertion point."""
    count = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), warpgroups)
    ir.Operation.create(DEFINITION.full_name, attributes={"warpgroups": count})
