"""Makes the ops that copy an array to memory of its own."""

from __future__ import annotations

from collections.abc import Sequence

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
    if 0 in ir.RankedTensorType(source.type).shape:
        with ir.InsertionPoint(user), user.location:
            return tensor.EmptyOp(extents_of(source), ir.RankedTensorType(source.type).element_type).result
    return copied_together(user, [source], result)[0]


def copied_together(user: ir.Operation, sources: Sequence[ir.Value], result: int = BEHIND_RESHAPE) -> list[ir.Value]:
    """C-contiguous copies of tensors of one shape, made by one op in front of another one."""
    elements = [ir.RankedTensorType(source.type).element_type for source in sources]
    rank = ir.RankedTensorType(sources[0].type).rank
    with ir.InsertionPoint(user), user.location:
        inits = [tensor.EmptyOp(extents_of(v), e).result for v, e in zip(sources, elements, strict=True)]
        identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))
        parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
        maps, kinds = ir.ArrayAttr.get([identity] * (2 * len(sources))), ir.ArrayAttr.get([parallel] * rank)
        copy = linalg.GenericOp([init.type for init in inits], list(sources), inits, maps, kinds)
        copy.attributes[COPIED] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), result)
        block = copy.regions[0].blocks.append(*elements, *elements, arg_locs=[copy.location] * (2 * len(sources)))
        with ir.InsertionPoint(block):
            linalg.YieldOp(list(block.arguments)[: len(sources)])
    return list(copy.results)
