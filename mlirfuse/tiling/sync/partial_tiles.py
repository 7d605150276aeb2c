"""Partial tiles of several blocks (split-k): their workspace, and the protocols on semaphores that combine them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from mlir import ir
from mlir.dialects import affine, arith, scf, vector

from mlirfuse.analysis.kernels import argument_attributes
from mlirfuse.analysis.memory.workspaces import SCRATCH, SEMAPHORES
from mlirfuse.dialect.attributes import SECOND_STAGE, WORKSPACE, WORKSPACE_EXTENTS, WORKSPACE_OPERANDS
from mlirfuse.schedule.parts.contraction import ContractionSchedule
from mlirfuse.support.rewriting import defining_op
from mlirfuse.tiling.sync.semaphores import arrive_last, grid_barrier, last_block, serial_order
from mlirfuse.tiling.tiles import index, zero

Epilogue = Callable[[Sequence[ir.Value]], None]
"""Emits the ops on the sums of a block's tiles."""

SliceEpilogue = Callable[[int, ir.Value, ir.Value], None]
"""Emits the ops on a slice of rows of the sum of one of a block's tiles, once the sums of the tiles behind it are
known; the arguments are the tile's number, the slice and the index of its first row. The first tile, which is the
largest, comes last, so that no registers of it are live before."""


@dataclass(frozen=True)
class PartialTiles:
    """The workspace for partial tiles.

    Attributes:
        semaphores: memref of one semaphore a tile, and one more for tickets.
        scratch: memref of partial tiles, along the first dimension.
        split: number of partials of a tile.
    """

    semaphores: ir.Value
    scratch: ir.Value
    split: int

    def write(self, tile: ir.Value, row: ir.Value) -> None:
        """Stores a partial tile."""
        vector.TransferWriteOp(None, tile, self.scratch, self._indices(row), self._map(), in_bounds=self._bounds())

    def read(self, row: ir.Value, start: ir.Value | None = None, rows: int | None = None) -> ir.Value:
        """Reads a stored partial tile, or `rows` of its rows from `start` on."""
        memory = ir.MemRefType(self.scratch.type)
        shape = list(memory.shape)[1:]
        indices = self._indices(row)
        if start is not None and rows is not None:
            shape[-2], indices[-2] = rows, start
        tile = ir.VectorType.get(shape, memory.element_type)
        padding = arith.ConstantOp(memory.element_type, zero(memory.element_type)).result
        return vector.TransferReadOp(tile, self.scratch, indices, self._map(), padding, in_bounds=self._bounds()).result

    def _indices(self, row: ir.Value) -> list[ir.Value]:
        rank = ir.MemRefType(self.scratch.type).rank
        return [row, *[arith.ConstantOp(ir.IndexType.get(), 0).result] * (rank - 1)]

    def _map(self) -> ir.AffineMapAttr:
        rank = ir.MemRefType(self.scratch.type).rank
        return ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, [ir.AffineExpr.get_dim(d) for d in range(1, rank)]))

    def _bounds(self) -> ir.ArrayAttr:
        return ir.ArrayAttr.get([ir.BoolAttr.get(True)] * (ir.MemRefType(self.scratch.type).rank - 1))


def partial_tiles(
    kernel: ir.Operation,
    count: ir.AffineExpr,
    operands: Sequence[ir.Value],
    tiles: Sequence[ir.VectorType],
    schedule: ContractionSchedule,
) -> list[PartialTiles]:
    """Adds the workspace arguments to a tile program: memory for each of a block's tiles, and semaphores for all.

    Args:
        kernel: the tile program.
        count: number of whole tiles, over symbols.
        operands: the symbols' values: `memref.dim`s of arguments.
        tiles: types of a block's tiles.
        schedule: the split, and the protocol that combines the partials.
    """
    rows = 1 if schedule.reduction == "serial" else schedule.split
    scratch = [
        workspace_argument(kernel, SCRATCH, count * rows, operands, list(tile.shape), tile.element_type)
        for tile in tiles
    ]
    i32 = ir.IntegerType.get_signless(32)
    semaphores = workspace_argument(kernel, SEMAPHORES, count + 1, operands, [], i32)
    return [PartialTiles(semaphores, memory, schedule.split) for memory in scratch]


