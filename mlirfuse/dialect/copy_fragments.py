"""`fuse.copy_fragments`: copies a tile into shared memory asynchronously, each thread the fragments that it will read.

```mlir
"fuse.copy_fragments"(%x, %slot, %row, %c0) {tile = array<i64: 2, 4096>, fuse.layout = {...},
    permutation_map = affine_map<(d0, d1) -> (d0, d1)>, in_bounds = [false, true]}
    : (memref<?x4096xbf16>, memref<2x4096xbf16, strided<[4096, 1], offset: ?>, #gpu.address_space<workgroup>>, index,
       index) -> ()
```

Copies the elements that a `vector.transfer_read` of a `tile` with the same map and bounds would read to the slot, which
holds the block's slice of the tile and its padding. Elements past the source's end are undefined. Each thread copies
its own fragments in the op's layout, and may read them back in that layout after an `nvvm.cp.async.wait.group` for the
copy's group, without a barrier; the copy may happen at any time before that.

Along a dimension in which the tile has extent 1, the slot has an element for each thread of the block, and a read
marked `fuse.own` takes the thread's own. `fuse.streaming` marks copies of data that the grid reads once, and
`fuse.evict_first` copies of data that the L2 may evict first.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import SINGLE, VARIADIC, OpDefinition
from mlirfuse.dialect.shared_memory import is_workgroup


def _verify(op: ir.Operation) -> str | None:
    source, slot = (ir.MemRefType(v.type) for v in list(op.operands)[:2])
    tile = list(ir.DenseI64ArrayAttr(op.attributes["tile"]))
    if source.element_type != slot.element_type:
        return f"the slot's element type {slot.element_type} must be the source's, {source.element_type}"
    if not is_workgroup(slot) or not slot.has_static_shape:
        return f"slot {slot} must be in workgroup memory, with a static shape"
    if len(op.operands) != 2 + source.rank:
        return f"source {source} needs {source.rank} offsets, not {len(op.operands) - 2}"
    if len(tile) != slot.rank:
        return f"a tile of {tile} needs a slot of as many dimensions, not {slot}"
    return None


DEFINITION = OpDefinition(
    "copy_fragments",
    operands=(("source", SINGLE), ("slot", SINGLE), ("offsets", VARIADIC)),
    attributes=("tile", "permutation_map", "in_bounds"),
    verify=_verify,
    needs_layout=True,
)


def copy_fragments(read: ir.Operation, slot: ir.Value, offsets: Sequence[ir.Value]) -> ir.Operation:
    """Builds the copy of what a `vector.transfer_read` reads, from other offsets, at the current insertion point."""
    tile = list(ir.VectorType(read.results[0].type).shape)
    attributes = read.attributes
    return copy_of_tile(read.operands[0], slot, offsets, tile, attributes["permutation_map"], attributes["in_bounds"])


def copy_of_tile(
    source: ir.Value,
    slot: ir.Value,
    offsets: Sequence[ir.Value],
    tile: Sequence[int],
    permutation_map: ir.Attribute,
    in_bounds: ir.Attribute,
) -> ir.Operation:
    """Builds the copy of a tile of a source from some offsets on, at the current insertion point."""
    attributes = {
        "tile": ir.DenseI64ArrayAttr.get(list(tile)),
        "permutation_map": permutation_map,
        "in_bounds": in_bounds,
    }
    return ir.Operation.create(DEFINITION.full_name, operands=[source, slot, *offsets], attributes=attributes)
