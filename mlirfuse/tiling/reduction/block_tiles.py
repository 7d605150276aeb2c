"""Which tiles a block of a persistent loop takes, and where they lie."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith

from mlirfuse.tiling.tiles import index


def consecutive_tiles(block: ir.Value, tiles: ir.Value, blocks: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Bounds and step of a loop over an equal share of all tiles, of which no block has two more than another one.

    Where there are fewer tiles than blocks, the first blocks have one each, as those have of every so many.
    """
    some = arith.MaxUIOp(tiles, index(1)).result
    sharing = arith.MinUIOp(blocks, some).result

    def start(number: ir.Value) -> ir.Value:
        mine = arith.MinUIOp(number, sharing).result
        return arith.DivUIOp(arith.MulIOp(mine, tiles).result, sharing).result

    return start(block), start(arith.AddIOp(block, index(1)).result), index(1)


def in_slice(offsets: Sequence[ir.Value], dim: int, start: ir.Value | None) -> list[ir.Value]:
    """The first index of a tile in each dimension, where the block has a slice of one that starts at an index."""
    return [start if d == dim and start is not None else offset for d, offset in enumerate(offsets)]
