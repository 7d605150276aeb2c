"""Addresses of elements of memrefs, for accesses that upstream has no op for."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, llvm, memref

from mlirfuse.dtypes import from_mlir


def global_pointer(base: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    """The global-memory pointer to `base[indices]`; index arithmetic is in 64 bits."""
    type_ = ir.MemRefType(base.type)
    index, i64 = ir.IndexType.get(), ir.IntegerType.get_signless(64)
    strides, offset = type_.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    described = memref.ExtractStridedMetadataOp(base)  # of which only what the type leaves open is used
    linear = described.offset if offset == dynamic else arith.constant(index, offset)
    for i, (position, stride) in enumerate(zip(indices, strides, strict=True)):
        step = described.strides[i] if stride == dynamic else arith.constant(index, stride)
        linear = arith.addi(linear, arith.muli(position, step))
    size = from_mlir(type_.element_type).bytes
    start = memref.extract_aligned_pointer_as_index(base)
    address = arith.addi(start, arith.muli(linear, arith.constant(index, size)))
    return llvm.inttoptr(ir.Type.parse("!llvm.ptr<1>"), arith.index_cast(i64, address))
