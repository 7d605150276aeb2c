"""`lower-divisions`: a division by a constant becomes a multiplication and its correction."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import copysign, frexp, ldexp
from typing import ClassVar

import numpy as np
from mlir import ir
from mlir.dialects import arith

from mlirfuse.analysis.arithmetic.casts import element_type
from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.lowering.math.elements import constant_like, is_double
from mlirfuse.lowering.math.quotients import DOUBLE_NUDGE, NUDGE, corrected_quotient
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase, number_of, ops_named


@dataclass(frozen=True)
class LowerDivisions(Pass):
    """Lowers `x / c` in `f32` and `f64`, for a constant c, to `q = x r; q + r (x - c q)` with r = 1 / c rounded.

    `div.rn.f32` costs about ten instructions and a branch, `div.rn.f64` more, and a call for zeros. The correction
    makes quotients of magnitude 2^-101 (2^-968) and more correctly rounded; smaller ones are within 1.5 units in the
    last place. Infinities, zeros and NaN are those of IEEE division. x and c are first multiplied by a power of two
    where c is less than 0.5, which keeps the remainder of small x, and by -1 where c is positive, which keeps the sign
    of zero. Divisors outside 2^-64 to 2^64 keep `div.rn`. So do powers of two, which LLVM turns into exact products.

    ```mlir
    %q = arith.divf %x, %c : f32      // %c = 5140
    // lower-divisions
    %0 = arith.negf %x : f32
    %1 = llvm.call_intrinsic "llvm.nvvm.mul.rz.f"(%0, %above) : (f32, f32) -> f32   // %above = -1/5140 - half a unit
    %2 = math.fma %1, %c, %0 : f32
    %3 = arith.minnumf %2, %largest : f32
    %q = math.fma %3, %r, %1 : f32    // %r = -1/5140
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
    """The constant that a division in single or double precision divides by, where the rewrite is exact."""
    value = number_of(op.operands[1])
    if str(element_type(op.results[0].type)) not in ("f32", "f64") or value is None:
        return None
    mantissa, exponent = frexp(value)
    return None if value == 0.0 or abs(mantissa) == 0.5 or abs(exponent) > 64 else value


def _divide(x: ir.Value, divisor: float) -> ir.Value:
    scale = -copysign(ldexp(1.0, max(0, -frexp(divisor)[1])), divisor)
    scaled = divisor * scale
    if is_double(x.type):
        nearest, above = 1.0 / scaled, float((1 + Fraction(DOUBLE_NUDGE)) / Fraction(scaled))
    else:
        nearest = float(np.float32(1.0) / np.float32(scaled))
        above = float(np.float32((1.0 + NUDGE) / scaled))
    numbers = (constant_like(value, x.type) for value in (above, -scaled, nearest))
    return corrected_quotient(_scaled(x, scale), *numbers)


def _scaled(x: ir.Value, scale: float) -> ir.Value:
    if abs(scale) == 1.0:
        return arith.negf(x) if scale < 0 else x
    return arith.mulf(x, constant_like(scale, x.type))
