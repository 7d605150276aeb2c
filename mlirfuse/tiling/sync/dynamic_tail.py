"""Dynamic tail scheduling: the last tiles of a persistent loop are chunks that blocks take when they become idle."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, scf

from mlirfuse.schedule.parts.persistent_loop import LEAST_CHUNKS, TAIL
from mlirfuse.tiling.sync.semaphores import take_ticket
from mlirfuse.tiling.tiles import index

TICKETS = 1
"""Position of the semaphore that counts the chunks taken; semaphore 0 belongs to the second stage."""


def most_chunks(tiles: ir.AffineExpr, blocks: ir.AffineExpr, chunk: int) -> ir.AffineExpr:
    """An upper bound of the number of chunks: the tail is 1/`TAIL` of the tiles and at most one wave of blocks more."""
    return ir.AffineExpr.get_floor_div(tiles, TAIL * chunk) + blocks + 2


@dataclass
class DynamicTail:
    """The tile ranges of a grid's persistent loops. All fields but the first two are index values.

    Loops below `blocks` run over the tiles assigned to the block of that number; the others run over one chunk each.
    Any block may take a chunk, but the chunk's tiles and the row of its partial only depend on the loop's number.

    Attributes:
        chunk: tiles in a small chunk; the first half of the tail is divided into chunks of twice as many.
        semaphores: memref of the counter of chunks taken.
        tiles: number of all tiles.
        blocks: blocks of the grid.
        static_end: number of tiles before the tail.
        doubled: number of large chunks.
        loops: number of loops: blocks that have tiles, and chunks.
    """

    chunk: int
    semaphores: ir.Value
    tiles: ir.Value
    blocks: ir.Value
    static_end: ir.Value
    doubled: ir.Value
    loops: ir.Value

    @classmethod
    def of(cls, chunk: int, semaphores: ir.Value, tiles: ir.Value, blocks: ir.Value) -> DynamicTail:
        """The tail of a persistent loop over `tiles` tiles; empty if chunks would be too few to balance the load."""
        tail_wave = arith.MulIOp(blocks, index(TAIL)).result
        waves = arith.DivUIOp(arith.MulIOp(tiles, index(TAIL - 1)).result, tail_wave).result
        least = arith.MulIOp(tail_wave, index(LEAST_CHUNKS * chunk)).result
        static_end = arith.SelectOp(_is_less(tiles, least), tiles, arith.MulIOp(waves, blocks).result).result
        tail = arith.SubIOp(tiles, static_end).result
        doubled = arith.DivUIOp(tail, index(4 * chunk)).result
        chunks = arith.SubIOp(arith.CeilDivUIOp(tail, index(chunk)).result, doubled).result
        # With fewer tiles than blocks there are no chunks, and blocks without a tile have no loop. With no tiles at all
        # block 0 stores a neutral partial.
        least_loops = arith.MaxUIOp(tiles, index(1)).result
        loops = arith.MinUIOp(arith.AddIOp(blocks, chunks).result, least_loops).result
        return cls(chunk, semaphores, tiles, blocks, static_end, doubled, loops)

    def loop(self, block: ir.Value) -> scf.WhileOp:
        """Emits a block's outer loop: its `after` region runs one persistent loop, whose number is the argument.

        The region must yield `next()`.
        """
        loop = scf.WhileOp([block.type], [block])
        with ir.InsertionPoint(loop.before.blocks.append(block.type)):
            (number,) = loop.before.blocks[0].arguments
            scf.ConditionOp(_is_less(number, self.loops), [number])
        loop.after.blocks.append(block.type)
        return loop

    def range(self, number: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """First tile, end and step of the loop of that number."""
        is_static = _is_less(number, self.blocks)
        chunk = arith.SubIOp(number, self.blocks).result
        behind = arith.MinUIOp(self._start(arith.AddIOp(chunk, index(1)).result), self.tiles).result
        return (
            arith.SelectOp(is_static, number, self._start(chunk)).result,
            arith.SelectOp(is_static, self.static_end, behind).result,
            arith.SelectOp(is_static, self.blocks, index(1)).result,
        )

    def _start(self, chunk: ir.Value) -> ir.Value:
        """The first tile of a chunk, which is the end of the chunk before."""
        sizes = arith.AddIOp(chunk, arith.MinUIOp(chunk, self.doubled).result).result
        return arith.AddIOp(self.static_end, arith.MulIOp(sizes, index(self.chunk)).result).result

    def next(self) -> ir.Value:
        """The number of the block's next loop; `loops` or more if no chunk is left.

        Each block takes exactly one ticket past the last chunk, and the last of these resets the semaphore to zero.
        Without chunks no ticket is taken.
        """
        branch = scf.IfOp(_is_less(self.blocks, self.loops), [self.loops.type], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            ticket = take_ticket(self.semaphores, index(TICKETS), self.loops)
            scf.YieldOp([arith.AddIOp(self.blocks, arith.IndexCastUIOp(self.loops.type, ticket).result).result])
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp([self.loops])
        return branch.results[0]


def _is_less(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.CmpIOp(arith.CmpIPredicate.ult, a, b).result
