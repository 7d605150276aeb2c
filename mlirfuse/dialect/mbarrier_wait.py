"""`fuse.mbarrier_wait`: waits until a phase of an mbarrier has completed.

```mlir
"fuse.mbarrier_wait"(%full, %stage, %parity) : (memref<4xi64, #gpu.address_space<workgroup>>, index, i32) -> ()
```

Returns once the phase of `parity` (0 for the barrier's first, third, ... phase) is not the current one. A new barrier
is in phase 0, so a wait for parity 1 returns at once, which is how a producer sees an empty ring. The op acquires:
memory released by the phase's arrivals, and the data of its asynchronous loads, is visible afterwards. Any number of
threads may wait, each independently. With the unit attribute `cluster` the op also acquires memory that other blocks of
the cluster have released, as a phase with bytes of a `fuse.cluster_send` needs.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition
from mlirfuse.dialect.shared_memory import barriers_problem

CLUSTER = "cluster"
"""Unit attribute of waits for data that other blocks send."""


def _verify(op: ir.Operation) -> str | None:
    parity = op.operands[2].type
    return barriers_problem(op.operands[0]) or (None if str(parity) == "i32" else f"parity {parity} must be an i32")


DEFINITION = OpDefinition(
    "mbarrier_wait",
    operands=(("barriers", SINGLE), ("index", SINGLE), ("parity", SINGLE)),
    verify=_verify,
)


def mbarrier_wait(barriers: ir.Value, index: ir.Value, parity: ir.Value, *, cluster: bool = False) -> None:
    """Builds the op at the current insertion point."""
    attributes = {CLUSTER: ir.UnitAttr.get()} if cluster else {}
    ir.Operation.create(DEFINITION.full_name, operands=[barriers, index, parity], attributes=attributes)
