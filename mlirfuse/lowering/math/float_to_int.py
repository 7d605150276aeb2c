"""`lower-float-to-int`: a float that no integer of the type is near becomes some integer, and nothing worse."""

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
    """Freezes what casts of floats to integers give.

    NaN, and numbers beyond the integer type, are no integer: NumPy's result is undefined, and LLVM's is poison. LLVM
    removes the store of a poison that it has folded, with which the result of a program would stay unwritten
    (LLVM Language Reference, `fptosi` and "Poison Values"). A frozen cast gives an arbitrary integer there, and costs
    no instruction.

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
    """Whether all that reads a value freezes it, as where the pass has run before."""
    uses = list(value.uses)
    return bool(uses) and all(use.owner.name == "llvm.freeze" for use in uses)
