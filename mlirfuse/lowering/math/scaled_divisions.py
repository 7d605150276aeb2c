"""`lower-scaled-divisions`: divisions by any number, without a branch."""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.analysis.arithmetic.casts import element_type
from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.lowering.math.elements import by_element, constant_like
from mlirfuse.lowering.math.quotients import reciprocals, truncated_product
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase, number_of, ops_named

LARGE, LESS = 2.0**96, 2.0**-32
"""A divisor of larger magnitude is multiplied by `LESS`, whose reciprocal by the special unit is a normal number."""

SMALL, MORE = 2.0**-64, 2.0**64
"""A divisor of smaller magnitude is multiplied by `MORE`, likewise. Where that makes the dividend infinite, so is the
quotient; and the remainder of what is multiplied can be represented."""


@dataclass(frozen=True)
class LowerScaledDivisions(Pass):
    """Lowers `x / s` in `f32` to the special unit's reciprocal of a scaled s, and corrections.

    `div.rn.f32` branches to a function for small and large numbers, and for a dividend of zero, such as the overlap of
    two boxes mostly is. All lanes wait for one that branches, and the branch keeps the instructions of other elements
    from filling its waits. What is left of divisions by the passes before takes 16 instructions here, whatever numbers
    it is of.

    x and s are multiplied by a power of two, which is 1 but for an s of more than 2^96 or less than 2^-64. The
    quotient by the reciprocal, which is made as in `lower-bounded-divisions`, is corrected by its remainder unless that
    is 0 or, where the quotient or s is infinite or s is 0, NaN. Quotients are correctly rounded but for dividends of
    less than 2^-99 by an s of 2^-64 and more, whose quotients are within 1.5 units in the last place. Infinities, zeros
    and NaN are those of IEEE division. A power of two over s is the power times the reciprocal.

    ```mlir
    %q = arith.divf %x, %s : f32
    // lower-scaled-divisions
    %0 = math.absf %s : f32
    %1 = arith.cmpf ogt, %0, %large : f32
    %2 = arith.select %1, %less, %one : f32
    %3 = arith.cmpf olt, %0, %small : f32
    %k = arith.select %3, %more, %2 : f32
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
            found = [
                op for op in ops_named(func.operation, "arith.divf") if str(element_type(op.results[0].type)) == "f32"
            ]
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
    """The power of two by which a divisor, and what it divides, is multiplied."""
    size = math.absf(s)
    large, less, small, more, one = (constant_like(n, s.type) for n in (LARGE, LESS, SMALL, MORE, 1.0))
    scale = arith.select(arith.cmpf(arith.CmpFPredicate.OGT, size, large), less, one)
    return arith.select(arith.cmpf(arith.CmpFPredicate.OLT, size, small), more, scale)
