"""The body of a `linalg.generic`, for one over other loops."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mlir import ir

from mlirfuse.support.rewriting import clone


def copy_body(old: ir.Operation, new: ir.Operation, known: Mapping[ir.Value, ir.Value] = MappingProxyType({})) -> None:
    """Gives a `linalg.generic` without a body that of another one, and its discardable attributes; `known` gives the
    values for those that the body captures.
    """
    source = old.regions[0].blocks[0]
    types = [argument.type for argument in source.arguments]
    block = new.regions[0].blocks.append(*types, arg_locs=[old.location] * len(types))
    mapping = {**known, **dict(zip(source.arguments, block.arguments, strict=True))}
    with ir.InsertionPoint(block):
        for inner in source.operations:
            clone(inner.operation, mapping)
    for name in old.attributes:
        if name.startswith("fuse."):
            new.attributes[name] = old.attributes[name]
