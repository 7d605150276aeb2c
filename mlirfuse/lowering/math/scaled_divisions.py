"""`lower-scaled-divisions`: divisions by any number, without a branch."""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.lowering.math.elements import bits_like, bits_type, by_element, constant_like, f32_ops
from mlirfuse.lowering.math.quotients import reciprocals, truncated_product
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase, number_of

HALF_EXPONENT, ONE_AND_A_HALF = 0x7F << 23, (127 + 63) << 23
"""Where half of a float32's exponent lies in its bits, shifted by one; and one and a half times the exponents' bias."""


@dataclass(frozen=True)
class LowerScaledDivisions(Pass):
    """Lowers `x / s` in `f32` to the special unit's reciprocal of a scaled s, and corrections.

    `div.rn.f32` branches to a function for small and large numbers, and for a dividend of zero, such as the overlap of
    two boxes mostly is. All lanes wait for one that branches, and the branch keeps the instructions of other elements
    from filling its waits. What is left of divisions by the passes before takes 15 instructions here, whatever numbers
    it is of.

    x and s are multiplied by 2^-e, where 2^2e is near to the magnitude of s, so that s and its reciprocal become normal
    numbers: halfway to the quotient, x overflows only where that does. The quotient by the reciprocal, which is made as
    in `lower-bounded-divisions`, is corrected by its remainder unless that is 0 or, where the quotient or s is infinite
    or s is 0, NaN. Quotients of magnitude 2^-101 and more, of dividends of 2^-99 and more, are correctly rounded, and
    others within 1.5 units in the last place. Infinities, zeros and NaN are those of IEEE division. A power of two over
    s is the power times the reciprocal.

    ```mlir
    %q = arith.divf %x, %s : f32
    // lower-scaled-divisions
    %0 = arith.bitcast %s : f32 to i32
    %1 = arith.shrui %0, %c1 : i32
    %2 = arith.andi %1, %half_exponent : i32
    %3 = arith.subi %one_and_a_half, %2 : i32
    %k = arith.bitcast %3 : i32 to f32
    %4 = arith.mulf %s, %k : f32
    %5 = arith.mulf %x, %k : f32
    %6 = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%4) : (f32) -> f32
    ...                                             // %above: 1 / %4 + half a unit, %r: rounded to nearest
    %7 = llvm.call_intrinsic "llvm.nvvm.mul.rz.f"(%5, %above) : (f32, f32) -> f32
    %8 = arith.negf %4 : f32
    %9 = math.fma %7, %8, %5 : f32
    %10 = math.fma %9, %r, %7 : f32
    %11 = arith.cmpf one, %9, %zero : f32
    %q = arith.select %11, %10, %7 : f32
    ```
    """

    name: ClassVar[str] = "lower-scaled-divisions"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            found = f32_ops(func.operation, "arith.divf")
            for op in found:
                with ir.InsertionPoint(op), op.location:
                    op.results[0].replace_all_uses_with(_quotient(*op.operands))
                erase(op)
            if found:
                remarks.applied(self, f"{len(found)} divisions have no branch", func)
            else:
                remarks.declined(self, "no division in single precision is left", func)


def _quotient(x: ir.Value, s: ir.Value) -> ir.Value:
    scale = _scale(s)
    divisor = arith.mulf(s, scale)
    above, nearest = reciprocals(divisor, clamps=True)
    numerator = number_of(x)
    if numerator is not None and abs(frexp(numerator)[0]) == 0.5:
        return arith.mulf(arith.mulf(nearest, scale), x)
    scaled = arith.mulf(x, scale)
    first = by_element(truncated_product, scaled, above)
    rest = math.fma(first, arith.negf(divisor), scaled)
    is_inexact = arith.cmpf(arith.CmpFPredicate.ONE, rest, constant_like(0.0, x.type))
    return arith.select(is_inexact, math.fma(rest, nearest, first), first)


def _scale(s: ir.Value) -> ir.Value:
    """2^-e for a divisor of magnitude 2^(2e - 1) up to 2^(2e + 1), from the exponent's bits but the last."""
    bits = bits_type(s.type)
    halved = arith.andi(arith.shrui(arith.bitcast(bits, s), bits_like(1, bits)), bits_like(HALF_EXPONENT, bits))
    return arith.bitcast(s.type, arith.subi(bits_like(ONE_AND_A_HALF, bits), halved))
