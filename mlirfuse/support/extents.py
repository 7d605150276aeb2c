"""The extents of tensors, as ops that make other tensors take them."""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir
from mlir.dialects import arith, tensor


def extents_of(value: ir.Value, axes: Iterable[int] | None = None) -> list[int | ir.Value]:
    """The extents of a ranked tensor along some axes, or all: numbers, and `tensor.dim` of those that are dynamic."""
    type_ = ir.RankedTensorType(value.type)
    return [
        tensor.DimOp(value, arith.ConstantOp(ir.IndexType.get(), axis).result).result
        if type_.is_dynamic_dim(axis)
        else int(type_.get_dim_size(axis))
        for axis in (range(type_.rank) if axes is None else axes)
    ]
