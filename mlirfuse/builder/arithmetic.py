"""Arithmetic: add, subtract, multiply, divide and their kin, minimum and maximum."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.builder.body import constant_like
from mlirfuse.builder.lift import ARITHMETIC, FLOATING, NUMERIC_WIDE, lift
from mlirfuse.dtypes import DType


@lift(ARITHMETIC)
def add(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """a + b."""
    return (arith.AddFOp if dtype.kind == "float" else arith.AddIOp)(a, b).result


@lift(ARITHMETIC)
def subtract(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """a - b."""
    return (arith.SubFOp if dtype.kind == "float" else arith.SubIOp)(a, b).result


@lift(ARITHMETIC)
def multiply(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """a * b."""
    return (arith.MulFOp if dtype.kind == "float" else arith.MulIOp)(a, b).result


@lift(FLOATING)
def divide(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """a / b; integers are divided as float32."""
    return arith.DivFOp(a, b).result


@lift(NUMERIC_WIDE)
def floor_divide(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """The largest integer not above a / b. Integer division by zero is undefined."""
    if dtype.kind == "int":
        return arith.FloorDivSIOp(a, b).result
    # NumPy's way: divide what the remainder leaves, which is exact up to one rounding, so no quotient is off by one.
    rest = arith.RemFOp(a, b).result
    quotient = arith.DivFOp(arith.SubFOp(a, rest).result, b).result
    one_less = arith.SubFOp(quotient, constant_like(a, 1)).result
    quotient = arith.SelectOp(_signs_differ(rest, b), one_less, quotient).result
    by_zero = arith.CmpFOp(arith.CmpFPredicate.OEQ, b, constant_like(b, 0)).result
    return arith.SelectOp(by_zero, arith.DivFOp(a, b).result, math.RoundEvenOp(quotient).result).result


@lift(NUMERIC_WIDE)
def remainder(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """a - b * floor(a / b), with the sign of b, as Python's `%`. An integer remainder by zero is undefined."""
    if dtype.kind == "int":
        rest = arith.RemSIOp(a, b).result
        zero = constant_like(a, 0)
        differ = arith.CmpIOp(arith.CmpIPredicate.slt, arith.XOrIOp(rest, b).result, zero).result
        adjust = arith.AndIOp(differ, arith.CmpIOp(arith.CmpIPredicate.ne, rest, zero).result).result
        return arith.SelectOp(adjust, arith.AddIOp(rest, b).result, rest).result
    rest = arith.RemFOp(a, b).result
    moved = arith.SelectOp(_signs_differ(rest, b), arith.AddFOp(rest, b).result, rest).result
    is_zero = arith.CmpFOp(arith.CmpFPredicate.OEQ, rest, constant_like(rest, 0)).result
    return arith.SelectOp(is_zero, math.CopySignOp(rest, b).result, moved).result


@lift(ARITHMETIC)
def negative(dtype: DType, x: ir.Value) -> ir.Value:
    """-x."""
    return arith.NegFOp(x).result if dtype.kind == "float" else arith.SubIOp(constant_like(x, 0), x).result


@lift(ARITHMETIC)
def abs(dtype: DType, x: ir.Value) -> ir.Value:
    """The absolute value."""
    return (math.AbsFOp if dtype.kind == "float" else math.AbsIOp)(x).result


@lift(ARITHMETIC)
def square(dtype: DType, x: ir.Value) -> ir.Value:
    """x * x."""
    return (arith.MulFOp if dtype.kind == "float" else arith.MulIOp)(x, x).result


@lift(FLOATING)
def reciprocal(dtype: DType, x: ir.Value) -> ir.Value:
    """1 / x."""
    return arith.DivFOp(constant_like(x, 1), x).result


@lift(ARITHMETIC)
def sign(dtype: DType, x: ir.Value) -> ir.Value:
    """-1, 0 or 1; NaN stays NaN."""
    zero, one, minus_one = (constant_like(x, n) for n in (0, 1, -1))
    if dtype.kind == "float":
        above = arith.CmpFOp(arith.CmpFPredicate.OGT, x, zero).result
        below = arith.CmpFOp(arith.CmpFPredicate.OLT, x, zero).result
    else:
        above = arith.CmpIOp(arith.CmpIPredicate.sgt, x, zero).result
        below = arith.CmpIOp(arith.CmpIPredicate.slt, x, zero).result
    return arith.SelectOp(above, one, arith.SelectOp(below, minus_one, x).result).result


@lift(ARITHMETIC)
def maximum(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """The larger of the two; NaN where either is NaN."""
    return (arith.MaximumFOp if dtype.kind == "float" else arith.MaxSIOp)(a, b).result


@lift(ARITHMETIC)
def minimum(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """The smaller of the two; NaN where either is NaN."""
    return (arith.MinimumFOp if dtype.kind == "float" else arith.MinSIOp)(a, b).result


def _signs_differ(rest: ir.Value, divisor: ir.Value) -> ir.Value:
    """Whether a remainder is not zero and on the other side of zero than the divisor. NaN counts as on no side."""
    zero = constant_like(rest, 0)
    less, greater = arith.CmpFPredicate.OLT, arith.CmpFPredicate.OGT
    up = arith.AndIOp(arith.CmpFOp(greater, rest, zero).result, arith.CmpFOp(less, divisor, zero).result).result
    down = arith.AndIOp(arith.CmpFOp(less, rest, zero).result, arith.CmpFOp(greater, divisor, zero).result).result
    return arith.OrIOp(up, down).result
