"""Scalar code inside `linalg.generic` bodies: constants and conversions. All build at the current insertion point."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from mlirfuse.support.dtypes import DType, float32


def is_float(value: ir.Value) -> bool:
    """Whether the value is a float; otherwise it is an integer or a bool."""
    return isinstance(value.type, ir.FloatType)


def constant(element_type: ir.Type, value: float | int | bool) -> ir.Value:
    """An `arith.constant`; floats are rounded to the type."""
    is_float = isinstance(element_type, ir.FloatType)
    get = ir.FloatAttr.get if is_float else ir.IntegerAttr.get
    return arith.ConstantOp(element_type, get(element_type, float(value) if is_float else int(value))).result


def constant_like(value: ir.Value, number: float | int | bool) -> ir.Value:
    """A constant of the type of `value`."""
    return constant(value.type, number)


def convert(value: ir.Value, source: DType, target: DType) -> ir.Value:
    """The value in another dtype, as NumPy's `astype` converts it: bool is `!= 0`, float to int truncates.

    float8 converts to and from float64, integers and bools through float32. Numbers outside float8's range saturate to
    the largest finite number.
    """
    if source == target:
        return value
    if (source.is_float8 or target.is_float8) and not _converts_directly(source, target):
        return convert(convert(value, source, float32), float32, target)
    if target.kind == "bool":
        zero = constant_like(value, 0)
        if source.kind == "float":
            return arith.CmpFOp(arith.CmpFPredicate.UNE, value, zero).result
        return arith.CmpIOp(arith.CmpIPredicate.ne, value, zero).result
    result = target.mlir()
    if source.kind == "float" and target.kind == "float":
        if source.bits == target.bits:  # float16 and bfloat16: neither contains the other
            return convert(convert(value, source, float32), float32, target)
        op = arith.ExtFOp if source.bits < target.bits else arith.TruncFOp
    elif source.kind == "float":
        op = arith.FPToSIOp
    elif target.kind == "float":
        op = arith.UIToFPOp if source.kind == "bool" else arith.SIToFPOp
    elif source.kind == "bool":
        op = arith.ExtUIOp
    else:
        op = arith.ExtSIOp if source.bits < target.bits else arith.TruncIOp
    return op(result, value).result


def _converts_directly(a: DType, b: DType) -> bool:
    """Whether one cast takes float8 to another float dtype, or back."""
    return {a.kind, b.kind} == {"float"} and max(a.bits, b.bits) <= 32 and a.bits != b.bits
