"""Strides, alignment and access width of buffers."""

from __future__ import annotations

from math import gcd, prod

from mlir import ir
from mlir.dialects import memref

from mlirfuse.schedule.model.machine import DEFAULT_ALIGNMENT, WIDEST_ACCESS
from mlirfuse.support.dtypes import from_mlir


def strides(buffer_type: ir.MemRefType) -> list[int | None]:
    """Strides of a memref in elements; None for dynamic strides."""
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    steps, _ = buffer_type.get_strides_and_offset()
    return [None if s == dynamic else s for s in steps]


def alignment(
    buffer_type: ir.MemRefType, vector_axis: int | None, declared: int | None, *, addresses: bool = False
) -> int:
    """Alignment of the addresses of all fragments in a buffer, in bytes, at most 16.

    Args:
        buffer_type: the memref.
        vector_axis: the axis along which fragments are contiguous; None if there is none.
        declared: the argument's `fuse.align`, bytes: a divisor of the base address and of all dynamic strides.
        addresses: whether strides of axes of extent 1 are left out, which no address has, but tensor maps do.
    """
    size = from_mlir(buffer_type.element_type).bytes
    base = min(declared if declared is not None else DEFAULT_ALIGNMENT, WIDEST_ACCESS)
    result = base
    for axis, step in enumerate(strides(buffer_type)):
        if axis == vector_axis or (addresses and buffer_type.shape[axis] == 1):
            continue
        if step is not None:
            result = gcd(result, step * size)
        elif not isinstance(buffer_type.layout, ir.StridedLayoutAttr):
            inner = [n for n in buffer_type.shape[axis + 1 :] if n != ir.ShapedType.get_dynamic_size()]
            result = gcd(result, prod(inner) * size)  # the stride is that times the run-time extents
    return max(result, size)


def access_elements(buffer_type: ir.MemRefType, vector_axis: int | None, declared: int | None, width: int) -> int:
    """Elements in one access to a fragment of `width` elements; 1 if the axis is not contiguous."""
    if vector_axis is None or strides(buffer_type)[vector_axis] != 1:
        return 1
    size = from_mlir(buffer_type.element_type).bytes
    return max(1, min(width, alignment(buffer_type, vector_axis, declared, addresses=True) // size))


def permuted(buffer: ir.Value, order: list[int]) -> ir.Value:
    """A view of a buffer whose axis `n` is the buffer's axis `order[n]`; the buffer itself for the identity order."""
    if order == sorted(order):
        return buffer
    type_ = ir.MemRefType(buffer.type)
    steps, offset = type_.get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(offset, [steps[a] for a in order])
    view = ir.MemRefType.get([type_.shape[a] for a in order], type_.element_type, layout, type_.memory_space)
    return memref.TransposeOp(view, buffer, ir.AffineMapAttr.get(ir.AffineMap.get_permutation(order))).result
