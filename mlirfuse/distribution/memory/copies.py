"""The rule of `fuse.copy_tile`: the block's threads copy the tile's rows in pieces of up to 16 bytes."""

from __future__ import annotations

from functools import reduce
from math import gcd, prod

from mlir import ir
from mlir.dialects import arith, gpu, memref, nvgpu, scf, vector

from mlirfuse.dialect.attributes import ALIGN
from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.threads.fragments import widen
from mlirfuse.distribution.threads.scalars import add, constant, divide, less, multiply, remainder
from mlirfuse.schedule.model.machine import ACCESS_WIDTHS, WIDEST_ACCESS
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.tiling.memory import access_elements, permuted, strides
from mlirfuse.tiling.tiles import zero

SIDE = 8
"""Elements of a contiguous run that neighbouring threads copy when the tile is transposed."""


@rule("fuse.copy_tile")
def copy_tile(d: Distributor, op: ir.Operation) -> None:
    """Copies a tile, piece by piece over the block's threads: by `cp.async` for supported sizes, otherwise through
    registers.

    A piece of several elements runs along a buffer's last axis, which must be contiguous, so a source with another
    contiguous axis is transposed. `cp.async` needs a contiguous axis even for single elements; a source without one is
    copied through registers.
    """
    source, slot = (d.scalars[v] for v in list(op.operands)[:2])
    starts = [d.scalars[v] for v in list(op.operands)[2:]]
    axes = list(ir.DenseI64ArrayAttr(op.attributes["axes"]))
    clipped = set(ir.DenseI64ArrayAttr(op.attributes["clipped"]))
    width = _width(d, source, slot, axes, clipped)
    transposed_dim = _transposed_dim(source, axes) if width == 1 else None
    source, starts, axes = _contiguous_last(source, starts, axes)
    shape = list(ir.MemRefType(slot.type).shape)
    pieces = prod(shape) // width
    thread = gpu.ThreadIdOp(gpu.Dimension.x).result
    for first in range(0, pieces, d.layout.threads):
        piece = add(thread, constant(first))
        if first + d.layout.threads > pieces:
            branch = scf.IfOp(less(piece, constant(pieces)))
            with ir.InsertionPoint(branch.then_block):
                _copy(source, slot, starts, axes, clipped, _coordinates(piece, shape, width, transposed_dim), width)
                scf.YieldOp([])
        else:
            _copy(source, slot, starts, axes, clipped, _coordinates(piece, shape, width, transposed_dim), width)


def can_copy_async(type_: ir.MemRefType, width: int) -> bool:
    """Whether `cp.async` can copy `width` elements at a time along a memref's last axis."""
    dtype = from_mlir(type_.element_type)
    if dtype.kind == "bool":  # nvgpu's op would count them in bits
        return False
    return width * dtype.bytes in ACCESS_WIDTHS and strides(type_)[-1] == 1


def _width(d: Distributor, source: ir.Value, slot: ir.Value, axes: list[int], clipped: set[int]) -> int:
    """Elements of one piece, such that no piece straddles the source's end."""
    memory, tile = ir.MemRefType(source.type), ir.MemRefType(slot.type)
    declared = d.argument_attributes.get(source, {}).get(ALIGN)
    align = ir.IntegerAttr(declared).value if declared is not None else None
    most = WIDEST_ACCESS // from_mlir(memory.element_type).bytes
    last = len(axes) - 1
    width = gcd(access_elements(memory, axes[last], align, most), tile.shape[last])
    if last in clipped:
        extent = memory.shape[axes[last]]
        width = 1 if extent == ir.ShapedType.get_dynamic_size() else gcd(width, extent)
    return width


def _contiguous_last(
    source: ir.Value, starts: list[ir.Value], axes: list[int]
) -> tuple[ir.Value, list[ir.Value], list[int]]:
    """A view of the source with a contiguous axis last, if the source has one; the piece's own axis is preferred."""
    steps = strides(ir.MemRefType(source.type))
    contiguous = [a for a in (axes[-1], *range(len(steps))) if steps[a] == 1]
    if not contiguous:
        return source, starts, axes
    order = [*(a for a in range(len(steps)) if a != contiguous[0]), contiguous[0]]
    return permuted(source, order), [starts[a] for a in order], [order.index(a) for a in axes]


