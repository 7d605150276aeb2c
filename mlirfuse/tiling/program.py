"""The frame of a tile program: the kernel's buffers, the loop over blocks, and the offsets of a block's tile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine, arith, func, memref, scf

from mlirfuse.analysis.kernels import argument_attributes, body, result_sources, symbol
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.dialect.attributes import EQUAL_EXTENTS, GATHER, KERNEL, LAUNCH, RESULT_EXTENTS, SCHEDULE, STRIDES
from mlirfuse.dialect.gathered_view import gather_of, gathered_view
from mlirfuse.dialect.scatter import scatter_of, sources_of
from mlirfuse.dialect.scattered import scattered
from mlirfuse.errors import PassError
from mlirfuse.support.rewriting import clone, erase
from mlirfuse.support.strides import entries_of, is_known


@dataclass
class KernelFrame:
    """The function of a tile program under construction, inserted next to its tensor kernel.

    Attributes:
        kernel: the tensor kernel.
        function: the tile program's function.
        buffers: memref of each tensor argument of the tensor kernel.
        scalars: the new value of each scalar argument and constant of the tensor kernel.
        results: (value that is stored to a result of the tensor kernel, memref that it is stored to) pairs.
        workspace: the workspace arguments, after the results.
        inputs: further arguments, between those of the tensor kernel and the results.
    """

    kernel: ir.Operation
    function: func.FuncOp
    buffers: dict[ir.Value, ir.Value]
    scalars: dict[ir.Value, ir.Value]
    results: Sequence[tuple[ir.Value, ir.Value]]
    workspace: Sequence[ir.Value]
    inputs: Sequence[ir.Value]

    @contextmanager
    def body(self) -> Iterator[None]:
        """Insertion point before the function's return."""
        with ir.InsertionPoint.at_block_terminator(self.function.entry_block), self.kernel.location:
            yield

    def close(self) -> None:
        """Replaces the tensor kernel by a declaration that names the tile program."""
        kernel_type = ir.TypeAttr(self.kernel.attributes["function_type"]).value
        sources = [number for pair in result_sources(self.kernel) for number in pair]
        self.declare(symbol(self.kernel), kernel_type, ir.DenseI64ArrayAttr.get(sources))
        erase(self.kernel)

    def declare(self, name: str, kernel_type: ir.Type, extents: ir.Attribute) -> None:
        """Declares the tensor function that the host calls to launch the tile program.

        `extents` is the declaration's `fuse.result_extents`: (argument, axis) pairs of the results' dynamic extents.
        """
        with ir.InsertionPoint(self.kernel), self.kernel.location:
            declaration = func.FuncOp(name, kernel_type, visibility="private")
            declaration.attributes[LAUNCH] = ir.FlatSymbolRefAttr.get(symbol(self.function.operation))
            declaration.attributes[RESULT_EXTENTS] = extents


@dataclass
class TileProgram(KernelFrame):
    """A tile program with one block a tile.

    Attributes:
        forall: its loop over blocks.
        offsets: index of the block's tile in each dimension, inside the loop.
        ragged: dimensions whose extent is not a multiple of the tile's.
    """

    forall: scf.ForallOp
    offsets: Sequence[ir.Value]
    ragged: frozenset[int]

    @contextmanager
    def block_body(self) -> Iterator[None]:
        """Insertion point at the end of the loop's body."""
        with ir.InsertionPoint.at_block_terminator(self.forall.body), self.kernel.location:
            yield


WorkspaceArgument = tuple[ir.Type, dict[str, ir.Attribute]]
"""Type and attributes of an argument that the tensor kernel does not have."""


