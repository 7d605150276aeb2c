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
from mlirfuse.tiling.sync.semaphores import grid_barrier, last_block, serial_order
from mlirfuse.tiling.tiles import index, zero

Epilogue = Callable[[ir.Value], None]
"""Emits the ops on a tile's sum."""

SliceEpilogue = Callable[[ir.Value, ir.Value], None]
"""Emits the ops on a slice of the sum's rows; the arguments are the slice and the index of its first row."""


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
    tile: ir.VectorType,
    schedule: ContractionSchedule,
) -> PartialTiles:
    """Adds the workspace arguments to a tile program.

    Args:
        kernel: the tile program.
        count: number of whole tiles, over symbols.
        operands: the symbols' values: `memref.dim`s of arguments.
        tile: type of a tile.
        schedule: the split, and the protocol that combines the partials.
    """
    rows = 1 if schedule.reduction == "serial" else schedule.split
    scratch = workspace_argument(kernel, SCRATCH, count * rows, operands, list(tile.shape), tile.element_type)
    i32 = ir.IntegerType.get_signless(32)
    semaphores = workspace_argument(kernel, SEMAPHORES, count + 1, operands, [], i32)
    return PartialTiles(semaphores, scratch, schedule.split)


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
    partials: PartialTiles, tile: ir.Value, member: ir.Value, partial: ir.Value, epilogue: Epilogue
) -> None:
    """Each block stores its partial; the last block to arrive adds all partials up in order."""
    partials.write(partial, partial_row(tile, member, partials.split))
    last = last_block(partials.semaphores, tile, partials.split)
    with ir.InsertionPoint(last.then_block):
        first = partials.read(partial_row(tile, index(0), partials.split))
        loop = scf.ForOp(index(1), index(partials.split), index(1), [first])
        with ir.InsertionPoint(loop.body):
            other = partials.read(partial_row(tile, loop.induction_variable, partials.split))
            scf.YieldOp([add_tiles(loop.inner_iter_args[0], other)])
        epilogue(loop.results[0])
        scf.YieldOp([])


def reduce_serially(
    partials: PartialTiles, tile: ir.Value, member: ir.Value, partial: ir.Value, epilogue: Epilogue
) -> None:
    """Serial (ordered) reduction: the first block stores its partial, each next block adds its own to the sum so far.

    The last block runs the epilogue on the sum.
    """
    with serial_order(partials.semaphores, tile, member, partials.split):
        first = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.eq, member, index(0)).result)
        with ir.InsertionPoint(first.then_block):
            partials.write(partial, tile)
            scf.YieldOp([])
        if partials.split > 2:
            behind = arith.CmpIOp(arith.CmpIPredicate.ugt, member, index(0)).result
            before = arith.CmpIOp(arith.CmpIPredicate.ult, member, index(partials.split - 1)).result
            middle = scf.IfOp(arith.AndIOp(behind, before).result)
            with ir.InsertionPoint(middle.then_block):
                partials.write(add_tiles(partials.read(tile), partial), tile)
                scf.YieldOp([])
    last = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.eq, member, index(partials.split - 1)).result)
    with ir.InsertionPoint(last.then_block):
        epilogue(add_tiles(partials.read(tile), partial))
        scf.YieldOp([])


def reduce_slices(
    partials: PartialTiles, tile: ir.Value, member: ir.Value, partial: ir.Value, rows: int, epilogue: SliceEpilogue
) -> None:
    """Each block stores its partial; after all have arrived, blocks add up slices of rows of all partials, in order."""
    whole = ir.VectorType(partial.type).shape[-2]
    partials.write(partial, partial_row(tile, member, partials.split))
    with grid_barrier(partials.semaphores, tile, partials.split):
        pass  # the scratch is not written again in this launch, so blocks may leave the barrier before they read
    branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, member, index(whole // rows)).result)
    branch.operation.attributes[SECOND_STAGE] = ir.UnitAttr.get()
    with ir.InsertionPoint(branch.then_block):
        start = arith.MulIOp(member, index(rows)).result
        # All reads are emitted before the first sum, so that they are in flight together.
        slices = [
            partials.read(partial_row(tile, index(each), partials.split), start, rows) for each in range(partials.split)
        ]
        epilogue(reduce(add_tiles, slices), start)
        scf.YieldOp([])


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