def _transposed_dim(source: ir.Value, axes: list[int]) -> int | None:
    """The tile's dimension that is contiguous in the source, if it is not the last one: the tile is then transposed."""
    steps = strides(ir.MemRefType(source.type))
    found = next((d for d, axis in enumerate(axes) if steps[axis] == 1), None)
    return None if found == len(axes) - 1 else found


def _coordinates(piece: ir.Value, shape: list[int], width: int, transposed_dim: int | None) -> list[ir.Value]:
    """Index in the tile of a piece's first element.

    If the tile is transposed, `SIDE` neighbouring pieces are consecutive along dimension `transposed_dim`. A warp
    then reads whole sectors of several source rows, and stores to `SIDE` rows of the slot that are in different banks
    (`tiling/slot_ring.py`).
    """
    if transposed_dim is not None and shape[transposed_dim] % SIDE == 0:
        groups = [n // SIDE if d == transposed_dim else n for d, n in enumerate(shape)]
        coordinates = _coordinates(divide(piece, SIDE), groups, width, None)
        coordinates[transposed_dim] = add(multiply(coordinates[transposed_dim], SIDE), remainder(piece, SIDE))
        return coordinates
    coordinates = []
    rest = piece
    outer, *inner = [*shape[:-1], shape[-1] // width]
    for extent in reversed(inner):
        coordinates.insert(0, remainder(rest, extent))
        rest = divide(rest, extent)
    coordinates.insert(0, rest if outer > 1 else constant(0))
    coordinates[-1] = multiply(coordinates[-1], width)
    return coordinates


def _copy(
    source: ir.Value,
    slot: ir.Value,
    starts: list[ir.Value],
    axes: list[int],
    clipped: set[int],
    coordinates: list[ir.Value],
    width: int,
) -> None:
    indices = list(starts)
    inside = []
    for d, (axis, coordinate) in enumerate(zip(axes, coordinates, strict=True)):
        indices[axis] = add(starts[axis], coordinate)
        if d in clipped:
            inside.append(less(indices[axis], _extent(source, axis)))
    condition = reduce(lambda a, b: arith.AndIOp(a, b).result, inside) if inside else None
    type_ = ir.MemRefType(source.type)
    if can_copy_async(type_, width):
        # cp.async fills the bytes that it does not read with zeros.
        read = None if condition is None else arith.SelectOp(condition, constant(width), constant(0)).result
        # Through the L1, where blocks of an SM find what the others have read: one operand, and windows that overlap.
        nvgpu.DeviceAsyncCopyOp(slot, coordinates, source, indices, width, srcElements=read)
        return
    _store(_load(source, indices, condition, width), slot, coordinates, width)


def _extent(buffer: ir.Value, axis: int) -> ir.Value:
    extent = ir.MemRefType(buffer.type).shape[axis]
    if extent == ir.ShapedType.get_dynamic_size():
        return memref.DimOp(buffer, constant(axis)).result
    return constant(extent)


def _load(source: ir.Value, indices: list[ir.Value], condition: ir.Value | None, width: int) -> ir.Value:
    """Loads a piece of the source. Where the condition does not hold, the result is zeros, and the load reads the
    buffer's first piece instead.
    """
    element = ir.MemRefType(source.type).element_type
    if condition is not None:
        indices = [arith.SelectOp(condition, index, constant(0)).result for index in indices]
    if width == 1:
        value = memref.LoadOp(source, indices).result
    else:
        fragment = ir.VectorType.get([width], element)
        value = vector.LoadOp(fragment, source, indices, alignment=width * from_mlir(element).bytes).result
    if condition is None:
        return value
    padding = widen(arith.ConstantOp(element, zero(element)).result, width)
    return arith.SelectOp(condition, value, padding).result


def _store(value: ir.Value, slot: ir.Value, indices: list[ir.Value], width: int) -> None:
    if width == 1:
        memref.StoreOp(value, slot, indices)
        return
    vector.StoreOp(value, slot, indices, alignment=width * from_mlir(ir.VectorType(value.type).element_type).bytes)
