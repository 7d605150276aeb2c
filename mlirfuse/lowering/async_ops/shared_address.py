"""Addresses in shared memory, as the NVVM ops of barriers and asynchronous copies take them."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, llvm, memref

from mlirfuse.dialect.shared_memory import stage_bytes
from mlirfuse.support.dtypes import element_bytes


def element_address(buffer: ir.Value, index: ir.Value) -> ir.Value:
    """The byte address (index) of an element of a workgroup memref of rank 1."""
    return _offset(buffer, index, element_bytes(ir.MemRefType(buffer.type)))


def stage_address(ring: ir.Value, stage: ir.Value) -> ir.Value:
    """The byte address (index) of a stage of a ring."""
    return _offset(ring, stage, stage_bytes(ir.MemRefType(ring.type)))


def shared_pointer(address: ir.Value, offset: int = 0) -> ir.Value:
    """The `!llvm.ptr<3>` to a byte address."""
    if offset:
        address = arith.addi(address, arith.constant(ir.IndexType.get(), offset))
    pointer = ir.Type.parse("!llvm.ptr<3>")
    return llvm.inttoptr(pointer, arith.index_cast(ir.IntegerType.get_signless(64), address))


def _offset(buffer: ir.Value, index: ir.Value, size: int) -> ir.Value:
    base = memref.extract_aligned_pointer_as_index(buffer)
    return arith.addi(base, arith.muli(index, arith.constant(ir.IndexType.get(), size)))
