"""Integer expressions over extents: index arithmetic as plain data, independent of MLIR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.errors import IRError

_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "ceildiv": lambda a, b: -(-a // b),
    "mod": lambda a, b: a % b,
    "min": min,
    "max": max,
}

_AFFINE: tuple[tuple[type[ir.AffineBinaryExpr], str], ...] = (
    (ir.AffineAddExpr, "add"),
    (ir.AffineMulExpr, "mul"),
    (ir.AffineFloorDivExpr, "floordiv"),
    (ir.AffineCeilDivExpr, "ceildiv"),
    (ir.AffineModExpr, "mod"),
)


@dataclass(frozen=True)
class Constant:
    """A number."""

    value: int

    def evaluate(self, symbols: Sequence[int]) -> int:
        """The number itself."""
        return self.value


@dataclass(frozen=True)
class Symbol:
    """The symbol at a position."""

    position: int

    def evaluate(self, symbols: Sequence[int]) -> int:
        """The symbol's value."""
        return symbols[self.position]


@dataclass(frozen=True)
class Binary:
    """`operator` (a key of `_OPERATORS`) applied to two expressions."""

    operator: str
    left: Expression
    right: Expression

    def evaluate(self, symbols: Sequence[int]) -> int:
        """The expression's value."""
        return _OPERATORS[self.operator](self.left.evaluate(symbols), self.right.evaluate(symbols))


Expression = Constant | Symbol | Binary


def from_affine(expression: ir.AffineExpr) -> Expression:
    """The expression of an affine map over symbols; raises `IRError` for one that uses dimensions."""
    if isinstance(expression, ir.AffineConstantExpr):
        return Constant(expression.value)
    if isinstance(expression, ir.AffineSymbolExpr):
        return Symbol(expression.position)
    for kind, operator in _AFFINE:
        if isinstance(expression, kind):
            return Binary(operator, from_affine(expression.lhs), from_affine(expression.rhs))
    raise IRError(f"affine expression {expression} is not one over symbols")
