"""Products at many numbers of rows on the GPU: a handful of kernels, each right for all that it serves."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


def layer(x, w, b):
    return mf.matmul(x, w.mT, dtype=mf.float32) + b


def test_results_are_right_at_every_number_of_rows() -> None:
    fn = mf.fuse(layer)
    rng = np.random.default_rng(0)
    w, b = rng.integers(-2, 3, (768, 1024)).astype(np.float16), rng.integers(-9, 10, 768).astype(np.float32)
    device_w, device_b, wide = cupy.asarray(w), cupy.asarray(b), w.astype(np.float32).T
    sizes = [1, 2, 3, 5, 8, 13, 16, 17, 31, 33, 64, 65, 100, 127, 128, 129, 200, 255, 257, 300, 511, 513, 700, 1000]
    for m in [*sizes[::-1], *sizes, 2048, 3001, 8192]:
        x = rng.integers(-2, 3, (m, 1024)).astype(np.float16)
        out = cupy.full((m, 768), np.nan, np.float32)
        fn(cupy.asarray(x), device_w, device_b, out=out)
        np.testing.assert_array_equal(cupy.asnumpy(out), x.astype(np.float32) @ wide + b)
    assert len({id(compiled) for compiled in fn._compiled.values()}) <= 12
