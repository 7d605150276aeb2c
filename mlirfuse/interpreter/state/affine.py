"""Affine maps as Python closures over integers or index arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir

from mlirfuse.errors import InterpreterError

Evaluator = Callable[[Sequence[Any], Sequence[Any]], Any]

_BINARY: tuple[tuple[type, Callable[[Any, Any], Any]], ...] = (
    (ir.AffineAddExpr, lambda a, b: a + b),
    (ir.AffineMulExpr, lambda a, b: a * b),
    (ir.AffineModExpr, lambda a, b: a % b),
    (ir.AffineFloorDivExpr, lambda a, b: a // b),
    (ir.AffineCeilDivExpr, lambda a, b: -(-a // b)),
)


def compile_expr(expr: ir.AffineExpr) -> Evaluator:
    """A function of (dims, symbols) that evaluates the expression; works on ints and on NumPy arrays."""
    if isinstance(expr, ir.AffineDimExpr):
        position = ir.AffineDimExpr(expr).position
        return lambda dims, _symbols: dims[position]
    if isinstance(expr, ir.AffineSymbolExpr):
        position = ir.AffineSymbolExpr(expr).position
        return lambda _dims, symbols: symbols[position]
    if isinstance(expr, ir.AffineConstantExpr):
        value = ir.AffineConstantExpr(expr).value
        return lambda _dims, _symbols: value
    for kind, function in _BINARY:
        if isinstance(expr, kind):
            binary = ir.AffineBinaryExpr(expr)
            left, right = compile_expr(binary.lhs), compile_expr(binary.rhs)
            return lambda dims, symbols: function(left(dims, symbols), right(dims, symbols))
    raise InterpreterError(f"no evaluation rule for the affine expression {expr}")


def compile_map(map_: ir.AffineMap) -> Callable[[Sequence[Any]], list[Any]]:
    """A function from the map's inputs (dims, then symbols) to its results."""
    count = map_.n_dims
    results = [compile_expr(expr) for expr in map_.results]
    return lambda inputs: [result(inputs[:count], inputs[count:]) for result in results]


def plain_dims(map_: ir.AffineMap) -> list[int | None]:
    """For each result of the map the dimension that it consists of; None for any other expression."""
    return [ir.AffineDimExpr(e).position if isinstance(e, ir.AffineDimExpr) else None for e in map_.results]
