"""Where the producer of a pipelined contraction finds a tile that the epilogue reads."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes
from mlirfuse.analysis.memory.strided_views import may_be_reversed
from mlirfuse.dialect.attributes import ALIGN, WORKSPACE
from mlirfuse.schedule.model.machine import MAX_RANK, TENSOR_MAP_STRIDE
from mlirfuse.support.rewriting import backward_slice, clone
from mlirfuse.tiling.memory import alignment
from mlirfuse.tiling.slot_ring import read_indices

ELEMENTWISE = frozenset({"arith", "math"})
"""Dialects whose ops work on tiles element by element."""


@dataclass(frozen=True)
class TileSource:
    """A tile of an argument that a tensor map can describe.

    Attributes:
        dims: the argument's dimensions along which a copy's rows and columns run; the stride of the second is 1.
        transposed: whether these are columns and rows of the tile.
        addressing: ops that compute the tile's indices in the consumers' persistent loop.
    """

    dims: tuple[int, int]
    transposed: bool
    addressing: tuple[ir.Operation, ...]

    def extents(self, tile: ir.VectorType) -> tuple[int, int]:
        """Rows and columns of a tile in memory."""
        rows, columns = list(tile.shape)[-2:]
        return (columns, rows) if self.transposed else (rows, columns)

    def starts(self, read: ir.Operation, tile_loop: ir.Operation, producer: ir.Operation) -> list[ir.Value]:
        """Emits the tile's indices in the producer's loop, at the current insertion point.

        Args:
            read: the consumers' read of the tile.
            tile_loop: the consumers' loop over tiles.
            producer: the producer's loop over the same tiles.
        """
        mapping = {tile_loop.regions[0].blocks[0].arguments[0]: producer.regions[0].blocks[0].arguments[0]}
        for op in self.addressing:
            clone(op, mapping)
        return [mapping.get(start, start) for start in read_indices(read)]


def elementwise_reads(tile: ir.Value, block: ir.Block) -> set[ir.Operation]:
    """The `vector.transfer_read`s of a block that `tile` is computed from element by element, of tiles of its type."""
    ops = [op.operation for op in block.operations]
    own = [op for op in ops if op.name.split(".")[0] in ELEMENTWISE or op.name == "vector.transfer_read"]
    reads = (op for op in backward_slice([tile], own) if op.name == "vector.transfer_read")
    return {op for op in reads if op.results[0].type == tile.type}


def producer_loop(role: ir.Operation) -> ir.Operation:
    """The producer's loop over tiles in a `fuse.warp_roles` with a persistent loop."""
    (loop,) = [op.operation for op in role.regions[1].blocks[0].operations if op.operation.name == "scf.for"]
    return loop


def tile_source(kernel: ir.Operation, role: ir.Operation, read: ir.Operation) -> TileSource | str:
    """Where a `vector.transfer_read` of the consumers reads, or why the producer cannot copy the tile.

    The tile must lie in an argument that the kernel does not write, and its place follow from the number of the tile.
    """
    mapped = _mapped(kernel, read)
    if isinstance(mapped, str):
        return mapped
    tile_loop = read.parent if read.parent != role else None
    if tile_loop is not None and (tile_loop.name != "scf.for" or tile_loop.parent != role):
        return "not every block reads the tile"
    own = [op.operation for op in read.block.operations]
    made = backward_slice(read_indices(read), own)
    addressing = tuple(op for op in own if op in made)
    if tile_loop is None and addressing:
        return "the consumers compute the tile's position"
    given = {value for op in addressing for value in op.operands} | set(read_indices(read))
    known = [read.block.arguments[0]] if tile_loop is not None else []
    if any(
        isinstance(v.owner, ir.Block) and v.owner.owner in (tile_loop, role) and v not in known for v in given
    ) or any(op.regions for op in addressing):
        return "the producer does not know the tile's position"
    dims, transposed = mapped
    return TileSource(dims, transposed, addressing)


def _mapped(kernel: ir.Operation, read: ir.Operation) -> tuple[tuple[int, int], bool] | str:
    """The source's dimensions along which a copy's rows and columns run, and whether these are the tile's columns and
    rows; or why no tensor map can copy the tile.
    """
    source, tile = read.operands[0], ir.VectorType(read.results[0].type)
    type_, arguments = ir.MemRefType(source.type), list(kernel.regions[0].blocks[0].arguments)
    results = list(ir.AffineMapAttr(read.attributes["permutation_map"]).value.results)[-2:]
    if len(results) < 2 or not all(isinstance(result, ir.AffineDimExpr) for result in results):
        return "a row or a column is broadcast"
    row, column = (ir.AffineDimExpr(result).position for result in results)
    if source not in arguments or any(
        use.owner.name in ("fuse.async_store", "vector.transfer_write") for use in source.uses
    ):
        return "the source is not a read-only argument"
    attributes = argument_attributes(kernel)[arguments.index(source)]
    align = attributes.get(ALIGN)
    if WORKSPACE in attributes or align is None:
        return "the source is not aligned, or other blocks write it"
    strides, _ = type_.get_strides_and_offset()
    transposed = strides[column] != 1 and strides[row] == 1
    if transposed:
        row, column = column, row
    if (
        strides[column] != 1
        or alignment(type_, column, ir.IntegerAttr(align).value) < TENSOR_MAP_STRIDE
        or 0 in strides
        or type_.rank > MAX_RANK
        or may_be_reversed(attributes)
    ):
        return f"a tensor map cannot describe {type_}"
    if tile.rank < 2 or len(read.operands) != 2 + type_.rank:
        return "the tile has a mask"
    return (row, column), transposed
