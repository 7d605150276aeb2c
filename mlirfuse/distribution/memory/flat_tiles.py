"""Transfers marked `fuse.flat`: tiles of whole rows of any length, moved as one run of memory.

Rows that are no whole vectors start at any address, but a tile of them is one run. A block's threads move the aligned
vectors that the run reaches into, through shared memory, whatever row an element is in; the ends, which share vectors
with other tiles, are stored element by element. Elements lie in shared memory as they do in memory, from an aligned
address on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir
from mlir.dialects import arith, memref, vector

from mlirfuse.dialect.attributes import STREAMING
from mlirfuse.dialect.flat_attribute import FLAT
from mlirfuse.distribution.access import placed
from mlirfuse.distribution.distributor import Distributor
from mlirfuse.distribution.threads.fragments import Fragments, Key
from mlirfuse.distribution.threads.guard import Guard
from mlirfuse.distribution.threads.scalars import add, constant, divide, less, minimum, multiply
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.support.dtypes import from_mlir

DYNAMIC = ir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class _Run:
    """A tile as a run of memory.

    Attributes:
        memory: the buffer as one run of elements.
        size: its elements.
        first: the aligned element at or before the tile's first one.
        shift: elements between the two.
        length: elements of the tile that are inside of the buffer.
        clipped: whether that may be less than all.
        width: elements of a vector.
        slots: vectors of each thread.
        shared: where the elements from `first` on are in shared memory.
        streaming: whether the kernel accesses the data once only.
    """

    memory: ir.Value
    size: ir.Value
    first: ir.Value
    shift: ir.Value
    length: ir.Value
    clipped: bool
    width: int
    slots: int
    shared: ir.Value
    streaming: bool

    @property
    def vector(self) -> ir.VectorType:
        return ir.VectorType.get([self.width], ir.MemRefType(self.memory.type).element_type)


def read_flat(d: Distributor, ops: Sequence[ir.Operation]) -> None:
    """Loads the tiles of some reads, all of them before a barrier."""
    d.flush()
    tiles, runs, moved = [], [], []
    for op in ops:
        type_ = ir.VectorType(op.results[0].type)
        tile = Fragments(d.layout, tuple(type_.shape), type_.element_type)
        run = _run(d, op, op.operands[0], list(op.operands)[1:-1], tile)
        whole = _whole_vectors(run)
        last = add(whole, constant(-run.width))
        places = [add(run.first, offset) for offset in _offsets(d, run)]
        moved.append([(_load(run, minimum(place, last)), less(place, whole)) for place in places])
        tiles.append(tile)
        runs.append(run)
    for run, loaded in zip(runs, moved, strict=True):
        for offset, (value, is_whole) in zip(_offsets(d, run), loaded, strict=True):
            with Guard(is_whole):
                vector.StoreOp(value, run.shared, [offset], alignment=_bytes(run))
        _load_end(d, run)
    d.barrier()
    for op, tile, run in zip(ops, tiles, runs, strict=True):
        last = add(run.shift, add(run.length, constant(-1)))
        for key in tile.keys():
            place = add(run.shift, _number(d, tile, key))
            place = minimum(place, last) if run.clipped else place
            tile.values[key] = memref.LoadOp(run.shared, [place]).result
        d.tiles[op.results[0]] = tile
    if d.in_loop:
        d.barrier()  # the next iteration stores to the same places


def write_flat(d: Distributor, op: ir.Operation) -> None:
    """Stores a tile: its aligned vectors behind a barrier, and the elements at its ends one by one."""
    d.flush()
    value, buffer, *offsets = op.operands
    tile = d.fragments(value)
    run = _run(d, op, buffer, offsets, tile)
    for key in tile.keys():
        memref.StoreOp(tile.at(key), run.shared, [add(run.shift, _number(d, tile, key))])
    d.barrier()
    end, starts = add(run.shift, run.length), add(run.length, constant(1 - run.width))
    for offset in _offsets(d, run):
        # Compared as unsigned, an offset before the first element is large.
        with Guard(less(arith.SubIOp(offset, run.shift).result, starts)):
            moved = vector.LoadOp(run.vector, run.shared, [offset], alignment=_bytes(run)).result
            place = add(run.first, offset)
            vector.StoreOp(moved, run.memory, [place], nontemporal=run.streaming or None, alignment=_bytes(run))
    begun = add(run.shift, d.threads.number)
    is_first = arith.AndIOp(less(constant(0), run.shift), less(begun, constant(run.width))).result
    ended = add(multiply(divide(end, run.width), run.width), d.threads.number)
    for place, condition in ((begun, is_first), (ended, less(ended, end))):
        with Guard(condition):
            element = memref.LoadOp(run.shared, [place]).result
            memref.StoreOp(element, run.memory, [add(run.first, place)])
    if d.in_loop:
        d.barrier()


def flat_group(op: ir.Operation) -> list[ir.Operation]:
    """An op with `fuse.flat`, and the ops of its kind right behind it that have it too."""
    found, following = [op], False
    for other in op.block.operations:
        if following and (other.operation.name != op.name or FLAT not in other.operation.attributes):
            break
        if following:
            found.append(other.operation)
        following = following or other.operation == op
    return found


def _run(d: Distributor, op: ir.Operation, buffer: ir.Value, offsets: Sequence[ir.Value], tile: Fragments) -> _Run:
    source, starts = d.scalars[buffer], [d.scalars[offset] for offset in offsets]
    type_ = ir.MemRefType(source.type)
    dims, clipped = placed(op, len(starts), list(range(d.layout.rank)), tile)
    shape = [
        constant(n) if n != DYNAMIC else memref.DimOp(source, constant(axis)).result
        for axis, n in enumerate(type_.shape)
    ]
    place, size = starts[-1], shape[-1]
    for start, extent in zip(reversed(starts[:-1]), reversed(shape[:-1]), strict=True):
        place = add(place, arith.MulIOp(start, size).result)
        size = arith.MulIOp(size, extent).result
    width = WIDEST_ACCESS // from_mlir(type_.element_type).bytes
    shift = arith.AndIOp(place, constant(width - 1)).result
    split = next(axis for axis, dim in enumerate(dims) if dim is not None)
    inner = prod(type_.shape[split + 1 :])
    dim = dims[split]
    assert dim is not None
    rows = constant(tile.extents[dim])
    if split in clipped:
        rows = minimum(rows, arith.SubIOp(shape[split], starts[split]).result)
    covered = d.layout.extents[dim] * inner
    slots = -(-(covered + width - 1) // (width * d.layout.threads))
    flat = source
    if type_.rank > 1:
        flat_type = ir.MemRefType.get([DYNAMIC if DYNAMIC in type_.shape else prod(type_.shape)], type_.element_type)
        flat = memref.CollapseShapeOp(flat_type, source, [list(range(type_.rank))]).result
    return _Run(
        memory=flat,
        size=size,
        first=arith.SubIOp(place, shift).result,
        shift=shift,
        length=multiply(rows, inner),
        clipped=split in clipped or d.layout.extents[dim] > tile.extents[dim],
        width=width,
        slots=slots,
        shared=d.scratch(max(slots * d.layout.threads * width, covered + width), type_.element_type),
        streaming=STREAMING in op.attributes,
    )


def _offsets(d: Distributor, run: _Run) -> list[ir.Value]:
    """Where in shared memory a thread's vectors are."""
    own = multiply(d.threads.number, run.width)
    return [add(own, constant(n * d.layout.threads * run.width)) if n else own for n in range(run.slots)]


