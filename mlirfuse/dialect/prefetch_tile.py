"""`fuse.prefetch_tile`: prefetches a tile of global memory into the L2 by the tensor memory accelerator (TMA).

```mlir
"fuse.prefetch_tile"(%r, %row, %column) {dims = array<i64: 0, 1>, tile = array<i64: 128, 64>}
    : (memref<?x4096xf32>, index, index) -> ()
```

Asks for the tile of `source` that begins at the indices, one for each dimension of `source`: `tile[0]` rows along
dimension `dims[0]` and `tile[1]` columns along `dims[1]`, whose stride is 1. Elements outside `source` are left out.
One thread executes the op, which waits for nothing and has no effect on results.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.async_load import source_problem
from mlirfuse.dialect.base import SINGLE, VARIADIC, OpDefinition


def _verify(op: ir.Operation) -> str | None:
    source, *indices = op.operands
    dims, tile = (list(ir.DenseI64ArrayAttr(op.attributes[name])) for name in ("dims", "tile"))
    if problem := source_problem(source, dims, len(indices)):
        return problem
    return None if len(tile) == 2 and min(tile) > 0 else f"tile {tile} must be a number of rows and one of columns"


DEFINITION = OpDefinition(
    "prefetch_tile", operands=(("source", SINGLE), ("indices", VARIADIC)), attributes=("dims", "tile"), verify=_verify
)


def prefetch_tile(source: ir.Value, indices: Sequence[ir.Value], dims: Sequence[int], tile: Sequence[int]) -> None:
    """Builds the op at the current insertion point."""
    attributes = {"dims": ir.DenseI64ArrayAttr.get(list(dims)), "tile": ir.DenseI64ArrayAttr.get(list(tile))}
    ir.Operation.create(DEFINITION.full_name, operands=[source, *indices], attributes=attributes)
