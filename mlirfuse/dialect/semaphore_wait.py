"""`fuse.semaphore_wait`: waits until a counter in global memory has reached a value.

```mlir
"fuse.semaphore_wait"(%semaphores, %slot, %count) : (memref<?xi32>, index, i32) -> ()
```

Reads `semaphores[slot]` at device scope until it is at least `count`, compared as unsigned, and acquires: memory
released by the `fuse.semaphore_arrive`s that led to that value is visible to the waiting thread afterwards.

In a tile program the block waits. In a `gpu.func` exactly one thread of a block waits, inside an `scf.if`; the other
threads see the acquired memory after the next `gpu.barrier`. The op may miss a value at which the counter wraps, so a
protocol may wrap only when no thread waits any more. The protocols are in `fuse.semaphore_arrive`.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition
from mlirfuse.dialect.semaphore_arrive import semaphore_problem

DEFINITION = OpDefinition(
    "semaphore_wait",
    operands=(("semaphores", SINGLE), ("slot", SINGLE), ("count", SINGLE)),
    verify=semaphore_problem,
)


def semaphore_wait(semaphores: ir.Value, slot: ir.Value, count: ir.Value) -> None:
    """Builds the op at the current insertion point."""
    ir.Operation.create(DEFINITION.full_name, operands=[semaphores, slot, count])