def _whole_vectors(run: _Run) -> ir.Value:
    """Elements of memory that are in whole vectors."""
    return multiply(divide(run.size, run.width), run.width)


def _load(run: _Run, place: ir.Value) -> ir.Value:
    once, nbytes = run.streaming or None, _bytes(run)
    return vector.LoadOp(run.vector, run.memory, [place], nontemporal=once, alignment=nbytes).result


def _load_end(d: Distributor, run: _Run) -> None:
    """Loads the elements behind the last whole vector of memory, where the tile has them."""
    size = ir.MemRefType(run.memory.type).shape[0]
    if size != DYNAMIC and size % run.width == 0:
        return
    place = add(_whole_vectors(run), d.threads.number)
    offset = arith.SubIOp(place, run.first).result
    room = ir.MemRefType(run.shared.type).shape[0]
    with Guard(arith.AndIOp(less(place, run.size), less(offset, constant(room))).result):
        memref.StoreOp(memref.LoadOp(run.memory, [place]).result, run.shared, [offset])


def _number(d: Distributor, tile: Fragments, key: Key) -> ir.Value:
    """The number of a fragment's element in the tile."""
    total = constant(0)
    for dim, repeat in enumerate(key):
        step = prod(tile.extents[dim + 1 :])
        if tile.varies(dim):
            total = add(total, multiply(d.threads.index(dim, repeat), step))
    return total


def _bytes(run: _Run) -> int:
    return run.width * from_mlir(run.vector.element_type).bytes
