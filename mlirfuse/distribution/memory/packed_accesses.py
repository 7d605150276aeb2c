"""Accesses to elements that one thread holds side by side in memory, over several dimensions of a tile.

Where a thread holds a buffer's innermost dimensions whole (three colours, the two columns of a window), its fragments
are short or lie apart, but together they are one run of memory: of 8 pixels with 3 colours each 24 elements. The run is
accessed as wide as it is aligned, and its elements are put in order in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

from mlir import ir
from mlir.dialects import memref, scf, vector

from mlirfuse.dialect.attributes import ALIGN, STREAMING
from mlirfuse.distribution.access import placed
from mlirfuse.distribution.distributor import Distributor
from mlirfuse.distribution.threads.fragments import Fragments, Key, elements, fragment_type
from mlirfuse.distribution.threads.scalars import add, constant, less, minimum, multiply
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.target import SECTOR
from mlirfuse.tiling.memory import alignment


@dataclass(frozen=True)
class Packing:
    """How a thread's elements of a tile make up runs of memory.

    Attributes:
        source: the buffer.
        buffer: a view of the memory whose innermost axes are one.
        offsets: the tile's first index along each other axis, and along the axis of the runs before it was collapsed.
        dims: the layout dimension that runs along each of these.
        clipped: of these, the axes along which the tile may extend past the end.
        strides: of each layout dimension that a run spans, elements from one index to the next one.
        steps: neighbouring indices of the last of these axes in one run.
        inner: elements of one such index.
        width: elements of one access, which divide those of a run.
        streaming: whether the kernel accesses the data once only.
        resumes: whether accesses of a block, one after the other, share a sector.
    """

    source: ir.Value
    buffer: ir.Value
    offsets: Sequence[ir.Value]
    dims: Sequence[int | None]
    clipped: frozenset[int]
    strides: dict[int, int]
    steps: int
    inner: int
    width: int
    streaming: bool
    resumes: bool

    @property
    def axis(self) -> int:
        """The axis along which runs lie."""
        return len(self.dims) - 1

    @property
    def count(self) -> int:
        """Elements of a run."""
        return self.steps * self.inner

    @property
    def whole(self) -> frozenset[int]:
        """The dimensions of the layout that a thread holds whole, in every run."""
        return frozenset(d for d in self.strides if d not in self.dims)

    @property
    def straddles(self) -> bool:
        """As of an access: whether a clamped index may be that of a fragment that is partly outside."""
        return self.is_split

    @property
    def vector_axis(self) -> int:
        """As of an access: the axis of runs."""
        return self.axis

    @property
    def is_split(self) -> bool:
        """Whether a run may be partly outside of the buffer."""
        type_ = ir.MemRefType(self.source.type)
        ragged = type_.is_dynamic_dim(self.axis) or type_.shape[self.axis] % self.steps != 0
        return self.steps > 1 and self.axis in self.clipped and ragged

    @property
    def type(self) -> ir.MemRefType:
        """The type of the view."""
        return ir.MemRefType(self.buffer.type)

    def extent(self, axis: int) -> ir.Value:
        """The buffer's extent along an axis, before axes were collapsed."""
        type_ = ir.MemRefType(self.source.type)
        static = not type_.is_dynamic_dim(axis)
        return constant(type_.shape[axis]) if static else memref.DimOp(self.source, constant(axis)).result

    def run_of(self, tile: Fragments, key: Key) -> Key:
        """The run of a fragment: its key, with 0 in the dimensions that one run spans or the buffer lacks."""
        outer = {d for d in self.dims if d is not None and tile.varies(d)}
        return tuple(k if n in outer else 0 for n, k in enumerate(key))

    def places(self, tile: Fragments, key: Key) -> list[int]:
        """Place in its run of each element of a fragment."""
        layout, along = tile.layout, tile.layout.vector_dim
        first = sum(step * layout.offset(d, key[d]) for d, step in self.strides.items() if d in self.whole)
        return [first + e * self.strides.get(along, 0) for e in range(tile.width)]


