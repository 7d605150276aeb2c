"""Shapes of tile vectors: broadcasts, and unit dimensions for reduced dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, vector

Shape = tuple[int, ...]
"""Extent of a tile in each dimension of the iteration space; 1 in dimensions along which a value does not vary."""


def broadcast(value: ir.Value, shape: Shape) -> ir.Value:
    """A tile vector or scalar as a tile vector of `shape`."""
    if not isinstance(value.type, ir.VectorType):
        return splat(value, shape)
    if tuple(value.type.shape) == shape:
        return value
    return vector.BroadcastOp(ir.VectorType.get(list(shape), value.type.element_type), value).result


def splat(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """A vector of one number; a constant stays a constant."""
    vector_type = ir.VectorType.get(list(shape), value.type)
    owner = value.owner
    if not isinstance(owner, ir.Block) and owner.operation.name == "arith.constant":
        attribute = owner.operation.attributes["value"]
        return arith.ConstantOp(vector_type, ir.DenseElementsAttr.get_splat(vector_type, attribute)).result
    return vector.BroadcastOp(vector_type, value).result


def with_unit_dims(value: ir.Value, kept: Sequence[int], rank: int) -> ir.Value:
    """Inserts the reduced dimensions into a reduction's result, with extent 1.

    Args:
        value: `T` or a vector of one dimension each of `kept`.
        kept: the dimensions that are not reduced, in order.
        rank: rank of the iteration space.
    """
    if not isinstance(value.type, ir.VectorType):
        return vector.BroadcastOp(ir.VectorType.get([1] * rank, value.type), value).result
    source = ir.VectorType(value.type)
    extents = [1] * rank
    for d, extent in zip(kept, source.shape, strict=True):
        extents[d] = extent
    return vector.ShapeCastOp(ir.VectorType.get(extents, source.element_type), value).result


def index(value: int) -> ir.Value:
    """An index constant."""
    return arith.ConstantOp(ir.IndexType.get(), value).result


def zero(element_type: ir.Type) -> ir.Attribute:
    """Zero of an element type."""
    if isinstance(element_type, ir.IntegerType):
        return ir.IntegerAttr.get(element_type, 0)
    return ir.FloatAttr.get(element_type, 0.0)
