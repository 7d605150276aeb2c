"""`fuse.mbarrier_arrive`: warpgroups say that they are done with something, such as a stage of a ring.

```mlir
"fuse.mbarrier_arrive"(%empty, %stage) {warpgroups = 2 : i64}
    : (memref<4xi64, #gpu.address_space<workgroup>>, index) -> ()
```

Each of `warpgroups` whole warpgroups, which reach the op in convergence, arrives once at `barriers[index]`. Release:
what the warpgroup has read and written before, its `fuse.warpgroup_mma`s up to its last `fuse.warpgroup_wait` among it,
is ordered before what follows a `fuse.mbarrier_wait` for the phase.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition
from mlirfuse.dialect.shared_memory import barriers_problem, count_problem

DEFINITION = OpDefinition(
    "mbarrier_arrive",
    operands=(("barriers", SINGLE), ("index", SINGLE)),
    attributes=("warpgroups",),
    verify=lambda op: barriers_problem(op.operands[0]) or count_problem(op, "warpgroups"),
)


def mbarrier_arrive(barriers: ir.Value, index: ir.Value, warpgroups: int) -> None:
    """Builds the op at the current insertion point."""
    count = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), warpgroups)
    ir.Operation.create(DEFINITION.full_name, operands=[barriers, index], attributes={"warpgroups": count})