def packing_of(
    d: Distributor,
    op: ir.Operation,
    buffer: ir.Value,
    offsets: Sequence[ir.Value],
    layout_dims: Sequence[int | None],
    tile: Fragments,
    width: int,
) -> Packing | None:
    """How a transfer op packs a thread's elements into runs; None where no access gets wider by that.

    Args:
        d: the kernel.
        op: the transfer.
        buffer: its memory, in the tile program.
        offsets: the tile's first index along each axis.
        layout_dims: the layout dimension of each dimension of the op's vector.
        tile: what a thread holds.
        width: elements of an access to a fragment alone.
    """
    source = d.scalars[buffer]
    type_ = ir.MemRefType(source.type)
    is_plain = type_.memory_space is None and not isinstance(type_.layout, ir.StridedLayoutAttr)
    if not is_plain or type_.rank < 2 or any(tile.layout.anywhere):
        return None
    dims, clipped = placed(op, type_.rank, layout_dims, tile)
    strides: dict[int, int] = {}
    axis, inner = type_.rank - 1, 1
    while axis > 0 and _is_whole(tile, dims[axis], type_.shape[axis]):
        dim = dims[axis]
        if dim is not None:
            strides[dim] = inner
        inner *= type_.shape[axis]
        axis -= 1
    dim = dims[axis]
    if inner == 1 or (dim is not None and tile.layout.within(dim) * tile.layout.neighbours(dim) > 1):
        return None
    if tile.width > 1 and tile.layout.vector_dim in dims[:axis]:
        return None  # the elements of a fragment are in a run each
    steps = 1
    if dim is not None and dim == tile.layout.vector_dim:
        steps, strides[dim] = tile.layout.vector[dim], inner
    packed = _width(d, source, axis, inner, steps)
    if packed <= width:
        return None
    return Packing(
        source=source,
        buffer=_collapsed(source, axis),
        offsets=[d.scalars[offset] for offset in offsets[: axis + 1]],
        dims=dims[: axis + 1],
        clipped=frozenset(a for a in clipped if a <= axis),
        strides=strides,
        steps=steps,
        inner=inner,
        width=packed,
        streaming=STREAMING in op.attributes,
        resumes=packed < inner * steps or _is_narrow(tile, dim, inner * steps * from_mlir(type_.element_type).bytes),
    )


def _is_whole(tile: Fragments, dim: int | None, extent: int) -> bool:
    """Whether a thread holds all of a buffer's axis, along which a dimension of the layout runs."""
    if dim is None:
        return extent == 1
    layout = tile.layout
    alone = layout.lanes[dim] * layout.warps[dim] * layout.blocks[dim] == 1
    return alone and tile.extents[dim] == extent == layout.extents[dim]


def _is_narrow(tile: Fragments, dim: int | None, run: int) -> bool:
    """Whether an access of a warp covers less than a sector along a dimension with runs of so many bytes."""
    return (1 if dim is None else tile.layout.lanes[dim]) * run < SECTOR


