"""Which numbers divide index values, whatever thread block and thread computes them."""

from __future__ import annotations

from math import gcd

from mlir import ir

from mlirfuse.support.rewriting import defining_op


def divisor_of(value: ir.Value) -> int:
    """A known divisor of an integer; the number itself of a constant, and 1 if nothing is known."""
    op = defining_op(value)
    if op is None:
        return 1
    if op.name == "arith.constant":
        return ir.IntegerAttr(op.attributes["value"]).value
    if op.name == "arith.muli":
        return divisor_of(op.operands[0]) * divisor_of(op.operands[1])
    if op.name in ("arith.addi", "arith.minui"):
        return gcd(divisor_of(op.operands[0]), divisor_of(op.operands[1]))
    if op.name in ("arith.index_cast", "arith.index_castui"):
        return divisor_of(op.operands[0])
    if op.name == "affine.apply":
        return _divisor(ir.AffineMapAttr(op.attributes["map"]).value.results[0])
    return 1


def _divisor(expr: ir.AffineExpr) -> int:
    """A divisor of an affine expression for all values of its symbols."""
    if isinstance(expr, ir.AffineConstantExpr):
        return int(expr.value)
    if isinstance(expr, ir.AffineMulExpr):
        return _divisor(expr.lhs) * _divisor(expr.rhs)
    if isinstance(expr, ir.AffineAddExpr):
        return gcd(_divisor(expr.lhs), _divisor(expr.rhs))
    return 1
