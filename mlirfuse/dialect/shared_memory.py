"""Checks and extents of ring and mbarrier buffers, for the ops on shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir

from mlirfuse.support.dtypes import element_bytes

ATOM_BYTES = 128
"""Bytes of a row in one swizzle atom of a ring, which `schedule.model.machine` calls `SWIZZLE_BYTES`."""


def ring_problem(ring: ir.Value) -> str | None:
    """Why a buffer is no ring of swizzled stages, or None.

    A ring is a static workgroup memref of (stages, rows, columns). The number of rows is a multiple of 8, because the
    pattern of the 128-byte swizzle repeats every 8 rows, and the columns fill whole swizzle atoms.
    """
    if not is_workgroup(ring.type):
        return f"ring {ring.type} must be a memref in workgroup memory"
    type_ = ir.MemRefType(ring.type)
    if type_.rank != 3 or not type_.has_static_shape:
        return f"ring {type_} must have the static shape (stages, rows, columns)"
    _, rows, columns = type_.shape
    if rows % 8 or columns * element_bytes(type_) % ATOM_BYTES:
        return f"ring {type_}: a stage must have a multiple of 8 rows, each of whole {ATOM_BYTES}-byte swizzle atoms"
    return None


def barriers_problem(barriers: ir.Value) -> str | None:
    """Why a buffer holds no mbarriers, or None."""
    if not is_workgroup(barriers.type):
        return f"barriers {barriers.type} must be a memref in workgroup memory"
    type_ = ir.MemRefType(barriers.type)
    if type_.rank != 1 or not type_.has_static_shape or str(type_.element_type) != "i64":
        return f"barriers {type_} must be a static memref of rank 1 of i64"
    return None


def stage_bytes(type_: ir.MemRefType) -> int:
    """Bytes of one stage of a ring."""
    return prod(type_.shape[1:]) * element_bytes(type_)


def count_problem(op: ir.Operation, name: str) -> str | None:
    """Why an integer attribute is no count, or None."""
    attribute = op.attributes[name]
    if not isinstance(attribute, ir.IntegerAttr) or ir.IntegerAttr(attribute).value < 1:
        return f"{name} = {attribute} must be an integer of at least 1"
    return None


def workgroup_memref(shape: Sequence[int], element_type: ir.Type) -> ir.MemRefType:
    """The type of a contiguous array in shared memory."""
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    return ir.MemRefType.get(list(shape), element_type, memory_space=space)


def is_workgroup(type_: ir.Type) -> bool:
    """Whether a type is a memref in shared memory."""
    return isinstance(type_, ir.MemRefType) and "workgroup" in str(ir.MemRefType(type_).memory_space)
