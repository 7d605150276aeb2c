"""Arithmetic: add, subtract, multiply, divide and their kin, minimum and maximum."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.builder.emission.body import constant_like, is_float
from mlirfuse.builder.emission.lift import ARITHMETIC, FLOATING, NUMERIC_WIDE, lift
from mlirfuse.support.rewriting import integer_of


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
    """The quotient `a / b`; integers are divided as float32.

    float32 quotients are correctly rounded from 2^-101 on, and within 1.5 units in the last place below. A quotient of
    which only a cast to half precision is left, be it through products and selections, is within two units before it.
    """
    return arith.DivFOp(a, b).result


@lift(NUMERIC_WIDE)
def floor_divide(a: ir.Value, b: ir.Value) -> ir.Value:
    """The largest integer not above a / b, and a zero has the sign of a / b; for integers, 0 where b is 0.

    The smallest integer divided by -1 wraps around, as in NumPy.
    """
    if not is_float(a):
        quotient = arith.FloorDivSIOp(a, _divisor(b)).result
        negated = arith.SubIOp(constant_like(a, 0), a).result
        return _where_equal(b, {-1: negated, 0: constant_like(a, 0)}, quotient)
    # As NumPy: a minus the remainder is a multiple of b up to one rounding, so its quotient is never off by one.
    rest = arith.RemFOp(a, b).result
    quotient = arith.DivFOp(arith.SubFOp(a, rest).result, b).result
    one_less = arith.SubFOp(quotient, constant_like(a, 1)).result
    quotient = arith.SelectOp(_signs_differ(rest, b), one_less, quotient).result
    # The difference of equal numbers is +0, so the quotient of a zero may have the wrong sign.
    ratio = arith.DivFOp(a, b).result
    whole = math.CopySignOp(math.RoundEvenOp(quotient).result, ratio).result
    by_zero = arith.CmpFOp(arith.CmpFPredicate.OEQ, b, constant_like(b, 0)).result
    return arith.SelectOp(by_zero, ratio, whole).result


@lift(NUMERIC_WIDE)
def remainder(a: ir.Value, b: ir.Value) -> ir.Value:
    """The remainder of `a // b`, with the sign of b as Python's `%`; for integers 0 where b is 0, as in NumPy."""
    if not is_float(a):
        return _integer_remainder(a, b)
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
    """-1, 0 or 1, and 0 for -0.0; NaN stays NaN."""
    zero, one, minus_one = (constant_like(x, n) for n in (0, 1, -1))
    if is_float(x):
        above = arith.CmpFOp(arith.CmpFPredicate.OGT, x, zero).result
        below = arith.CmpFOp(arith.CmpFPredicate.OLT, x, zero).result
        rest = math.AbsFOp(x).result
    else:
        above = arith.CmpIOp(arith.CmpIPredicate.sgt, x, zero).result
        below = arith.CmpIOp(arith.CmpIPredicate.slt, x, zero).result
        rest = x
    return arith.SelectOp(above, one, arith.SelectOp(below, minus_one, rest).result).result


@lift(ARITHMETIC)
def maximum(a: ir.Value, b: ir.Value) -> ir.Value:
    """The larger of a and b; NaN where either is NaN."""
    return (arith.MaximumFOp if is_float(a) else arith.MaxSIOp)(a, b).result


@lift(ARITHMETIC)
def minimum(a: ir.Value, b: ir.Value) -> ir.Value:
    """The smaller of a and b; NaN where either is NaN."""
    return (arith.MinimumFOp if is_float(a) else arith.MinSIOp)(a, b).result


def _integer_remainder(a: ir.Value, b: ir.Value) -> ir.Value:
    rest, zero = arith.RemSIOp(a, _divisor(b)).result, constant_like(a, 0)
    differ = arith.CmpIOp(arith.CmpIPredicate.slt, arith.XOrIOp(rest, b).result, zero).result
    adjust = arith.AndIOp(differ, arith.CmpIOp(arith.CmpIPredicate.ne, rest, zero).result).result
    return arith.SelectOp(adjust, arith.AddIOp(rest, b).result, rest).result


def _divisor(b: ir.Value) -> ir.Value:
    """The divisor of an integer division, 1 in place of 0 and -1.

    Division by 0, or of the smallest integer by -1, is undefined behaviour in LLVM, which may fold other uses of the
    operands. The remainder of a division by 1 is 0, which is NumPy's remainder of divisions by 0 and -1.
    """
    return _where_equal(b, {-1: constant_like(b, 1), 0: constant_like(b, 1)}, b)


def _where_equal(b: ir.Value, values: dict[int, ir.Value], otherwise: ir.Value) -> ir.Value:
    """`values[b]` if `b` equals a key, else `otherwise`; comparisons with a constant `b` are folded."""
    if (known := integer_of(b)) is not None:
        return values.get(known, otherwise)
    for number, value in values.items():
        equal = arith.CmpIOp(arith.CmpIPredicate.eq, b, constant_like(b, number)).result
        otherwise = arith.SelectOp(equal, value, otherwise).result
    return otherwise


def _signs_differ(rest: ir.Value, divisor: ir.Value) -> ir.Value:
    """Whether a remainder is not zero and its sign differs from the divisor's; False for NaN."""
    zero = constant_like(rest, 0)
    less, greater = arith.CmpFPredicate.OLT, arith.CmpFPredicate.OGT
    up = arith.AndIOp(arith.CmpFOp(greater, rest, zero).result, arith.CmpFOp(less, divisor, zero).result).result
    down = arith.AndIOp(arith.CmpFOp(less, rest, zero).result, arith.CmpFOp(greater, divisor, zero).result).result
    return arith.OrIOp(up, down).result
