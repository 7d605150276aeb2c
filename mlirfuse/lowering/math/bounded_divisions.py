"""`lower-bounded-divisions`: divisions by numbers that are known not to be tiny or negative need no branch."""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith

from mlirfuse.analysis.arithmetic.ranges import LEAST_DIVISOR, MOST_DIVISOR, Ranges
from mlirfuse.analysis.arithmetic.rounded import is_rounded
from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.lowering.math.elements import by_element, constant_like, f32_ops
from mlirfuse.lowering.math.quotients import corrected_quotient, reciprocals
from mlirfuse.lowering.math.special_unit import reciprocal
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase, number_of

SCALE = 0.25
"""Brings divisors up to 2^128 to where the special unit's reciprocal is a normal number."""

LARGE = 2.0**100
"""Subnormal numbers divided by as much are 0, whatever becomes of their last bits."""


@dataclass(frozen=True)
class LowerBoundedDivisions(Pass):
    """Lowers `x / s` in `f32`, where s is known to be 2^-64 at least, to the special unit's reciprocal and corrections.

    `div.rn.f32` takes a dozen instructions and a branch, and calls a function for a dividend of zero, or very small or
    large numbers; the branch keeps the instructions of other elements from filling its waits. Sums of a constant and an
    absolute value, a square or an exponential, as in a sigmoid, are known not to be small
    (`analysis/arithmetic/ranges.py`).

    r = 1 / s is the unit's reciprocal after a Newton step, which is the steps that ptxas takes too: correctly rounded.
    A power of two over s is the power times r; another quotient is corrected by its remainder (`quotients.py`), and
    correctly rounded for dividends of magnitude 2^-99 and more. Infinities, zeros and NaN are those of IEEE division.
    Where s may exceed 2^126, x and s are divided by 4 first if s exceeds 2^100. Where all that is left of the quotient
    is rounded to half precision, x times the unit's reciprocal suffices.

    ```mlir
    %e = math.exp %x : f32
    %s = arith.addf %e, %one : f32
    %q = arith.divf %one, %s : f32
    // lower-bounded-divisions
    %0 = arith.mulf %s, %quarter : f32
    %1 = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%0) : (f32) -> f32
    %2 = math.fma %0, %1, %minus_one : f32
    %3 = arith.negf %2 : f32
    %4 = arith.minnumf %3, %one : f32        // NaN where s is infinite
    %5 = math.fma %1, %4, %1 : f32
    %q = arith.mulf %5, %quarter : f32
    ```
    """

    name: ClassVar[str] = "lower-bounded-divisions"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            found, ranges = f32_ops(func.operation, "arith.divf"), Ranges()
            bounded = {op: range_ for op in found if (range_ := ranges.of(op.operands[1]))[0] >= LEAST_DIVISOR}
            for op, (_, most) in bounded.items():
                with ir.InsertionPoint(op), op.location:
                    op.results[0].replace_all_uses_with(_lowered(op, scales=most > MOST_DIVISOR))
                erase(op)
            if bounded:
                remarks.applied(self, f"{len(bounded)} divisors are {LEAST_DIVISOR:.0e} at least", func)
            if len(bounded) < len(found):
                remarks.declined(self, f"{len(found) - len(bounded)} divisors may be tiny or negative", func)


def _lowered(op: ir.Operation, *, scales: bool) -> ir.Value:
    """The quotient of a division by a number that is not tiny; `scales` where it may be more than `MOST_DIVISOR`."""
    x, s = op.operands
    numerator = number_of(x)
    if is_rounded(op.results[0]):
        scale = constant_like(SCALE, x.type)
        scaled, divisor = (arith.mulf(x, scale), arith.mulf(s, scale)) if scales else (x, s)
        return arith.mulf(scaled, by_element(reciprocal, divisor))
    if numerator is not None and abs(frexp(numerator)[0]) == 0.5:
        divisor = arith.mulf(s, constant_like(SCALE, s.type)) if scales else s
        _, nearest = reciprocals(divisor, clamps=scales)
        factor = numerator * (SCALE if scales else 1.0)
        return nearest if factor == 1.0 else arith.mulf(nearest, constant_like(factor, x.type))
    # Negative: a remainder of 0 then keeps the sign of a zero quotient.
    if scales:
        # Only large divisors: a subnormal dividend would lose bits, which matter where the divisor is small.
        is_large = arith.cmpf(arith.CmpFPredicate.OGT, s, constant_like(LARGE, x.type))
        minus = arith.select(is_large, constant_like(-SCALE, x.type), constant_like(-1.0, x.type))
        scaled, divisor = arith.mulf(x, minus), arith.mulf(s, minus)
    else:
        scaled, divisor = arith.negf(x), arith.negf(s)
    above, nearest = reciprocals(divisor, clamps=scales)
    return corrected_quotient(scaled, above, arith.negf(divisor), nearest)
