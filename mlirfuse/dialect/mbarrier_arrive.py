"""`fuse.mbarrier_arrive`: warpgroups signal an mbarrier, for example that they have read a stage of a ring.

```mlir
"fuse.mbarrier_arrive"(%empty, %stage) {warpgroups = 2 : i64}
    : (memref<4xi64, #gpu.address_space<workgroup>>, index) -> ()
```

Each of `warpgroups` whole warpgroups executes the op together and arrives once at `barriers[index]`. The op releases:
the warpgroup's earlier reads and writes, including its `fuse.warpgroup_mma`s up to its last `fuse.warpgroup_wait`, are
ordered before everything after a `fuse.mbarrier_wait` for the phase. With the attribute `peers = 2 : i64` each
warpgroup arrives at that barrier of every block of the cluster, whose size is `peers`.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.async_load import PEERS
from mlirfuse.dialect.base import SINGLE, OpDefinition
from mlirfuse.dialect.shared_memory import barriers_problem, count_problem

DEFINITION = OpDefinition(
    "mbarrier_arrive",
    operands=(("barriers", SINGLE), ("index", SINGLE)),
    attributes=("warpgroups",),
    verify=lambda op: (
        barriers_problem(op.operands[0])
        or count_problem(op, "warpgroups")
        or (count_problem(op, PEERS) if PEERS in op.attributes else None)
    ),
)


def mbarrier_arrive(barriers: ir.Value, index: ir.Value, warpgroups: int, peers: int = 1) -> None:
    """Builds the op at the current insertion point."""
    i64 = ir.IntegerType.get_signless(64)
    attributes = {"warpgroups": ir.IntegerAttr.get(i64, warpgroups)}
    if peers > 1:
        attributes[PEERS] = ir.IntegerAttr.get(i64, peers)
    ir.Operation.create(DEFINITION.full_name, operands=[barriers, index], attributes=attributes)
