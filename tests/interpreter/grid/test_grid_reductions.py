"""Totals over a grid that vary along different dimensions, and what else a kernel with them returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.pairwise import FULL, Row, combined, some


def of_all_and_of_columns(x: Any, w: Any) -> Any:
    """One number and a row from the same persistent loop, with a row that needs neither."""
    return mf.sum(x), mf.sum(x, axis=0), w * 2


def of_a_middle_dimension(x: Any, w: Any) -> Any:
    """The looped dimension lies between the kept ones."""
    y = x * 0.5
    return mf.min(y, axis=1), mf.sum(y - w, axis=2)


def with_what_varies_less(x: Any, w: Any) -> Any:
    """A value of each outer row, and a sum over two looped dimensions."""
    return mf.sum(x, axis=2) * mf.max(w), mf.sum(x, axis=(0, 1))


CASES: dict[Callable[..., Any], Callable[..., Any]] = {
    of_all_and_of_columns: lambda x, w: (x.sum(), x.sum(0), w * 2),
    of_a_middle_dimension: lambda x, w: ((x * 0.5).min(1), (x * 0.5 - w).sum(2)),
    with_what_varies_less: lambda x, w: (x.sum(2) * w.max(), x.sum((0, 1))),
}


@pytest.mark.parametrize("fn", CASES, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("shape", some([(50, 300), (3, 12288), (8, 3, 2), (5, 7, 40), (3, 40, 129)], 3), ids=str)
def test_product_reductions(fn: Callable[..., Any], shape: tuple[int, ...]) -> None:
    if len(shape) == 2 and fn is not of_all_and_of_columns:
        pytest.skip("reduces a third dimension")
    rng = np.random.default_rng(sum(shape))
    x, w = (rng.standard_normal(n).astype(np.float32) for n in (shape, shape[-1:]))
    results = mf.fuse(fn, target="interpret")(x, w)
    for result, expected in zip(results, CASES[fn](x.astype(np.float64), w.astype(np.float64)), strict=True):
        assert result.shape == np.shape(expected)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def of_whole_numbers(x: Any) -> Any:
    """Sums in 64 bits, and whether something or everything is not zero, of columns and of all."""
    return mf.sum(x, axis=0), mf.any(x, axis=0), mf.all(x, axis=0), mf.sum(x), mf.any(x), mf.all(x)


LONG = (2, 70000)


def _is_quick(row: Row) -> bool:
    """Rows that are long as well as wide take half of the time: `make test` has them in int8 alone."""
    return FULL or row.get("shape") != LONG or row.get("dtype", "int8") == "int8"


@combined({"shape": [(3, 1), (70, 33), (300, 1024), LONG], "dtype": ["bool", "int8", "int64"]}, _is_quick)
def test_reductions_of_bools_and_integers(shape: tuple[int, int], dtype: str) -> None:
    x = np.random.default_rng(shape[1]).choice([0, 1, 1, 1, 1, 100, -100], shape).astype(dtype)
    expected = (x.sum(0), x.any(0), x.all(0), x.sum(), x.any(), x.all())
    for result, wanted in zip(mf.fuse(of_whole_numbers, target="interpret")(x), expected, strict=True):
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(result, wanted)


def batch_norm(x: Any, w: Any) -> Any:
    """Statistics of the columns, which every row then needs."""
    mean, variance = mf.mean(x, axis=0), mf.var(x, axis=0)
    return (x - mean) / mf.sqrt(variance + 1e-5) * w, mean, mf.var(x, axis=0, correction=1)


def dx_and_a_mean(x: Any, w: Any) -> Any:
    """A reduction inside of rows, and a mean over them, in one persistent loop."""
    return x - mf.mean(x * w, axis=-1, keepdims=True), mf.mean(x * x, axis=0)


def of_all(x: Any, w: Any) -> Any:
    """One number of all rows, which every row then needs, and another."""
    return x * w / mf.sqrt(mf.sum(x * x)), mf.var(x)


STATISTICS: dict[Callable[..., Any], tuple[int, Callable[..., Any]]] = {
    batch_norm: (1, lambda x, w: ((x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) * w, x.mean(0), x.var(0, ddof=1))),
    of_all: (1, lambda x, w: (x * w / np.sqrt((x * x).sum()), x.var())),
    dx_and_a_mean: (1, lambda x, w: (x - (x * w).mean(-1, keepdims=True), (x * x).mean(0))),
}


@pytest.mark.parametrize("fn", STATISTICS, ids=lambda fn: fn.__name__)
def test_one_signature_divides_by_all_row_counts(fn: Callable[..., Any]) -> None:
    kernels, expected = STATISTICS[fn]
    traced = []

    def counted(x: Any, w: Any) -> Any:
        traced.append(x.shape)
        return fn(x, w)

    fused = mf.fuse(counted, target="interpret")
    rng = np.random.default_rng(0)
    w = rng.standard_normal(96).astype(np.float32)
    for rows in (2, 33, 1000):
        x = rng.standard_normal((rows, 96)).astype(np.float32)
        for result, wanted in zip(fused(x, w), expected(x.astype(np.float64), w.astype(np.float64)), strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)
    assert len(traced) == 1
    specs = mf.TensorSpec(("rows", 96), mf.float32), mf.TensorSpec(96, mf.float32)
    assert len(mf.fuse(fn).lower(*specs).compile().schedules) == kernels  # some of them with a second stage


def test_rows_of_a_cube_with_transposed_vectors() -> None:
    """Threads hold vectors of the first dimension, and stages and exchanges between warps have the last one inside."""

    def across(x: Any) -> Any:
        y = mf.permute_dims(x, (3, 1, 2, 0)) * 2
        z = y + 1
        return mf.sum(x), y, mf.min(y, axis=(2, 1)), mf.exp(z - mf.max(z, axis=2, keepdims=True))

    x = np.random.default_rng(0).standard_normal((8, 8, 8, 8)).astype(np.float32)
    y = x.astype(np.float64).transpose(3, 1, 2, 0) * 2
    expected = (y.sum() / 2, y, y.min((1, 2)), np.exp(y - y.max(2, keepdims=True)))
    for result, wanted in zip(mf.fuse(across, target="interpret")(x), expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


def test_a_partial_result_that_is_one_number():
    """`x < x` is false everywhere, whatever x is, and so is the partial result of any of it."""
    x, y = np.ones((24, 3), bool), np.arange(72, dtype=np.float32).reshape(24, 3)
    w = np.ones(3, np.float32)
    fused = mf.fuse(lambda x, y, w: ((x < x).any(axis=1), y @ w), target="interpret", grid_reduction="grid_sync")
    found, product = fused(x, y, w)
    assert not np.asarray(found).any()
    np.testing.assert_array_equal(np.asarray(product), y @ w)
