"""The tail of a persistent loop that blocks share: chunks of tiles, which a block takes when it is done with what it
has.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, scf

from mlirfuse.schedule.parts.persistent_loop import LEAST_CHUNKS, TAIL
from mlirfuse.tiling.sync.semaphores import take_ticket
from mlirfuse.tiling.tiles import index

TICKETS = 1
"""The semaphore that counts the chunks which blocks have taken; the first is the second stage's."""


def most_chunks(tiles: ir.AffineExpr, blocks: ir.AffineExpr, chunk: int) -> ir.AffineExpr:
    """A bound of the number of chunks: the end is its share of the tiles, and what that lacks of a wave of blocks."""
    return ir.AffineExpr.get_floor_div(tiles, TAIL * chunk) + blocks + 2


@dataclass
class DynamicTail:
    """Which tiles the persistent loops of one block have. All fields but the first two are indices.

    Loop `number` of the grid runs over the tiles that block `number` has to itself, or, from `blocks` on, over a chunk.
    Any block may take a chunk, but the chunk's tiles and the row of its partial follow from its number.

    Attributes:
        chunk: tiles of a small chunk; the first half of the end goes in chunks of twice as many.
        semaphores: where taken chunks are counted.
        tiles: all tiles.
        blocks: blocks of the grid.
        own: tiles before the end.
        doubled: large chunks.
        loops: blocks that have tiles, and chunks, together.
    """

    chunk: int
    semaphores: ir.Value
    tiles: ir.Value
    blocks: ir.Value
    own: ir.Value
    doubled: ir.Value
    loops: ir.Value

    @classmethod
    def of(cls, chunk: int, semaphores: ir.Value, tiles: ir.Value, blocks: ir.Value) -> DynamicTail:
        """The tail of a persistent loop over so many tiles; empty where it would be too few chunks to even anything
        out.
        """
        tail_wave = arith.MulIOp(blocks, index(TAIL)).result
        waves = arith.DivUIOp(arith.MulIOp(tiles, index(TAIL - 1)).result, tail_wave).result
        least = arith.MulIOp(tail_wave, index(LEAST_CHUNKS * chunk)).result
        own = arith.SelectOp(_is_less(tiles, least), tiles, arith.MulIOp(waves, blocks).result).result
        shared = arith.SubIOp(tiles, own).result
        doubled = arith.DivUIOp(shared, index(4 * chunk)).result
        chunks = arith.SubIOp(arith.CeilDivUIOp(shared, index(chunk)).result, doubled).result
        # Where there are fewer tiles than blocks there are no chunks, and the blocks behind the last tile have no loop.
        # Where there are none at all one block leaves a part, which counts for nothing.
        some = arith.MaxUIOp(tiles, index(1)).result
        loops = arith.MinUIOp(arith.AddIOp(blocks, chunks).result, some).result
        return cls(chunk, semaphores, tiles, blocks, own, doubled, loops)

    def loop(self, block: ir.Value) -> scf.WhileOp:
        """The loop of a block over its persistent loops, in `after`, whose argument is a loop's number; see `next`."""
        loop = scf.WhileOp([block.type], [block])
        with ir.InsertionPoint(loop.before.blocks.append(block.type)):
            (number,) = loop.before.blocks[0].arguments
            scf.ConditionOp(_is_less(number, self.loops), [number])
        loop.after.blocks.append(block.type)
        return loop

    def range(self, number: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """First tile, end and step of a loop."""
        is_own = _is_less(number, self.blocks)
        chunk = arith.SubIOp(number, self.blocks).result
        behind = arith.MinUIOp(self._start(arith.AddIOp(chunk, index(1)).result), self.tiles).result
        return (
            arith.SelectOp(is_own, number, self._start(chunk)).result,
            arith.SelectOp(is_own, self.own, behind).result,
            arith.SelectOp(is_own, self.blocks, index(1)).result,
        )

    def _start(self, chunk: ir.Value) -> ir.Value:
        """The first tile of a chunk, where the one before it ends."""
        sizes = arith.AddIOp(chunk, arith.MinUIOp(chunk, self.doubled).result).result
        return arith.AddIOp(self.own, arith.MulIOp(sizes, index(self.chunk)).result).result

    def next(self) -> ir.Value:
        """The number of the loop that the block runs next; `loops` or more where nothing is left.

        Each block takes one ticket that finds nothing left, and the last of these returns the semaphore to zero.
        Without chunks no tickets are taken.
        """
        branch = scf.IfOp(_is_less(self.blocks, self.loops), [self.loops.type], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            taken = take_ticket(self.semaphores, index(TICKETS), self.loops)
            scf.YieldOp([arith.AddIOp(self.blocks, arith.IndexCastUIOp(self.loops.type, taken).result).result])
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp([self.loops])
        return branch.results[0]


def _is_less(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.CmpIOp(arith.CmpIPredicate.ult, a, b).result