def _width(d: Distributor, source: ir.Value, axis: int, inner: int, steps: int) -> int:
    """Elements of the widest access that divides every run and is aligned."""
    type_ = ir.MemRefType(source.type)
    size = from_mlir(type_.element_type).bytes
    declared = d.argument_attributes.get(source, {}).get(ALIGN)
    aligned = alignment(_collapsed_type(type_, axis), axis, ir.IntegerAttr(declared).value if declared else None)
    return max(1, gcd(aligned, gcd(WIDEST_ACCESS, inner * steps * size)) // size)


def _collapsed_type(type_: ir.MemRefType, axis: int) -> ir.MemRefType:
    shape, last = list(type_.shape), 1
    for extent in shape[axis:]:
        last = last * extent if extent >= 0 and last >= 0 else ir.ShapedType.get_dynamic_size()
    return ir.MemRefType.get([*shape[:axis], last], type_.element_type)


def _collapsed(source: ir.Value, axis: int) -> ir.Value:
    """The view of a buffer whose axes from one on are one."""
    type_ = ir.MemRefType(source.type)
    groups = [*([a] for a in range(axis)), list(range(axis, type_.rank))]
    return memref.CollapseShapeOp(_collapsed_type(type_, axis), source, groups).result


def load_run(packing: Packing, indices: Sequence[ir.Value]) -> list[ir.Value]:
    """Loads the elements of a run. Where it is partly outside, the last index inside stands for those outside.

    Args:
        packing: how the run lies in memory.
        indices: of its first element, before axes were collapsed.
    """
    if not packing.is_split:
        return _load_whole(packing, indices)
    element = packing.type.element_type
    pieces = packing.count // packing.width
    types = [fragment_type(packing.width, element)] * pieces
    branch = scf.IfOp(_is_inside(packing, indices), types, has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp(_joined(packing, _load_whole(packing, indices)))
    with ir.InsertionPoint(branch.else_block):
        last = add(packing.extent(packing.axis), constant(-1))
        found: list[ir.Value] = []
        for step in range(packing.steps):
            start = multiply(minimum(add(indices[-1], constant(step)), last), packing.inner)
            places = [[*indices[:-1], add(start, constant(place))] for place in range(packing.inner)]
            found += [memref.LoadOp(packing.buffer, at).result for at in places]
        scf.YieldOp(_joined(packing, found))
    return [value for piece in branch.results for value in elements(piece)]


def _load_whole(packing: Packing, indices: Sequence[ir.Value]) -> list[ir.Value]:
    start = multiply(indices[-1], packing.inner)
    # The L1 keeps the rest of a sector for the next access to it.
    once = packing.streaming and not packing.resumes
    found: list[ir.Value] = []
    for place in range(0, packing.count, packing.width):
        at = [*indices[:-1], add(start, constant(place))]
        if packing.width == 1:
            found.append(memref.LoadOp(packing.buffer, at, nontemporal=once or None).result)
            continue
        type_ = ir.VectorType.get([packing.width], packing.type.element_type)
        loaded = vector.LoadOp(type_, packing.buffer, at, nontemporal=once or None, alignment=_bytes(packing))
        found += elements(loaded.result)
    return found


def store_run(packing: Packing, values: Sequence[ir.Value], indices: Sequence[ir.Value]) -> None:
    """Stores the elements of a run whose first one is inside; those that are not inside are left out."""
    if not packing.is_split:
        _store_whole(packing, values, indices)
        return
    branch = scf.IfOp(_is_inside(packing, indices), has_else=True)
    with ir.InsertionPoint(branch.then_block):
        _store_whole(packing, values, indices)
        scf.YieldOp([])
    with ir.InsertionPoint(branch.else_block):
        for step in range(packing.steps):
            index = add(indices[-1], constant(step))
            inside = scf.IfOp(less(index, packing.extent(packing.axis)))
            with ir.InsertionPoint(inside.then_block):
                for place in range(packing.inner):
                    at = [*indices[:-1], add(multiply(index, packing.inner), constant(place))]
                    memref.StoreOp(values[step * packing.inner + place], packing.buffer, at)
                scf.YieldOp([])
        scf.YieldOp([])


def _store_whole(packing: Packing, values: Sequence[ir.Value], indices: Sequence[ir.Value]) -> None:
    start = multiply(indices[-1], packing.inner)
    for number, piece in enumerate(_joined(packing, values)):
        at = [*indices[:-1], add(start, constant(number * packing.width))]
        streaming = packing.streaming or None
        if packing.width == 1:
            memref.StoreOp(piece, packing.buffer, at, nontemporal=streaming)
        else:
            vector.StoreOp(piece, packing.buffer, at, nontemporal=streaming, alignment=_bytes(packing))


def _is_inside(packing: Packing, indices: Sequence[ir.Value]) -> ir.Value:
    """Whether a whole run is inside of the buffer."""
    return less(add(indices[-1], constant(packing.steps - 1)), packing.extent(packing.axis))


def _joined(packing: Packing, values: Sequence[ir.Value]) -> list[ir.Value]:
    """The elements of a run as the vectors of its accesses."""
    width = packing.width
    if width == 1:
        return list(values)
    type_ = ir.VectorType.get([width], packing.type.element_type)
    starts = range(0, packing.count, width)
    return [vector.FromElementsOp(type_, list(values[start : start + width])).result for start in starts]


def fragment_of(packing: Packing, tile: Fragments, key: Key, run: Sequence[ir.Value]) -> ir.Value:
    """A fragment, of the elements of its run."""
    found = [run[place] for place in packing.places(tile, key)]
    return found[0] if tile.width == 1 else vector.FromElementsOp(tile.type, found).result


def runs_of(packing: Packing, tile: Fragments, at: Callable[[Key], ir.Value]) -> dict[Key, list[ir.Value]]:
    """The elements of all runs of a tile, by run, in the order of memory."""
    runs: dict[Key, list[Any]] = {}
    for key in tile.keys():
        run = runs.setdefault(packing.run_of(tile, key), [None] * packing.count)
        for place, value in zip(packing.places(tile, key), elements(at(key)), strict=True):
            run[place] = value
    assert all(value is not None for run in runs.values() for value in run)
    return runs


def _bytes(packing: Packing) -> int:
    return packing.width * from_mlir(packing.type.element_type).bytes