def open_kernel(
    kernel: ir.Operation,
    workspace: Sequence[WorkspaceArgument] = (),
    *,
    inputs: Sequence[WorkspaceArgument] = (),
    returned: Sequence[ir.Value] | None = None,
    suffix: str = "_kernel",
) -> KernelFrame:
    """Starts a tile program of a tensor kernel: its function, with memrefs for tensors, and its constants.

    Args:
        kernel: the tensor kernel.
        workspace: type and attributes of each argument after the results.
        inputs: type and attributes of each further argument before the results; they become the frame's `inputs`.
        returned: the kernel's results that the tile program writes; None for all.
        suffix: suffix of the function's name.
    """
    arguments = list(kernel.regions[0].blocks[0].arguments)
    argument_attrs = argument_attributes(kernel)
    returned = list(body(kernel)[-1].operands) if returned is None else list(returned)
    types = [_buffer_type(a.type, attrs) for a, attrs in zip(arguments, argument_attrs, strict=True)]
    types += [memref_type for memref_type, _ in inputs]
    types += [_buffer_type(v.type, {}) for v in returned]
    types += [memref_type for memref_type, _ in workspace]
    with ir.InsertionPoint(kernel), kernel.location:
        function = func.FuncOp(f"{symbol(kernel)}{suffix}", ir.FunctionType.get(types, []), visibility="private")
    function.attributes[KERNEL] = ir.UnitAttr.get()
    function.attributes[SCHEDULE] = kernel.attributes[SCHEDULE]
    attributes = [*map(_buffer_attributes, argument_attrs), *(known for _, known in inputs), *({} for _ in returned)]
    attributes += [known for _, known in workspace]
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in attributes])

    block = function.add_entry_block()
    own = dict(zip(arguments, block.arguments, strict=False))
    buffers = {old: new for old, new in own.items() if isinstance(new.type, ir.MemRefType)}
    scalars = {old: new for old, new in own.items() if not isinstance(new.type, ir.MemRefType)}
    with ir.InsertionPoint(block), kernel.location:
        for old, known in zip(arguments, argument_attrs, strict=True):
            if GATHER in known:
                view = ir.MemRefType.get(old.type.shape, old.type.element_type, _layout(known[STRIDES]))
                buffers[old] = gathered_view(buffers[old], gather_of(ir.DictAttr(known[GATHER])), view)
        for op in body(kernel):
            if op.name == "arith.constant":
                clone(op, scalars)
            elif op.name == "tensor.dim" and _is_captured(op, kernel):
                source, axis = op.operands
                scalars[op.results[0]] = memref.DimOp(buffers[source], scalars[axis]).result
        func.ReturnOp([])
    new = list(block.arguments)
    outputs = len(arguments) + len(inputs)
    extra = outputs + len(returned)
    with ir.InsertionPoint.at_block_terminator(block), kernel.location:
        pairs = zip(returned, new[outputs:extra], strict=True)
        results = [stored for value, buffer in pairs for stored in _stored(value, buffer)]
    return KernelFrame(kernel, function, buffers, scalars, results, new[extra:], new[len(arguments) : outputs])


def _stored(value: ir.Value, buffer: ir.Value) -> list[tuple[ir.Value, ir.Value]]:
    """The values whose tiles a kernel stores for a result, and the result's buffer, or the view that each goes to."""
    op = scatter_of(value)
    if op is None:
        return [(value, buffer)]
    return [(source, scattered(buffer, positions)) for source, positions in sources_of(op)]


def _is_captured(op: ir.Operation, kernel: ir.Operation) -> bool:
    """Whether an op's result is captured by the body of another op."""
    return any(use.owner.operation.parent.operation != kernel for use in op.results[0].uses)


def open_tile_program(
    kernel: ir.Operation,
    space: IterationSpace,
    tile: Sequence[int],
    raster: int = 1,
    cluster: int = 1,
    *,
    mirrored: bool = False,
    grid_order: Sequence[int] = (),
) -> TileProgram:
    """Starts the tile program of a tensor kernel, with one block a tile of the parallel dimensions.

    With `raster` above 1, blocks traverse groups of `raster` rows of tiles column by column; the blocks of a `cluster`
    stay adjacent in a row. With `mirrored`, the tiles (i, j) and (j, i) are adjacent (see `beside_mirrored`). Blocks
    follow one another along the last dimension first, or the last one of `grid_order`.
    """
    frame = open_kernel(kernel)
    mark_equal_extents(frame, space)
    with frame.body():
        counts = tile_counts(space, tile, frame.buffers, frozenset(range(space.rank)) - space.reduced_dims)
        loop = forall_blocks(counts)
        with ir.InsertionPoint.at_block_terminator(loop.body):
            block = loop.body.arguments[0]
            number = beside_mirrored(block, counts) if mirrored else rastered(block, counts, raster, cluster)
            offsets = tile_offsets(number, counts, tile, grid_order)
    ragged = ragged_dims(space, tile) - space.reduced_dims
    return TileProgram(**vars(frame), forall=loop, offsets=offsets, ragged=ragged)


