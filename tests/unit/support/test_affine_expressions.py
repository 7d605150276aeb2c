"""Affine expressions with known extents."""

from __future__ import annotations

from mlir import ir

from mlirfuse.support.affine_expressions import bounds, coefficients, substituted, without_constants


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


def test_expressions_that_are_moved_are_the_same_without_constants() -> None:
    with ir.Context():
        d0, d1 = (ir.AffineExpr.get_dim(d) for d in range(2))
        flat = [d0 * 1000 + d1 + n for n in (0, 1, 1000)]
        places = [ir.AffineExpr.get_floor_div(each, 1024) + n for n, each in enumerate(flat)]
        assert len({without_constants(place) for place in places}) == 1
        others = [ir.AffineExpr.get_floor_div(flat[0], 1025), ir.AffineExpr.get_mod(flat[0], 1024), d0 * 999 + d1]
        assert len({without_constants(each) for each in (places[0], *others)}) == 4
