"""Correctly rounded quotients `x / s` from the reciprocal of s."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, llvm, math

from mlirfuse.lowering.math.elements import by_element, constant_like, is_double
from mlirfuse.lowering.math.special_unit import reciprocal

NUDGE = 2.0**-25
"""Relative excess over 1 / s of the reciprocal used in truncated products: half a unit in the last place at most.

A product with a reciprocal that is rounded to nearest is less than one unit from the quotient. Half a unit added and
truncated, the product is one of the two numbers next to a quotient near the midpoint between them; only near a midpoint
must the correction be exact (Markstein, "IA-64 and Elementary Functions", 2000, theorem 8.3).
"""

DOUBLE_NUDGE = 2.0**-54
"""The same of double precision."""

LARGEST = 2.0**128 - 2.0**104


def corrected_quotient(x: ir.Value, above: ir.Value, minus_s: ir.Value, reciprocal: ir.Value) -> ir.Value:
    """The quotient `x / s` in four instructions, correctly rounded where `|x / s|` is 2^-101 at least, 2^-968 in `f64`.

    Smaller quotients are within 1.5 units in the last place, as their remainder is subnormal. The first quotient is
    truncated, so that only an infinite x makes it infinite; overflow happens in the correction. The remainder of an
    infinite quotient, NaN, is clamped to a finite number, which keeps the quotient infinite; in `f64`, where a minimum
    takes eight instructions, the first quotient is selected. A remainder of 0 times a negative reciprocal keeps the
    sign of a zero quotient.

    Args:
        x: the dividend, a number or a vector, as are the others.
        above: `(1 + NUDGE) / s`, within a unit in the last place; with `DOUBLE_NUDGE` in `f64`.
        minus_s: `-s`, where `s` is negative, and `0.5 <= |s|`, or all x are multiples of 2^-101 (2^-968).
        reciprocal: `1 / s`, rounded to nearest; -0 where `s` is zero or infinite, whose `above` is `1 / s`.
    """
    first = by_element(truncated_product, x, above)
    rest = math.fma(first, minus_s, x)
    if is_double(x.type):
        exact = arith.cmpf(arith.CmpFPredicate.ORD, rest, rest)
        return arith.select(exact, math.fma(rest, reciprocal, first), first)
    return math.fma(arith.minnumf(rest, constant_like(LARGEST, x.type)), reciprocal, first)


def reciprocals(divisor: ir.Value, *, clamps: bool) -> tuple[ir.Value, ir.Value]:
    """1 / s a little too large, and rounded to nearest; `clamps` where s may be zero or infinite.

    The error of such a divisor's reciprocal, which is exact, is NaN.
    """
    first = by_element(reciprocal, divisor)
    missing = arith.negf(math.fma(divisor, first, constant_like(-1.0, divisor.type)))
    if clamps:
        missing = arith.minnumf(missing, constant_like(1.0, divisor.type))
    above = math.fma(first, arith.addf(missing, constant_like(NUDGE, divisor.type)), first)
    return above, math.fma(first, missing, first)


def truncated_product(x: ir.Value, y: ir.Value) -> ir.Value:
    """The product of two `f32`, or two `f64`, rounded towards zero."""
    name = "llvm.nvvm.mul.rz.d" if is_double(x.type) else "llvm.nvvm.mul.rz.f"
    return llvm.CallIntrinsicOp(x.type, name, [x, y], [], []).results[0]
