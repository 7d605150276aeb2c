"""`lower-accumulations`: additions to sums that blocks share become reductions in the L2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, llvm, vector

from mlirfuse.dialect.accumulate import ALIGNMENT
from mlirfuse.dialect.accumulate import DEFINITION as ACCUMULATE
from mlirfuse.lowering.kernel_func import kernels, target_of_kernel
from mlirfuse.lowering.memory.addresses import global_pointer
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.support.rewriting import erase, ops_named

FLOAT = 4
"""Bytes of a float."""


@dataclass(frozen=True)
class LowerAccumulations(Pass):
    """Lowers `fuse.accumulate` to `red.add`, of two or four numbers at once where the target can and they are aligned.

    The reductions are relaxed and of device scope. `red` returns nothing, so that no thread waits for it. It is emitted
    as inline assembly, as the NVPTX backend lowers a vector's `llvm.atomicrmw` to a compare-and-swap loop, and
    `nvvm.inline_ptx` takes only integers as immediates.

    ```mlir
    "fuse.accumulate"(%v, %sums, %i, %j) {alignment = 16 : i64} : (vector<4xf32>, memref<1x64xf32>, index, index) -> ()
    // lower-accumulations
    llvm.inline_asm has_side_effects "red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, ...};", "l,f,f,f,f" %p, %x, ...
    ```
    """

    name: ClassVar[str] = "lower-accumulations"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            ops = ops_named(func.operation, ACCUMULATE.full_name)
            if not ops:
                continue
            vectors = target_of_kernel(func).has_vector_reductions
            for op in ops:
                with ir.InsertionPoint(op), op.location:
                    _accumulate(op, vectors=vectors)
                erase(op)
            remarks.applied(self, f"{len(ops)} accumulations lowered", func)


def _accumulate(op: ir.Operation, *, vectors: bool) -> None:
    value, sums, *indices = op.operands
    numbers = list(vector.ToElementsOp(value).results) if isinstance(value.type, ir.VectorType) else [value]
    aligned = ir.IntegerAttr(op.attributes[ALIGNMENT]).value if ALIGNMENT in op.attributes else FLOAT
    width = min(aligned, WIDEST_ACCESS) // FLOAT if vectors else 1
    *outer, last = indices
    for first in range(0, len(numbers), width):
        some = numbers[first : first + width]
        at = arith.addi(last, arith.constant(ir.IndexType.get(), first)) if first else last
        names = ", ".join(f"${1 + n}" for n in range(len(some)))
        shape, operand = ("", names) if len(some) == 1 else (f".v{len(some)}", f"{{{names}}}")
        text = f"red.relaxed.gpu.global.add{shape}.f32 [$0], {operand};"
        constraints = ",".join(["l"] + ["f"] * len(some))
        llvm.inline_asm(None, [global_pointer(sums, [*outer, at]), *some], text, constraints, has_side_effects=True)
