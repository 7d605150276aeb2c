"""`concat` and `stack` on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.views.joined import JOINED_RESULTS, RESHAPED_JOINS, Joined, parts_and_mean, rotated, rotated_in_numpy

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("seed", range(60))
def test_random_joins(seed: int) -> None:
    function = Joined(seed)
    arrays = function.arrays()

    def traced(*given: Any) -> Any:
        return function(mf, *given)

    found = cupy.asnumpy(mf.fuse(traced)(*map(cupy.asarray, arrays)))
    np.testing.assert_allclose(found, function(np, *arrays), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("width", [64, 128, 80, 6])
def test_rotary_halves(width: int, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    shapes = ((2, 33, 4, width), (33, 1, width), (33, 1, width))
    arrays = [rng.integers(-8, 9, shape).astype(dtype) for shape in shapes]
    found = cupy.asnumpy(mf.fuse(rotated)(*map(cupy.asarray, arrays)))
    np.testing.assert_array_equal(found, rotated_in_numpy(*arrays))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", JOINED_RESULTS)
def test_results_in_parts(name: str, dtype: Any) -> None:
    function, shapes = JOINED_RESULTS[name]
    rng = np.random.default_rng(len(name))
    for rows in (1, 61):
        own = [(rows * shape[0], *shape[1:]) if shape[0] == shapes[0][0] else shape for shape in shapes]
        arrays = [rng.standard_normal(shape).astype(dtype) for shape in own]
        found = mf.fuse(lambda *given: function(mf, mf.concat, *given))(*map(cupy.asarray, arrays))
        wanted = function(np, np.concatenate, *(array.astype(np.float64) for array in arrays))
        tolerance = 2e-5 if dtype == np.float32 else 1e-2  # of the largest: the parts are rounded, and what they are of
        scale = max(1.0, float(np.abs(wanted).max()))
        np.testing.assert_allclose(cupy.asnumpy(found).astype(np.float64), wanted, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("columns", [257, 6, 12, 64])
@pytest.mark.parametrize("rows", [2, 4])
def test_parts_of_a_kernel_with_one_dimension(rows: int, columns: int) -> None:
    x = np.random.default_rng(columns).standard_normal((rows, columns)).astype(np.float32)
    _, mean, joined = mf.fuse(parts_and_mean)(cupy.asarray(x))
    np.testing.assert_allclose(float(mean), np.abs(x.astype(np.float64)).mean(), rtol=1e-5)
    np.testing.assert_array_equal(cupy.asnumpy(joined), np.concatenate([np.abs(x), -np.abs(x), np.abs(x)], axis=-1))


@pytest.mark.parametrize("name", RESHAPED_JOINS)
def test_slices_of_reshaped_joins(name: str) -> None:
    function, shape = RESHAPED_JOINS[name]
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    found = map(cupy.asnumpy, mf.fuse(lambda x: function(mf, mf.concat, x))(cupy.asarray(x)))
    for one, other in zip(found, function(np, np.concatenate, x.astype(np.float64)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
