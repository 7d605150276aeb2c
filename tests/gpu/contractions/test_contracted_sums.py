"""Sums of products that are written with broadcasting, on the GPU against float64."""

from __future__ import annotations

import pytest

import mlirfuse as mf

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

SUMS = {
    "rows": (lambda a, b: (a[:, None] * b[None]).sum(axis=-1), (300, 1024), (200, 1024)),
    "columns": (lambda a, b: (a[:, :, None] * b[None]).sum(axis=1), (129, 512), (512, 100)),
    "batch": (lambda a, b: (a[:, :, :, None] * b[:, None]).sum(axis=2), (1000, 8, 16), (1000, 16, 9)),
    "few long rows": (lambda a, b: (a[:, :, None] * b[:, None]).sum(axis=(-2, -1)), (2, 8, 60, 96), (2, 8, 60, 96)),
    "two orders": (
        lambda a, b: (a[:, None] * b.transpose(0, 2, 3, 1)[:, :, None]).sum(axis=(-2, -1)),
        (2, 8, 60, 96),
        (2, 96, 8, 60),
    ),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_products(name: str) -> None:
    function, *shapes = SUMS[name]
    rng = cupy.random.default_rng(len(name))
    arrays = [rng.standard_normal(shape, dtype=cupy.float32) for shape in shapes]
    expected = mf.fuse(function)(*(x.astype(cupy.float64) for x in arrays))
    actual = mf.fuse(function)(*arrays)
    assert abs(actual - expected).max() <= 1e-6 * abs(expected).max()
    exact = [cupy.rint(4 * x) for x in arrays]
    cupy.testing.assert_array_equal(mf.fuse(function)(*exact), mf.fuse(function, fusion="off")(*exact))
