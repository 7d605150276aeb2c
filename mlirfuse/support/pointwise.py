"""Makes ops that compute each element of a tensor from those of others at the same place."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import linalg, tensor


def pointwise(operands: Sequence[ir.Value], element: ir.Type) -> linalg.GenericOp:
    """A `linalg.generic` without a body, of tensors of one static shape, that makes a tensor of that shape."""
    shape = list(ir.RankedTensorType(operands[0].type).shape)
    init = tensor.EmptyOp(shape, element).result
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(len(shape)))
    maps = ir.ArrayAttr.get([identity] * (len(operands) + 1))
    kinds = ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * len(shape))
    return linalg.GenericOp([init.type], list(operands), [init], maps, kinds)
