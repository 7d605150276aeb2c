"""`fuse.group_barrier`: a barrier among some warpgroups of a block that follow each other.

```mlir
"fuse.group_barrier"() {warpgroups = 2 : i64} : () -> ()
```

As `gpu.barrier`, for the block's first `warpgroups` warpgroups: shared and global memory that one of their threads
wrote before is visible to all of them afterwards. The block's other threads do not take part. Reached in convergence.
With `first = f` these are `warpgroups` warpgroups from the `f`-th on; those of different barriers do not overlap.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import OpDefinition
from mlirfuse.dialect.shared_memory import count_problem

FIRST, WARPGROUPS = "first", 8
"""The attribute, which is 0 where it is left out, and how many warpgroups a block has at most."""


def first_of(op: ir.Operation) -> int:
    """The first warpgroup that takes part."""
    return ir.IntegerAttr(op.attributes[FIRST]).value if FIRST in op.attributes else 0


def _verify(op: ir.Operation) -> str | None:
    if problem := count_problem(op, "warpgroups"):
        return problem
    first, count = first_of(op), ir.IntegerAttr(op.attributes["warpgroups"]).value
    if not 0 <= first <= WARPGROUPS - count:
        return f"warpgroups {first} to {first + count - 1} are not all of a block, which has {WARPGROUPS} at most"
    return None


DEFINITION = OpDefinition("group_barrier", attributes=("warpgroups",), verify=_verify)


def group_barrier(warpgroups: int, first: int = 0) -> None:
    """Builds the op at the current insertion point."""
    i64 = ir.IntegerType.get_signless(64)
    attributes = {"warpgroups": ir.IntegerAttr.get(i64, warpgroups)}
    if first:
        attributes[FIRST] = ir.IntegerAttr.get(i64, first)
    ir.Operation.create(DEFINITION.full_name, attributes=attributes)