def workspace_argument(
    kernel: ir.Operation,
    kind: str,
    extent: ir.AffineExpr,
    operands: Sequence[ir.Value],
    inner: Sequence[int],
    element: ir.Type,
) -> ir.Value:
    """Adds a workspace argument of shape (extent, *inner) to a tile program; `extent` is over symbols `operands`."""
    arguments = list(kernel.regions[0].blocks[0].arguments)
    pairs: list[int] = []
    for operand in operands:
        dim = operand.owner.operation
        axis = defining_op(dim.operands[1])
        assert axis is not None
        pairs += [arguments.index(dim.operands[0]), ir.IntegerAttr(axis.attributes["value"]).value]
    dynamic = ir.ShapedType.get_dynamic_size()
    (folded,) = ir.AffineMap.get(0, len(operands), [extent]).results
    static = folded.value if isinstance(folded, ir.AffineConstantExpr) else None
    attributes: dict[str, ir.Attribute] = {WORKSPACE: ir.StringAttr.get(kind)}
    if static is None:
        attributes[WORKSPACE_EXTENTS] = ir.AffineMapAttr.get(ir.AffineMap.get(0, len(operands), [extent]))
        attributes[WORKSPACE_OPERANDS] = ir.DenseI64ArrayAttr.get(pairs)
    memref_type = ir.MemRefType.get([dynamic if static is None else static, *inner], element)
    return _add_argument(kernel, memref_type, attributes)


def reduce_in_last_block(
    partials: Sequence[PartialTiles], tile: ir.Value, member: ir.Value, own: Sequence[ir.Value], epilogue: Epilogue
) -> None:
    """Each block stores its partials `own`; the last block to arrive adds all partials up in order."""
    split = partials[0].split
    _write(partials, own, partial_row(tile, member, split))
    last = last_block(partials[0].semaphores, tile, split)
    with ir.InsertionPoint(last.then_block):
        epilogue(_sums(partials, tile))
        scf.YieldOp([])


def reduce_in_last_of_some(
    partials: Sequence[PartialTiles],
    is_shared: ir.Value,
    tile: ir.Value,
    member: ir.Value,
    own: Sequence[ir.Value],
    epilogue: Epilogue,
) -> None:
    """The same of tiles that blocks share; other blocks have the sums of a tile by themselves.

    Args:
        partials: the workspace of the shared tiles.
        is_shared: whether the block's tile is one of them, an i1.
        tile: which of them; of no meaning in other blocks, like `member`.
        member: the number of the block among those of the tile.
        own: what the block has summed up.
        epilogue: is run by blocks that have all of a tile's sums.
    """
    split, types = partials[0].split, [value.type for value in own]
    i1 = ir.IntegerType.get_signless(1)
    found = scf.IfOp(is_shared, [*types, i1], has_else=True)
    with ir.InsertionPoint(found.then_block):
        _write(partials, own, partial_row(tile, member, split))
        is_last = arrive_last(partials[0].semaphores, tile, split)
        last = scf.IfOp(is_last, types, has_else=True)
        with ir.InsertionPoint(last.then_block):
            scf.YieldOp(_sums(partials, tile))
        with ir.InsertionPoint(last.else_block):
            scf.YieldOp(own)
        scf.YieldOp([*last.results, is_last])
    with ir.InsertionPoint(found.else_block):
        scf.YieldOp([*own, arith.ConstantOp(i1, 1).result])
    *sums, is_whole = found.results
    whole = scf.IfOp(is_whole)
    with ir.InsertionPoint(whole.then_block):
        epilogue(sums)
        scf.YieldOp([])


def _sums(partials: Sequence[PartialTiles], tile: ir.Value) -> list[ir.Value]:
    """The sums of all partials of a block's tiles, in order."""
    split = partials[0].split
    loop = scf.ForOp(index(1), index(split), index(1), _read(partials, partial_row(tile, index(0), split)))
    with ir.InsertionPoint(loop.body):
        others = _read(partials, partial_row(tile, loop.induction_variable, split))
        scf.YieldOp(add_each(loop.inner_iter_args, others))
    return list(loop.results)


