"""`fuse.stage_tile`: writes columns of a tile into a stage of a ring, for a later copy to global memory.

```mlir
"fuse.stage_tile"(%ring, %stage, %y) {offset = 64 : i64}
    : (memref<2x128x64xbf16, #gpu.address_space<workgroup>>, index, vector<128x256xbf16>) -> ()
"fuse.stage_tile"(%ring, %stage, %y) {offset = 48 : i64, transposed}
    : (memref<2x48x128xbf16, #gpu.address_space<workgroup>>, index, vector<128x96xbf16>) -> ()
```

Writes the tile's columns from `offset` on to `ring[stage]`, as many as a stage has; with `transposed` they are the
stage's rows. The warpgroups that hold the tile, in the layout of `fuse.warpgroup_mma`'s accumulators, execute the op
together. A loop over the columns (`fuse-roll-stores`) loads what an iteration needs an iteration ahead, or with
`loads_in_turn` in the iteration itself, which takes fewer registers. The op's writes are visible to a
`fuse.async_store` after the next barrier of these warpgroups. At the gpu level the last operands are the thread's
fragments of these columns, vectors of two elements in the order of PTX's registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import SINGLE, VARIADIC, OpDefinition
from mlirfuse.dialect.shared_memory import ring_problem

TRANSPOSED, LOADS_IN_TURN = "transposed", "loads_in_turn"


def is_transposed(op: ir.Operation) -> bool:
    """Whether rows of the stage are columns of the tile."""
    return TRANSPOSED in op.attributes


def staged_shape(ring: ir.MemRefType, transposed: bool) -> tuple[int, int]:
    """Rows and columns of the tile that a stage of the ring takes."""
    _, rows, columns = ring.shape
    return (columns, rows) if transposed else (rows, columns)


def _verify(op: ir.Operation) -> str | None:
    ring, _, *values = op.operands
    if problem := ring_problem(ring):
        return problem
    if not values or not all(isinstance(value.type, ir.VectorType) for value in values):
        return "there must be one tile, or a thread's vectors of one"
    type_, tile = ir.MemRefType(ring.type), ir.VectorType(values[0].type)
    if tile.element_type != type_.element_type:
        return f"elements of {tile} and {type_} differ"
    rows, columns = staged_shape(type_, is_transposed(op))
    offset = ir.IntegerAttr(op.attributes["offset"]).value
    shape = list(tile.shape)
    fits = len(values) == 1 and shape[-2:-1] == [rows] and 0 <= offset <= shape[-1] - columns
    return None if shape == [2] or fits else f"columns {offset} to {offset + columns} of {tile} do not fill a stage"


DEFINITION = OpDefinition(
    "stage_tile",
    operands=(("ring", SINGLE), ("stage", SINGLE), ("values", VARIADIC)),
    attributes=("offset",),
    verify=_verify,
    needs_layout=True,
)


def stage_tile(
    ring: ir.Value,
    stage: ir.Value,
    values: Sequence[ir.Value],
    offset: int,
    *,
    transposed: bool = False,
    loads_in_turn: bool = False,
) -> None:
    """Builds the op at the current insertion point."""
    attributes = {"offset": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), offset)}
    flags = ((TRANSPOSED, transposed), (LOADS_IN_TURN, loads_in_turn))
    attributes |= {name: ir.UnitAttr.get() for name, given in flags if given}
    ir.Operation.create(DEFINITION.full_name, operands=[ring, stage, *values], attributes=attributes)
