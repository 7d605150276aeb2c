"""`lower-float-to-int`: out-of-range casts of floats to integers give an arbitrary integer, not poison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import llvm

from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import ops_named

CASTS = ("arith.fptosi", "arith.fptoui")


@dataclass(frozen=True)
class LowerFloatToInt(Pass):
    """Freezes the results of casts of floats to integers.

    The cast of NaN, or of a number beyond the integer type's range, is undefined in NumPy and poison in LLVM. LLVM
    removes stores of poison, which would leave a program's result unwritten (LLVM Language Reference, `fptosi` and
    "Poison Values"). A frozen cast gives an arbitrary integer there, and costs no instruction.

    ```mlir
    %i = arith.fptosi %x : f32 to i32
    // lower-float-to-int
    %0 = arith.fptosi %x : f32 to i32
    %i = llvm.freeze %0 : i32
    ```
    """

    name: ClassVar[str] = "lower-float-to-int"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            casts = [op for op in ops_named(func.operation, *CASTS) if not _is_frozen(op.results[0])]
            for op in casts:
                with ir.InsertionPoint.after(op), op.location:
                    frozen = llvm.FreezeOp(op.results[0])
                op.results[0].replace_all_uses_except(frozen.result, frozen.operation)
            if casts:
                remarks.applied(self, f"{len(casts)} casts of floats to integers are frozen", func)


def _is_frozen(value: ir.Value) -> bool:
    """Whether all uses of a value are freezes, as after an earlier run of the pass."""
    uses = list(value.uses)
    return bool(uses) and all(use.owner.name == "llvm.freeze" for use in uses)
