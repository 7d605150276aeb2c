"""Sums of products that are written with broadcasting, which become contractions, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf

SUMS = {
    "rows": (lambda a, b: (a[:, None] * b[None]).sum(axis=-1), (40, 24), (17, 24)),
    "columns": (lambda a, b: (a[:, :, None] * b[None]).sum(axis=1), (24, 40), (40, 17)),
    "batch": (lambda a, b: (a[:, :, :, None] * b[:, None]).sum(axis=2), (3, 24, 40), (3, 40, 17)),
    "two axes": (lambda a, b: (a[:, None] * b[None]).sum(axis=(2, 3)), (9, 6, 20), (10, 6, 20)),
    "a transposed result": (lambda a, b: (a[:, None] * b[None]).sum(axis=-1).T + 1, (40, 24), (17, 24)),
    "pairs of one array": (lambda a, b: (a[:, None] * a[None]).sum(axis=-1) + b, (40, 24), (40,)),
    "few rows": (lambda a, b: (a[:, None] * b[None]).sum(axis=-1), (40, 24), (3, 24)),
    "rows kept as an axis": (lambda a, b: (a[:, None] * b[None]).sum(axis=-1, keepdims=True), (40, 24), (17, 24)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64])
@pytest.mark.parametrize("name", SUMS)
def test_sums_of_products(name: str, dtype: type) -> None:
    function, *shapes = SUMS[name]
    rng = np.random.default_rng(len(name))
    arrays = [rng.integers(-4, 5, shape).astype(dtype) for shape in shapes]
    actual = np.asarray(mf.fuse(function, target="interpret")(*arrays))
    expected = function(*arrays)
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)


def test_one_kernel_without_the_product() -> None:
    specs = [mf.TensorSpec((512, 256), mf.float32), mf.TensorSpec((384, 256), mf.float32)]
    text = mf.fuse(lambda a, b: (a[:, None] * b[None]).sum(axis=-1)).lower(*specs).compile().explain(verbose=True)
    assert text.startswith("1 kernel")
    assert "fuse-contract-sums: applied" in text
    assert "fuse-tile-contraction: applied" in text


def test_two_kernels_without_fusion() -> None:
    specs = [mf.TensorSpec((512, 256), mf.float32), mf.TensorSpec((384, 256), mf.float32)]
    fused = mf.fuse(lambda a, b: (a[:, None] * b[None]).sum(axis=-1), fusion="off")
    text = fused.lower(*specs).compile().explain(verbose=True)
    assert text.startswith("2 kernels")
    assert "fusion is off, and these are two operations" in text
