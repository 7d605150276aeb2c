"""Arrays without elements on a GPU: nothing is left unwritten, and what is reduced over nothing is NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


def beside(x: Any, w: Any) -> Any:
    return x + w, w * 2


@pytest.fixture
def poisoned() -> None:
    """Memory that a launch does not write reads as NaN."""
    for size in (64, 512, 4096):
        cupy.full(size, np.nan, cupy.float32)


@pytest.mark.usefixtures("poisoned")
def test_calls_with_and_without_rows() -> None:
    fused, w = mf.fuse(beside), cupy.arange(8, dtype=cupy.float32)
    for rows in (0, 3, 0, 5, 1, 0):
        x = cupy.ones((rows, 8), cupy.float32)
        for result, expected in zip(fused(x, w), beside(x, w), strict=True):
            cupy.testing.assert_array_equal(result, expected)


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("shape", [(0, 8), (8, 0), (0, 0), (3, 0, 4), (2, 5, 0)], ids=str)
def test_sums_and_means_of_nothing(shape: tuple[int, ...]) -> None:
    x = cupy.ones(shape, cupy.float32)
    for axis in (0, -1, None):
        total, mean = mf.fuse(lambda x, axis=axis: (mf.sum(x, axis=axis), mf.mean(x, axis=axis)))(x)
        cupy.testing.assert_array_equal(total, x.sum(axis))
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(mean.get(), x.get().sum(axis) / np.float32(np.size(x.get(), axis)))


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("extents", [(0, 8, 4), (3, 0, 4), (3, 8, 0), (0, 0, 0)], ids=str)
def test_products_of_nothing(extents: tuple[int, int, int]) -> None:
    m, k, n = extents
    a, b = cupy.ones((m, k), cupy.float32), cupy.ones((k, n), cupy.float32)
    cupy.testing.assert_array_equal(mf.fuse(lambda a, b: a @ b + 1)(a, b), cupy.full((m, n), k + 1, cupy.float32))


def test_into_arrays_without_elements() -> None:
    x = cupy.ones((0, 8), cupy.float32)
    out = cupy.empty_like(x), cupy.empty_like(x)
    fused = mf.fuse(lambda x: (x + 1, x * 2))
    for _ in range(3):
        assert fused(x, out=out) is out