def mark_equal_extents(frame: KernelFrame, space: IterationSpace) -> None:
    """Sets `fuse.equal_extents`: the axes of a tile program's arguments that run along a dimension of any extent."""
    numbers = {argument: number for number, argument in enumerate(frame.function.arguments)}
    placed = [(op.operands[number], axes) for (op, number), axes in space.use_axes.items()]
    buffers = [(frame.buffers[value], axes) for value, axes in placed if value in frame.buffers]
    buffers += [(buffer, space.value_axes[value]) for value, buffer in frame.results if value in space.value_axes]
    groups: dict[int, set[tuple[int, int]]] = {}
    for buffer, axes in buffers:
        if buffer not in numbers:  # a gathered view
            continue
        for axis, (dim, extent) in enumerate(zip(axes, ir.MemRefType(buffer.type).shape, strict=True)):
            if dim is not None and extent == ir.ShapedType.get_dynamic_size():
                groups.setdefault(dim, set()).add((numbers[buffer], axis))
    flat = [[n for pair in sorted(groups[dim]) for n in pair] for dim in sorted(groups) if len(groups[dim]) > 1]
    if flat:
        frame.function.attributes[EQUAL_EXTENTS] = ir.ArrayAttr.get([ir.DenseI64ArrayAttr.get(each) for each in flat])


def ragged_dims(space: IterationSpace, tile: Sequence[int]) -> frozenset[int]:
    """Dimensions whose extent is dynamic or no multiple of the tile's, so that the last tile may be partial."""
    sizes = enumerate(zip(space.extents, tile, strict=True))
    return frozenset(d for d, (extent, size) in sizes if size > 1 and (extent is None or extent % size))


def _buffer_type(value_type: ir.Type, attributes: dict[str, ir.Attribute]) -> ir.Type:
    """The memref type of a tensor argument, with the strides of `fuse.strides`; a scalar's type is unchanged.

    A gathered view's is that of its source.
    """
    if not isinstance(value_type, ir.RankedTensorType):
        return value_type
    if GATHER in attributes:
        gather = ir.DictAttr(attributes[GATHER])
        return _buffer_type(ir.TypeAttr(gather["source"]).value, _buffer_attributes(attributes))
    if STRIDES not in attributes:
        return ir.MemRefType.get(value_type.shape, value_type.element_type)
    return ir.MemRefType.get(value_type.shape, value_type.element_type, _layout(attributes[STRIDES]))


def _layout(entries: ir.Attribute) -> ir.StridedLayoutAttr:
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    return ir.StridedLayoutAttr.get(0, [s if is_known(s) else dynamic for s in entries_of(entries)])


def _buffer_attributes(attributes: dict[str, ir.Attribute]) -> dict[str, ir.Attribute]:
    """The attributes of a tile program's argument: a gathered view's are those of its source."""
    if GATHER not in attributes:
        return attributes
    known = {name: value for name, value in attributes.items() if name not in (GATHER, STRIDES)}
    gather = ir.DictAttr(attributes[GATHER])
    return known | ({STRIDES: gather["strides"]} if "strides" in gather else {})


Count = int | tuple[ir.Value, int]
"""A number of tiles: an int, or an (extent, tile size) pair if the extent is dynamic."""


