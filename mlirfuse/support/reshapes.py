"""What the attributes of `tensor` and `memref` reshapes say."""

from __future__ import annotations

from mlir import ir


def reassociation(reshape: ir.Operation) -> list[list[int]]:
    """The axes that an `expand_shape` splits, or a `collapse_shape` joins, for each axis of the side with fewer."""
    groups = ir.ArrayAttr(reshape.attributes["reassociation"])
    return [[ir.IntegerAttr(axis).value for axis in ir.ArrayAttr(group)] for group in groups]
