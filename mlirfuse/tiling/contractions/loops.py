"""Matches the loop along k of a tiled contraction, and describes its operands in global memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlir import ir

from mlirfuse.dialect.attributes import INSTRUCTION, UNDEFINED
from mlirfuse.dialect.contraction_family import family_of
from mlirfuse.dialect.operand_tile import DEFINITION
from mlirfuse.support.rewriting import backward_slice, defining_op, nested
from mlirfuse.tiling.contractions.k_loop import operand_producer
from mlirfuse.tiling.tiles import zero

OPERAND_TILE = DEFINITION.full_name


@dataclass(frozen=True)
class TileOperand:
    """One operand of a tiled contraction.

    Attributes:
        read: the `vector.transfer_read` of its tile.
        cast: the op that widens a float8 tile; None if there is none.
        major: `k` where k is contiguous in the tile, `mn` where the other dimension is.
        dims: the source's dimensions along which the tile's rows and columns run.
        rows: extent of the tile along `dims[0]`.
        columns: extent along `dims[1]`.
    """

    read: ir.Operation
    cast: ir.Operation | None
    major: str
    dims: tuple[int, int]
    rows: int
    columns: int

    @property
    def ops(self) -> list[ir.Operation]:
        """The read, and the cast if there is one."""
        return [self.read] if self.cast is None else [self.read, self.cast]

    @property
    def source(self) -> ir.Value:
        return self.read.operands[0]

    @property
    def last_rows(self) -> int:
        """In-bounds rows of the last tile, if rows out of bounds are marked undefined; otherwise all rows."""
        source = ir.MemRefType(self.source.type)
        undefined = self.read.attributes.get(UNDEFINED)
        position = ir.VectorType(self.read.results[0].type).rank - 2
        if undefined is None or position not in ir.DenseI64ArrayAttr(undefined) or source.is_dynamic_dim(self.dims[0]):
            return self.rows
        return source.shape[self.dims[0]] % self.rows or self.rows

    @property
    def last_start(self) -> int:
        """Index along `dims[0]` from which on a tile has `last_rows` rows."""
        return ir.MemRefType(self.source.type).shape[self.dims[0]] - self.last_rows

    @property
    def indices(self) -> list[ir.Value]:
        """The tile's start indices, one for each dimension of the source."""
        rank = ir.MemRefType(self.source.type).rank
        return list(self.read.operands)[1 : 1 + rank]


@dataclass(frozen=True)
class ContractionLoop:
    """A loop along k that carries a tile of accumulators for each of its contractions.

    Attributes:
        loop: the `scf.for`.
        contracts: each `vector.contract` in it, in the order of the accumulators.
        operands: the tiles that they multiply, each once, operand A of the first contraction first.
        pairs: the positions of each contraction's operands A and B among `operands`.
        sums: the ops that add up elements of operands to tiles which the loop carries behind the accumulators.
    """

    loop: ir.Operation
    contracts: tuple[ir.Operation, ...]
    operands: tuple[TileOperand, ...]
    pairs: tuple[tuple[int, int], ...]
    sums: tuple[ir.Operation, ...] = ()

    @property
    def a(self) -> TileOperand:
        """Operand A of the first contraction."""
        return self.operands[self.pairs[0][0]]

    @property
    def addressing(self) -> list[ir.Operation]:
        """The ops of the body that compute the tiles' indices: not reads, casts, contractions, sums and the yield."""
        skipped = {*self.contracts, *self.sums, *(op for operand in self.operands for op in operand.ops)}
        ops = [op.operation for op in self.loop.regions[0].blocks[0].operations]
        return [op for op in ops[:-1] if op not in skipped]


def contraction_loops(kernel: ir.Operation) -> Iterator[tuple[ir.Operation, str]]:
    """Yields the `scf.for` loops of a tile program that contract, each with the name of its instruction family."""
    found: dict[ir.Operation, str] = {}
    for op in nested(kernel):
        if op.name == "vector.contract" and INSTRUCTION in op.attributes and op.parent.name == "scf.for":
            found.setdefault(op.parent.operation, family_of(op))
    yield from found.items()


