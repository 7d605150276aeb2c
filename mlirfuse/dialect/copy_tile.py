"""`fuse.copy_tile`: copies a tile of a buffer in device memory into shared memory, asynchronously.

```mlir
"fuse.copy_tile"(%x, %slot, %row, %k) {axes = array<i64: 0, 1>, clipped = array<i64: 0>}
    : (memref<?x512xbf16>, memref<128x32xbf16, strided<[40, 1], offset: ?>, #gpu.address_space<workgroup>>, index,
       index) -> ()
```

Dimension i of the slot runs along axis `axes[i]` of the source, from the offset of that axis; the other axes have the
one index of their offset. Elements past the source's end become zero along dimensions listed in `clipped`; other
dimensions must be inside. Offsets along the slot's last dimension are multiples of its extent. A whole block executes
the op. The slot holds the tile once every thread of the block has passed an `nvvm.cp.async.wait.group` for the copy's
group and then a barrier; the copy may happen at any time before that.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import SINGLE, VARIADIC, OpDefinition
from mlirfuse.dialect.shared_memory import is_workgroup


def _verify(op: ir.Operation) -> str | None:
    source, slot = (ir.MemRefType(v.type) for v in list(op.operands)[:2])
    if source.element_type != slot.element_type:
        return f"the slot's element type {slot.element_type} must be the source's, {source.element_type}"
    if not is_workgroup(slot) or not slot.has_static_shape:
        return f"slot {slot} must be in workgroup memory, with a static shape"
    if len(op.operands) != 2 + source.rank:
        return f"source {source} needs {source.rank} offsets, not {len(op.operands) - 2}"
    axes = list(ir.DenseI64ArrayAttr(op.attributes["axes"]))
    if len(axes) != slot.rank or len(set(axes)) != len(axes) or not set(axes) <= set(range(source.rank)):
        return f"axes {axes} must name a different axis of {source} for each of the slot's {slot.rank} dimensions"
    clipped = list(ir.DenseI64ArrayAttr(op.attributes["clipped"]))
    if not set(clipped) <= set(range(slot.rank)):
        return f"clipped {clipped} must be dimensions of {slot}"
    return None


DEFINITION = OpDefinition(
    "copy_tile",
    operands=(("source", SINGLE), ("slot", SINGLE), ("offsets", VARIADIC)),
    attributes=("axes", "clipped"),
    verify=_verify,
)


def copy_tile(
    source: ir.Value, slot: ir.Value, offsets: Sequence[ir.Value], axes: Sequence[int], clipped: Sequence[int]
) -> None:
    """Builds the op at the current insertion point."""
    attributes = {"axes": ir.DenseI64ArrayAttr.get(list(axes)), "clipped": ir.DenseI64ArrayAttr.get(list(clipped))}
    ir.Operation.create(DEFINITION.full_name, operands=[source, slot, *offsets], attributes=attributes)