def tile_counts(
    space: IterationSpace, tile: Sequence[int], buffers: dict[ir.Value, ir.Value], dims: frozenset[int]
) -> list[Count]:
    """The number of tiles in each dimension; 1 for dimensions not in `dims`."""
    counts: list[Count] = []
    for d, (extent, size) in enumerate(zip(space.extents, tile, strict=True)):
        if d not in dims:
            counts.append(1)
        elif extent is not None:
            counts.append(-(-extent // size))
        else:
            counts.append((dynamic_extent(space, d, buffers), size))
    return counts


def dynamic_extent(space: IterationSpace, dim: int, buffers: dict[ir.Value, ir.Value]) -> ir.Value:
    """The extent of a dimension as an index; raises `PassError` if no argument has this dimension."""
    for (op, number), axes in space.use_axes.items():
        if dim in axes and op.operands[number] in buffers:
            index = arith.ConstantOp(ir.IndexType.get(), axes.index(dim)).result
            return memref.DimOp(buffers[op.operands[number]], index).result
    raise PassError(
        f"no argument has the dynamic extent of dimension {dim}",
        where=ir.Location.current,
        hint="make the extent static",
    )


def count_expr(counts: Sequence[Count]) -> tuple[ir.AffineExpr, list[ir.Value]]:
    """The product of tile counts as an affine expression over symbols, and the symbols' values."""
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


def forall_blocks(counts: Sequence[Count]) -> scf.ForallOp:
    """A loop over blocks, with one block for each tile."""
    expr, symbols = count_expr(counts)
    return forall(affine.AffineApplyOp(ir.AffineMap.get(0, len(symbols), [expr]), symbols).result)


def forall(bound: ir.Value | int) -> scf.ForallOp:
    """An empty loop over `bound` blocks."""
    loop = scf.ForallOp([0], [bound], [1], mapping=ir.ArrayAttr.parse("[#gpu.block<x>]"))
    with ir.InsertionPoint(loop.body):
        scf.InParallelOp()
    return loop


def rastered(number: ir.Value, counts: Sequence[Count], raster: int, cluster: int = 1) -> ir.Value:
    """The tile of block `number` in a grouped raster: groups of `raster` rows of tiles, each traversed by columns.

    Rows of tiles run along the last dimension and are numbered along the dimension before it; the last group may have
    fewer rows. A column is `cluster` tiles wide if that is known to divide a row of tiles.
    """
    if raster == 1 or len(counts) < 2:
        return number
    *outer, last = counts
    if cluster > 1 and isinstance(last, int) and last % cluster == 0:
        together = arith.ConstantOp(ir.IndexType.get(), cluster).result
        column = rastered(arith.DivUIOp(number, together).result, [*outer, last // cluster], raster)
        rank = arith.RemUIOp(number, together).result
        return arith.AddIOp(arith.MulIOp(column, together).result, rank).result
    rows, columns = (_count(count) for count in counts[-2:])
    height = arith.ConstantOp(ir.IndexType.get(), raster).result
    matrix, group = arith.MulIOp(rows, columns).result, arith.MulIOp(height, columns).result
    place = arith.RemUIOp(number, matrix).result
    first = arith.MulIOp(arith.DivUIOp(place, group).result, height).result
    own = arith.MinUIOp(height, arith.SubIOp(rows, first).result).result
    within = arith.RemUIOp(place, group).result
    row = arith.AddIOp(first, arith.RemUIOp(within, own).result).result
    column = arith.DivUIOp(within, own).result
    tile = arith.AddIOp(arith.MulIOp(row, columns).result, column).result
    return arith.AddIOp(arith.SubIOp(number, place).result, tile).result


def beside_mirrored(number: ir.Value, counts: Sequence[Count]) -> ir.Value:
    """The tile of block `number` in an order in which tiles (i, j) and (j, i) of a square matrix of tiles are adjacent.

    Tiles are ordered by shells: shell k has the 2k + 1 tiles (k, 0), (0, k), (k, 1), ..., (k, k). Shells k and n-1-k of
    an n by n matrix have 2n tiles together and follow each other, so that a tile's shell is found by a division.
    """
    side = _count(counts[-1])
    one, two = (arith.ConstantOp(ir.IndexType.get(), value).result for value in (1, 2))
    matrix, pair = arith.MulIOp(side, side).result, arith.MulIOp(side, two).result
    place = arith.RemUIOp(number, matrix).result
    small = arith.DivUIOp(place, pair).result
    large = arith.SubIOp(arith.SubIOp(side, one).result, small).result
    within = arith.RemUIOp(place, pair).result
    tiles = arith.AddIOp(arith.MulIOp(large, two).result, one).result
    in_large = arith.CmpIOp(arith.CmpIPredicate.ult, within, tiles).result
    shell = arith.SelectOp(in_large, large, small).result
    within = arith.SelectOp(in_large, within, arith.SubIOp(within, tiles).result).result
    other = arith.DivUIOp(within, two).result
    is_first = arith.CmpIOp(
        arith.CmpIPredicate.eq, arith.RemUIOp(within, two).result, arith.ConstantOp(ir.IndexType.get(), 0).result
    ).result
    row, column = (arith.SelectOp(is_first, *each).result for each in ((shell, other), (other, shell)))
    tile = arith.AddIOp(arith.MulIOp(row, side).result, column).result
    return arith.AddIOp(arith.SubIOp(number, place).result, tile).result


def _count(count: Count) -> ir.Value:
    """A number of tiles as an index."""
    expr, symbols = count_expr([count])
    return affine.AffineApplyOp(ir.AffineMap.get(0, len(symbols), [expr]), symbols).result


def tile_offsets(
    block: ir.Value, counts: Sequence[Count], tile: Sequence[int], order: Sequence[int] = ()
) -> list[ir.Value]:
    """The first index of a block's tile in each dimension; the last dimension, or the last of `order`, varies fastest
    over blocks.
    """
    moving = [d for d in order or range(len(counts)) if counts[d] != 1]
    offsets: dict[int, ir.Value] = {}
    rest = block
    for d in reversed(moving):
        position = rest
        if d != moving[0]:
            count = _count(counts[d])
            position = arith.RemUIOp(rest, count).result
            rest = arith.DivUIOp(rest, count).result
        scaled = ir.AffineExpr.get_dim(0) * tile[d]
        offsets[d] = affine.AffineApplyOp(ir.AffineMap.get(1, 0, [scaled]), [position]).result
    start = arith.ConstantOp(ir.IndexType.get(), 0).result
    return [offsets.get(d, start) for d in range(len(tile))]
