"""Random chains of views: aliases of arguments without a kernel, and what kernels read through them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlirfuse as mf
from tests.support.pairwise import examples
from tests.support.views.chains import apply, chains

shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


def array(data: st.DataObject) -> np.ndarray:
    """An array that may lie in memory in any order of its dimensions."""
    shape = data.draw(shapes, "shape")
    order = data.draw(st.permutations(range(len(shape))), "order in memory")
    memory = np.arange(np.prod(shape), dtype=np.float32).reshape([shape[d] for d in order])
    return memory.transpose(np.argsort(order))


def called(function: Any, *arrays: np.ndarray) -> tuple[Any, int]:
    """What a fused function returns in the interpreter, and its number of kernels."""
    fused = mf.fuse(function, target="interpret")
    result = fused(*arrays)
    (compiled,) = fused._compiled.values()
    return result, len(compiled.program.launches)


def strides(x: np.ndarray) -> list[int]:
    """Those that say where elements lie."""
    return [stride for extent, stride in zip(x.shape, x.strides, strict=True) if extent > 1]


@settings(max_examples=examples(150, 75), deadline=None)
@given(st.data())
def test_chains_are_views_where_numpy_makes_views(data: st.DataObject) -> None:
    x = array(data)
    views = data.draw(chains(x.shape), "views")
    expected = apply(x, views)
    result, kernels = called(lambda x: apply(x, views), x)
    np.testing.assert_array_equal(result, expected)
    assert result.shape == expected.shape
    if not expected.size:
        return
    if np.shares_memory(expected, x) and (x.flags.c_contiguous or kernels == 0):
        assert kernels == 0
        assert np.shares_memory(result, x)
        assert strides(result) == strides(expected)
    else:  # a signature does not say of other orders in memory which dimensions could be merged
        assert not np.shares_memory(result, x)


@settings(max_examples=examples(60, 30), deadline=None)
@given(st.data())
def test_kernels_read_and_results_show_chains(data: st.DataObject) -> None:
    x = array(data)
    first = data.draw(chains(x.shape, 3), "views that are read")
    read = apply(x, first)
    last = data.draw(chains(read.shape, 3), "views of the result")
    result, kernels = called(lambda x: apply(apply(x, first) * 2.0 + 1.0, last), x)
    np.testing.assert_array_equal(result, apply(read * np.float32(2) + np.float32(1), last))
    assert kernels <= 3


@settings(max_examples=examples(40, 20), deadline=None)
@given(st.data())
def test_reductions_read_chains(data: st.DataObject) -> None:
    x = array(data)
    views = data.draw(chains(x.shape, 4), "views")
    read = apply(x, views)
    axis = data.draw(st.integers(0, read.ndim - 1), "axis") if read.ndim else None
    result, _ = called(lambda x: mf.sum(apply(x, views), axis=axis), x)
    np.testing.assert_allclose(result, read.astype(np.float64).sum(axis=axis), rtol=1e-6)


def test_a_view_of_a_kernels_result_is_no_other_kernel() -> None:
    x = np.arange(48, dtype=np.float32).reshape(6, 8)
    (turned, part), kernels = called(lambda x: ((x * 2).T, (x * 2)[1:3, ::-1]), x)
    assert kernels == 1
    assert np.shares_memory(turned, part)
    np.testing.assert_array_equal(turned, x.T * 2)
    np.testing.assert_array_equal(part, x[1:3, ::-1] * 2)


def test_two_parts_of_one_argument_are_read_by_one_kernel() -> None:
    x = np.random.default_rng(0).normal(size=(6, 64)).astype(np.float32)
    gated, kernels = called(lambda x: x[:, :32] * mf.sigmoid(x[:, 32:]), x)
    assert kernels == 1
    np.testing.assert_allclose(gated, x[:, :32] / (1 + np.exp(-x[:, 32:])), rtol=1e-6)


@pytest.mark.parametrize("rows", [2, 3, 7])
def test_reversed_rows_need_no_compilation_for_their_number(rows: int) -> None:
    fused = mf.fuse(lambda x: (x[::-1], x[::-1, :4] + 1.0), target="interpret")
    for count in (rows, rows + 1):
        x = np.arange(8 * count, dtype=np.float32).reshape(count, 8)
        turned, more = fused(x)
        assert np.shares_memory(turned, x)
        np.testing.assert_array_equal(turned, x[::-1])
        np.testing.assert_array_equal(more, x[::-1, :4] + 1)
    assert len(fused._compiled) == 1


def test_results_are_written_to_memory_of_the_caller() -> None:
    fused = mf.fuse(lambda x: (x.T, x), target="interpret")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    out = np.empty((4, 3), np.float32), np.empty((3, 4), np.float32)
    fused(x, out=out)
    np.testing.assert_array_equal(out[0], x.T)
    np.testing.assert_array_equal(out[1], x)
