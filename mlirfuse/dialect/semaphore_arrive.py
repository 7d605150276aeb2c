"""`fuse.semaphore_arrive`: one step of a counter in global memory that returns to zero by itself.

```mlir
%old = "fuse.semaphore_arrive"(%semaphores, %slot, %limit) : (memref<?xi32>, index, i32) -> i32
```

Atomically, at device scope and with acquire-release semantics, `old` is the counter's value, and the counter becomes
`old + 1`, or 0 where `old >= limit`; both are unsigned.

With the unit attribute `relaxed` it orders nothing, and costs less: enough for a ticket.
Where nobody uses `old`, nothing is acquired, and the thread goes on before its step is done.

In a tile program the block arrives, and everything that it wrote before is released. In a `gpu.func` exactly one thread
of a block arrives, inside of an `scf.if`. What it releases is its own accesses, and those of the block's other threads
that a `gpu.barrier` has ordered before it. The block's other threads have what it acquires after the next
`gpu.barrier`.

Every protocol below leaves its semaphores zero, so that they are zeroed once, when they are allocated, and never by a
launch. `limit` is what does that: the last step wraps.

**Last block.** S blocks each store a part, then arrive with limit S-1. The one that gets `old == S-1` sees all parts.
It works in every order of blocks, and nobody waits.

**Serial reduction.** S blocks add in order: block z waits for z (`fuse.semaphore_wait`), does its part, and
arrives with limit S-1. A block may wait only for blocks that are on the device already: z comes from a ticket.

**Tickets.** G blocks share n pieces of work: each arrives with limit n+G-1, and works on piece `old` while `old < n`.
Each block fails once, so that n+G takes are all. Tickets follow the order in which blocks really run.

**Grid barrier.** G blocks, all resident: each arrives with limit 2G-1, waits for G, and arrives again to depart; the
2G-th step wraps. A barrier that is passed more than once alternates between two slots: a fast block may reach the next
barrier before a slow one has departed. The kernel must be launched whole (`fuse.cooperative`).
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
