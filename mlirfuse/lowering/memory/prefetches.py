"""`lower-prefetches`: a prefetch of rows into the L2 becomes one bulk prefetch by one thread."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, gpu, llvm, memref, nvvm, scf

from mlirfuse.errors import TargetError
from mlirfuse.lowering.kernel_func import kernels, target_of_kernel
from mlirfuse.lowering.memory.addresses import byte_offset, global_pointer
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import erase, ops_named
from mlirfuse.tiling.tiles import index

ALIGNMENT = 16
"""What the address and the size of `cp.async.bulk.prefetch` are multiples of (PTX ISA), bytes."""


@dataclass(frozen=True)
class LowerPrefetches(Pass):
    """Lowers `fuse.prefetch_rows` to `cp.async.bulk.prefetch.L2`, by the block's first thread, where all rows exist.

    Addresses are rounded down to 16 bytes, and so are sizes. Each block of a cluster prefetches a part.

    ```mlir
    "fuse.prefetch_rows"(%x, %row) {rows = 1 : i64} : (memref<?x4096xf16>, index) -> ()
    // lower-prefetches
    %first = arith.cmpi eq, %thread, %c0 : index
    %exists = arith.cmpi ule, %end, %rows : index
    %asks = arith.andi %first, %exists : i1
    scf.if %asks {
      %p = llvm.intr.ptrmask %start, %minus_16 : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>
      nvvm.cp.async.bulk.prefetch %p, %size : !llvm.ptr<1>
    }
    ```

    Raises `TargetError` where a kernel prefetches and its target copies nothing in bulk.
    """

    name: ClassVar[str] = "lower-prefetches"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            ops = ops_named(func.operation, "fuse.prefetch_rows")
            if not ops:
                continue
            target = target_of_kernel(func)
            if not target.has_tma:
                raise TargetError(
                    f"kernel {func.attributes['sym_name']} prefetches in bulk, which {target.chip} does not support",
                    where=ops[0],
                    hint="choose sm_90 or later, or leave out fuse-prefetch-tiles",
                )
            cluster = 1
            if "known_cluster_size" in func.attributes:
                cluster = prod(ir.DenseI32ArrayAttr(func.attributes["known_cluster_size"]))
            for op in ops:
                with ir.InsertionPoint(op), op.location:
                    _lower(op, cluster)
                erase(op)
            remarks.applied(self, f"{len(ops)} prefetches lowered", func)


def _lower(op: ir.Operation, cluster: int) -> None:
    buffer, row = op.operands
    buffer_type = ir.MemRefType(buffer.type)
    rows = ir.IntegerAttr(op.attributes["rows"]).value
    row_bytes = prod(list(buffer_type.shape)[1:]) * from_mlir(buffer_type.element_type).bytes
    part = rows * row_bytes // cluster
    size = part // ALIGNMENT * ALIGNMENT
    if not size:
        return
    first = arith.cmpi(arith.CmpIPredicate.eq, gpu.thread_id(gpu.Dimension.x), index(0))
    end = arith.addi(row, index(rows))
    exists = arith.cmpi(arith.CmpIPredicate.ule, end, memref.dim(buffer, index(0)))
    branch = scf.IfOp(arith.andi(first, exists))
    with ir.InsertionPoint(branch.then_block):
        start = global_pointer(buffer, [row, *[index(0)] * (buffer_type.rank - 1)])
        i64 = ir.IntegerType.get_signless(64)
        if cluster > 1:
            offset = arith.muli(gpu.cluster_block_id(gpu.Dimension.x), index(part))
            start = byte_offset(start, arith.index_cast(i64, offset))
        pointer = llvm.intr_ptrmask(start, arith.constant(i64, -ALIGNMENT))
        nvvm.cp_async_bulk_prefetch(pointer, arith.constant(ir.IntegerType.get_signless(32), size))
        scf.YieldOp([])
