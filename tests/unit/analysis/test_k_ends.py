"""Where views end along k, against all of their elements."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from mlir import ir

from mlirfuse.analysis.contractions.k_ends import k_ends
from mlirfuse.dialect.gathered_view import Gather
from mlirfuse.interpreter.state.affine import compile_map


def filters(taps: tuple[int, int], strides: tuple[int, int], filters_: int, channels: int) -> Gather:
    """Taps and filters as rows, classes of a stride and channels as columns."""
    i, j, f, a, b, c = (ir.AffineExpr.get_dim(d) for d in range(6))
    counts = tuple(-(-tap // stride) for tap, stride in zip(taps, strides, strict=True))
    at = [f, i * strides[0] + a, j * strides[1] + b, c]
    return Gather(((*counts, filters_), (*strides, channels)), ir.AffineMap.get(6, 0, at))


@pytest.mark.parametrize(
    ("taps", "strides"), [((3, 3), (2, 2)), ((7, 5), (2, 3)), ((3, 2), (2, 1)), ((1, 4), (1, 3)), ((5, 5), (4, 4))]
)
def test_ends_are_those_of_elements(context: ir.Context, taps: tuple[int, int], strides: tuple[int, int]) -> None:
    with context, ir.Location.unknown():
        gather = filters(taps, strides, 3, 2)
        shape = (3, *taps, 2)
        found = k_ends(gather, shape, 0, 1)
        assert found is not None
        place = compile_map(gather.map)
    extents = gather.components
    inside = np.zeros(extents, bool)
    for at in product(*map(range, extents)):
        inside[at] = all(0 <= p < n for p, n in zip(place(at), shape, strict=True))
    rows = inside.reshape(prod(extents[:3]), *extents[3:])
    ends = []
    for class_ in product(*map(range, found.classes)):
        columns = rows[(slice(None), *class_)].reshape(len(rows), -1)
        last = int(np.flatnonzero(columns.any(axis=1))[-1]) + 1
        assert found.end(class_) == last
        ends.append(last)
    assert found.columns == prod(extents[3:]) // len(ends)
    assert found.share == pytest.approx(sum(ends) / len(ends) / len(rows))


@pytest.mark.parametrize(("taps", "strides"), [((2, 2), (2, 2)), ((3, 3), (1, 1))])
def test_classes_that_meet_all_taps_end_nowhere(
    context: ir.Context, taps: tuple[int, int], strides: tuple[int, int]
) -> None:
    with context, ir.Location.unknown():
        assert k_ends(filters(taps, strides, 3, 2), (3, *taps, 2), 0, 1) is None