def reduce_serially(
    partials: Sequence[PartialTiles], tile: ir.Value, member: ir.Value, own: Sequence[ir.Value], epilogue: Epilogue
) -> None:
    """Serial (ordered) reduction: the first block stores its partials, each next block adds its own to the sums so far.

    The last block runs the epilogue on the sums.
    """
    split = partials[0].split
    with serial_order(partials[0].semaphores, tile, member, split):
        first = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.eq, member, index(0)).result)
        with ir.InsertionPoint(first.then_block):
            _write(partials, own, tile)
            scf.YieldOp([])
        if split > 2:
            behind = arith.CmpIOp(arith.CmpIPredicate.ugt, member, index(0)).result
            before = arith.CmpIOp(arith.CmpIPredicate.ult, member, index(split - 1)).result
            middle = scf.IfOp(arith.AndIOp(behind, before).result)
            with ir.InsertionPoint(middle.then_block):
                _write(partials, add_each(_read(partials, tile), own), tile)
                scf.YieldOp([])
    last = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.eq, member, index(split - 1)).result)
    with ir.InsertionPoint(last.then_block):
        epilogue(add_each(_read(partials, tile), own))
        scf.YieldOp([])


def reduce_slices(
    partials: Sequence[PartialTiles],
    tile: ir.Value,
    member: ir.Value,
    own: Sequence[ir.Value],
    rows: int,
    epilogue: SliceEpilogue,
) -> None:
    """Each block stores its partials `own`; after all have arrived, blocks add up slices of rows of all partials, in
    order.
    """
    split, whole = partials[0].split, ir.VectorType(own[0].type).shape[-2]
    _write(partials, own, partial_row(tile, member, split))
    with grid_barrier(partials[0].semaphores, tile, split):
        pass  # the scratch is not written again in this launch, so blocks may leave the barrier before they read
    branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, member, index(whole // rows)).result)
    branch.operation.attributes[SECOND_STAGE] = ir.UnitAttr.get()
    with ir.InsertionPoint(branch.then_block):
        start = arith.MulIOp(member, index(rows)).result
        for number, memory in reversed(list(enumerate(partials))):
            # All reads are emitted before the first sum, so that they are in flight together.
            slices = [memory.read(partial_row(tile, index(each), split), start, rows) for each in range(split)]
            epilogue(number, reduce(add_tiles, slices), start)
        scf.YieldOp([])


def _write(partials: Sequence[PartialTiles], tiles: Sequence[ir.Value], row: ir.Value) -> None:
    for memory, tile in zip(partials, tiles, strict=True):
        memory.write(tile, row)


def _read(partials: Sequence[PartialTiles], row: ir.Value) -> list[ir.Value]:
    return [memory.read(row) for memory in partials]


def _add_argument(kernel: ir.Operation, memref_type: ir.Type, attributes: dict[str, ir.Attribute]) -> ir.Value:
    known = [ir.DictAttr.get(a) for a in argument_attributes(kernel)]
    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([*known, ir.DictAttr.get(attributes)])
    old = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value)
    new = ir.FunctionType.get([*old.inputs, memref_type], old.results)
    kernel.attributes["function_type"] = ir.TypeAttr.get(new)
    return kernel.regions[0].blocks[0].add_argument(memref_type, kernel.location)


def partial_row(tile: ir.Value, member: ir.Value, split: int) -> ir.Value:
    """The row of the scratch for a tile's partial of number `member`."""
    row = ir.AffineExpr.get_dim(0) * split + ir.AffineExpr.get_dim(1)
    return affine.AffineApplyOp(ir.AffineMap.get(2, 0, [row]), [tile, member]).result


def add_tiles(a: ir.Value, b: ir.Value) -> ir.Value:
    """The sum of two tiles."""
    integer = isinstance(ir.VectorType(a.type).element_type, ir.IntegerType)
    return (arith.AddIOp if integer else arith.AddFOp)(a, b).result


def add_each(first: Sequence[ir.Value], second: Sequence[ir.Value]) -> list[ir.Value]:
    """The sums of tiles, one by one."""
    return [add_tiles(a, b) for a, b in zip(first, second, strict=True)]
