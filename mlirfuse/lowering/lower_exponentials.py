"""`lower-exponentials`: exponentials that need not be exact to the last bit are computed by the special unit."""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log2
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, llvm, vector

from mlirfuse.analysis.casts import element_type
from mlirfuse.analysis.rounded import is_rounded
from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.passes.base import Pass, Remarks
from mlirfuse.rewriting import ops_named


@dataclass(frozen=True)
class LowerExponentials(Pass):
    """Lowers `math.exp` in `f32` to `ex2.approx.ftz(x log2(e))` where its flags allow it, or half precision hides it.

    libdevice's `expf` takes eight instructions, this two, which matters where a kernel would otherwise stream at the
    speed of memory. The relative error is |x| 2^-24 + 2^-22, which is less than 2^-17 wherever the result is finite;
    below 2^-126 the result is 0. That is taken where the op carries `fastmath<afn>`, and where all that is left of the
    result is rounded to half precision, whose units are 2^-11 or more: products and quotients keep a relative error, so
    the result may pass through those on the way to the cast; sums may not, but that of a sigmoid, 1 + exp(-x).

    ```mlir
    %e = math.exp %x : f32
    %q = arith.divf %e, %s : f32
    %h = arith.truncf %q : f32 to f16
    // lower-exponentials
    %0 = arith.mulf %x, %log2e : f32
    %e = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%0) : (f32) -> f32
    ```
    """

    name: ClassVar[str] = "lower-exponentials"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            found = [
                op for op in ops_named(func.operation, "math.exp") if str(element_type(op.results[0].type)) == "f32"
            ]
            chosen = [op for op in found if "afn" in str(op.attributes["fastmath"]) or is_rounded(op.results[0])]
            for op in chosen:
                with ir.InsertionPoint(op), op.location:
                    op.results[0].replace_all_uses_with(_exponential(op.operands[0]))
                op.erase()
            if chosen:
                remarks.applied(self, f"{len(chosen)} exponentials are computed by the special unit", func)
            elif found:
                remarks.declined(self, f"{len(found)} exponentials must be exact in single precision", func)


def _exponential(x: ir.Value) -> ir.Value:
    f32 = ir.F32Type.get()
    factor = arith.constant(f32, ir.FloatAttr.get(f32, log2(e)))
    if not isinstance(x.type, ir.VectorType):
        return _exp2(arith.mulf(x, factor))
    scaled = arith.mulf(x, vector.broadcast(x.type, factor))
    return vector.from_elements(x.type, [_exp2(element) for element in vector.ToElementsOp(scaled).results])


def _exp2(x: ir.Value) -> ir.Value:
    call = llvm.CallIntrinsicOp(x.type, "llvm.nvvm.ex2.approx.ftz", [x], [], [])
    return call.results[0]
