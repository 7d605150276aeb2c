"""`fuse.staged_tile`: reads a tile from stages of a ring.

```mlir
%r = "fuse.staged_tile"(%ring, %stage) {offsets = array<i64: 0, 64>}
    : (memref<4x128x64xbf16, #gpu.address_space<workgroup>>, index) -> vector<128x128xbf16>
```

The inverse of `fuse.stage_tile`: `ring[stage + i]` holds the tile's columns from `offsets[i]` on, as many as a stage
has; with `transposed` they are the stage's rows. The stages together hold all columns. The warpgroups that hold the
tile, in the layout of `fuse.warpgroup_mma`'s accumulators, execute the op together, after a `fuse.mbarrier_wait` for
the copy of each stage. With `first`, the tile has only some columns of one stage, a multiple of 16 from column `first`
on. A warp reads the rows that a `fuse.stage_tile` into the same stage writes from that warp, so no barrier is needed
between the two ops. At the gpu level there is an op for each stage, with `offsets = array<i64: 0>`, whose results are
the thread's fragments, vectors of two elements in the order of PTX's registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import SINGLE, VARIADIC, OpDefinition
from mlirfuse.dialect.shared_memory import ring_problem
from mlirfuse.dialect.stage_tile import TRANSPOSED, is_transposed, staged_shape

FIRST, COLUMNS = "first", "columns"

TYPES = ("f16", "bf16", "f32", "i8", "i1")
"""Element types of tiles that are read from stages; those of one byte are not transposed."""


def first_of(op: ir.Operation) -> int | None:
    """The first column of a stage that is read; None where all are."""
    return ir.IntegerAttr(op.attributes[FIRST]).value if FIRST in op.attributes else None


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
    if FIRST in op.attributes:
        first, count = (ir.IntegerAttr(op.attributes[name]).value for name in (FIRST, COLUMNS))
        inside = offsets == [0] and first % 16 == count % 16 == 0 and first + count <= columns
        fits = inside and (shape == [2] or (len(op.results) == 1 and shape[-2:] == [rows, count]))
        return None if fits else f"{tile} from column {first} on is no part of a stage of {type_}"
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
    first: int | None = None,
    columns: int = 0,
    transposed: bool = False,
) -> list[ir.Value]:
    """Builds the op at the current insertion point; returns the tile, or a thread's vectors of a stage, or of `columns`
    columns from column `first` of the stage on.
    """
    attributes: dict[str, ir.Attribute] = {"offsets": ir.DenseI64ArrayAttr.get(list(offsets))}
    attributes |= {TRANSPOSED: ir.UnitAttr.get()} if transposed else {}
    if first is not None:
        i64, tile = ir.IntegerType.get_signless(64), ir.VectorType(types[0])
        attributes[FIRST] = ir.IntegerAttr.get(i64, first)
        attributes[COLUMNS] = ir.IntegerAttr.get(i64, columns or tile.shape[-1])
    op = ir.Operation.create(
        DEFINITION.full_name,
        results=list(types),
        operands=[ring, stage],
        attributes=attributes,
    )
    return list(op.results)
