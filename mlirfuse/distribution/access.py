"""One thread's accesses to a buffer: their width, and the loads and stores of one fragment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd

from mlir import ir
from mlir.dialects import memref, scf, vector

from mlirfuse.dialect.attributes import ALIGN, STREAMING
from mlirfuse.distribution.distributor import Distributor
from mlirfuse.distribution.threads.fragments import Fragments, elements, fragment_type
from mlirfuse.distribution.threads.ordered_accesses import keep_in_order
from mlirfuse.distribution.threads.scalars import add, constant, less, minimum
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.target import SECTOR
from mlirfuse.tiling.memory import access_elements, permuted, strides


@dataclass(frozen=True)
class Access:
    """A transfer op's buffer, offsets and access widths, in terms of the layout.

    Attributes:
        buffer: the new memref; a view whose last axis is `vector_axis` where accesses are wider than one element.
        offsets: the tile's first index along each axis of the memref.
        dims: the layout dimension that runs along each axis; None for an axis along which the tile has one index.
        clipped: axes along which the tile may extend past the end of the buffer.
        width: elements of one load or store.
        vector_axis: the axis along which a fragment's elements are contiguous; None if a fragment has one element.
        streaming: whether the kernel accesses the data once only.
        resumes: whether accesses of a block, one after the other, share a sector.
        straddles: whether a fragment may be partly outside the buffer; a single access of `width` elements never is.
        wide: elements of one access to a fragment that is entirely inside the buffer; at least `width`.
        in_order: whether loads keep their place in program order.
    """

    buffer: ir.Value
    offsets: Sequence[ir.Value]
    dims: Sequence[int | None]
    clipped: frozenset[int]
    width: int
    vector_axis: int | None
    streaming: bool
    resumes: bool
    straddles: bool
    wide: int
    in_order: bool = False

    @property
    def whole(self) -> Access:
        """The access, for fragments that are entirely inside the buffer."""
        return replace(self, width=self.wide, straddles=False)

    @property
    def once(self) -> bool:
        """Whether a load may bypass the L1: no later load reads another part of the same sector."""
        return self.streaming and not self.resumes

    @property
    def bytes(self) -> int:
        """Bytes of one load or store."""
        return self.width * from_mlir(self.type.element_type).bytes

    @property
    def type(self) -> ir.MemRefType:
        return ir.MemRefType(self.buffer.type)

    def extent(self, axis: int) -> ir.Value:
        """The memref's extent along an axis."""
        size = self.type.shape[axis]
        if size == ir.ShapedType.get_dynamic_size():
            return memref.DimOp(self.buffer, constant(axis)).result
        return constant(size)


def access_of(
    d: Distributor,
    op: ir.Operation,
    buffer: ir.Value,
    offsets: Sequence[ir.Value],
    layout_dims: Sequence[int | None],
    tile: Fragments,
) -> Access:
    """Builds the `Access` of a transfer op from the op's map and bounds.

    `layout_dims` gives the layout dimension of each dimension of the op's vector.
    """
    new_buffer = d.scalars[buffer]
    dims, clipped = placed(op, len(offsets), layout_dims, tile)
    axis = dims.index(d.layout.vector_dim) if d.layout.vector_dim in dims else None
    declared = d.argument_attributes.get(new_buffer, {}).get(ALIGN)
    wide = access_elements(
        ir.MemRefType(new_buffer.type), axis, ir.IntegerAttr(declared).value if declared else None, tile.width
    )
    common = _common_width(tile.width, new_buffer, axis) if axis is not None and axis in clipped else tile.width
    width, straddles = min(wide, common), common < tile.width
    if axis is None or not ir.MemRefType(new_buffer.type).is_dynamic_dim(axis):
        wide = width  # at most a few elements of a static extent are left over: not worth a branch
    streaming = STREAMING in op.attributes
    starts = [d.scalars[o] for o in offsets]
    resumes = _resumes(d.layout, dims, ir.MemRefType(new_buffer.type))
    access = Access(new_buffer, starts, dims, clipped, width, axis, streaming, resumes, straddles, wide)
    return access if axis is None or wide == 1 else with_axis_last(access, axis)


def placed(
    op: ir.Operation, rank: int, layout_dims: Sequence[int | None], tile: Fragments
) -> tuple[list[int | None], frozenset[int]]:
    """Where a transfer op's tile lies in a buffer of a rank: the layout dimension that runs along each axis, and the
    axes along which the tile may extend past the end.
    """
    permutation = op.attributes["permutation_map"].value
    in_bounds = [ir.BoolAttr(b).value for b in op.attributes["in_bounds"]]
    dims: list[int | None] = [None] * rank
    clipped = set()
    for position, expr in enumerate(permutation.results):
        if not isinstance(expr, ir.AffineDimExpr):
            continue
        dim = layout_dims[position]
        if dim is not None and tile.varies(dim):
            dims[expr.position] = dim
        if not in_bounds[position]:
            clipped.add(expr.position)
    return dims, frozenset(clipped)


