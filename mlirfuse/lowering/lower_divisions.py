"""`lower-divisions`: a division by a constant becomes a multiplication and its correction."""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp
from typing import ClassVar

import numpy as np
from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.passes.base import Pass, Remarks
from mlirfuse.rewriting import erase, ops_named


@dataclass(frozen=True)
class LowerDivisions(Pass):
    """Lowers `x / c` in `f32`, for a constant c, to `q = x r; q + r (x - c q)` with r = 1 / c rounded.

    `div.rn.f32` costs about ten instructions and a branch. The correction step makes the quotient correctly rounded
    (Markstein, "IA-64 and Elementary Functions", 2000, theorem 8.3) as long as neither it nor the remainder is
    subnormal, and within 1.5 units in the last place there; where the first quotient is not finite it is the answer
    already. Divisors outside 2^-64 to 2^64 are left
    to the hardware's sequence, as are powers of two, which LLVM turns into exact products.

    ```mlir
    %q = arith.divf %x, %c : f32      // %c = 5140
    // lower-divisions
    %0 = arith.mulf %x, %r : f32      // %r = 1/5140
    %1 = math.fma %0, %minus_c, %x : f32
    %2 = math.fma %1, %r, %0 : f32
    %q = arith.select %finite, %2, %0 : f32
    ```
    """

    name: ClassVar[str] = "lower-divisions"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            done = 0
            for op in ops_named(func.operation, "arith.divf"):
                divisor = _divisor(op)
                if divisor is None:
                    continue
                with ir.InsertionPoint(op), op.location:
                    op.results[0].replace_all_uses_with(_divide(op.operands[0], divisor))
                erase(op)
                done += 1
            if done:
                remarks.applied(self, f"{done} divisions by a constant", func)


def _divisor(op: ir.Operation) -> float | None:
    """The constant that a single-precision division divides by, where the rewrite is exact."""
    if not isinstance(op.results[0].type, ir.F32Type):
        return None
    maker = op.operands[1].owner
    if isinstance(maker, ir.Block) or maker.operation.name != "arith.constant":
        return None
    value = ir.FloatAttr(maker.operation.attributes["value"]).value
    mantissa, exponent = frexp(value)
    return None if value == 0.0 or abs(mantissa) == 0.5 or abs(exponent) > 64 else value


def _divide(x: ir.Value, divisor: float) -> ir.Value:
    reciprocal = float(np.float32(1.0) / np.float32(divisor))
    r, minus_c, infinity = (_constant(v) for v in (reciprocal, -divisor, float("inf")))
    first = arith.mulf(x, r)
    corrected = math.fma(math.fma(first, minus_c, x), r, first)
    finite = arith.cmpf(arith.CmpFPredicate.OLT, math.absf(first), infinity)
    return arith.select(finite, corrected, first)


def _constant(value: float) -> ir.Value:
    return arith.constant(ir.F32Type.get(), ir.FloatAttr.get(ir.F32Type.get(), value))
