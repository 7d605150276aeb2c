"""Reshapes of arguments that are not contiguous: the reshapes that are views, and the views' strides and alignment."""

from __future__ import annotations

from collections.abc import Mapping

from mlir import ir

from mlirfuse.dialect.attributes import ALIGN, STRIDES
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
    before = list(ir.DenseI64ArrayAttr(known[STRIDES]))
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
    return {STRIDES: ir.DenseI64ArrayAttr.get(after), ALIGN: ir.IntegerAttr.get(i64, align)}


def may_be_reversed(known: Mapping[str, ir.Attribute]) -> bool:
    """Whether an argument with these attributes may have negative strides, which tensor maps do not support."""
    return STRIDES in known and strides.NEGATIVE in ir.DenseI64ArrayAttr(known[STRIDES])


def _extents(value: ir.Value) -> list[int | None]:
    type_ = ir.RankedTensorType(value.type)
    return [None if type_.is_dynamic_dim(d) else n for d, n in enumerate(type_.shape)]
