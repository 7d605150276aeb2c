"""`fuse.flagged_load`: loads the partials that several blocks store in a flagged buffer, as soon as all have arrived.

```mlir
%0:2 = "fuse.flagged_load"(%buf, %first, %start, %c0) {partials = 2 : i64}
    : (memref<2x64x64xf32>, index, index, index) -> (vector<32x64xf32>, vector<32x64xf32>)
```

Result p is the vector that `fuse.flagged_store` stored at the indices, with p added to the first index; the vector's
dimensions are the buffer's last ones. The op waits until every word has arrived, and empties the words. The storing
blocks must be running or have run, so the kernel is launched with all blocks resident (`fuse.cooperative`). The op
acquires the words themselves and no other memory.

In a tile program the block loads tiles. In a `gpu.func` a thread loads fragments, `vector<Nxf32>` or `f32`, from one or
more places: the indices of all places are listed in order, and so are their results. The thread waits for all places
together.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import SINGLE, VARIADIC, OpDefinition
from mlirfuse.dialect.flagged_store import flagged_problem


def _verify(op: ir.Operation) -> str | None:
    flagged_buffer, *indices = op.operands
    partials = ir.IntegerAttr(op.attributes["partials"]).value
    types = {str(result.type): result.type for result in op.results}
    if partials < 1 or len(types) != 1:
        return "there must be at least one partial, and results of one type"
    if problem := flagged_problem(flagged_buffer.type, *types.values()):
        return problem
    rank = ir.MemRefType(flagged_buffer.type).rank
    if not indices or len(indices) % rank or len(op.results) != len(indices) // rank * partials:
        found = f"{len(indices)} indices into {flagged_buffer.type} and {partials} partials"
        return f"{len(op.results)} results, not those of {found}"
    return None


DEFINITION = OpDefinition(
    "flagged_load",
    operands=(("flagged_buffer", SINGLE), ("indices", VARIADIC)),
    results=(("values", VARIADIC),),
    attributes=("partials",),
    verify=_verify,
    needs_layout=True,
)


def flagged_load(
    flagged_buffer: ir.Value, places: Sequence[Sequence[ir.Value]], type_: ir.Type, partials: int
) -> list[list[ir.Value]]:
    """Builds the op at the current insertion point; returns the partials of each place."""
    op = ir.Operation.create(
        DEFINITION.full_name,
        results=[type_] * (partials * len(places)),
        operands=[flagged_buffer, *(index for place in places for index in place)],
        attributes={"partials": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), partials)},
    )
    values = list(op.results)
    return [values[n : n + partials] for n in range(0, len(values), partials)]
