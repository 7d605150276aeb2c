"""Lines of 128 bytes, which tensor maps copy rows of tiles in."""

from __future__ import annotations

from mlir import ir

from mlirfuse.schedule.model.machine import SWIZZLE_BYTES
from mlirfuse.support.dtypes import from_mlir


def line_of(value: ir.Value) -> int:
    """The elements of an array that a line has."""
    return SWIZZLE_BYTES // from_mlir(ir.RankedTensorType(value.type).element_type).bytes
