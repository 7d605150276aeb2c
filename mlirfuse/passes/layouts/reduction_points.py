"""The reductions of a tile program, for passes that save registers across them."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import vector

from mlirfuse.dialect.joint import JOINT_REDUCTIONS

REDUCTIONS = JOINT_REDUCTIONS | {"vector.multi_reduction"}
"""Ops that combine elements of a tile."""


def is_tile(value: ir.Value) -> bool:
    """Whether a vector varies in its last dimension, so that a thread may hold many of its elements."""
    return isinstance(value.type, ir.VectorType) and max(ir.VectorType(value.type).shape[-1:], default=1) > 1


def reduced_dims(reduction: ir.Operation) -> frozenset[int]:
    """The dimensions of its tile that a reduction combines."""
    name = "reduction_dims" if reduction.name == "vector.multi_reduction" else "dims"
    return frozenset(ir.DenseI64ArrayAttr(reduction.attributes[name]))


def varies(value: ir.Value, reduction: ir.Operation) -> bool:
    """Whether a tile value has several elements along a dimension that a reduction combines.

    A vector of lower rank than the reduction's tile has none: it is a result without the reduced dimensions, which a
    broadcast adds again.
    """
    shape = ir.VectorType(value.type).shape if isinstance(value.type, ir.VectorType) else []
    whole = len(shape) == ir.VectorType(reduction.operands[0].type).rank
    return whole and any(shape[d] > 1 for d in reduced_dims(reduction))


def with_unit_dims(reduction: ir.Operation) -> ir.Value:
    """A reduction's first result with extent 1 in the dimensions that it lost, at the rank of the tile it reduced."""
    reduced = reduction.results[0]
    dims = reduced_dims(reduction)
    element = reduced.type.element_type if isinstance(reduced.type, ir.VectorType) else reduced.type
    kept = iter(ir.VectorType(reduced.type).shape if isinstance(reduced.type, ir.VectorType) else ())
    extents = [1 if d in dims else next(kept, 1) for d in range(ir.VectorType(reduction.operands[0].type).rank)]
    target = ir.VectorType.get(extents, element)
    if isinstance(reduced.type, ir.VectorType):
        return vector.ShapeCastOp(target, reduced).result
    return vector.BroadcastOp(target, reduced).result
