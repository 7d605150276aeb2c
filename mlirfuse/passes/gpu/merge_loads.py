"""`fuse-merge-loads`: what a thread loads piece by piece of one row of an array, it loads in wide pieces, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import memref, vector

from mlirfuse.analysis.kernels import argument_attributes, gpu_kernels, symbol
from mlirfuse.analysis.memory.buffers import is_nontemporal
from mlirfuse.analysis.rolling import is_pure
from mlirfuse.dialect.clamped_attribute import CLAMPED
from mlirfuse.distribution.threads.scalars import add, constant, minimum, multiply
from mlirfuse.passes.gpu.row_accesses import aligned_elements, split_index
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import defining_op, erase, integer_of, nested, ops_named
from mlirfuse.tiling.memory import strides

LOADS = ("memref.load", "vector.load")
VIEW = "memref.subview"

Index = tuple[ir.Value | None, int, int]
"""An index: a value, or None for 0, times a number, plus a number."""

Piece = tuple[int, int]
"""The first element of an access, and how many it has."""


@dataclass(frozen=True)
class FuseMergeLoads(Pass):
    """Makes loads of neighbouring, or equal, elements of a row of an array fewer and wider ones.

    Requires one thread's code (`gpu.func`), before `fuse-narrow-bounds`. Windows of a stencil overlap, and all but one
    of them begin beside what accesses are aligned to, so that they are loaded element by element; components of
    interleaved arrays are elements apart. Loads are of one row where they are of one argument, or subviews of it, and
    their indices are equal but for a number that is added to the last one. An aligned piece with elements that are
    wanted is loaded whole where rows consist of such pieces: it is inside of the array then. Pieces of up to 16 bytes
    take the place of loads up to the next op that may write memory, if they are fewer. Declines where nothing is known
    of alignment or rows.

    ```mlir
    %0 = vector.load %x[%i, %j] {alignment = 8} : memref<64x512xf32>, vector<2xf32>
    %1 = memref.load %x[%i, %j1] : memref<64x512xf32>  // %j1 = %j + 1
    %2 = memref.load %x[%i, %j2] : memref<64x512xf32>  // %j2 = %j + 2
    ```
    becomes, where 4 divides `%j`,
    ```mlir
    %0 = vector.load %x[%i, %j] {alignment = 16} : memref<64x512xf32>, vector<4xf32>
    %1 = vector.extract_strided_slice %0 {offsets = [0], sizes = [2], strides = [1]} : vector<4xf32> to vector<2xf32>
    %2 = vector.extract %0[1] : f32 from vector<4xf32>
    ...
    ```
    """

    name: ClassVar[str] = "fuse-merge-loads"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in gpu_kernels(module):
            before = after = 0
            for group in _groups(kernel):
                pieces = group.pieces()
                if len(pieces) < len(group.loads):
                    before, after = before + len(group.loads), after + len(pieces)
                    group.rewrite(pieces)
            for view in ops_named(kernel, VIEW):
                if not list(view.results[0].uses):
                    erase(view)
            if before:
                remarks.applied(self, f"{before} loads of {symbol(kernel)} are {after}", kernel)
            else:
                remarks.declined(self, "no loads are parts of fewer aligned ones", kernel)


@dataclass
class _Load:
    """A load of elements of a row.

    Attributes:
        op: it.
        array: the argument that it is of, or of a subview of.
        index: of its first element in the argument.
        clamped: whether its last index is clamped to the row's last elements (`fuse.clamped`), which `index` is not.
    """

    op: ir.Operation
    array: ir.Value
    index: Sequence[Index]
    clamped: bool

    @property
    def first(self) -> int:
        """The number that is added to its last index."""
        return self.index[-1][2]

    @property
    def count(self) -> int:
        """Its elements."""
        return _count(self.op)

    @property
    def row(self) -> tuple[object, ...]:
        """What loads of one row have in common."""
        *outer, (value, step, _) = self.index
        return self.op.block, self.array, *outer, value, step, self.clamped, is_nontemporal(self.op)


@dataclass
class _Group:
    """Loads of one row of an array, whose last indices are a number apart.

    Attributes:
        aligned: elements that the first index, without the number, is known to be a multiple of, a power of two.
        extent: elements of a row; 1 where they are no run of memory, or run time has to say.
        loads: in program order.
    """

    aligned: int
    extent: int
    loads: list[_Load]

    def pieces(self) -> list[Piece]:
        """The fewest aligned pieces that have all elements, and of these the smallest."""
        wanted = {load.first + n for load in self.loads for n in range(load.count)}
        starts = sorted({first // self.aligned * self.aligned for first in wanted})
        return [piece for start in starts for piece in self._cover(start, self.aligned, wanted)]

    def _cover(self, start: int, width: int, wanted: set[int]) -> list[Piece]:
        here = wanted.intersection(range(start, start + width))
        if width == 1 or not here:
            return [(start, 1)] if here else []
        halves = [piece for n in (0, 1) for piece in self._cover(start + n * width // 2, width // 2, wanted)]
        inside = self.extent % width == 0 or (len(here) == width and not self.loads[0].clamped)
        return [(start, width)] if len(halves) > 1 and inside else halves

    def rewrite(self, pieces: Sequence[Piece]) -> None:
        """Emits the pieces in front of the first load, and replaces all loads."""
        first = self.loads[0].op
        with ir.InsertionPoint(first), first.location:
            loaded = {piece: self._emit(*piece) for piece in pieces}
        for load in self.loads:
            with ir.InsertionPoint(load.op), load.op.location:
                load.op.results[0].replace_all_uses_with(_part(loaded, load))
            erase(load.op)

    def _emit(self, start: int, count: int) -> ir.Value:
        first = self.loads[0]
        *outer, (value, step, _) = first.index
        last = _value((value, step, start))
        last = minimum(last, constant(self.extent - count)) if first.clamped else last
        at, once = [*map(_value, outer), last], is_nontemporal(first.op) or None
        if count == 1:
            return memref.LoadOp(first.array, at, nontemporal=once).result
        element = ir.MemRefType(first.array.type).element_type
        type_, align = ir.VectorType.get([count], element), count * from_mlir(element).bytes
        return vector.LoadOp(type_, first.array, at, nontemporal=once, alignment=align).result


def _groups(kernel: ir.Operation) -> list[_Group]:
    """The loads of a kernel's arguments, by row, and by what may have been written in between."""
    arguments = list(kernel.regions[0].blocks[0].arguments)
    known = dict(zip(arguments, argument_attributes(kernel), strict=False))
    found: list[_Group] = []
    open_: dict[tuple[object, ...], _Group] = {}
    for op in nested(kernel):
        if op.name in LOADS and (load := _load(op)) is not None and load.array in known:
            if load.row not in open_:
                aligned, extent = _aligned(load, known[load.array])
                open_[load.row] = _Group(aligned, extent, [])
                found.append(open_[load.row])
            open_[load.row].loads.append(load)
        elif op.name not in LOADS and not is_pure(op) and op.name != VIEW:
            open_.clear()
    return found


