"""How a gathered view's elements are numbered."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from mlir import ir

from mlirfuse.dialect.gathered_view import Gather


def factors(rng: np.random.Generator, extent: int) -> list[int]:
    """Factors of an extent in any order, 1 among them."""
    found = list[int]()
    while extent > 1:
        found.append(int(rng.choice([d for d in range(1, extent + 1) if extent % d == 0])))
        extent //= found[-1]
    return found or [1]


def value(expr: ir.AffineExpr, places: tuple[int, ...]) -> int:
    """An affine expression of components at some place."""
    if isinstance(expr, ir.AffineDimExpr):
        return places[expr.position]
    if isinstance(expr, ir.AffineConstantExpr):
        return int(expr.value)
    left, right = value(expr.lhs, places), value(expr.rhs, places)
    kinds = {ir.AffineAddExpr: left + right, ir.AffineMulExpr: left * right}
    if type(expr) in kinds:
        return kinds[type(expr)]
    return left // right if isinstance(expr, ir.AffineFloorDivExpr) else left % right


def indices(gather: Gather) -> list[tuple[int, ...]]:
    """The indices of the source that the elements of a view have, in their order."""
    places = product(*map(range, gather.components))
    return [tuple(value(expr, place) for expr in gather.map.results) for place in places]


@pytest.mark.parametrize("seed", range(200))
def test_reshaped(seed: int) -> None:
    """Elements keep their order, whatever components the dimensions of either view have."""
    rng = np.random.default_rng(seed)
    extent = int(rng.choice([1, 6, 12, 24, 36, 60]))
    components, basis = factors(rng, extent), list[tuple[int, ...]]()
    while (done := sum(map(len, basis))) < len(components):
        basis.append(tuple(components[done : done + int(rng.integers(4))]))
    with ir.Context():
        numbers = [ir.AffineExpr.get_dim(n) for n in range(len(components))]
        gather = Gather(tuple(basis), ir.AffineMap.get(len(components), 0, numbers))
        shape = factors(rng, extent)
        found = gather.reshaped(shape)
        assert found.shape == tuple(shape)
        assert indices(found) == indices(gather)
