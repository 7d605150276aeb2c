"""The frame of a tile program: the kernel's buffers, the grid over tiles, and the block's place in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine, arith, func, memref, scf

from mlirfuse.analysis.iteration_space import IterationSpace
from mlirfuse.analysis.kernels import KERNEL, LAUNCH, RESULT_EXTENTS, argument_attributes, body, symbol
from mlirfuse.errors import PassError
from mlirfuse.passes.rewriting import clone
from mlirfuse.schedule.schedule import ATTRIBUTE as SCHEDULE


@dataclass
class TileProgram:
    """A tile program that is being built beside the tensor kernel it comes from.

    Attributes:
        kernel: the tensor kernel.
        function: the tile program's function.
        forall: its loop over blocks.
        offsets: index of the block's tile in each dimension, inside the loop.
        ragged: dimensions whose extent is not a multiple of the tile's.
        buffers: memref of each tensor argument of the tensor kernel.
        scalars: the new value of each scalar argument and constant of the tensor kernel.
        results: (value returned by the tensor kernel, memref to write it to).
    """

    kernel: ir.Operation
    function: func.FuncOp
    forall: scf.ForallOp
    offsets: Sequence[ir.Value]
    ragged: frozenset[int]
    buffers: dict[ir.Value, ir.Value]
    scalars: dict[ir.Value, ir.Value]
    results: Sequence[tuple[ir.Value, ir.Value]]

    @contextmanager
    def block_body(self) -> Iterator[None]:
        """Insertion point at the end of the loop's body."""
        with ir.InsertionPoint.at_block_terminator(self.forall.body), self.kernel.location:
            yield

    def close(self) -> None:
        """Replaces the tensor kernel by a declaration that names the tile program."""
        name = symbol(self.kernel)
        with ir.InsertionPoint(self.kernel), self.kernel.location:
            kernel_type = ir.TypeAttr(self.kernel.attributes["function_type"]).value
            declaration = func.FuncOp(name, kernel_type, visibility="private")
            declaration.attributes[LAUNCH] = ir.FlatSymbolRefAttr.get(symbol(self.function.operation))
            declaration.attributes[RESULT_EXTENTS] = self.kernel.attributes[RESULT_EXTENTS]
        self.kernel.erase()


def open_tile_program(kernel: ir.Operation, space: IterationSpace, tile: Sequence[int]) -> TileProgram:
    """Starts the tile program of a tensor kernel, with one block a tile of the parallel dimensions."""
    arguments = list(kernel.regions[0].blocks[0].arguments)
    argument_attrs = argument_attributes(kernel)
    returned = list(body(kernel)[-1].operands)
    types = [_buffer_type(a.type, attrs) for a, attrs in zip(arguments, argument_attrs, strict=True)]
    types += [_buffer_type(v.type, {}) for v in returned]
    with ir.InsertionPoint(kernel), kernel.location:
        function = func.FuncOp(f"{symbol(kernel)}_kernel", ir.FunctionType.get(types, []), visibility="private")
    function.attributes[KERNEL] = ir.UnitAttr.get()
    function.attributes[SCHEDULE] = kernel.attributes[SCHEDULE]
    dictionaries = [ir.DictAttr.get(a) for a in [*argument_attrs, *({} for _ in returned)]]
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(dictionaries)

    block = function.add_entry_block()
    inputs = dict(zip(arguments, block.arguments, strict=False))
    buffers = {old: new for old, new in inputs.items() if isinstance(new.type, ir.MemRefType)}
    scalars = {old: new for old, new in inputs.items() if not isinstance(new.type, ir.MemRefType)}
    with ir.InsertionPoint(block), kernel.location:
        for op in body(kernel):
            if op.name == "arith.constant":
                clone(op, scalars)
        counts = _tile_counts(space, tile, buffers)
        forall = _forall(counts)
        func.ReturnOp([])
        with ir.InsertionPoint.at_block_terminator(forall.body):
            offsets = _offsets(forall.body.arguments[0], counts, tile)
    ragged = (
        frozenset(
            d
            for d, (extent, size) in enumerate(zip(space.extents, tile, strict=True))
            if size > 1 and (extent is None or extent % size)
        )
        - space.reduced_dims
    )
    results = list(zip(returned, list(block.arguments)[len(arguments) :], strict=True))
    return TileProgram(kernel, function, forall, offsets, ragged, buffers, scalars, results)


