"""`fuse.prefetch_rows`: prefetches rows of a buffer in device memory into the L2.

```mlir
"fuse.prefetch_rows"(%x, %row) {rows = 2 : i64} : (memref<?x4096xf16>, index) -> ()
```

Prefetches rows `row` to `row + rows - 1` along the first dimension of a contiguous buffer; if one of the rows is
outside the buffer, the op does nothing. A whole block executes the op, and the blocks of a cluster divide the rows
among them. The op has no effect on results.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.base import SINGLE, OpDefinition


def _verify(op: ir.Operation) -> str | None:
    buffer = op.operands[0].type
    if not isinstance(buffer, ir.MemRefType) or not is_rows(ir.MemRefType(buffer)):
        return f"buffer {buffer} must be a memref of device memory without gaps, static after the first dimension"
    rows = op.attributes["rows"]
    if not isinstance(rows, ir.IntegerAttr) or ir.IntegerAttr(rows).value < 1:
        return f"rows {rows} must be a positive integer"
    return None


def is_rows(buffer: ir.MemRefType) -> bool:
    """Whether a buffer is in device memory, with contiguous rows of static extents."""
    if buffer.rank == 0 or buffer.memory_space is not None:
        return False
    follow = buffer.affine_map == ir.AffineMap.get_identity(buffer.rank)
    return follow and not any(buffer.is_dynamic_dim(d) for d in range(1, buffer.rank))


DEFINITION = OpDefinition(
    "prefetch_rows", operands=(("buffer", SINGLE), ("row", SINGLE)), attributes=("rows",), verify=_verify
)


def prefetch_rows(buffer: ir.Value, row: ir.Value, rows: int) -> None:
    """Builds the op at the current insertion point."""
    attributes = {"rows": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), rows)}
    ir.Operation.create(DEFINITION.full_name, operands=[buffer, row], attributes=attributes)
