"""Inverses of gathers: each element of a view's source is put where the view reads it; or why there is none."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from mlirfuse.analysis.memory.inverse_gathers import Positions, inverse
from mlirfuse.dialect.gathered_view import Gather
from mlirfuse.dialect.scatter import of_sources
from mlirfuse.interpreter.state.affine import compile_map


def gather(shape: tuple[int, ...], text: str) -> Gather:
    attribute = ir.AffineMapAttr(ir.Attribute.parse(f"affine_map<{text}>"))
    return Gather(tuple((extent,) for extent in shape), attribute.value)


INVERTIBLE = [
    ((8, 5, 6, 3), "(n, h, w, c) -> (h mod 2, w mod 3, n, h floordiv 2, w floordiv 3, c)", [[2, 3], [8, 3, 2], [3]]),
    ((7, 4), "(h, c) -> ((h + 1) mod 3, c, (h + 1) floordiv 3)", [[3], [4], [3]]),
    ((3, 12), "(n, c) -> (c floordiv 4, n, c mod 4)", [[3], [3], [4]]),
    ((24,), "(c) -> (c mod 2, (c floordiv 2) mod 3, (c floordiv 2) floordiv 3)", [[2, 3], [4]]),
    ((4, 3), "(n, c) -> (n, c)", [[4], [5]]),
    ((1, 6), "(n, c) -> (0, c)", [[1], [6]]),
    ((5,), "(n) -> (n + 2)", [[8]]),
]


@pytest.mark.parametrize(("shape", "text", "groups"), INVERTIBLE)
def test_elements_return(shape: tuple[int, ...], text: str, groups: list[list[int]]) -> None:
    with ir.Context():
        view = gather(shape, text)
        positions = inverse(view, groups)
        assert isinstance(positions, Positions)
        assert not positions.zeros
        found = positions.gather
        source = tuple(extent for group in groups for extent in group)
        assert found.components == source
        read = [np.broadcast_to(i, shape) for i in compile_map(view.map)(list(np.indices(shape)))]
        back = compile_map(found.map)(read)
        for index, want in zip(back, np.indices(shape), strict=True):
            assert (np.broadcast_to(index, shape) == want).all()
        put = [np.broadcast_to(i, source) for i in compile_map(found.map)(list(np.indices(source)))]
        inside = np.logical_and.reduce([(p >= 0) & (p < n) for p, n in zip(put, shape, strict=True)])
        assert inside.sum() == np.prod(shape)


@pytest.mark.parametrize(
    ("shape", "text", "groups", "zeros"),
    [
        ((5, 7, 3), "(h, w, c) -> (h floordiv 2, w floordiv 2, h mod 2, w mod 2, c)", [[3, 4, 1, 1], [3]], (2, 2)),
        ((11, 2), "(h, c) -> ((h + 1) floordiv 6, (h + 1) mod 6, c)", [[2, 2], [2]], (3,)),
        ((16,), "(h) -> (h)", [[8]], (2,)),
    ],
)
def test_zeros(shape: tuple[int, ...], text: str, groups: list[list[int]], zeros: tuple[int, ...]) -> None:
    """Each element of the view is one of the source, or a zero, which has a position like the elements."""
    with ir.Context():
        view = gather(shape, text)
        positions = inverse(view, groups)
        assert isinstance(positions, Positions)
        assert positions.zeros == zeros
        source = tuple(extent for group in groups for extent in group)
        values = 1 + np.arange(np.prod(source)).reshape(source)
        read = [np.broadcast_to(i, shape) for i in compile_map(view.map)(list(np.indices(shape)))]
        inside = np.logical_and.reduce([i < n for i, n in zip(read, source, strict=True)])
        want = np.where(inside, values[tuple(np.where(inside, i, 0) for i in read)], 0)
        found = np.full(shape, -1)
        for number, each in enumerate(of_sources(positions.gather, zeros)):
            put = [np.broadcast_to(i, source) for i in compile_map(each.map)(list(np.indices(source)))]
            at = np.logical_and.reduce([(p >= 0) & (p < n) for p, n in zip(put, shape, strict=True)])
            place = tuple(p[at] for p in put)
            assert (found[place] == -1).all()
            found[place] = 0 if number else values[at]
        assert (found == want).all()


@pytest.mark.parametrize(
    ("shape", "text", "groups", "reason"),
    [
        ((6,), "(h) -> (h - 1)", [[8]], "outside of it"),
        ((9,), "(h) -> (h)", [[8]], "outside of it"),
        ((20,), "(h) -> (h)", [[8]], "outside of it"),
        ((4, 3), "(h, r) -> (h + r)", [[8]], "several indices"),
        ((8,), "(h) -> (h floordiv 2)", [[4]], "does not follow"),
        ((8,), "(h) -> (h mod 4)", [[4]], "does not follow"),
        ((8,), "(h) -> (7 - h)", [[8]], "does not follow"),
        ((4,), "(h) -> (h * 2)", [[8]], "does not follow"),
        ((2, 4), "(n, h) -> (h)", [[4]], "does not follow"),
        ((4,), "(h) -> (0, h)", [[2], [4]], "one element along axis 0"),
        ((8,), "(h) -> (h mod 2, h floordiv 2)", [[3], [4]], "twice, or not at all"),
    ],
)
def test_no_inverse(shape: tuple[int, ...], text: str, groups: list[list[int]], reason: str) -> None:
    with ir.Context():
        found = inverse(gather(shape, text), groups)
        assert isinstance(found, str)
        assert reason in found


def test_joined_dimensions_of_a_view() -> None:
    with ir.Context():
        view = Gather(((2, 3),), gather((2, 3), "(a, b) -> (a, b)").map)
        assert inverse(view, [[2], [3]]) == "dimensions of the gathered view are joined"
