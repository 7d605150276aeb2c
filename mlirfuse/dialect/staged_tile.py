"""`fuse.staged_tile`: reads a tile from stages of a ring.

```mlir
%r = "fuse.staged_tile"(%ring, %stage) {offsets = array<i64: 0, 64>}
    : (memref<4x128x64xbf16, #gpu.address_space<workgroup>>, index) -> vector<128x128xbf16>
```

The inverse of `fuse.stage_tile`: `ring[stage + i]` holds the tile's columns from `offsets[i]` on, as many as a stage
has; with `transposed` they are the stage's rows. The stages together hold all columns. The warpgroups that hold the
tile, in the layout of `fuse.warpgroup_mma`'s accumulators, execute the op together, after a `fuse.mbarrier_wait` for
the copy of each stage. A warp reads the rows that a `fuse.stage_tile` into the same stage writes from that warp, so no
barrier is needed between the two ops. At the gpu level there is an op for each stage, with `offsets = array<i64: 0>`,
whose results are the thread's fragments, vectors of two elements in the order of PTX's registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import SINGLE, VARIADIC, OpDefinition
from mlirfuse.dialect.shared_memory import ring_problem
from mlirfuse.dialect.stage_tile import TRANSPOSED, is_transposed, staged_shape


def _verify(op: ir.Operation) -> str | None:
    ring = op.operands[0]
    if problem := ring_problem(ring):
        return problem
    if not op.results or not all(isinstance(value.type, ir.VectorType) for value in op.results):
        return "there must be one tile, or a thread's vectors of one"
    type_, tile = ir.MemRefType(ring.type), ir.VectorType(op.results[0].type)
    if tile.element_type != type_.element_type:
        return f"elements of {tile} and {type_} differ"
    rows, columns = staged_shape(type_, is_transposed(op))
    offsets, shape = list(ir.DenseI64ArrayAttr(op.attributes["offsets"])), list(tile.shape)
    if shape == [2]:
        return None if offsets == [0] else f"a thread's vectors are of one stage, not of columns from {offsets} on"
    covered = {column for offset in offsets for column in range(offset, offset + columns)}
    fits = len(op.results) == 1 and shape[-2:-1] == [rows] and len(offsets) <= type_.shape[0]
    return None if fits and covered == set(range(shape[-1])) else f"stages of {type_} from {offsets} on are not {tile}"


DEFINITION = OpDefinition(
    "staged_tile",
    operands=(("ring", SINGLE), ("stage", SINGLE)),
    results=(("values", VARIADIC),),
    attributes=("offsets",),
    verify=_verify,
)


def staged_tile(
    ring: ir.Value,
    stage: ir.Value,
    types: Sequence[ir.Type],
    offsets: Sequence[int] = (0,),
    *,
    transposed: bool = False,
) -> list[ir.Value]:
    """Builds the op at the current insertion point; returns the tile, or a thread's vectors of a stage."""
    attributes: dict[str, ir.Attribute] = {"offsets": ir.DenseI64ArrayAttr.get(list(offsets))}
    attributes |= {TRANSPOSED: ir.UnitAttr.get()} if transposed else {}
    op = ir.Operation.create(
        DEFINITION.full_name,
        results=list(types),
        operands=[ring, stage],
        attributes=attributes,
    )
    return list(op.results)
