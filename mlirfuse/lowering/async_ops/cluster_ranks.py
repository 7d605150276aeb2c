"""`lower-cluster-ranks`: a block's number in its cluster is read from the register that holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, nvvm

from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase, ops_named

SIZE = "known_cluster_size"


@dataclass(frozen=True)
class LowerClusterRanks(Pass):
    """Lowers `gpu.cluster_block_id x` to a read of `%cluster_ctarank`, where clusters are known to be one-dimensional.

    Runs after every pass that emits `gpu.cluster_block_id`. Upstream reads `%cluster_ctaid.x`, which ptxas computes by
    dividing the block's number in the grid, and keeps in a register or spills up to the exchange within the cluster.
    The rank is a special register, which ptxas reads again where registers are short. In a one-dimensional cluster both
    are the same number.

    ```mlir
    gpu.func @f() kernel attributes {known_cluster_size = array<i32: 4, 1, 1>} {
      %r = gpu.cluster_block_id x
    ```
    becomes
    ```mlir
    gpu.func @f() kernel attributes {known_cluster_size = array<i32: 4, 1, 1>} {
      %0 = nvvm.read.ptx.sreg.cluster.ctarank range <i32, 0, 4> : i32
      %r = arith.index_castui %0 : i32 to index
    ```
    """

    name: ClassVar[str] = "lower-cluster-ranks"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        along_x = ir.Attribute.parse("#gpu<dim x>")
        for func in kernels(module):
            ids = ops_named(func.operation, "gpu.cluster_block_id")
            ops = [op for op in ids if op.attributes["dimension"] == along_x]
            if not ops:
                continue
            size = list(ir.DenseI32ArrayAttr(func.attributes[SIZE])) if SIZE in func.attributes else []
            if size[1:] != [1, 1]:
                remarks.declined(self, f"the kernel's clusters are not known to be one-dimensional: {size}", func)
                continue
            known = ir.Attribute.parse(f"#llvm.constant_range<i32, 0, {size[0]}>")
            for op in ops:
                with ir.InsertionPoint(op), op.location:
                    rank = nvvm.read_ptx_sreg_cluster_ctarank(ir.IntegerType.get_signless(32), range=known)
                    op.results[0].replace_all_uses_with(arith.index_castui(op.results[0].type, rank))
                erase(op)
            remarks.applied(self, f"{len(ops)} cluster block ids are read from the register of the rank", func)
