"""Elementwise kernels of odd rows on the GPU, against CuPy."""

from __future__ import annotations

import pytest

import mlirfuse as mf

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
@pytest.mark.parametrize("shape", [(64, 2048, 49), (3, 96, 35), (1, 64, 17), (512, 33), (7, 32, 3, 3), (5, 40, 21)])
def test_one_number_a_row(shape: tuple[int, ...], dtype: str) -> None:
    rng = cupy.random.default_rng(len(shape))
    x = rng.integers(-4, 5, shape).astype(dtype)
    w = rng.integers(-4, 5, shape[-2]).astype(dtype)

    def function(x, w):
        return x * w[:, None] + x, x - w[:, None]

    for actual, expected in zip(mf.fuse(function)(x, w), function(x, w), strict=True):
        cupy.testing.assert_array_equal(actual, expected)
