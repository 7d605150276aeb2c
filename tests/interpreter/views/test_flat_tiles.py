"""Kernels of odd rows, whose tiles are accessed as runs of memory, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import mlirfuse as mf
from tests.support.forms import fastest

CASES = {
    "one number a row": ((3, 64, 49), lambda x, w: x * w[:, None] + 1),
    "rows of all sorts": ((2, 32, 35), lambda x, w: x * w[:, None] - x),
    "a prime": ((1, 96, 17), lambda x, w: w[:, None] - x),
    "a matrix": ((64, 33), lambda x, w: x * w[:, None]),
    "two results": ((2, 32, 21), lambda x, w: (x * w[:, None], x + x)),
    "rows that do not fill warps": ((2, 40, 17), lambda x, w: x * w[:, None]),
    "columns too": ((2, 64, 49), lambda x, w: x * w[:, None] + x[0, :1]),
}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, ml_dtypes.bfloat16, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_odd_rows(name: str, dtype: type) -> None:
    shape, function = CASES[name]
    rng = np.random.default_rng(len(name))
    x = rng.integers(-4, 5, shape).astype(dtype)
    w = rng.integers(-4, 5, shape[-2]).astype(dtype)
    actual, expected = mf.fuse(function, target="interpret")(x, w), function(x, w)
    if not isinstance(expected, tuple):
        actual, expected = (actual,), (expected,)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(one), other)


def test_several_arrays_of_two_types() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (2, 64, 49)).astype(np.float16)
    y, w = rng.integers(-4, 5, (2, 64, 49)).astype(np.float32), rng.integers(1, 5, 64).astype(np.float32)

    def function(x, y, w):
        return x * w[:, None] + y, y / w[:, None]

    for one, other in zip(mf.fuse(function, target="interpret")(x, y, w), function(x, y, w), strict=True):
        np.testing.assert_array_equal(np.asarray(one), other)


@pytest.mark.parametrize("shape", [(None, None, 49)])
def test_vectors_of_memory(shape: tuple[int | None, ...]) -> None:
    specs = mf.TensorSpec(shape, mf.float16), mf.TensorSpec(shape[1:2], mf.float32)
    compiled = mf.fuse(lambda x, w: x * w[:, None]).lower(*specs).compile()
    assert "fuse-flatten-tiles: applied: 1 read(s) and 1 write(s) of runs" in compiled.explain(verbose=True)
    assert "v4.b32" in compiled.as_text("ptx")


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(("rows", "row", "sharing"), [(40, 49, 1), (1, 49, 7), (64, 17, 1), (33, 35, 5)])
def test_softmax_of_odd_rows(dtype: type, rows: int, row: int, sharing: int) -> None:
    """With a bias that batches share, which is read where the scores have been used; a block's warps may share rows."""

    def softmax(x, bias):
        h = x.astype(mf.float32) + bias
        e = mf.exp(h - mf.max(h, axis=-1, keepdims=True))
        return (e / mf.sum(e, axis=-1, keepdims=True)).astype(x.dtype), mf.sum(e, axis=-1)

    specs = mf.TensorSpec((3, rows, row), dtype), mf.TensorSpec((rows, row), mf.float32)
    schedule = fastest(softmax, specs, lambda s: s.flat and s.layout.warps[-1] == sharing)
    rng = np.random.default_rng(rows)
    x, bias = rng.standard_normal((3, rows, row)).astype(dtype), rng.standard_normal((rows, row)).astype(np.float32)
    found, sums = mf.fuse(softmax, target="interpret", schedule=schedule)(x, bias)
    h = x.astype(np.float64) + bias
    e = np.exp(h - h.max(-1, keepdims=True))
    tolerance = 1e-5 if dtype is np.float32 else 1e-3
    np.testing.assert_allclose(np.asarray(found), e / e.sum(-1, keepdims=True), rtol=tolerance, atol=1e-6)
    np.testing.assert_allclose(np.asarray(sums), e.sum(-1), rtol=1e-5)
