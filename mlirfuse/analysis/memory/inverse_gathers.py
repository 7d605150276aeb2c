"""The inverse of a gather: where each element of a view's source is put, so that the view's order results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from mlirfuse.dialect.gathered_view import Gather
from mlirfuse.dialect.scatter import scatter_problem
from mlirfuse.support.affine_expressions import bounds, coefficients, operands, used_dims


@dataclass(frozen=True)
class Positions:
    """Where the elements of a view's source are in the view, and where the view's zeros are.

    Attributes:
        gather: from the source's components, and then those that number zeros, to an index of the view.
        zeros: the extents of the components that number zeros: at the first number is the element, and at each other
            one a zero of the view. Empty where the view has no zeros.
    """

    gather: Gather
    zeros: tuple[int, ...] = ()


def inverse(gather: Gather, groups: Sequence[Sequence[int]]) -> Positions | str:
    """The positions in a gathered view of its source's elements; or why they are not given by linear maps.

    The view's elements must be different elements of the source, or zeros where an index goes over a multiple of the
    source's extent. An index of the view is found from the source's indices that it determines: the index plus a
    constant, or quotients and remainders by which that is divided. Source elements that the view leaves out are put
    outside of it.

    Args:
        gather: how the view's elements lie in the source; each of the view's dimensions has one component.
        groups: for each dimension of the result's source, the extents of its components: together those of the view's
            source.
    """
    if gather.joins_components:
        return "dimensions of the gathered view are joined"
    extents, shape = gather.components, [extent for group in groups for extent in group]
    found: dict[int, list[tuple[ir.AffineExpr, ir.AffineExpr]]] = {}
    zeros: list[int] = []
    for axis, (expr, extent) in enumerate(zip(gather.map.results, shape, strict=True)):
        low, high = bounds(expr, extents)
        if low < 0 or (high >= extent and (high + 1) % extent):
            return f"index {axis} of the gathered view's source may be outside of it, where the view is zero"
        value: ir.AffineExpr = ir.AffineExpr.get_dim(axis)
        if high >= extent:
            value = value + ir.AffineExpr.get_dim(len(shape) + len(zeros)) * extent
            zeros.append((high + 1) // extent)
        dims = used_dims(expr)
        if len(dims) > 1:
            return f"index {axis} of the gathered view's source depends on several indices of the view"
        if dims:
            found.setdefault(next(iter(dims)), []).append((expr, value))
        elif extent > 1:
            return f"the gathered view has one element along axis {axis} of its source"
    places = []
    for dim, size in enumerate(extents):
        place = _solved(found.get(dim, []), size)
        if place is None:
            return f"index {dim} of the gathered view does not follow from those of its source"
        places.append(place)
    positions = Gather(tuple(map(tuple, groups)), ir.AffineMap.get(len(shape) + len(zeros), 0, places))
    return scatter_problem(positions, extents, zeros) or Positions(positions, tuple(zeros))


def _solved(known: Sequence[tuple[ir.AffineExpr, ir.AffineExpr]], size: int) -> ir.AffineExpr | None:
    """A dimension of that extent as an expression of other ones, from expressions of it and their values; or None."""
    open_ = dict(known)
    while len(open_) > 1:
        joined = next((pair for low in open_ if (pair := _quotient(low, open_)) is not None), None)
        if joined is None:
            return None
        dividend, low, high, by = joined
        open_[dividend] = open_[high] * by + open_[low]
        del open_[low], open_[high]
    if not open_:
        return ir.AffineExpr.get_constant(0) if size == 1 else None
    ((expr, value),) = open_.items()
    dim = max(used_dims(expr))
    linear = coefficients(expr, dim + 1)
    return None if linear is None or linear[0][dim] != 1 else value - linear[1]


def _quotient(
    low: ir.AffineExpr, known: dict[ir.AffineExpr, ir.AffineExpr]
) -> tuple[ir.AffineExpr, ir.AffineExpr, ir.AffineExpr, int] | None:
    """The dividend, remainder, quotient and divisor where `low` is a remainder whose quotient is known too."""
    if not isinstance(low, ir.AffineModExpr):
        return None
    dividend, divisor = operands(low)
    by = ir.AffineConstantExpr(divisor).value
    high = ir.AffineExpr.get_floor_div(dividend, by)
    return (dividend, low, high, by) if high in known else None