def _load(op: ir.Operation) -> _Load | None:
    """A load from an array or a subview of it; None where its elements are no neighbours in the array."""
    array, *at = op.operands
    free, count = _without_clamp(op), _count(op)
    split = [split_index(value) for value in ([*at[:-1], free] if free is not None else at)]
    index = [(rest, 1, number) for rest, number in split]
    view = defining_op(array)
    if view is None or view.name != VIEW:
        return _Load(op, array, index, free is not None) if index else None
    starts, steps = (list(ir.DenseI64ArrayAttr(view.attributes[f"static_{name}"])) for name in ("offsets", "strides"))
    dynamic = ir.ShapedType.get_dynamic_size()
    if free is not None or dynamic in (*starts, *steps) or len(starts) != len(index) or (count > 1 and steps[-1] > 1):
        return None
    moved = zip(index, starts, steps, strict=True)
    return _Load(op, view.operands[0], [(v, f * step, n * step + start) for (v, f, n), start, step in moved], False)


def _count(op: ir.Operation) -> int:
    """Elements of a load."""
    type_ = op.results[0].type
    return ir.VectorType(type_).shape[0] if isinstance(type_, ir.VectorType) else 1


def _without_clamp(op: ir.Operation) -> ir.Value | None:
    """The last index of a load, before it is clamped to a row's last elements where nothing asks for what is loaded;
    None where it is not.
    """
    maker = defining_op(op.operands[len(op.operands) - 1]) if CLAMPED in op.attributes else None
    if maker is None or maker.name != "arith.minui":
        return None
    extent = ir.MemRefType(op.operands[0].type).shape[-1]
    return maker.operands[0] if integer_of(maker.operands[1]) == extent - _count(op) else None


def _value(index: Index) -> ir.Value:
    """Emits an index."""
    value, step, number = index
    if value is None:
        return constant(number)
    scaled = multiply(value, step)
    return add(scaled, constant(number)) if number else scaled


def _aligned(load: _Load, known: dict[str, ir.Attribute]) -> tuple[int, int]:
    """Elements that rows, and a last index without its number, are multiples of, at most those of the widest access;
    and elements of a row. 1 where rows are no runs of memory, or run time has to say how long these are.
    """
    type_, (value, step, _) = ir.MemRefType(load.array.type), load.index[-1]
    last = type_.rank - 1
    if type_.is_dynamic_dim(last) or strides(type_)[last] != 1:
        return 1, 1
    return aligned_elements(load.array, value, known, step), type_.shape[last]


def _part(loaded: dict[Piece, ir.Value], load: _Load) -> ir.Value:
    """The elements of a load, of the pieces that have them."""
    type_ = load.op.results[0].type
    is_vector = isinstance(type_, ir.VectorType)
    for (start, count), value in loaded.items():
        if is_vector and count > 1 and start <= load.first and load.first + load.count <= start + count:
            if (start, count) == (load.first, load.count):
                return value
            return vector.ExtractStridedSliceOp(type_, value, [load.first - start], [load.count], [1]).result
    elements = [_element(loaded, load.first + n) for n in range(load.count)]
    return vector.FromElementsOp(type_, elements).result if is_vector else elements[0]


def _element(loaded: dict[Piece, ir.Value], number: int) -> ir.Value:
    (start, count), value = next((p, v) for p, v in loaded.items() if p[0] <= number < p[0] + p[1])
    return value if count == 1 else vector.ExtractOp(value, [], [number - start]).result
