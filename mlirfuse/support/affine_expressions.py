"""Affine expressions over dimensions with known extents: bounds, coefficients and substitution."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

Bounds = tuple[int, int]
"""The least and the greatest value of an expression, both included."""


def operands(expr: ir.AffineExpr) -> tuple[ir.AffineExpr, ir.AffineExpr]:
    """The two sides of a binary expression."""
    binary = ir.AffineBinaryExpr(expr)
    return binary.lhs, binary.rhs


def bounds(expr: ir.AffineExpr, extents: Sequence[int]) -> Bounds:
    """Bounds of an expression whose dimension d is in [0, extents[d]); exact where no dimension occurs twice.

    Raises `ValueError` for a symbol, a ceiling, a product of two dimensions, or a division by no positive constant.
    """
    if isinstance(expr, ir.AffineConstantExpr):
        return ir.AffineConstantExpr(expr).value, ir.AffineConstantExpr(expr).value
    if isinstance(expr, ir.AffineDimExpr):
        return 0, extents[ir.AffineDimExpr(expr).position] - 1
    if isinstance(expr, ir.AffineSymbolExpr | ir.AffineCeilDivExpr):
        raise ValueError(f"no bounds of {expr}")
    left, right = (bounds(side, extents) for side in operands(expr))
    if isinstance(expr, ir.AffineAddExpr):
        return left[0] + right[0], left[1] + right[1]
    if isinstance(expr, ir.AffineMulExpr):
        corners = [a * b for a in left for b in right]
        return min(corners), max(corners)
    by = right[0]
    if right[0] != right[1] or by < 1:
        raise ValueError(f"no bounds of {expr}")
    if isinstance(expr, ir.AffineFloorDivExpr):
        return left[0] // by, left[1] // by
    return left if left[0] // by == 0 == left[1] // by else (0, by - 1)


def largest(expr: ir.AffineExpr, extents: Sequence[int]) -> int:
    """The greatest absolute value of an expression and of every expression in it; `bounds` has the conditions."""
    inner = () if isinstance(expr, ir.AffineConstantExpr | ir.AffineDimExpr) else operands(expr)
    return max(*map(abs, bounds(expr, extents)), *(largest(side, extents) for side in inner))


def coefficients(expr: ir.AffineExpr, dims: int) -> tuple[list[int], int] | None:
    """The coefficient of each of `dims` dimensions and the constant of a linear expression; None for another one."""
    if isinstance(expr, ir.AffineConstantExpr):
        return [0] * dims, ir.AffineConstantExpr(expr).value
    if isinstance(expr, ir.AffineDimExpr):
        position = ir.AffineDimExpr(expr).position
        return [int(d == position) for d in range(dims)], 0
    if not isinstance(expr, ir.AffineAddExpr | ir.AffineMulExpr):
        return None
    left, right = (coefficients(side, dims) for side in operands(expr))
    if left is None or right is None:
        return None
    if isinstance(expr, ir.AffineAddExpr):
        return [a + b for a, b in zip(left[0], right[0], strict=True)], left[1] + right[1]
    if any(left[0]) and any(right[0]):
        return None
    linear, by = (left, right[1]) if any(left[0]) else (right, left[1])
    return [by * a for a in linear[0]], by * linear[1]


def single_dim(expr: ir.AffineExpr, dims: int) -> tuple[int, int, int] | None:
    """The dimension, its coefficient, and the constant of an expression that is linear in one of `dims` dimensions.

    None for any other expression.
    """
    linear = coefficients(expr, dims)
    moved = [] if linear is None else [(d, c) for d, c in enumerate(linear[0]) if c]
    return (*moved[0], linear[1]) if linear is not None and len(moved) == 1 else None


def used_dims(expr: ir.AffineExpr) -> frozenset[int]:
    """The dimensions that occur in an expression."""
    if isinstance(expr, ir.AffineDimExpr):
        return frozenset({ir.AffineDimExpr(expr).position})
    if isinstance(expr, ir.AffineConstantExpr | ir.AffineSymbolExpr):
        return frozenset()
    left, right = operands(expr)
    return used_dims(left) | used_dims(right)


def without_constants(expr: ir.AffineExpr) -> str:
    """An expression without the numbers that are added in it: the same for expressions that are moved against each
    other.
    """
    expr = expr.maybe_downcast()
    if not isinstance(expr, ir.AffineBinaryExpr):
        return str(expr)
    left, right = operands(expr)
    if isinstance(expr, ir.AffineAddExpr):
        terms = [without_constants(term) for term in (left, right) if not isinstance(term, ir.AffineConstantExpr)]
        return " + ".join(terms)
    return f"{type(expr).__name__}({without_constants(left)}, {without_constants(right)})"


def substituted(expr: ir.AffineExpr, dims: Sequence[ir.AffineExpr]) -> ir.AffineExpr:
    """The expression with `dims[d]` in place of dimension d."""
    if isinstance(expr, ir.AffineDimExpr):
        return dims[ir.AffineDimExpr(expr).position]
    if isinstance(expr, ir.AffineConstantExpr | ir.AffineSymbolExpr):
        return expr
    return _rebuilt(expr, *(substituted(side, dims) for side in operands(expr)))


def wrapped_once(expr: ir.AffineExpr, extents: Sequence[int]) -> ir.AffineExpr:
    """An expression that is a remainder, of what is no remainder of the same number itself, and is nowhere further from
    0 than it must be; without the division where dimensions below their extents need none. Others as they are.
    """
    if not isinstance(expr, ir.AffineModExpr):
        return expr
    divided, by = (side.maybe_downcast() for side in operands(expr))
    if not isinstance(by, ir.AffineConstantExpr):
        return expr
    number = ir.AffineConstantExpr(by).value
    while (inner := _remainder_in(divided, by)) is not None:
        divided = inner
    low, high = bounds(divided, extents)
    index = (divided - low // number * number).maybe_downcast()
    return index if high // number == low // number else ir.AffineExpr.get_mod(index, by).maybe_downcast()


def unwrapped(expr: ir.AffineExpr, extents: Sequence[int]) -> ir.AffineExpr:
    """An expression without remainders that dimensions below their extents wrap around once, as of periodic boundaries:
    with the numbers that most of the remainders are.
    """
    if isinstance(expr, ir.AffineDimExpr | ir.AffineConstantExpr | ir.AffineSymbolExpr):
        return expr
    left, right = (unwrapped(side.maybe_downcast(), extents) for side in operands(expr))
    if isinstance(expr, ir.AffineModExpr) and isinstance(right, ir.AffineConstantExpr):
        number, (low, high) = ir.AffineConstantExpr(right).value, bounds(left, extents)
        if high - low < 2 * number - 1:
            return (left - (low + high) // 2 // number * number).maybe_downcast()
    return _rebuilt(expr, left, right)


def _rebuilt(expr: ir.AffineExpr, left: ir.AffineExpr, right: ir.AffineExpr) -> ir.AffineExpr:
    """An expression of an expression's kind, of other operands."""
    for kind, build in _BUILDERS:
        if isinstance(expr, kind):
            # A builder's result has the class of the builder's kind, whatever the expression was simplified to.
            built: ir.AffineExpr = build(left, right).maybe_downcast()
            return built
    raise ValueError(f"unknown affine expression {expr}")


def _remainder_in(expr: ir.AffineExpr, by: ir.AffineExpr) -> ir.AffineExpr | None:
    """What an expression is but for a multiple of `by`: a remainder of it, plus a constant; None for any other."""
    constant = 0
    if isinstance(expr, ir.AffineAddExpr):
        expr, right = (side.maybe_downcast() for side in operands(expr))
        if not isinstance(right, ir.AffineConstantExpr):
            return None
        constant = ir.AffineConstantExpr(right).value
    if not isinstance(expr, ir.AffineModExpr) or operands(expr)[1] != by:
        return None
    return (operands(expr)[0] + constant).maybe_downcast()


_BUILDERS = (
    (ir.AffineAddExpr, ir.AffineExpr.get_add),
    (ir.AffineMulExpr, ir.AffineExpr.get_mul),
    (ir.AffineModExpr, ir.AffineExpr.get_mod),
    (ir.AffineFloorDivExpr, ir.AffineExpr.get_floor_div),
    (ir.AffineCeilDivExpr, ir.AffineExpr.get_ceil_div),
)