def contraction_loop(loop: ir.Operation) -> ContractionLoop | str:
    """Matches a loop along k that consists of reads, optional float8 casts, a contraction for each carried tile of
    accumulators, and sums of operands for the other carried tiles.

    Returns the reason as text if the loop does not have this form.
    """
    body = [op.operation for op in loop.regions[0].blocks[0].operations]
    contracts = [op for op in body if op.name == "vector.contract"]
    count = len(contracts)
    if list(body[-1].operands)[:count] != [contract.results[0] for contract in contracts]:
        return "the loop carries more than the accumulators"
    sums = _sums(loop, body, count)
    if isinstance(sums, str):
        return sums
    found: dict[ir.Operation, TileOperand] = {}
    pairs = []
    for contract, carried in zip(contracts, list(loop.regions[0].blocks[0].arguments)[1 : 1 + count], strict=True):
        operands = _operands(loop, contract, carried)
        if isinstance(operands, str):
            return operands
        for operand in operands:
            if found.setdefault(operand.read, operand) != operand:
                return "contractions disagree about an operand's tile"
        pairs.append([operand.read for operand in operands])
    known = {op for operand in found.values() for op in operand.ops} | {*contracts, *sums}
    rest = [op for op in body[:-1] if op not in known]
    if any(op.regions or any(isinstance(v.type, ir.VectorType) for v in op.results) for op in rest):
        return "the loop has ops on tiles besides the reads and the contractions"
    order = list(found)
    return ContractionLoop(
        loop, tuple(contracts), tuple(found.values()), tuple((order.index(a), order.index(b)) for a, b in pairs), sums
    )


def _sums(loop: ir.Operation, body: list[ir.Operation], count: int) -> tuple[ir.Operation, ...] | str:
    """The ops, in program order, that compute what a loop carries behind `count` accumulators, from tiles of operands;
    or why they are something else.
    """
    block = loop.regions[0].blocks[0]
    sums = backward_slice(list(body[-1].operands)[count:], [op for op in body if op.name != "vector.transfer_read"])
    read = {v for op in sums if op.name != OPERAND_TILE for v in op.operands}
    allowed = set(list(block.arguments)[1 + count :])
    if any(v.owner == block and v not in allowed for v in read):
        return "what the loop carries beside the accumulators depends on these, or on the step"
    tiles = [op for op in sums if op.name == OPERAND_TILE]
    if any(defining_op(op.operands[0]) not in body for op in tiles) or (sums and not tiles):
        return "what the loop carries beside the accumulators is no sum of an operand"
    kinds = {op.name.split(".")[0] for op in sums} - {"arith", "math", "vector", "fuse"}
    return "the loop's sums have other ops than arithmetic" if kinds else tuple(op for op in body if op in sums)


def _operands(loop: ir.Operation, contract: ir.Operation, carried: ir.Value) -> list[TileOperand] | str:
    """The operands A and B of a contraction, or why the loop does not have the form that is asked for."""
    if contract.operands[2] != carried:
        return "the accumulators pass through other ops before the contraction"
    maps = [ir.AffineMapAttr(m).value for m in ir.ArrayAttr(contract.attributes["indexing_maps"])]
    loops = [[ir.AffineDimExpr(e).position for e in m.results] for m in maps]
    k = [d for d in loops[0] if d not in loops[2]]
    if len(k) != 1 or loops[2] != list(range(len(loops[2]))):
        return "the contraction sums over more than one dimension, or transposes its result"
    operands = []
    for number in (0, 1):
        read, cast = operand_producer(contract.operands[number]), defining_op(contract.operands[number])
        if read is None or read.name != "vector.transfer_read" or read.parent != loop:
            return "an operand is not read in the loop, or is changed before the contraction"
        operand = _operand(read, None if cast == read else cast, loops[number], k[0])
        if isinstance(operand, str):
            return operand
        operands.append(operand)
    return operands


def _operand(read: ir.Operation, cast: ir.Operation | None, loops: list[int], k: int) -> TileOperand | str:
    shape = list(ir.VectorType(read.results[0].type).shape)
    results = list(ir.AffineMapAttr(read.attributes["permutation_map"]).value.results)[-2:]
    if len(shape) < 2 or any(extent != 1 for extent in shape[:-2]):
        return "an operand's tile has more than two dimensions"
    if not all(isinstance(result, ir.AffineDimExpr) for result in results):
        return "an operand is broadcast along a dimension of its tile"
    padding = defining_op(read.operands[1 + ir.MemRefType(read.operands[0].type).rank])
    if padding is None or padding.name != "arith.constant" or padding.attributes["value"] != zero(_element(read)):
        return "an operand is padded with another number than zero"
    row, column = (ir.AffineDimExpr(result).position for result in results)
    return TileOperand(read, cast, "k" if loops[-1] == k else "mn", (row, column), *shape[-2:])


def _element(read: ir.Operation) -> ir.Type:
    return ir.VectorType(read.results[0].type).element_type
