"""Reshapes of computed values, on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.views.reshaped import group_norm, reshaped

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("seed", range(60))
def test_random_reshapes(seed: int) -> None:
    function, rng = reshaped(seed), np.random.default_rng(seed)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in function.shapes]
    found = cupy.asnumpy(mf.fuse(function.__call__)(*map(cupy.asarray, arrays)))
    want = function.expected(arrays)
    np.testing.assert_allclose(found, want, rtol=2e-4, atol=2e-4 * max(1.0, float(np.abs(want).max())))


@pytest.mark.parametrize("shape", [(8, 64, 28, 28), (3, 24, 7, 7), (2, 320, 64, 64)])
def test_group_norm(shape: tuple[int, int, int, int]) -> None:
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in (shape, shape[1:2], shape[1:2]))
    found = cupy.asnumpy(mf.fuse(group_norm)(*map(cupy.asarray, (x.astype(np.float16), w, b))))
    h = x.astype(np.float16).astype(np.float64).reshape(shape[0], shape[1] // 8, -1)
    h = (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + 1e-5)
    want = h.reshape(shape) * w[:, None, None] + b[:, None, None]
    np.testing.assert_allclose(found, want, rtol=4e-3, atol=4e-3)
