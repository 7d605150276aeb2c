"""`fuse.async_load`: copies a tile of global memory into a stage of a ring by the tensor memory accelerator (TMA).

```mlir
"fuse.async_load"(%a, %ring, %stage, %full, %row, %column) {dims = array<i64: 0, 1>}
    : (memref<?x4096xbf16>, memref<4x128x64xbf16, #gpu.address_space<workgroup>>, index,
       memref<4xi64, #gpu.address_space<workgroup>>, index, index) -> ()
```

Copies the tile of `source` that begins at the indices, one for each dimension of `source`, to `ring[stage]`. The tile's
rows are along dimension `dims[0]` and its columns along `dims[1]`, whose stride is 1. Indices may be negative; elements
outside `source` become zero. One thread executes the op. The bytes of the whole tile count towards the current phase of
`barriers[stage]`, and the data may arrive, element by element, at any time before that phase completes; no thread may
access the stage in between.

With the attribute `peers = 2 : i64`, one thread in each block of a cluster of that size executes the op, for the same
tile. Block r copies rows r*rows/peers to (r+1)*rows/peers to the stage of that number in every block, and the bytes
count towards each block's barrier, so that every block gets the whole tile.

With the attribute `streamed`, the L2 evicts the copied data first, because the grid will hardly read it again.

With the attribute `rows = 24 : i64`, only the first 24 rows are copied and counted. The other rows of the stage are
undefined afterwards. `rows` and `peers` exclude each other.

With the attribute `tf32`, elements of f32 are rounded to tf32, to nearest even; `fuse.warpgroup_mma` would truncate.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import SINGLE, VARIADIC, OpDefinition
from mlirfuse.dialect.shared_memory import barriers_problem, count_problem, ring_problem

PEERS = "peers"
"""Attribute of loads and arrivals for all blocks of a cluster: the number of blocks."""


ROWS = "rows"
"""Attribute: number of rows of the stage that are copied, if not all."""

STREAMED = "streamed"
"""Unit attribute: the copied data need not stay in the L2."""

TF32 = "tf32"
"""Unit attribute: elements of f32 are rounded to tf32."""


def tile_problem(tensor: ir.Value, ring: ir.Value, dims: Sequence[int], indices: int) -> str | None:
    """Why a stage of a ring cannot hold a tile of an array, or None; also used by `fuse.async_store`."""
    if problem := source_problem(tensor, dims, indices):
        return problem
    if ir.MemRefType(tensor.type).element_type != ir.MemRefType(ring.type).element_type:
        return f"elements of {tensor.type} and {ring.type} differ"
    return None


def source_problem(tensor: ir.Value, dims: Sequence[int], indices: int) -> str | None:
    """Why a tensor map has no tiles along two dimensions of an array, or None; also used by `fuse.prefetch_tile`."""
    if not isinstance(tensor.type, ir.MemRefType):
        return f"{tensor.type} must be a memref in global memory"
    type_ = ir.MemRefType(tensor.type)
    if indices != type_.rank:
        return f"{indices} indices for {type_}"
    if len(dims) != 2 or dims[0] == dims[1] or min(dims) < 0 or max(dims) >= type_.rank:
        return f"dims {list(dims)} must be two dimensions of {type_}"
    if type_.get_strides_and_offset()[0][dims[1]] != 1:
        return f"the stride of dimension {dims[1]} of {type_} must be 1"
    return None


def _verify(op: ir.Operation) -> str | None:
    source, ring, _, barriers, *indices = op.operands
    problem = ring_problem(ring) or barriers_problem(barriers)
    problem = problem or _peers_problem(op, ir.MemRefType(ring.type)) or _rows_problem(op, ir.MemRefType(ring.type))
    if TF32 in op.attributes and not isinstance(ir.MemRefType(ring.type).element_type, ir.F32Type):
        return f"only elements of f32 are rounded to tf32, not those of {ring.type}"
    return problem or tile_problem(source, ring, list(ir.DenseI64ArrayAttr(op.attributes["dims"])), len(indices))


def _peers_problem(op: ir.Operation, ring: ir.MemRefType) -> str | None:
    if PEERS not in op.attributes:
        return None
    peers, rows = ir.IntegerAttr(op.attributes[PEERS]).value, ring.shape[1]
    fits = peers > 1 and rows % (8 * peers) == 0
    return None if fits else f"{peers} peers cannot share {rows} rows: each needs a multiple of 8 rows"


def _rows_problem(op: ir.Operation, ring: ir.MemRefType) -> str | None:
    if ROWS not in op.attributes:
        return None
    if PEERS in op.attributes:
        return "rows and peers exclude each other: blocks that share a load copy all rows"
    if problem := count_problem(op, ROWS):
        return problem
    rows = ir.IntegerAttr(op.attributes[ROWS]).value
    return None if rows <= ring.shape[1] else f"rows = {rows} is more than the {ring.shape[1]} rows of a stage"


def peers_of(op: ir.Operation) -> int:
    """Number of blocks that share a load, or that an arrival is for; 1 without the attribute."""
    return ir.IntegerAttr(op.attributes[PEERS]).value if PEERS in op.attributes else 1


def rows_of(op: ir.Operation) -> int:
    """Number of rows of the stage that a load copies."""
    return ir.IntegerAttr(op.attributes[ROWS]).value if ROWS in op.attributes else _stage_rows(op.operands[1])


def _stage_rows(ring: ir.Value) -> int:
    return int(ir.MemRefType(ring.type).shape[1])


DEFINITION = OpDefinition(
    "async_load",
    operands=(("source", SINGLE), ("ring", SINGLE), ("stage", SINGLE), ("barriers", SINGLE), ("indices", VARIADIC)),
    attributes=("dims",),
    verify=_verify,
)


def async_load(
    source: ir.Value,
    ring: ir.Value,
    stage: ir.Value,
    barriers: ir.Value,
    indices: Sequence[ir.Value],
    dims: Sequence[int],
    peers: int = 1,
    *,
    rows: int | None = None,
    tf32: bool = False,
    streamed: bool = False,
) -> None:
    """Builds the op at the current insertion point; without `rows`, all rows of the stage are copied."""
    attributes: dict[str, ir.Attribute] = {"dims": ir.DenseI64ArrayAttr.get(list(dims))}
    if peers > 1:
        attributes[PEERS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), peers)
    if rows is not None and rows != _stage_rows(ring):
        attributes[ROWS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), rows)
    if tf32:
        attributes[TF32] = ir.UnitAttr.get()
    if streamed:
        attributes[STREAMED] = ir.UnitAttr.get()
    ir.Operation.create(DEFINITION.full_name, operands=[source, ring, stage, barriers, *indices], attributes=attributes)
