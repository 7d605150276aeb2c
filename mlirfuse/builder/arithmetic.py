"""Arithmetic: add, subtract, multiply, divide and their kin, minimum and maximum."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.builder.body import constant_like, is_float
from mlirfuse.builder.lift import ARITHMETIC, FLOATING, NUMERIC_WIDE, lift


@lift(ARITHMETIC)
def add(a: ir.Value, b: ir.Value) -> ir.Value:
    """The sum `a + b`."""
    return (arith.AddFOp if is_float(a) else arith.AddIOp)(a, b).result


@lift(ARITHMETIC)
def subtract(a: ir.Value, b: ir.Value) -> ir.Value:
    """The difference `a - b`."""
    return (arith.SubFOp if is_float(a) else arith.SubIOp)(a, b).result


@lift(ARITHMETIC)
def multiply(a: ir.Value, b: ir.Value) -> ir.Value:
    """The product `a * b`."""
    return (arith.MulFOp if is_float(a) else arith.MulIOp)(a, b).result


@lift(FLOATING)
def divide(a: ir.Value, b: ir.Value) -> ir.Value:
    """The quotient `a / b`; integers are divided as float32."""
    return arith.DivFOp(a, b).result


@lift(NUMERIC_WIDE)
def floor_divide(a: ir.Value, b: ir.Value) -> ir.Value:
    """The largest integer not above a / b. An integer divided by zero is 0, as in NumPy."""
    if not is_float(a):
        quotient = arith.FloorDivSIOp(a, _safe_divisor(a, b)).result
        zero = constant_like(b, 0)
        return arith.SelectOp(arith.CmpIOp(arith.CmpIPredicate.eq, b, zero).result, zero, quotient).result
    # NumPy's way: divide what the remainder leaves, which is exact up to one rounding, so no quotient is off by one.
    rest = arith.RemFOp(a, b).result
    quotient = arith.DivFOp(arith.SubFOp(a, rest).result, b).result
    one_less = arith.SubFOp(quotient, constant_like(a, 1)).result
    quotient = arith.SelectOp(_signs_differ(rest, b), one_less, quotient).result
    by_zero = arith.CmpFOp(arith.CmpFPredicate.OEQ, b, constant_like(b, 0)).result
    return arith.SelectOp(by_zero, arith.DivFOp(a, b).result, math.RoundEvenOp(quotient).result).result


@lift(NUMERIC_WIDE)
def remainder(a: ir.Value, b: ir.Value) -> ir.Value:
    """What `a // b` leaves, with the sign of b, as Python's `%`. An integer's remainder by zero is 0, as in NumPy."""
    if not is_float(a):
        rest = arith.RemSIOp(a, _safe_divisor(a, b)).result
        zero = constant_like(a, 0)
        differ = arith.CmpIOp(arith.CmpIPredicate.slt, arith.XOrIOp(rest, b).result, zero).result
        adjust = arith.AndIOp(differ, arith.CmpIOp(arith.CmpIPredicate.ne, rest, zero).result).result
        return arith.SelectOp(adjust, arith.AddIOp(rest, b).result, rest).result
    rest = arith.RemFOp(a, b).result
    moved = arith.SelectOp(_signs_differ(rest, b), arith.AddFOp(rest, b).result, rest).result
    is_zero = arith.CmpFOp(arith.CmpFPredicate.OEQ, rest, constant_like(rest, 0)).result
    return arith.SelectOp(is_zero, math.CopySignOp(rest, b).result, moved).result


@lift(ARITHMETIC)
def negative(x: ir.Value) -> ir.Value:
    """-x."""
    return arith.NegFOp(x).result if is_float(x) else arith.SubIOp(constant_like(x, 0), x).result


@lift(ARITHMETIC)
def abs(x: ir.Value) -> ir.Value:
    """The absolute value."""
    return (math.AbsFOp if is_float(x) else math.AbsIOp)(x).result


@lift(ARITHMETIC)
def square(x: ir.Value) -> ir.Value:
    """The square, exactly `x * x`."""
    return (arith.MulFOp if is_float(x) else arith.MulIOp)(x, x).result


@lift(FLOATING)
def reciprocal(x: ir.Value) -> ir.Value:
    """1 / x."""
    return arith.DivFOp(constant_like(x, 1), x).result


@lift(ARITHMETIC)
def sign(x: ir.Value) -> ir.Value:
    """-1, 0 or 1; NaN stays NaN."""
    zero, one, minus_one = (constant_like(x, n) for n in (0, 1, -1))
    if is_float(x):
        above = arith.CmpFOp(arith.CmpFPredicate.OGT, x, zero).result
        below = arith.CmpFOp(arith.CmpFPredicate.OLT, x, zero).result
    else:
        above = arith.CmpIOp(arith.CmpIPredicate.sgt, x, zero).result
        below = arith.CmpIOp(arith.CmpIPredicate.slt, x, zero).result
    return arith.SelectOp(above, one, arith.SelectOp(below, minus_one, x).result).result


@lift(ARITHMETIC)
def maximum(a: ir.Value, b: ir.Value) -> ir.Value:
    """The larger of the two; NaN where either is NaN."""
    return (arith.MaximumFOp if is_float(a) else arith.MaxSIOp)(a, b).result


@lift(ARITHMETIC)
def minimum(a: ir.Value, b: ir.Value) -> ir.Value:
    """The smaller of the two; NaN where either is NaN."""
    return (arith.MinimumFOp if is_float(a) else arith.MinSIOp)(a, b).result


def _safe_divisor(a: ir.Value, b: ir.Value) -> ir.Value:
    """An integer divisor, or 1 where the quotient is undefined in LLVM, which then stores nothing at all.

    These are division by zero, and of the least number by -1, whose quotient wraps to itself.
    """
    least = -(1 << (ir.IntegerType(a.type).width - 1))
    equal = arith.CmpIPredicate.eq
    by_zero = arith.CmpIOp(equal, b, constant_like(b, 0)).result
    wraps = arith.AndIOp(
        arith.CmpIOp(equal, a, constant_like(a, least)).result,
        arith.CmpIOp(equal, b, constant_like(b, -1)).result,
    ).result
    return arith.SelectOp(arith.OrIOp(by_zero, wraps).result, constant_like(b, 1), b).result


def _signs_differ(rest: ir.Value, divisor: ir.Value) -> ir.Value:
    """Whether a remainder is not zero and on the other side of zero than the divisor. NaN counts as on no side."""
    zero = constant_like(rest, 0)
    less, greater = arith.CmpFPredicate.OLT, arith.CmpFPredicate.OGT
    up = arith.AndIOp(arith.CmpFOp(greater, rest, zero).result, arith.CmpFOp(less, divisor, zero).result).result
    down = arith.AndIOp(arith.CmpFOp(less, rest, zero).result, arith.CmpFOp(greater, divisor, zero).result).result
    return arith.OrIOp(up, down).result
