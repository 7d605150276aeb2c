"""Makes the ops that copy an array to memory of its own."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import linalg, tensor

from mlirfuse.dialect.copies import COPIED
from mlirfuse.support.extents import extents_of

BEHIND_RESHAPE = -1
"""The `fuse.copied` of a copy that is no result of the function."""


def copied(user: ir.Operation, source: ir.Value, result: int = BEHIND_RESHAPE) -> ir.Value:
    """A C-contiguous copy of a tensor, made in front of an op; `result` is the function's result that the copy is.

    The copy of a tensor with a static extent of 0 is a `tensor.empty`, which no kernel writes.
    """
    type_ = ir.RankedTensorType(source.type)
    with ir.InsertionPoint(user), user.location:
        init = tensor.EmptyOp(extents_of(source), type_.element_type).result
        if 0 in type_.shape:
            return init
        identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank))
        parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
        maps, kinds = ir.ArrayAttr.get([identity] * 2), ir.ArrayAttr.get([parallel] * type_.rank)
        copy = linalg.GenericOp([type_], [source], [init], maps, kinds)
        copy.attributes[COPIED] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), result)
        block = copy.regions[0].blocks.append(*[type_.element_type] * 2, arg_locs=[copy.location] * 2)
        with ir.InsertionPoint(block):
            linalg.YieldOp([block.arguments[0]])
    return copy.results[0]
