"""Affine expressions with known extents."""

from __future__ import annotations

from mlir import ir

from mlirfuse.support.affine_expressions import bounds, coefficients, substituted


def test_substitution_may_change_the_kind_of_an_expression() -> None:
    """`(2 * h + a) floordiv 2` is a sum, and `a * 0` a constant: neither is what it was built as."""
    with ir.Context():
        d0, d1 = (ir.AffineExpr.get_dim(d) for d in range(2))
        halved = substituted(ir.AffineExpr.get_floor_div(d0, 2), [d0 * 2 + d1])
        assert isinstance(halved, ir.AffineAddExpr)
        assert bounds(halved, (4, 2)) == (0, 3)
        assert coefficients(halved, 2) is None  # a floordiv 2 remains
        nothing = substituted(d0 * 3, [ir.AffineExpr.get_constant(0)])
        assert isinstance(nothing, ir.AffineConstantExpr)
        assert coefficients(nothing, 2) == ([0, 0], 0)
