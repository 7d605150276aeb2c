"""Rows that a warp or less holds, with values that all rows share, on the GPU against float64."""

from __future__ import annotations

import pytest

import mlirfuse as mf

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("shape", [(100_003, 64), (4099, 128), (777, 256), (50_000, 8), (9, 32)])
def test_normalised_rows(shape: tuple[int, int], dtype: str) -> None:
    rng = cupy.random.default_rng(shape[1])
    x = rng.standard_normal(shape, dtype=cupy.float32).astype(dtype)
    w = rng.standard_normal(shape[1], dtype=cupy.float32).astype(dtype)

    def function(x, w):
        centred = x - x.mean(axis=-1, keepdims=True)
        return centred * mf.tanh(w) / (1 + mf.abs(centred)), mf.max(x, axis=-1)

    results = mf.fuse(function)(x, w)
    expected = mf.fuse(function)(x.astype("float64"), w.astype("float64"))
    for actual, exact in zip(results, expected, strict=True):
        bound = (4e-3 if dtype == "float16" else 4e-6) * float(abs(exact).max())
        assert float(abs(actual.astype("float64") - exact).max()) <= bound
