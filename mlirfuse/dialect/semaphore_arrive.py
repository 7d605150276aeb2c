"""`fuse.semaphore_arrive`: increments a counter in global memory that wraps to zero.

```mlir
%old = "fuse.semaphore_arrive"(%semaphores, %slot, %limit) : (memref<?xi32>, index, i32) -> i32
```

Atomically, at device scope and with acquire-release semantics: `old` is the counter's value, and the counter becomes
`old + 1`, or 0 where `old >= limit`; both are unsigned.

With the unit attribute `relaxed` the op orders nothing, which is cheaper and suffices for a ticket. If `old` has no
use, the op acquires nothing, and the thread does not wait for the increment.

In a tile program the block arrives, and the op releases all of the block's earlier writes. In a `gpu.func` exactly one
thread of a block arrives, inside an `scf.if`. The op then releases the thread's own accesses, and those of the block's
other threads that a `gpu.barrier` has ordered before it. The other threads see the acquired memory after the next
`gpu.barrier`.

Every protocol below leaves its semaphores zero, because the last increment wraps at `limit`. So semaphores are zeroed
once, at their allocation, and not by a launch.

**Last block.** S blocks each store a partial, then arrive with limit S-1. The block that gets `old == S-1` sees all
partials. The protocol works in every order of blocks, and no block waits.

**Serial reduction.** S blocks add in order: block z waits for z (`fuse.semaphore_wait`), adds its partial, and arrives
with limit S-1. A block may wait only for blocks that are on the device already, so z comes from a ticket.

**Tickets.** G blocks share n work items: each arrives with limit n+G-1, and processes item `old` while `old < n`. Each
block fails once, so that there are n+G arrivals. Tickets follow the order in which blocks really run.

**Grid barrier.** G blocks, all resident: each arrives with limit 2G-1, waits for G, and arrives again to depart; the
2G-th arrival wraps. A barrier that is passed more than once alternates between two slots, because a fast block may
reach the next barrier before a slow one has departed. The kernel must be launched with all blocks resident
(`fuse.cooperative`).
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition

RELAXED = "relaxed"


def semaphore_problem(op: ir.Operation) -> str | None:
    """What is wrong with the operands that the semaphore ops share: (semaphores, slot, number)."""
    semaphores, slot, number = (operand.type for operand in op.operands)
    i32 = ir.IntegerType.get_signless(32)
    is_memref = isinstance(semaphores, ir.MemRefType)
    if not is_memref or semaphores.rank != 1 or semaphores.element_type != i32 or semaphores.memory_space is not None:
        return f"semaphores {semaphores} must be a one-dimensional memref of i32 in global memory"
    if not isinstance(slot, ir.IndexType):
        return f"slot {slot} must be an index"
    return None if number == i32 else f"{number} must be i32"


def _verify(op: ir.Operation) -> str | None:
    result = op.results[0].type
    return semaphore_problem(op) or (None if str(result) == "i32" else f"result {result} must be i32")


DEFINITION = OpDefinition(
    "semaphore_arrive",
    operands=(("semaphores", SINGLE), ("slot", SINGLE), ("limit", SINGLE)),
    results=(("old", SINGLE),),
    verify=_verify,
)


def semaphore_arrive(semaphores: ir.Value, slot: ir.Value, limit: ir.Value, *, relaxed: bool = False) -> ir.Value:
    """Builds the op at the current insertion point; returns the counter's value before it, an i32."""
    return ir.Operation.create(
        DEFINITION.full_name,
        results=[ir.IntegerType.get_signless(32)],
        operands=[semaphores, slot, limit],
        attributes={RELAXED: ir.UnitAttr.get()} if relaxed else {},
    ).results[0]
