"""`fuse.stage_columns`: writes some columns of a thread's fragments into a stage of a ring, one step of a loop.

```mlir
"fuse.stage_columns"(%ring, %stage, %column, %0, %1, %2, %3) {columns = 16 : i64}
    : (memref<2x64x64xbf16, #gpu.address_space<workgroup>>, index, index, vector<2xbf16>, ...) -> ()
```

The gpu level's `fuse.stage_tile` for `columns` of a stage's columns, from `column` on: the values are the thread's
fragments of these, vectors of two elements in the order of PTX's registers. `column` is a multiple of `columns`, which
is one of 8. With `transposed` the columns are the stage's rows. Who executes the op, and when its writes are visible,
is as for `fuse.stage_tile`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import SINGLE, VARIADIC, OpDefinition
from mlirfuse.dialect.shared_memory import ring_problem
from mlirfuse.dialect.stage_tile import TRANSPOSED


def _verify(op: ir.Operation) -> str | None:
    ring, _, column, *values = op.operands
    if problem := ring_problem(ring):
        return problem
    if not isinstance(column.type, ir.IndexType):
        return f"column must be an index, not {column.type}"
    type_ = ir.MemRefType(ring.type)
    columns = ir.IntegerAttr(op.attributes["columns"]).value
    if columns <= 0 or columns % 8:
        return f"columns must be a multiple of 8, not {columns}"
    matrices = columns // 4  # of 8 rows and 8 columns, in 16 rows
    pairs = [value for value in values if isinstance(value.type, ir.VectorType) and _is_pair(value.type, type_)]
    if not values or len(values) % matrices or len(pairs) != len(values):
        return f"values must be a multiple of {matrices} vectors of 2 x {type_.element_type}"
    return None


def _is_pair(type_: ir.Type, ring: ir.MemRefType) -> bool:
    vector = ir.VectorType(type_)
    return list(vector.shape) == [2] and vector.element_type == ring.element_type


DEFINITION = OpDefinition(
    "stage_columns",
    operands=(("ring", SINGLE), ("stage", SINGLE), ("column", SINGLE), ("values", VARIADIC)),
    attributes=("columns",),
    verify=_verify,
)


def stage_columns(
    ring: ir.Value, stage: ir.Value, column: ir.Value, values: Sequence[ir.Value], columns: int, *, transposed: bool
) -> None:
    """Builds the op at the current insertion point."""
    attributes = {"columns": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), columns)}
    attributes |= {TRANSPOSED: ir.UnitAttr.get()} if transposed else {}
    ir.Operation.create(DEFINITION.full_name, operands=[ring, stage, column, *values], attributes=attributes)
