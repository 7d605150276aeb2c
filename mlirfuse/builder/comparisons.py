"""Comparisons, predicates on floats, and logic on bools and integers."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.builder.body import constant, constant_like
from mlirfuse.builder.lift import BITWISE, COMPARISON, LOGICAL, PREDICATE, lift
from mlirfuse.dtypes import DType

_INF = float("inf")


@lift(COMPARISON)
def equal(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """a == b, as bool; False where either is NaN."""
    return _compare(dtype, "OEQ", "eq", a, b)


@lift(COMPARISON)
def not_equal(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """a != b, as bool; True where either is NaN."""
    return _compare(dtype, "UNE", "ne", a, b)


@lift(COMPARISON)
def less(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """a < b, as bool; False where either is NaN."""
    return _compare(dtype, "OLT", "lt", a, b)


@lift(COMPARISON)
def less_equal(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """a <= b, as bool; False where either is NaN."""
    return _compare(dtype, "OLE", "le", a, b)


@lift(COMPARISON)
def greater(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """a > b, as bool; False where either is NaN."""
    return _compare(dtype, "OGT", "gt", a, b)


@lift(COMPARISON)
def greater_equal(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """a >= b, as bool; False where either is NaN."""
    return _compare(dtype, "OGE", "ge", a, b)


@lift(PREDICATE)
def isnan(dtype: DType, x: ir.Value) -> ir.Value:
    """Whether x is NaN."""
    if dtype.kind != "float":
        return _bool(False)
    return arith.CmpFOp(arith.CmpFPredicate.UNO, x, x).result


@lift(PREDICATE)
def isinf(dtype: DType, x: ir.Value) -> ir.Value:
    """Whether x is infinite."""
    if dtype.kind != "float":
        return _bool(False)
    return arith.CmpFOp(arith.CmpFPredicate.OEQ, math.AbsFOp(x).result, constant_like(x, _INF)).result


@lift(PREDICATE)
def isfinite(dtype: DType, x: ir.Value) -> ir.Value:
    """Whether x is neither infinite nor NaN."""
    if dtype.kind != "float":
        return _bool(True)
    return arith.CmpFOp(arith.CmpFPredicate.OLT, math.AbsFOp(x).result, constant_like(x, _INF)).result


@lift(LOGICAL)
def logical_and(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """Both are true."""
    return arith.AndIOp(a, b).result


@lift(LOGICAL)
def logical_or(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """At least one is true."""
    return arith.OrIOp(a, b).result


@lift(LOGICAL)
def logical_xor(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """Exactly one is true."""
    return arith.XOrIOp(a, b).result


@lift(LOGICAL)
def logical_not(dtype: DType, x: ir.Value) -> ir.Value:
    """It is false."""
    return arith.XOrIOp(x, _bool(True)).result


@lift(BITWISE)
def bitwise_and(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """a & b."""
    return arith.AndIOp(a, b).result


@lift(BITWISE)
def bitwise_or(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """a | b."""
    return arith.OrIOp(a, b).result


@lift(BITWISE)
def bitwise_xor(dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """a ^ b."""
    return arith.XOrIOp(a, b).result


@lift(BITWISE)
def bitwise_invert(dtype: DType, x: ir.Value) -> ir.Value:
    """~x."""
    return arith.XOrIOp(x, _bool(True) if dtype.kind == "bool" else constant_like(x, -1)).result


def _compare(dtype: DType, float_name: str, int_name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    if dtype.kind == "float":
        return arith.CmpFOp(getattr(arith.CmpFPredicate, float_name), a, b).result
    sign = "" if int_name in ("eq", "ne") else "u" if dtype.kind == "bool" else "s"
    return arith.CmpIOp(getattr(arith.CmpIPredicate, sign + int_name), a, b).result


def _bool(value: bool) -> ir.Value:
    return constant(ir.IntegerType.get_signless(1), value)
