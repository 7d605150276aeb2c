"""What becomes of strides in a reshape, against NumPy's views."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from mlirfuse import TensorSpec
from mlirfuse.api.signature import Extents
from mlirfuse.compiler.context import make_context
from mlirfuse.support.dtypes import float32
from mlirfuse.support.strides import (
    NEGATIVE,
    PACKED,
    RUN_TIME,
    attribute_of,
    entries_of,
    merged,
    split,
    split_alignment,
    view,
)

SHAPES = [(12,), (3, 4), (4, 3), (2, 2, 3), (1, 12), (12, 1), (2, 1, 6), (2, 6), (6, 2), (1, 3, 1, 4), (2, 3, 2)]


def views() -> list[np.ndarray]:
    memory = np.zeros(4096, np.int8)[2048:]
    steps = (-12, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 12)
    rng = np.random.default_rng(0)
    made = [as_strided(memory, s, tuple(int(rng.choice(steps)) for _ in s)) for s in SHAPES for _ in range(60)]
    dense = [np.zeros(shape, np.int8) for shape in SHAPES]
    return [*made, *dense, *(np.flip(x) for x in dense), *(x[::-1] for x in dense), *(x.T for x in dense)]


@pytest.mark.parametrize("target", SHAPES)
def test_view_is_numpys(target: tuple[int, ...]) -> None:
    for x in views():
        strides, seen = view(x.shape, x.strides, target), None
        try:
            seen = np.reshape(x, target, copy=False)
        except ValueError:
            assert strides is None, (x.shape, x.strides, target)
            continue
        assert strides is not None, (x.shape, x.strides, target)
        wide = [d for d, n in enumerate(target) if n != 1]
        assert [strides[d] for d in wide] == [seen.strides[d] for d in wide], (x.shape, x.strides, target)


def test_no_elements_and_no_dimensions() -> None:
    assert view((0, 4), (4, 1), (2, 0, 2)) == (0, 0, 0)
    assert view((), (), (1, 1)) is not None
    assert view((1, 1), (5, -3), ()) == ()


def test_split() -> None:
    groups = [[0], [1, 2]]
    assert split([RUN_TIME, 1], groups, [16, 2, 4]) == [RUN_TIME, 4, 1]
    assert split([RUN_TIME, 0], groups, [16, None, 4]) == [RUN_TIME, 0, 0]
    assert split([1, NEGATIVE], groups, [16, 2, 4]) == [1, PACKED, NEGATIVE]
    assert split([PACKED, RUN_TIME], groups, [16, 2, None]) == [PACKED, PACKED, RUN_TIME]
    assert split([1, RUN_TIME], [[0, 1], [2]], [None, None, 3]) == [PACKED, 1, RUN_TIME]
    assert split([RUN_TIME, 1], groups, [16, 8, 1]) == [RUN_TIME, 1, RUN_TIME]
    assert split([8, -1], groups, [16, 2, 4]) == [8, -4, -1]
    assert split([RUN_TIME, -1], groups, [16, 2, None]) == [RUN_TIME, PACKED, -1]


def test_the_attribute_has_numbers_and_words() -> None:
    with make_context():
        for entries in ([PACKED, NEGATIVE, RUN_TIME], [-4096, -1], [0, 1 << 40]):
            assert entries_of(attribute_of(entries)) == entries
        assert str(attribute_of([PACKED, NEGATIVE, RUN_TIME, -8, 1])) == '["packed", "negative", "?", -8, 1]'


def test_strides_that_depend_on_an_extent_are_aligned_to_what_is_known() -> None:
    assert split_alignment(16, [1, RUN_TIME], [[0, 1], [2]], [None, None, 3], 2) == 2
    assert split_alignment(16, [1, RUN_TIME], [[0, 1], [2]], [None, 8, 3], 2) == 16


def test_merged() -> None:
    assert merged([PACKED, NEGATIVE, 1], [[0, 1], [2]], [None, 4, 8]) == [NEGATIVE, 1]
    assert merged([RUN_TIME, 1], [[0, 1]], [4, 8]) is None
    assert merged([8, 1], [[0, 1]], [4, 8]) == [1]
    assert merged([0, 0], [[0, 1]], [4, None]) == [0]
    assert merged([0, 1], [[0, 1]], [4, 8]) is None
    assert merged([8, 1], [[0, 1]], [4, None]) is None
    assert merged([RUN_TIME, 5, 1], [[0, 1, 2]], [4, 1, 1]) == [RUN_TIME]
    assert merged([RUN_TIME, NEGATIVE], [[0, 1]], [1, 1]) == [RUN_TIME]
    assert merged([-8, -1], [[0, 1]], [4, 8]) == [-1]
    assert merged([8, -1], [[0, 1]], [4, 8]) is None
    assert merged([-8, 1], [[0, 1]], [4, 8]) is None


@pytest.mark.parametrize(
    ("strides", "wanted"),
    [
        ((96, 24, 1), ("packed", None, 1)),
        ((200, 24, 1), (None, None, 1)),
        ((-96, -24, 1), ("packed", "negative", 1)),
        ((96, -24, 1), (None, "negative", 1)),
        ((0, 8, 1), (0, "packed", 1)),
        ((-32, -8, -1), ("packed", "packed", "negative")),
        ((32, 8, 1), None),
        ((1, 2, 8), (1, None, None)),
    ],
)
def test_what_a_signature_says_of_strides(strides: tuple[int, ...], wanted: tuple[object, ...] | None) -> None:
    extents = Extents()
    extents.observe([(2, 4, 8)])
    spec = extents.spec(0, (2, 4, 8), strides, float32, 4)
    assert spec == TensorSpec(("n0", "n1", 8), "float32", align=4, strides=wanted)  # type: ignore[arg-type]
