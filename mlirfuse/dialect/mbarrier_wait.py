"""`fuse.mbarrier_wait`: waits until a phase of an mbarrier has completed.

```mlir
"fuse.mbarrier_wait"(%full, %stage, %parity) : (memref<4xi64, #gpu.address_space<workgroup>>, index, i32) -> ()
```

Returns once the phase of that `parity` (0 for the barrier's first, third, ... phase) is not the current one. A fresh
barrier is in phase 0, so that waiting for parity 1 returns at once: that is how a producer finds an empty ring.
Acquire: what was released by the phase's arrivals, and what its asynchronous loads have written, is visible afterwards.
Any number of threads may wait, each for itself. With the unit attribute `cluster` it acquires what other blocks of the
cluster have released too: needed for a phase that a `fuse.cluster_send` counts towards.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition
from mlirfuse.dialect.shared_memory import barriers_problem

CLUSTER = "cluster"
"""Attribute of waits for what other blocks send."""


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
