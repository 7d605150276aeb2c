"""`fuse.cluster_send`: writes values into other blocks' shared memory, for which those wait at an mbarrier.

```mlir
"fuse.cluster_send"(%value, %buffer, %index, %rank, %barriers, %number) {peers = 4 : i64}
    : (f32, memref<64xf32, #gpu.address_space<workgroup>>, index, index,
       memref<2xi64, #gpu.address_space<workgroup>>, index) -> ()
```

Reached by all warps of a block of a cluster of `peers` blocks. Each thread whose `rank` is below `peers` writes
`value`, of 4 or 8 bytes, at `buffer[index]` of the block of that rank (its own is legal). The bytes count towards the
current phase of `barriers[number]` of that block, and may arrive at any time before the phase completes. Release: what
the block has read and written before is ordered before what follows a `fuse.mbarrier_wait` for a phase that has what
all of its warps sent. It is a release without a fence, which would hold the block up until all that it has written to
global memory is there, as a `fuse.cluster_barrier` does.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.async_load import PEERS
from mlirfuse.dialect.base import SINGLE, OpDefinition
from mlirfuse.dialect.shared_memory import barriers_problem, count_problem, is_workgroup
from mlirfuse.support.dtypes import from_mlir

SENDABLE_BYTES = (4, 8)
"""Sizes of a value that the hardware sends."""


def _verify(op: ir.Operation) -> str | None:
    value, buffer, _, _, barriers, _ = op.operands
    if not is_workgroup(buffer.type) or ir.MemRefType(buffer.type).rank != 1:
        return f"buffer {buffer.type} must be a memref of rank 1 in workgroup memory"
    if ir.MemRefType(buffer.type).element_type != value.type:
        return f"a value of {value.type} for elements of {buffer.type}"
    if isinstance(value.type, ir.VectorType) or from_mlir(value.type).bytes not in SENDABLE_BYTES:
        return f"a value of {value.type} has not 4 or 8 bytes"
    return barriers_problem(barriers) or count_problem(op, PEERS)


DEFINITION = OpDefinition(
    "cluster_send",
    operands=tuple((name, SINGLE) for name in ("value", "buffer", "index", "rank", "barriers", "number")),
    attributes=(PEERS,),
    verify=_verify,
)


def cluster_send(
    value: ir.Value, buffer: ir.Value, index: ir.Value, rank: ir.Value, barriers: ir.Value, number: ir.Value, peers: int
) -> None:
    """Builds the op at the current insertion point."""
    attributes = {PEERS: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), peers)}
    operands = [value, buffer, index, rank, barriers, number]
    ir.Operation.create(DEFINITION.full_name, operands=operands, attributes=attributes)
