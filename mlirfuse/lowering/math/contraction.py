"""`lower-contraction`: products that may be contracted, and the sums that use them, become fused multiply-adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.arithmetic.multiply_add import SUMS, allow_contraction, is_wide, may_contract
from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import ops_named


@dataclass(frozen=True)
class LowerContraction(Pass):
    """Marks the sums of a kernel that has products with `fastmath<contract>`, so that the backend fuses the two.

    A fused multiply-add rounds once instead of twice. The backend fuses a product and a sum that both carry the flag,
    also through vectors; other products are rounded by themselves (`mul.rn`), whatever flags their sums carry. Which
    products may be fused is decided by `fuse-multiply-add`, before ops are duplicated, or by the rule that emits both
    the products and their sum (`distribution/reduce/moments.py`). Half precision is left alone, and existing flags are
    kept.

    ```mlir
    %1 = arith.mulf %a, %b fastmath<contract> : f32
    %2 = arith.addf %c, %1 : f32
    // lower-contraction
    %1 = arith.mulf %a, %b fastmath<contract> : f32
    %2 = arith.addf %c, %1 fastmath<contract> : f32
    ```
    """

    name: ClassVar[str] = "lower-contraction"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            products = [op for op in ops_named(func.operation, "arith.mulf") if may_contract(op)]
            if not products:
                remarks.declined(self, "the kernel has no product that may be contracted", func)
                continue
            sums = [op for op in ops_named(func.operation, *SUMS) if is_wide(op.results[0].type)]
            marked = sum(map(allow_contraction, sums))
            remarks.applied(self, f"{len(products)} products may be contracted into {marked} sums", func)
