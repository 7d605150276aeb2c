"""`fuse.group_barrier`: a barrier among consecutive warpgroups of a block.

```mlir
"fuse.group_barrier"() {warpgroups = 2 : i64} : () -> ()
```

A `gpu.barrier` for the block's first `warpgroups` warpgroups: their earlier writes to shared and global memory are
visible to all of their threads afterwards. The block's other threads do not take part. All threads of these warpgroups
execute the op together. With `first = f` the op is for `warpgroups` warpgroups from number `f` on; those of different
barriers do not overlap.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import OpDefinition
from mlirfuse.dialect.shared_memory import count_problem

FIRST, WARPGROUPS = "first", 8
"""The attribute for the first warpgroup, 0 by default, and the most warpgroups of a block."""


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
