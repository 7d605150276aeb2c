"""Roots, exponentials, logarithms, trigonometry and rounding."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.builder.body import constant_like, is_float
from mlirfuse.builder.lift import FLOATING, NUMERIC_WIDE, lift


@lift(FLOATING)
def sqrt(x: ir.Value) -> ir.Value:
    """The square root; NaN below zero."""
    return math.SqrtOp(x).result


@lift(FLOATING)
def rsqrt(x: ir.Value) -> ir.Value:
    """1 / sqrt(x)."""
    return math.RsqrtOp(x).result


@lift(FLOATING)
def exp(x: ir.Value) -> ir.Value:
    """The exponential function."""
    return math.ExpOp(x).result


@lift(FLOATING)
def exp2(x: ir.Value) -> ir.Value:
    """2 ** x."""
    return math.Exp2Op(x).result


@lift(FLOATING)
def expm1(x: ir.Value) -> ir.Value:
    """`exp(x) - 1`, accurate near zero."""
    return math.ExpM1Op(x).result


@lift(FLOATING)
def log(x: ir.Value) -> ir.Value:
    """The natural logarithm."""
    return math.LogOp(x).result


@lift(FLOATING)
def log2(x: ir.Value) -> ir.Value:
    """The logarithm to base 2."""
    return math.Log2Op(x).result


@lift(FLOATING)
def log1p(x: ir.Value) -> ir.Value:
    """log(1 + x), accurate near zero."""
    return math.Log1pOp(x).result


@lift(FLOATING)
def sin(x: ir.Value) -> ir.Value:
    """The sine of an angle in radians."""
    return math.SinOp(x).result


@lift(FLOATING)
def cos(x: ir.Value) -> ir.Value:
    """The cosine of an angle in radians."""
    return math.CosOp(x).result


@lift(FLOATING)
def tanh(x: ir.Value) -> ir.Value:
    """The hyperbolic tangent."""
    return math.TanhOp(x).result


@lift(FLOATING)
def erf(x: ir.Value) -> ir.Value:
    """The error function."""
    return math.ErfOp(x).result


@lift(FLOATING)
def sigmoid(x: ir.Value) -> ir.Value:
    """1 / (1 + exp(-x)); exact limits 0 and 1 far from zero."""
    one = constant_like(x, 1)
    return arith.DivFOp(one, arith.AddFOp(one, math.ExpOp(arith.NegFOp(x).result).result).result).result


@lift(NUMERIC_WIDE)
def floor(x: ir.Value) -> ir.Value:
    """Rounds down; integers are returned as they are."""
    return math.FloorOp(x).result if is_float(x) else x


@lift(NUMERIC_WIDE)
def ceil(x: ir.Value) -> ir.Value:
    """Rounds up; integers are returned as they are."""
    return math.CeilOp(x).result if is_float(x) else x


@lift(NUMERIC_WIDE)
def round(x: ir.Value) -> ir.Value:
    """Rounds to the nearest integer, halves to the even one; integers are returned as they are."""
    return math.RoundEvenOp(x).result if is_float(x) else x


@lift(NUMERIC_WIDE)
def trunc(x: ir.Value) -> ir.Value:
    """Rounds towards zero; integers are returned as they are."""
    return math.TruncOp(x).result if is_float(x) else x
