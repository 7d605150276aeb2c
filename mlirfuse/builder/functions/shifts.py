"""Shifts of integers, defined for any number of bits as in NumPy; of so many that none is left, LLVM's are poison."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from mlirfuse.builder.emission.body import constant_like
from mlirfuse.builder.emission.lift import FUNCTIONS, INTEGER, lift
from mlirfuse.support.rewriting import integer_of


@lift(INTEGER)
def bitwise_left_shift(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a << b`, of integers; 0 where b is negative, or not less than the bits of the common dtype."""
    width, known = a.type.width, integer_of(b)
    if known is not None:
        return arith.ShLIOp(a, b).result if 0 <= known < width else constant_like(a, 0)
    shifted = arith.ShLIOp(a, b).result
    leaves_bits = arith.CmpIOp(arith.CmpIPredicate.ult, b, constant_like(b, width)).result
    return arith.SelectOp(leaves_bits, shifted, constant_like(a, 0)).result


@lift(INTEGER)
def bitwise_right_shift(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a >> b`, of integers, with copies of the sign from the left: `a // 2**b`. Where b is negative, or not less than
    the bits of the common dtype, -1 for negative numbers, and 0 for others.
    """
    most, known = constant_like(b, a.type.width - 1), integer_of(b)
    if known is not None:
        return arith.ShRSIOp(a, b if 0 <= known < a.type.width else most).result
    return arith.ShRSIOp(a, arith.MinUIOp(b, most).result).result


FUNCTIONS["left_shift"] = bitwise_left_shift  # NumPy's names for them
FUNCTIONS["right_shift"] = bitwise_right_shift
