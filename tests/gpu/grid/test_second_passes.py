"""Statistics over run-time extents that are needed along these again, for several numbers of rows, on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.api.variants import MOST_VARIANTS
from tests.support.gpu.torch_arrays import to_numpy, to_torch

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

COLUMNS = 4096


def deviation(xp: Any, x: Any) -> Any:
    """Columns by their mean distance from the mean, which takes two reductions over the rows."""
    centred = x - xp.mean(x, axis=0, keepdims=True)
    return centred / (xp.mean(xp.abs(centred), axis=0, keepdims=True) + 0.1)


def test_numbers_of_rows_take_turns() -> None:
    """Few calls get kernels for their numbers, and further ones share one for any; all are right, again too."""
    fused = mf.fuse(lambda x: deviation(mf, x))
    sizes = (64, 100, 5, 129, 300, 77, 5000)
    for rows in (*sizes, *sizes):
        x = (np.random.default_rng(rows).standard_normal((rows, COLUMNS)) + 1).astype(np.float32)
        found = to_numpy(fused(to_torch(x)))
        np.testing.assert_allclose(found, deviation(np, x.astype(np.float64)), rtol=1e-4, atol=1e-5)
    assert fused._compilations.count <= 2 * MOST_VARIANTS


def test_images_of_several_sizes_take_turns() -> None:
    """Few sizes of images, whose rows are no whole accesses, get kernels of their own; all are right, again too."""
    fused = mf.fuse(lambda x, scale: mf.maximum(x * scale[:, None, None], 0).astype(x.dtype))
    sizes = ((64, 7, 7), (3, 7, 7), (64, 14, 14), (1, 5, 7), (5, 9, 9), (64, 7, 9), (64, 11, 3), (2, 28, 28))
    for number, side, width in (*sizes, *sizes):
        random = np.random.default_rng(side)
        x = random.standard_normal((number, 512, side, width)).astype(np.float16)
        scale = random.standard_normal(512).astype(np.float32)
        found = to_numpy(fused(to_torch(x), to_torch(scale)))
        expected = np.maximum(x.astype(np.float64) * scale[:, None, None], 0)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)
