"""Addresses of elements of memrefs, for accesses without an upstream op."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from mlir import ir
from mlir.dialects import arith, llvm, memref

from mlirfuse.distribution.threads.scalars import add, constant, multiply
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import split_constant

GLOBAL, SHARED = 1, 3
"""LLVM's address spaces."""

_DYNAMIC = -(1 << 31)
"""Marks an index of `llvm.getelementptr` that is a value, among its constant indices."""

_CONSTANT_BITS = 29
"""Bits of a constant index of `llvm.getelementptr`, sign included: MLIR's `GEPConstantIndex` aborts on larger ones."""


def global_pointer(base: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    """The global-memory pointer to `base[indices]`."""
    return element_pointer(base, indices, GLOBAL)


def element_pointer(base: ir.Value, indices: Sequence[ir.Value], space: int) -> ir.Value:
    """The pointer to `base[indices]` in an address space; index arithmetic is in 64 bits.

    The constant part of the indices is added last, to the pointer, so that it becomes the immediate offset of the
    access and all accesses of a thread share one pair of address registers.
    """
    address, constant_bytes = element_address(base, indices)
    i64 = ir.IntegerType.get_signless(64)
    pointer = llvm.inttoptr(ir.Type.parse(f"!llvm.ptr<{space}>"), arith.index_cast(i64, address))
    return byte_offset(pointer, constant_bytes) if constant_bytes else pointer


def element_address(base: ir.Value, indices: Sequence[ir.Value]) -> tuple[ir.Value, int]:
    """The byte address (index) of `base[indices]` without the constant part of the indices, and that part in bytes.

    A constant part that exceeds an immediate offset is added to the address.
    """
    type_ = ir.MemRefType(base.type)
    strides, offset = type_.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    described = memref.ExtractStridedMetadataOp(base) if dynamic in (offset, *strides) else None
    constant_bytes, size = 0, from_mlir(type_.element_type).bytes
    terms: list[ir.Value] = []
    if described is not None and offset == dynamic:
        terms.append(described.offset)
    elif offset:
        terms.append(constant(offset))
    for i, (position, stride) in enumerate(zip(indices, strides, strict=True)):
        if described is not None and stride == dynamic:
            terms.append(arith.muli(position, described.strides[i]))
            continue
        position, known = split_constant(position)
        constant_bytes += known * stride * size
        terms.append(multiply(position, stride))
    linear = reduce(add, terms) if terms else constant(0)
    start = memref.extract_aligned_pointer_as_index(base)
    address = arith.addi(start, multiply(linear, size))
    if _fits(constant_bytes):
        return address, constant_bytes
    return arith.addi(address, constant(constant_bytes)), 0


def byte_offset(pointer: ir.Value, offset: ir.Value | int) -> ir.Value:
    """The pointer plus `offset` bytes, an int or an i64."""
    byte = ir.IntegerType.get_signless(8)
    if isinstance(offset, int) and not _fits(offset):
        offset = arith.constant(ir.IntegerType.get_signless(64), offset)
    dynamic, constants = ([], [offset]) if isinstance(offset, int) else ([offset], [_DYNAMIC])
    return llvm.getelementptr(pointer.type, pointer, dynamic, constants, byte, llvm.GEPNoWrapFlags.none)


def _fits(constant_bytes: int) -> bool:
    """Whether an offset in bytes fits the immediate of an instruction."""
    return -(1 << _CONSTANT_BITS - 1) <= constant_bytes < 1 << _CONSTANT_BITS - 1