def _buffer_type(value_type: ir.Type, attributes: dict[str, ir.Attribute]) -> ir.Type:
    """The memref of a tensor argument, strided where `fuse.strides` says so; scalars stay what they are."""
    if not isinstance(value_type, ir.RankedTensorType):
        return value_type
    if "fuse.strides" not in attributes:
        return ir.MemRefType.get(value_type.shape, value_type.element_type)
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    strides = [dynamic if s < 0 else s for s in ir.DenseI64ArrayAttr(attributes["fuse.strides"])]
    return ir.MemRefType.get(value_type.shape, value_type.element_type, ir.StridedLayoutAttr.get(0, strides))


def _tile_counts(
    space: IterationSpace, tile: Sequence[int], buffers: dict[ir.Value, ir.Value]
) -> list[int | tuple[ir.Value, int]]:
    """For each dimension its number of tiles; a (extent, tile size) pair where it is known at run time only."""
    counts: list[int | tuple[ir.Value, int]] = []
    for d, (extent, size) in enumerate(zip(space.extents, tile, strict=True)):
        if d in space.reduced_dims:
            counts.append(1)
        elif extent is not None:
            counts.append(-(-extent // size))
        else:
            counts.append((_dynamic_extent(space, d, buffers), size))
    return counts


def _dynamic_extent(space: IterationSpace, dim: int, buffers: dict[ir.Value, ir.Value]) -> ir.Value:
    for (op, number), axes in space.use_axes.items():
        if dim in axes and op.operands[number] in buffers:
            index = arith.ConstantOp(ir.IndexType.get(), axes.index(dim)).result
            return memref.DimOp(buffers[op.operands[number]], index).result
    raise PassError(f"no argument has the dynamic extent of dimension {dim}", hint="make the extent static")


def _count_expr(counts: Sequence[int | tuple[ir.Value, int]]) -> tuple[ir.AffineExpr, list[ir.Value]]:
    """The product of tile counts over symbols, and the symbols' values."""
    expr: ir.AffineExpr = ir.AffineExpr.get_constant(1)
    symbols: list[ir.Value] = []
    for count in counts:
        if isinstance(count, int):
            expr = expr * count
        else:
            extent, size = count
            term = ir.AffineExpr.get_ceil_div(ir.AffineExpr.get_symbol(len(symbols)), ir.AffineExpr.get_constant(size))
            expr = expr * term
            symbols.append(extent)
    return expr, symbols


def _forall(counts: Sequence[int | tuple[ir.Value, int]]) -> scf.ForallOp:
    expr, symbols = _count_expr(counts)
    blocks = affine.AffineApplyOp(ir.AffineMap.get(0, len(symbols), [expr]), symbols).result
    mapping = ir.ArrayAttr.parse("[#gpu.block<x>]")
    forall = scf.ForallOp([0], [blocks], [1], mapping=mapping)
    with ir.InsertionPoint(forall.body):
        scf.InParallelOp()
    return forall


def _offsets(block: ir.Value, counts: Sequence[int | tuple[ir.Value, int]], tile: Sequence[int]) -> list[ir.Value]:
    """The tile's first index in each dimension; the last dimension varies fastest over blocks."""
    moving = [d for d, count in enumerate(counts) if count != 1]
    offsets: dict[int, ir.Value] = {}
    rest = block
    for d in reversed(moving):
        position = rest
        if d != moving[0]:
            expr, symbols = _count_expr([counts[d]])
            count = affine.AffineApplyOp(ir.AffineMap.get(0, len(symbols), [expr]), symbols).result
            position = arith.RemUIOp(rest, count).result
            rest = arith.DivUIOp(rest, count).result
        scaled = ir.AffineExpr.get_dim(0) * tile[d]
        offsets[d] = affine.AffineApplyOp(ir.AffineMap.get(1, 0, [scaled]), [position]).result
    start = arith.ConstantOp(ir.IndexType.get(), 0).result
    return [offsets.get(d, start) for d in range(len(tile))]
