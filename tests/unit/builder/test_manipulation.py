"""Reshaping, transposing and broadcasting give NumPy's results, as views wherever they can be."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlirfuse import builder as mf
from mlirfuse.errors import ShapeError
from tests.support.harnesses.builder_harness import ops, run, spec_of, traced


def counted(*shape: int) -> np.ndarray:
    return np.arange(math.prod(shape), dtype=np.float32).reshape(shape)


RESHAPES = [
    ((6,), (2, 3)),
    ((2, 3), (6,)),
    ((2, 3), (3, 2)),
    ((2, 3, 4), (6, 4)),
    ((4, 6), (6, 4)),
    ((6, 4, 5), (4, 6, 5)),
    ((2, 3), (1, 2, 1, 3, 1)),
    ((1, 2, 1, 3, 1), (2, 3)),
    ((1, 1), ()),
    ((), (1, 1)),
    ((1,), (1, 1)),
    ((0, 4), (2, 0)),
    ((0,), (3, 0, 1)),
    ((2, 3), (-1,)),
    ((4, 6), (2, -1, 3)),
]


@pytest.mark.parametrize(("source", "target"), RESHAPES, ids=str)
def test_reshape(source, target) -> None:
    x = counted(*source)
    np.testing.assert_array_equal(run(lambda x: mf.reshape(x, target), x), x.reshape(target))


@given(st.data())
def test_any_reshape(data) -> None:
    factors = data.draw(st.lists(st.sampled_from([1, 2, 3, 5]), max_size=5))

    def shape() -> tuple[int, ...]:
        order = data.draw(st.permutations(factors))
        cuts = sorted(data.draw(st.lists(st.integers(0, len(order)), max_size=4)))
        edges = [0, *cuts, len(order)]
        return tuple(math.prod(order[a:b]) for a, b in pairwise(edges))

    source, target = shape(), shape()
    x = counted(*source)
    np.testing.assert_array_equal(run(lambda x: mf.reshape(x, target), x), x.reshape(target))


def test_reshape_moves_no_data() -> None:
    module = traced(lambda x: x.reshape(4, 6, 5).reshape(24, 5), mf.TensorSpec((6, 4, 5), "float32"))
    assert not ops(module, "linalg.generic")
    assert len(ops(module, "tensor.collapse_shape")) == 2
    (expand,) = ops(module, "tensor.expand_shape")
    assert str(expand.operands[0].type) == "tensor<24x5xf32>"


def test_reshape_to_the_same_shape_builds_nothing() -> None:
    module = traced(lambda x: x.reshape(x.shape), mf.TensorSpec((None, 5), "float32"))
    assert [op.operation.name for op in module.body.operations[0].body.blocks[0].operations] == ["func.return"]


DYNAMIC_RESHAPES = [
    lambda x: x.reshape(-1, 3, 2, 4),
    lambda x: x.reshape(x.shape[0], 24),
    lambda x: x.reshape(x.shape[0] * 6, 4),
    lambda x: x.reshape(-1, 4),
    lambda x: x.reshape(-1),
    lambda x: x.reshape(-1, 4).reshape(x.shape),
    lambda x: x.reshape(-1, 4).reshape(x.shape[0] * 6 // 2, 2, 4),
    lambda x: x[:, None].reshape(1, -1, 24),
]


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("fn", DYNAMIC_RESHAPES)
def test_dynamic_reshape(fn, rows) -> None:
    x = counted(rows, 6, 4)
    expected = fn(x) if rows or fn not in (DYNAMIC_RESHAPES[0], DYNAMIC_RESHAPES[7]) else None
    actual = run(fn, x, dynamic=(0,))
    if expected is None:  # NumPy cannot infer -1 for no elements
        assert actual.size == 0
    else:
        np.testing.assert_array_equal(actual, expected)


def test_two_dynamic_dimensions_merge_and_split_again() -> None:
    x = counted(2, 3, 4)
    fn = lambda x: x.reshape(-1, 4).reshape(x.shape) + x.reshape(x.shape[0] * x.shape[1], 4).reshape(x.shape)  # noqa: E731
    np.testing.assert_array_equal(run(fn, x, dynamic=(0, 1)), 2 * x)


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (-1, 0, 1)])
def test_permute_dims(axes) -> None:
    x = counted(2, 3, 4)
    np.testing.assert_array_equal(run(lambda x: mf.permute_dims(x, axes), x), x.transpose(axes))


def test_transposes() -> None:
    x = counted(2, 3)
    for actual in run(lambda x: (x.T, x.mT, x.transpose(), x.transpose(1, 0), mf.matrix_transpose(x)), x, dynamic=(0,)):
        np.testing.assert_array_equal(actual, x.T)
    module = traced(lambda x: x.T, spec_of(x))
    assert len(ops(module, "linalg.transpose")) == 1


@pytest.mark.parametrize("axis", [0, 1, -1, (0, 2), (-1, 0)])
def test_expand_dims_and_squeeze(axis) -> None:
    x = counted(2, 3)
    expanded, back = run(lambda x: (y := mf.expand_dims(x, axis), mf.squeeze(y, axis)), x)
    np.testing.assert_array_equal(expanded, np.expand_dims(x, axis))
    np.testing.assert_array_equal(back, x)


@pytest.mark.parametrize(
    "key",
    [
        None,
        ...,
        slice(None),
        (None, ...),
        (..., None),
        (slice(None), None),
        (None, slice(None), None),
        (),
        (..., None, slice(None)),
    ],
)
def test_getitem(key) -> None:
    x = counted(2, 3)
    np.testing.assert_array_equal(run(lambda x: x[key] + 0, x), x[key])


def test_broadcast_to() -> None:
    x = counted(2, 1)
    np.testing.assert_array_equal(run(lambda x: mf.broadcast_to(x, (4, 2, 3)), x), np.broadcast_to(x, (4, 2, 3)))


@given(st.lists(st.sampled_from([1, 2, 3]), max_size=3), st.data())
def test_operands_broadcast_without_copies(shape, data) -> None:
    def part() -> tuple[int, ...]:
        kept = shape[data.draw(st.integers(0, len(shape))) :]
        return tuple(1 if data.draw(st.booleans()) else extent for extent in kept)

    a, b, c = (np.asarray(counted(*part()) + i) for i in range(3))
    np.testing.assert_array_equal(run(lambda a, b, c: mf.where(a > b, a, c), a, b, c), np.where(a > b, a, c))
    module = traced(lambda a, b, c: mf.where(a > b, a, c), *map(spec_of, (a, b, c)))
    assert len(ops(module, "linalg.generic")) == 2


ERRORS = [
    (lambda x: x.reshape(5, 5), ShapeError, "24 elements"),
    (lambda x: x.reshape(-1, -1), ShapeError, "-1"),
    (lambda x: x.reshape(-1, 5), ShapeError, "do not fit"),
    (lambda x: x.reshape(-2, 12), ShapeError, "do not fit"),
    (lambda x: x.reshape(2.0, 12), ShapeError, "extent 2.0 is no int"),
    (lambda x: mf.permute_dims(x, (0,)), ShapeError, "every dimension once"),
    (lambda x: mf.permute_dims(x, None), ShapeError, "axes None for shape"),
    (lambda x: mf.permute_dims(x, (0, 0, 1)), ShapeError, "twice"),
    (lambda x: mf.permute_dims(x, (0, 1, 3)), ShapeError, "out of range"),
    (lambda x: x.T, ShapeError, "2 dimensions"),
    (lambda x: mf.matrix_transpose(x.reshape(24)), ShapeError, "2 dimensions"),
    (lambda x: mf.expand_dims(x, 4), ShapeError, "out of range"),
    (lambda x: mf.squeeze(x, 0), ShapeError, "extent 2, not 1"),
    (lambda x: mf.broadcast_to(x, (2, 3, 5)), ShapeError, "do not broadcast"),
    (lambda x: mf.broadcast_to(x, (3, 4)), ShapeError, "does not broadcast"),
    (lambda x: x + x.reshape(4, 6), ShapeError, r"\(2, 3, 4\) and \(4, 6\) do not broadcast"),
    (lambda x: x[2], ShapeError, "index 2 is out of range"),
    (lambda x: x[[0]], mf.UnsupportedError, r"index \[0\] is not supported"),
    (lambda x: x[:, ::0], ShapeError, "step cannot be 0"),
    (lambda x: x[..., ...], ShapeError, "2 ellipses"),
    (lambda x: x[:, :, :, :], ShapeError, "4 slices"),
]


@pytest.mark.parametrize(("fn", "error", "message"), ERRORS)
def test_errors(fn, error, message) -> None:
    with pytest.raises(error, match=message) as caught:
        traced(fn, mf.TensorSpec((2, 3, 4), "float32"))
    assert caught.value.where is not None
    assert "builder/test_manipulation.py:" in caught.value.where


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.reshape(8, -1),
        lambda x: x.reshape(4, 4),
        lambda x: mf.squeeze(x, 0),
        lambda x: mf.broadcast_to(x, (8, 4)),
        lambda x: x.reshape(x.shape[0] // 2, 2, 4),
    ],
)
def test_what_depends_on_a_dynamic_extent_asks_for_it(fn) -> None:
    with pytest.raises(mf.NeedsStatic) as caught:
        traced(fn, mf.TensorSpec((None, 4), "float32"))
    assert caught.value.sources == ((0, 0),)