def _resumes(layout: BlockedLayout, dims: Sequence[int | None], buffer_type: ir.MemRefType) -> bool:
    """Whether one access of a warp covers less than a sector of contiguous memory, and the block's threads have more
    fragments there.
    """
    contiguous = [dim for dim, step in zip(dims, strides(buffer_type), strict=True) if step == 1 and dim is not None]
    if not contiguous:
        return False
    dim = contiguous[-1]
    if layout.fragments(dim) * layout.warps[dim] == 1:
        return False
    return layout.lanes[dim] * layout.vector[dim] * from_mlir(buffer_type.element_type).bytes < SECTOR


def with_axis_last(access: Access, axis: int) -> Access:
    """The same access, to a view of the buffer whose last axis is the given one: `vector.load` and `vector.store` need
    that.
    """
    order = [*(a for a in range(len(access.dims)) if a != axis), axis]
    return replace(
        access,
        buffer=permuted(access.buffer, order),
        offsets=[access.offsets[a] for a in order] if access.offsets else (),
        dims=[access.dims[a] for a in order],
        clipped=frozenset(map(order.index, access.clipped)),
        vector_axis=order.index(axis),
    )


def _common_width(width: int, buffer: ir.Value, axis: int) -> int:
    """The largest access width, in elements, that divides the buffer's extent, so that no access is partly outside."""
    extent = ir.MemRefType(buffer.type).shape[axis]
    return 1 if extent == ir.ShapedType.get_dynamic_size() else gcd(width, extent)


def _pieces(access: Access, indices: list[ir.Value], width: int) -> list[list[ir.Value]]:
    """Indices of the accesses that make up one fragment."""
    if width == access.width:
        return [indices]
    return [
        [add(i, constant(start)) if a == access.vector_axis and start else i for a, i in enumerate(indices)]
        for start in range(0, width, access.width)
    ]


def load(access: Access, indices: list[ir.Value], width: int) -> ir.Value:
    """Loads one fragment, in as few loads as alignment allows. Where the fragment straddles the end of the buffer, its
    last piece inside is loaded again in place of the pieces outside.
    """
    element_type = access.type.element_type
    if access.wide > access.width:
        branch = scf.IfOp(_is_whole(access, indices, width), [fragment_type(width, element_type)], has_else=True)
        for block, chosen in (
            (branch.then_block, access.whole),
            (branch.else_block, replace(access, wide=access.width)),
        ):
            with ir.InsertionPoint(block):
                scf.YieldOp([load(chosen, indices, width)])
        return branch.results[0]
    pieces = _pieces(access, indices, width)
    if access.straddles:
        assert access.vector_axis is not None
        last = add(access.extent(access.vector_axis), constant(-access.width))
        for piece in pieces:
            piece[access.vector_axis] = minimum(piece[access.vector_axis], last)
    loaded = [_load_piece(access, piece, element_type) for piece in pieces]
    if len(loaded) == 1:
        return loaded[0]
    scalars = [scalar for value in loaded for scalar in elements(value)]
    return vector.FromElementsOp(fragment_type(width, element_type), scalars).result


def _is_whole(access: Access, indices: list[ir.Value], width: int) -> ir.Value:
    """Whether the last element of a fragment is inside the buffer."""
    assert access.vector_axis is not None
    return less(add(indices[access.vector_axis], constant(width - 1)), access.extent(access.vector_axis))


def _load_piece(access: Access, indices: list[ir.Value], element_type: ir.Type) -> ir.Value:
    if access.width == 1:
        return memref.LoadOp(access.buffer, indices, nontemporal=access.once or None).result
    loaded = vector.LoadOp(
        ir.VectorType.get([access.width], element_type),
        access.buffer,
        indices,
        nontemporal=access.once or None,
        alignment=access.bytes,
    )
    return keep_in_order(loaded).result if access.in_order else loaded.result


def store(access: Access, value: ir.Value, indices: list[ir.Value], width: int) -> None:
    """Stores one fragment whose first element is inside, in as few stores as alignment allows."""
    if access.wide > access.width:
        branch = scf.IfOp(_is_whole(access, indices, width), has_else=True)
        for block, chosen in (
            (branch.then_block, access.whole),
            (branch.else_block, replace(access, wide=access.width)),
        ):
            with ir.InsertionPoint(block):
                store(chosen, value, indices, width)
                scf.YieldOp([])
        return
    pieces = _pieces(access, indices, width)
    if len(pieces) == 1:
        values = [value]
    else:
        scalars = elements(value)
        values = [
            vector.FromElementsOp(
                fragment_type(access.width, access.type.element_type), scalars[s : s + access.width]
            ).result
            if access.width > 1
            else scalars[s]
            for s in range(0, width, access.width)
        ]
    for number, (element, piece) in enumerate(zip(values, pieces, strict=True)):
        if not number or not access.straddles:
            store_piece(access, element, piece)
            continue
        assert access.vector_axis is not None
        branch = scf.IfOp(less(piece[access.vector_axis], access.extent(access.vector_axis)))
        with ir.InsertionPoint(branch.then_block):
            store_piece(access, element, piece)
            scf.YieldOp([])


def store_piece(access: Access, value: ir.Value, indices: list[ir.Value]) -> None:
    """Stores `value`, which has as many elements as one access."""
    if isinstance(value.type, ir.VectorType):
        vector.StoreOp(value, access.buffer, indices, nontemporal=access.streaming or None, alignment=access.bytes)
    else:
        memref.StoreOp(value, access.buffer, indices, nontemporal=access.streaming or None)
