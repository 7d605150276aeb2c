"""Reshapes of arguments that are not contiguous: the reshapes that are views, and the views' strides and alignment."""

from __future__ import annotations

from collections.abc import Mapping

from mlir import ir

from mlirfuse.dialect.attributes import ALIGN, STRIDES
from mlirfuse.dialect.gather_attribute import GATHER
from mlirfuse.schedule.model.machine import DEFAULT_ALIGNMENT
from mlirfuse.support import strides
from mlirfuse.support.dtypes import element_bytes
from mlirfuse.support.reshapes import reassociation


def reshaped_layout(reshape: ir.Operation, known: Mapping[str, ir.Attribute]) -> dict[str, ir.Attribute] | None:
    """`fuse.strides` and `fuse.align` of a reshape's result; None if the reshape may need a copy.

    Args:
        reshape: a `tensor.expand_shape` or a `tensor.collapse_shape`.
        known: the attributes of the reshaped array, with `fuse.strides`.
    """
    before = strides.entries_of(known[STRIDES])
    align = ir.IntegerAttr(known[ALIGN]).value if ALIGN in known else DEFAULT_ALIGNMENT
    groups = reassociation(reshape)
    if not groups:  # one side has rank 0, so all extents of the other are 1
        after: list[int] | None = [strides.RUN_TIME] * ir.RankedTensorType(reshape.results[0].type).rank
    elif reshape.name == "tensor.collapse_shape":
        after = strides.merged(before, groups, _extents(reshape.operands[0]))
    else:
        extents, size = _extents(reshape.results[0]), element_bytes(reshape.results[0].type)
        after = strides.split(before, groups, extents)
        align = strides.split_alignment(align, before, groups, extents, size)
    if after is None:
        return None
    i64 = ir.IntegerType.get_signless(64)
    return {STRIDES: strides.attribute_of(after), ALIGN: ir.IntegerAttr.get(i64, align)}


def axes_apart(type_: ir.Type, known: Mapping[str, ir.Attribute]) -> frozenset[int]:
    """The axes of an argument with these attributes that are not one in memory with the next one; of a gathered view,
    whose index the attributes divide, all.
    """
    if STRIDES not in known:
        return frozenset()
    own, extents = strides.entries_of(known[STRIDES]), _extents_of(type_)
    pairs = {axis: slice(axis, axis + 2) for axis in range(len(own) - 1)}
    return frozenset(
        axis
        for axis, pair in pairs.items()
        if GATHER in known or 1 in extents[pair] or strides.merged(own[pair], [[0, 1]], extents[pair]) is None
    )


def merged_strides(type_: ir.Type, known: Mapping[str, ir.Attribute], groups: strides.Groups) -> ir.Attribute:
    """`fuse.strides` of an argument with these attributes, of which axes that are one in memory become one."""
    after = strides.merged(strides.entries_of(known[STRIDES]), groups, _extents_of(type_))
    assert after is not None  # `axes_apart` says which axes stay
    return strides.attribute_of(after)


def may_be_reversed(known: Mapping[str, ir.Attribute]) -> bool:
    """Whether an argument with these attributes may have negative strides, which tensor maps do not support."""
    own = strides.entries_of(known[STRIDES]) if STRIDES in known else []
    return any(map(strides.may_be_reversed, own))


def _extents(value: ir.Value) -> list[int | None]:
    return _extents_of(value.type)


def _extents_of(tensor: ir.Type) -> list[int | None]:
    type_ = ir.RankedTensorType(tensor)
    return [None if type_.is_dynamic_dim(d) else n for d, n in enumerate(type_.shape)]
