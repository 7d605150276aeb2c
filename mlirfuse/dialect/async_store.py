"""`fuse.async_store`: copies a stage of a ring into global memory by the tensor memory accelerator (TMA).

```mlir
"fuse.async_store"(%c, %ring, %stage, %row, %column) {dims = array<i64: 0, 1>}
    : (memref<?x4096xbf16>, memref<2x128x64xbf16, #gpu.address_space<workgroup>>, index, index, index) -> ()
```

The inverse of `fuse.async_load`: copies `ring[stage]` to the tile of `target` that begins at the indices; elements
outside `target` are dropped. One thread executes the op, after a barrier behind the `fuse.stage_tile` that filled the
stage. The stage may be read at any time until a `fuse.async_store_wait` of the same thread; the writes are visible when
the kernel has ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.async_load import tile_problem
from mlirfuse.dialect.base import SINGLE, VARIADIC, OpDefinition
from mlirfuse.dialect.shared_memory import ring_problem


def _verify(op: ir.Operation) -> str | None:
    target, ring, _, *indices = op.operands
    dims = list(ir.DenseI64ArrayAttr(op.attributes["dims"]))
    return ring_problem(ring) or tile_problem(target, ring, dims, len(indices))


DEFINITION = OpDefinition(
    "async_store",
    operands=(("target", SINGLE), ("ring", SINGLE), ("stage", SINGLE), ("indices", VARIADIC)),
    attributes=("dims",),
    verify=_verify,
)


def async_store(
    target: ir.Value, ring: ir.Value, stage: ir.Value, indices: Sequence[ir.Value], dims: Sequence[int]
) -> None:
    """Builds the op at the current insertion point."""
    ir.Operation.create(
        DEFINITION.full_name,
        operands=[target, ring, stage, *indices],
        attributes={"dims": ir.DenseI64ArrayAttr.get(list(dims))},
    )
