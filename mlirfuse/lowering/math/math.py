"""`lower-math`: math functions whose upstream lowering is less precise than the op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import llvm

from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase, ops_named


@dataclass(frozen=True)
class LowerMath(Pass):
    """Lowers `math.sqrt` to LLVM's intrinsic, which the backend rounds correctly.

    Upstream calls libdevice's `__nv_sqrtf`, which asks `__nvvm_reflect("__CUDA_PREC_SQRT")`; LLVM 22 answers 0
    whatever the module's flags say, and the square root comes out as `sqrt.approx`. The intrinsic gives `sqrt.rn`, and
    `sqrt.approx` only under `fastmath<afn>`. (`llvm.intr.sqrt` would not do: `convert-gpu-to-nvvm` refuses it.)

    ```mlir
    %r = math.sqrt %x : vector<4xf32>
    // lower-math
    %r = llvm.call_intrinsic "llvm.sqrt"(%x) : (vector<4xf32>) -> vector<4xf32>
    ```
    """

    name: ClassVar[str] = "lower-math"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            roots = ops_named(func.operation, "math.sqrt")
            for op in roots:
                with ir.InsertionPoint(op), op.location:
                    # The same bits under another dialect's attribute: `fastmath<afn>` in both.
                    flags = ir.Attribute.parse(str(op.attributes["fastmath"]).replace("#arith.", "#llvm."))
                    call = llvm.CallIntrinsicOp(
                        op.results[0].type, "llvm.sqrt", [op.operands[0]], [], [], fastmathFlags=flags
                    )
                op.results[0].replace_all_uses_with(call.results[0])
                erase(op)
            if roots:
                remarks.applied(self, f"{len(roots)} square roots are rounded correctly", func)
