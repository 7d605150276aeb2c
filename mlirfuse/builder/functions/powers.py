"""`pow`: by multiplication where the exponent is a small known integer, by a root where it is a half."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any, overload

from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.builder.array_types import ArrayT, ScalarLike
from mlirfuse.builder.emission.body import constant_like, convert, is_float
from mlirfuse.builder.emission.lift import FUNCTIONS, build
from mlirfuse.builder.emission.operands import Constant, Number, check_computes, common_dtype, resolve
from mlirfuse.builder.errors import UnsupportedError
from mlirfuse.builder.source import at_user_line
from mlirfuse.errors import DTypeError
from mlirfuse.support.dtypes import DType, float32

# Up to here a chain of multiplications is both faster than `powf` and within its error.
_LONGEST_CHAIN = 8


@overload
def pow(base: ArrayT, exponent: ArrayT | ScalarLike, /) -> ArrayT: ...


@overload
def pow(base: ScalarLike, exponent: ArrayT, /) -> ArrayT: ...


def pow(base: Any, exponent: Any, /) -> Any:
    """`base ** exponent`.

    `x ** 2` is exactly `x * x`; `x ** 0.5` is `sqrt(x)`. Other float16 and bfloat16 powers are computed in float32.

    Raises:
        DTypeError: a bool operand, or a negative exponent of an integer tensor.
        UnsupportedError: integers with an exponent that is not known while tracing.
        ShapeError: the shapes do not broadcast.
    """
    operands = [resolve(base, "pow"), resolve(exponent, "pow")]
    power = operands[1]
    dtype = common_dtype(operands, "pow")
    if dtype.kind == "bool":
        raise at_user_line(DTypeError("pow does not take bool", hint="use .astype(...)"))
    check_computes(dtype, "pow")
    if dtype.kind == "int" and not isinstance(power, Constant):
        raise at_user_line(
            UnsupportedError("pow of integers needs an exponent known while tracing", hint="cast the base to float32")
        )
    number = power.number if isinstance(power, Constant) else None
    if dtype.kind == "int" and number is not None and number < 0:
        raise at_user_line(DTypeError(f"pow of {dtype.name} to {number}", hint="cast the base to a float dtype"))
    compute = float32 if dtype.kind == "float" and dtype.bits == 16 and number != 2 else dtype
    rule = None if number is None else _known_power(number, compute)

    def element_rule(*elements: ir.Value) -> ir.Value:
        value = rule(elements[0]) if rule is not None else math.PowFOp(*elements).result
        return convert(value, compute, dtype)

    used = operands if rule is None else operands[:1]
    return build("pow", used, [dtype] * len(used), compute, dtype, element_rule)


FUNCTIONS["power"] = pow  # NumPy's name for it


def _known_power(number: Number, dtype: DType) -> Callable[[ir.Value], ir.Value] | None:
    """The rule for x ** number where there is one better than `powf`."""
    if number == 0.5:
        return lambda x: math.SqrtOp(x).result
    if number == -0.5:
        return lambda x: math.RsqrtOp(x).result
    if isfinite(number) and number == int(number):
        count = int(number)
        if dtype.kind == "int" or abs(count) <= _LONGEST_CHAIN:
            return lambda x: _chain(x, count)
    return None


def _chain(x: ir.Value, count: int) -> ir.Value:
    """`x ** count` by repeated squaring; a negative count takes the reciprocal at the end."""
    multiply = arith.MulFOp if is_float(x) else arith.MulIOp
    result, square, rest = None, x, abs(count)
    while rest:
        if rest & 1:
            result = square if result is None else multiply(result, square).result
        rest >>= 1
        if rest:
            square = multiply(square, square).result
    if result is None:
        return constant_like(x, 1)
    return arith.DivFOp(constant_like(x, 1), result).result if count < 0 else result
