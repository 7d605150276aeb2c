"""`lower-rounded-divisions`: approximate divisions for quotients that are rounded to half precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import llvm

from mlirfuse.analysis.arithmetic.rounded import is_rounded
from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.lowering.math.elements import by_element, f32_ops
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase


@dataclass(frozen=True)
class LowerRoundedDivisions(Pass):
    """Lowers `arith.divf` in `f32` to `div.full`, where all that is left of the quotient is rounded to half precision.

    `div.rn.f32` takes about a dozen instructions, and calls a function for very small or large numbers; ptxas spills
    live registers around the call. `div.full.f32` is within two units in the last place for all numbers, with the
    infinities, zeros and NaN of IEEE division (PTX ISA, `div`), an error 2^11 times smaller than the cast's. A quotient
    within two units of the largest number may become infinite, as it does in the cast, unless a product in between
    makes it smaller. Divisions by constants and by shared divisors are left to `lower-divisions` and
    `lower-shared-divisions`.

    ```mlir
    %q = arith.divf %x, %y : f32
    %h = arith.truncf %q : f32 to bf16
    // lower-rounded-divisions
    %q = llvm.call_intrinsic "llvm.nvvm.div.full"(%x, %y) : (f32, f32) -> f32
    %h = arith.truncf %q : f32 to bf16
    ```
    """

    name: ClassVar[str] = "lower-rounded-divisions"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            found = f32_ops(func.operation, "arith.divf")
            rounded = [op for op in found if is_rounded(op.results[0])]
            for op in rounded:
                with ir.InsertionPoint(op), op.location:
                    op.results[0].replace_all_uses_with(by_element(_quotient, *op.operands))
                erase(op)
            if rounded:
                remarks.applied(self, f"{len(rounded)} quotients are rounded to half precision", func)
            elif found:
                remarks.declined(self, f"{len(found)} quotients must be exact in single precision", func)


def _quotient(x: ir.Value, y: ir.Value) -> ir.Value:
    return llvm.CallIntrinsicOp(x.type, "llvm.nvvm.div.full", [x, y], [], []).results[0]
