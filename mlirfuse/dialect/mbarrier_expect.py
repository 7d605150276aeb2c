"""`fuse.mbarrier_expect`: one thread arrives at an mbarrier and announces the bytes of asynchronous loads.

```mlir
"fuse.mbarrier_expect"(%full, %stage) {bytes = 49152 : i64}
    : (memref<4xi64, #gpu.address_space<workgroup>>, index) -> ()
```

The current phase of `barriers[index]` completes when all arrivals have been made and `bytes` more bytes have arrived.
One thread executes the op, and then issues the `fuse.async_load`s.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition
from mlirfuse.dialect.shared_memory import barriers_problem, count_problem

DEFINITION = OpDefinition(
    "mbarrier_expect",
    operands=(("barriers", SINGLE), ("index", SINGLE)),
    attributes=("bytes",),
    verify=lambda op: barriers_problem(op.operands[0]) or count_problem(op, "bytes"),
)


def mbarrier_expect(barriers: ir.Value, index: ir.Value, nbytes: int) -> None:
    """Builds the op at the current insertion point."""
    count = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), nbytes)
    ir.Operation.create(DEFINITION.full_name, operands=[barriers, index], attributes={"bytes": count})
