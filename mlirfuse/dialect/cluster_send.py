"""`fuse.cluster_send`: writes values into the shared memory of other blocks, which wait for them at an mbarrier.

```mlir
"fuse.cluster_send"(%value, %buffer, %index, %rank, %barriers, %number) {peers = 4 : i64}
    : (f32, memref<64xf32, #gpu.address_space<workgroup>>, index, index,
       memref<2xi64, #gpu.address_space<workgroup>>, index) -> ()
```

All warps of a block of a cluster of `peers` blocks execute the op. Each thread whose `rank` is below `peers` writes
`value`, of 4 or 8 bytes, at `buffer[index]` of the block of that rank, which may be its own. The bytes count towards
the current phase of that block's `barriers[number]` and may arrive at any time before the phase completes.

The op releases: the block's earlier reads and writes are ordered before everything after a `fuse.mbarrier_wait` for a
phase that counts the bytes of all of the block's warps. Unlike a `fuse.cluster_barrier`, it needs no fence, which would
wait for all of the block's writes to global memory.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.async_load import PEERS
from mlirfuse.dialect.base import SINGLE, OpDefinition
from mlirfuse.dialect.shared_memory import barriers_problem, count_problem, is_workgroup
from mlirfuse.support.dtypes import from_mlir

SENDABLE_BYTES = (4, 8)
"""Bytes of a value that the hardware can send."""


def _verify(op: ir.Operation) -> str | None:
    value, buffer, _, _, barriers, _ = op.operands
    if not is_workgroup(buffer.type) or ir.MemRefType(buffer.type).rank != 1:
        return f"buffer {buffer.type} must be a memref of rank 1 in workgroup memory"
    if ir.MemRefType(buffer.type).element_type != value.type:
        return f"a value of {value.type} for elements of {buffer.type}"
    if isinstance(value.type, ir.VectorType) or from_mlir(value.type).bytes not in SENDABLE_BYTES:
        return f"a value of {value.type} does not have 4 or 8 bytes"
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
