"""Roots, exponentials, logarithms, trigonometry and rounding."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.builder.body import constant_like
from mlirfuse.builder.lift import FLOATING, NUMERIC_WIDE, lift
from mlirfuse.dtypes import DType


@lift(FLOATING)
def sqrt(dtype: DType, x: ir.Value) -> ir.Value:
    """The square root; NaN below zero."""
    return math.SqrtOp(x).result


@lift(FLOATING)
def rsqrt(dtype: DType, x: ir.Value) -> ir.Value:
    """1 / sqrt(x)."""
    return math.RsqrtOp(x).result


@lift(FLOATING)
def exp(dtype: DType, x: ir.Value) -> ir.Value:
    """e ** x."""
    return math.ExpOp(x).result


@lift(FLOATING)
def exp2(dtype: DType, x: ir.Value) -> ir.Value:
    """2 ** x."""
    return math.Exp2Op(x).result


@lift(FLOATING)
def expm1(dtype: DType, x: ir.Value) -> ir.Value:
    """e ** x - 1, accurate near zero."""
    return math.ExpM1Op(x).result


@lift(FLOATING)
def log(dtype: DType, x: ir.Value) -> ir.Value:
    """The natural logarithm."""
    return math.LogOp(x).result


@lift(FLOATING)
def log2(dtype: DType, x: ir.Value) -> ir.Value:
    """The logarithm to base 2."""
    return math.Log2Op(x).result


@lift(FLOATING)
def log1p(dtype: DType, x: ir.Value) -> ir.Value:
    """log(1 + x), accurate near zero."""
    return math.Log1pOp(x).result


@lift(FLOATING)
def sin(dtype: DType, x: ir.Value) -> ir.Value:
    """The sine of an angle in radians."""
    return math.SinOp(x).result


@lift(FLOATING)
def cos(dtype: DType, x: ir.Value) -> ir.Value:
    """The cosine of an angle in radians."""
    return math.CosOp(x).result


@lift(FLOATING)
def tanh(dtype: DType, x: ir.Value) -> ir.Value:
    """The hyperbolic tangent."""
    return math.TanhOp(x).result


@lift(FLOATING)
def erf(dtype: DType, x: ir.Value) -> ir.Value:
    """The error function."""
    return math.ErfOp(x).result


@lift(FLOATING)
def sigmoid(dtype: DType, x: ir.Value) -> ir.Value:
    """1 / (1 + exp(-x)); exact limits 0 and 1 far from zero."""
    one = constant_like(x, 1)
    return arith.DivFOp(one, arith.AddFOp(one, math.ExpOp(arith.NegFOp(x).result).result).result).result


@lift(NUMERIC_WIDE)
def floor(dtype: DType, x: ir.Value) -> ir.Value:
    """Rounds down; integers are returned as they are."""
    return math.FloorOp(x).result if dtype.kind == "float" else x


@lift(NUMERIC_WIDE)
def ceil(dtype: DType, x: ir.Value) -> ir.Value:
    """Rounds up; integers are returned as they are."""
    return math.CeilOp(x).result if dtype.kind == "float" else x


@lift(NUMERIC_WIDE)
def round(dtype: DType, x: ir.Value) -> ir.Value:
    """Rounds to the nearest integer, halves to the even one; integers are returned as they are."""
    return math.RoundEvenOp(x).result if dtype.kind == "float" else x


@lift(NUMERIC_WIDE)
def trunc(dtype: DType, x: ir.Value) -> ir.Value:
    """Rounds towards zero; integers are returned as they are."""
    return math.TruncOp(x).result if dtype.kind == "float" else x
