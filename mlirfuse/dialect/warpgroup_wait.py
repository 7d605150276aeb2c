"""`fuse.warpgroup_wait`: waits until all but the last few `fuse.warpgroup_mma`s of a warpgroup are done.

```mlir
%1 = "fuse.warpgroup_wait"(%0) {pending = 0 : i64} : (vector<128x256xf32>) -> vector<128x256xf32>
```

At most `pending` of the warpgroup's multiplications are in flight afterwards; the others have read their stages and
written their results. The operands are accumulators of one or more multiplications, and the results are the same
values, of which those of finished multiplications may be used. Passing the values through the op keeps their uses after
it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import VARIADIC, OpDefinition


def _verify(op: ir.Operation) -> str | None:
    pending = ir.IntegerAttr(op.attributes["pending"]).value
    if not 0 <= pending <= 7:
        return f"pending = {pending} must be at least 0 and at most 7"
    if [v.type for v in op.operands] != [v.type for v in op.results]:
        return "results must have the operands' types"
    return None


DEFINITION = OpDefinition(
    "warpgroup_wait",
    operands=(("accumulators", VARIADIC),),
    results=(("values", VARIADIC),),
    attributes=("pending",),
    verify=_verify,
)


def warpgroup_wait(accumulators: Sequence[ir.Value], pending: int) -> list[ir.Value]:
    """Builds the op at the current insertion point; returns the values."""
    op = ir.Operation.create(
        DEFINITION.full_name,
        results=[value.type for value in accumulators],
        operands=list(accumulators),
        attributes={"pending": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), pending)},
    )
    return list(op.results)
