"""Arguments that are not C-contiguous are read as they lie, and reshaped as NumPy does: issue 23, defect 11."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import mlirfuse as mf
from tests.support.pairwise import some
from tests.support.views.strided import VIEWS

DTYPES = ["float16", "float32", "float64", "int8", "int32", "int64", "bool"]
CASES = [*zip(VIEWS, cycle(DTYPES)), *(("all reversed", dtype) for dtype in some(DTYPES, 2))]


def random(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 7, shape).astype(dtype)


def interpreted(fn: Any, *args: np.ndarray) -> Any:
    return mf.fuse(fn, target="interpret")(*args)


def check(fn: Any, reference: Any, *args: np.ndarray, tolerance: float = 0) -> None:
    actual, expected = interpreted(fn, *args), reference(*(a.astype(np.float64) for a in args))
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual.astype(np.float64), expected, rtol=tolerance, atol=0)


def explained(fn: Any, *args: np.ndarray) -> str:
    return mf.fuse(fn).lower(*args).compile().explain(verbose=True)


@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_elementwise_and_row_and_column_sums(kind: str, dtype: str) -> None:
    x = VIEWS[kind](lambda shape: random(shape, dtype), (6, 24))
    assert not x.flags.c_contiguous

    def program(x: Any) -> Any:
        y = mf.astype(x, mf.float64)
        return y + 1.0, mf.sum(y, axis=-1), mf.sum(y, axis=0)

    y = x.astype(np.float64)
    for actual, expected in zip(interpreted(program, x), (y + 1, y.sum(-1), y.sum(0)), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("kind", VIEWS)
def test_strides_reach_the_kernel(kind: str) -> None:
    x = VIEWS[kind](random, (6, 24))
    linalg = mf.fuse(lambda x: x * 2.0, target="interpret").lower(x).as_text()
    assert "fuse.strides" in linalg, linalg


@pytest.mark.parametrize(("kind", "dtype"), [*zip(VIEWS, cycle(["float16", "float16", "float32", "float64"]))])
def test_products(kind: str, dtype: str) -> None:
    x, w = (VIEWS[kind](lambda shape: random(shape, dtype), shape) for shape in ((64, 32), (32, 48)))
    check(lambda x, w: x @ w, lambda x, w: x @ w, x, w, tolerance=1e-3)


@pytest.mark.parametrize("shape", [(16, 8), (3, 16, 8)])
@pytest.mark.parametrize("kind", VIEWS)
def test_a_dimension_is_split_without_a_copy(kind: str, shape: tuple[int, ...]) -> None:
    def split(x: Any) -> Any:
        return mf.sum(mf.reshape(x, (*x.shape[:-1], 2, 4)), axis=-2) * 2.0

    x = VIEWS[kind](random, shape)
    check(split, lambda x: x.reshape(*shape[:-1], 2, 4).sum(-2) * 2, x)
    assert "copies" not in explained(split, x)


@pytest.mark.parametrize("kind", VIEWS)
def test_extents_of_one_are_added_without_a_copy(kind: str) -> None:
    x = VIEWS[kind](random, (16, 8))
    check(lambda x: mf.reshape(x, (16, 1, 8)) * 2.0 + x, lambda x: x[:, None] * 2 + x, x)
    assert "copies" not in explained(lambda x: mf.expand_dims(x, 1) * 2.0, x)


@pytest.mark.parametrize(("kind", "target"), [*zip(VIEWS, cycle([(-1,), (-1, 8), (4, -1), (3, 2, -1)]))])
def test_other_reshapes_may_copy(kind: str, target: tuple[int, ...]) -> None:
    def program(x: Any) -> Any:
        h = mf.reshape(x, target)
        return h * 2.0, mf.sum(h, axis=0), h

    x = VIEWS[kind](random, (3, 16, 8))
    h = x.reshape(target)
    for actual, expected in zip(interpreted(program, x), (h * 2, h.sum(0), h), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_explain_says_what_is_copied() -> None:
    qkv = random((16, 24))
    text = explained(lambda q: mf.sum(mf.reshape(q, (-1,))), qkv[:, :8])
    assert "copies q: a reshape of it may be no view" in text


def test_dimensions_that_follow_from_each_other_are_merged_without_a_copy() -> None:
    def merged(q: Any) -> Any:
        return mf.reshape(q, (-1, 8)) * 2.0

    batches = random((3, 16, 24))
    for q in (batches[..., 8:16], batches[::-1, ::-1, :8], batches[:, ::-1, 3:11][::-1]):
        check(merged, lambda q: q.reshape(-1, 8) * 2, q)
        assert "copies" not in explained(merged, q)
    for q in (batches[:, ::2, :8], batches[:, :15, :8], batches[::-1, :, :8]):
        check(merged, lambda q: q.reshape(-1, 8) * 2, q)
    assert "copies q" in explained(merged, batches[:, :15, :8])


@pytest.mark.parametrize("rows", [1, 5, 33])
def test_heads_of_a_slice_of_qkv(rows: int) -> None:
    qkv = random((rows, 3 * 64), "float16")

    def scores(q: Any, k: Any) -> Any:
        q, k = (mf.permute_dims(mf.reshape(x, (-1, 4, 16)), (1, 0, 2)) for x in (q, k))
        return q @ mf.matrix_transpose(k)

    def expected(q: np.ndarray, k: np.ndarray) -> np.ndarray:
        q, k = (x.reshape(-1, 4, 16).transpose(1, 0, 2) for x in (q, k))
        return q @ k.swapaxes(-1, -2)

    check(scores, expected, qkv[:, :64], qkv[:, 64:128], tolerance=1e-3)
    check(scores, expected, qkv[::-1, :64], qkv[:, 191:127:-1], tolerance=1e-3)


def test_windows_that_overlap() -> None:
    x = random((64,))
    for windows in (
        as_strided(x, (30, 8), (4, 4)),
        as_strided(x, (15, 8), (12, 4)),
        as_strided(x[::-1], (9, 5), (-8, -4)),
    ):
        check(lambda x: mf.sum(x * 2.0, axis=-1), lambda x: (x * 2).sum(-1), windows)
        check(lambda x: x @ mf.matrix_transpose(x), lambda x: x @ x.T, windows)
        check(lambda x: mf.reshape(x, (-1,)) + 1.0, lambda x: x.reshape(-1) + 1, windows)


def test_mixed_layouts_in_one_kernel() -> None:
    x, y, w = random((9, 33)), random((33, 9)), random((33,))

    def norm(x: Any, y: Any, w: Any) -> Any:
        h = x + y
        return h * mf.rsqrt(mf.mean(h * h, axis=-1, keepdims=True) + 1.0) * w, mf.sum(h * w, axis=0)

    def expected(x: np.ndarray, y: np.ndarray, w: np.ndarray) -> Any:
        h = x + y
        return h / np.sqrt((h * h).mean(-1, keepdims=True) + 1) * w, (h * w).sum(0)

    for args in ((x[::-1], y.T, w[::-1]), (x[:, ::-1], y.T[::-1, ::-1], w), (x[:1], y.T, w[::-1])):
        exact = expected(*(a.astype(np.float64) for a in args))
        for actual, wanted in zip(interpreted(norm, *args), exact, strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-5)


def test_reversed_slices() -> None:
    x, y = random((6, 8, 10)), random((8, 8))

    def program(x: Any, y: Any) -> Any:
        merged = mf.reshape(x[:, ::-1, ::-1], (x.shape[0], 80)) + mf.reshape(x[:, ::-1], (x.shape[0], 80))
        return (
            merged,
            x[::-1, :, ::-3] * 2.0,
            mf.sum(x[:, ::-1] * x, axis=-1),
            mf.diagonal(y[:, ::-1]) + mf.diagonal(y[::-1, ::-1]),
            y[::-1] @ y[:, ::-2],
            mf.permute_dims(x[:, ::-1], (2, 0, 1)) - mf.permute_dims(x, (2, 0, 1)),
        )

    def expected(x: np.ndarray, y: np.ndarray) -> Any:
        return (
            x[:, ::-1, ::-1].reshape(6, 80) + x[:, ::-1].reshape(6, 80),
            x[::-1, :, ::-3] * 2,
            (x[:, ::-1] * x).sum(-1),
            np.diagonal(y[:, ::-1]) + np.diagonal(y[::-1, ::-1]),
            y[::-1] @ y[:, ::-2],
            (x[:, ::-1] - x).transpose(2, 0, 1),
        )

    for actual, wanted in zip(interpreted(program, x, y), expected(x, y), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-5)


def test_results_go_into_arrays_of_any_strides() -> None:
    fused, x = mf.fuse(lambda x: x * 2.0, target="interpret"), random((6, 8))
    for kind, view in VIEWS.items():
        if kind != "one row for all":
            out = view(lambda shape: np.zeros(shape, np.float32), (6, 8))
            assert fused(x[::-1], out=out) is out
            np.testing.assert_array_equal(out, x[::-1] * 2)


def test_elements_that_are_not_whole_strides_apart_are_copied() -> None:
    records = np.zeros(9, np.dtype([("tag", np.int8), ("x", np.float32)]))
    records["x"] = np.arange(9)
    check(lambda x: x + 1.0, lambda x: x + 1, records["x"])
