"""Comparisons, predicates on floats, and logic on bools and integers."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.builder.emission.body import constant, constant_like, is_float
from mlirfuse.builder.emission.lift import BITWISE, COMPARISON, LOGICAL, PREDICATE, lift

_INF = float("inf")


@lift(COMPARISON)
def equal(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a == b`, as bool; False where either is NaN."""
    return _compare("OEQ", "eq", a, b)


@lift(COMPARISON)
def not_equal(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a != b`, as bool; True where either is NaN."""
    return _compare("UNE", "ne", a, b)


@lift(COMPARISON)
def less(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a < b`, as bool; False where either is NaN."""
    return _compare("OLT", "lt", a, b)


@lift(COMPARISON)
def less_equal(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a <= b`, as bool; False where either is NaN."""
    return _compare("OLE", "le", a, b)


@lift(COMPARISON)
def greater(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a > b`, as bool; False where either is NaN."""
    return _compare("OGT", "gt", a, b)


@lift(COMPARISON)
def greater_equal(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a >= b`, as bool; False where either is NaN."""
    return _compare("OGE", "ge", a, b)


@lift(PREDICATE)
def isnan(x: ir.Value) -> ir.Value:
    """Whether x is NaN."""
    if not is_float(x):
        return _bool(False)
    return arith.CmpFOp(arith.CmpFPredicate.UNO, x, x).result


@lift(PREDICATE)
def isinf(x: ir.Value) -> ir.Value:
    """Whether x is infinite."""
    if not is_float(x):
        return _bool(False)
    return arith.CmpFOp(arith.CmpFPredicate.OEQ, math.AbsFOp(x).result, constant_like(x, _INF)).result


@lift(PREDICATE)
def isfinite(x: ir.Value) -> ir.Value:
    """Whether x is neither infinite nor NaN."""
    if not is_float(x):
        return _bool(True)
    return arith.CmpFOp(arith.CmpFPredicate.OLT, math.AbsFOp(x).result, constant_like(x, _INF)).result


@lift(LOGICAL)
def logical_and(a: ir.Value, b: ir.Value) -> ir.Value:
    """Whether a and b are both true, as bool."""
    return arith.AndIOp(a, b).result


@lift(LOGICAL)
def logical_or(a: ir.Value, b: ir.Value) -> ir.Value:
    """Whether a or b is true, as bool."""
    return arith.OrIOp(a, b).result


@lift(LOGICAL)
def logical_xor(a: ir.Value, b: ir.Value) -> ir.Value:
    """Whether exactly one of a and b is true, as bool."""
    return arith.XOrIOp(a, b).result


@lift(LOGICAL)
def logical_not(x: ir.Value) -> ir.Value:
    """Whether x is false, as bool."""
    return arith.XOrIOp(x, _bool(True)).result


@lift(BITWISE)
def bitwise_and(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a & b`, bit by bit."""
    return arith.AndIOp(a, b).result


@lift(BITWISE)
def bitwise_or(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a | b`, bit by bit."""
    return arith.OrIOp(a, b).result


@lift(BITWISE)
def bitwise_xor(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a ^ b`, bit by bit."""
    return arith.XOrIOp(a, b).result


@lift(BITWISE)
def bitwise_invert(x: ir.Value) -> ir.Value:
    """`~x`, bit by bit."""
    return arith.XOrIOp(x, _bool(True) if _is_bool(x) else constant_like(x, -1)).result


def _compare(float_name: str, int_name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    if is_float(a):
        return arith.CmpFOp(getattr(arith.CmpFPredicate, float_name), a, b).result
    sign = "" if int_name in ("eq", "ne") else "u" if _is_bool(a) else "s"
    return arith.CmpIOp(getattr(arith.CmpIPredicate, sign + int_name), a, b).result


def _bool(value: bool) -> ir.Value:
    return constant(ir.IntegerType.get_signless(1), value)


def _is_bool(value: ir.Value) -> bool:
    return isinstance(value.type, ir.IntegerType) and value.type.width == 1
