"""Address arithmetic of kernels whose strides may be negative.

Upstream lowers an access of a memref to additions and multiplications that it says do not wrap as unsigned numbers, and
to a pointer that only moves up. With a negative stride both are undefined behaviour.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import llvm

from mlirfuse.support.rewriting import erase, ops_named

_SIGNED = {"llvm.mul": llvm.MulOp, "llvm.add": llvm.AddOp}


def allow_negative_strides(kernel: ir.Operation) -> None:
    """Rebuilds the address arithmetic of an `llvm.func` without flags that hold for unsigned numbers only."""
    for op in ops_named(kernel, *_SIGNED):
        with ir.InsertionPoint(op), op.location:
            made = _SIGNED[op.name](*op.operands, llvm.IntegerOverflowFlags.none)
        _replace(op, made.result)
    for op in ops_named(kernel, "llvm.getelementptr"):
        base, *indices = op.operands
        known, element = op.attributes["rawConstantIndices"], op.attributes["elem_type"]
        with ir.InsertionPoint(op), op.location:
            made = llvm.GEPOp(op.results[0].type, base, indices, known, element, llvm.GEPNoWrapFlags.none)
        _replace(op, made.result)


def _replace(op: ir.Operation, value: ir.Value) -> None:
    op.results[0].replace_all_uses_with(value)
    erase(op)
