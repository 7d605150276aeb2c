"""Roots, exponentials, logarithms, trigonometry and rounding."""

from __future__ import annotations

from math import log as log_of

from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.builder.emission.body import constant_like, is_float
from mlirfuse.builder.emission.lift import FLOATING, NUMERIC_WIDE, lift
from mlirfuse.support.dtypes import DType, float16

SIGMOID_SCALE = 2.0**-64
"""Scale of the sigmoid, a power of two. exp(-x) times the scale is finite in float32 wherever sigmoid(x) is not 0, and
the sum of the scale and a subnormal exponential flushed to 0 is correctly rounded (`lower-exponentials`)."""


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
def sigmoid(x: ir.Value, *, dtype: DType) -> ir.Value:
    """1 / (1 + exp(-x)); exact limits 0 and 1 far from zero, and subnormal numbers before the limit 0."""
    if dtype == float16:  # its smallest number is far above where exp(-x) overflows
        one = constant_like(x, 1)
        return arith.DivFOp(one, arith.AddFOp(one, math.ExpOp(arith.NegFOp(x).result).result).result).result
    return _scaled_sigmoid(x) if dtype.bits < 32 else _exact_sigmoid(x)


def _scaled_sigmoid(x: ir.Value) -> ir.Value:
    """c / (c + exp(log(c) - x)), which overflows only where the result is far below all subnormal numbers.

    The rounding of the difference gives a relative error of up to 2^-18, which suffices for half precision.
    """
    scale = constant_like(x, SIGMOID_SCALE)
    power = math.ExpOp(arith.SubFOp(constant_like(x, log_of(SIGMOID_SCALE)), x).result).result
    return arith.DivFOp(scale, arith.AddFOp(power, scale).result).result


def _exact_sigmoid(x: ir.Value) -> ir.Value:
    """1 / (1 + e) for x >= 0 and e * (1 / (1 + e)) below, with e = exp(-|x|), which does not overflow.

    The product is exact where e is subnormal. The reciprocal of a number from 1 to 2 needs no special cases on devices,
    unlike a general quotient.
    """
    one, zero = constant_like(x, 1), constant_like(x, 0)
    power = math.ExpOp(arith.NegFOp(math.AbsFOp(x).result).result).result
    reciprocal = arith.DivFOp(one, arith.AddFOp(one, power).result).result
    is_negative = arith.CmpFOp(arith.CmpFPredicate.OLT, x, zero).result
    return arith.SelectOp(is_negative, arith.MulFOp(power, reciprocal).result, reciprocal).result


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
