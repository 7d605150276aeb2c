"""`fuse.mbarrier_init`: initialises an array of mbarriers.

```mlir
"fuse.mbarrier_init"(%barriers) {arrivals = 2 : i64} : (memref<4xi64, #gpu.address_space<workgroup>>) -> ()
```

Each barrier is in phase 0, which completes after `arrivals` arrivals and the bytes that `fuse.mbarrier_expect`
announces; the next phase then begins with the same count. The whole block executes the op. The barriers may be used
after the next `gpu.barrier`, or, by other blocks of the cluster, after the next `fuse.cluster_barrier`.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition
from mlirfuse.dialect.shared_memory import barriers_problem, count_problem

DEFINITION = OpDefinition(
    "mbarrier_init",
    operands=(("barriers", SINGLE),),
    attributes=("arrivals",),
    verify=lambda op: barriers_problem(op.operands[0]) or count_problem(op, "arrivals"),
)


def mbarrier_init(barriers: ir.Value, arrivals: int) -> None:
    """Builds the op at the current insertion point."""
    count = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), arrivals)
    ir.Operation.create(DEFINITION.full_name, operands=[barriers], attributes={"arrivals": count})
