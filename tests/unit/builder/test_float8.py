"""float8 dtypes: names, promotion, rounding, what is not computed in them, and targets without them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.errors import ArgumentError, DTypeError, TargetError
from mlirfuse.runtime import tuning
from mlirfuse.runtime.arrays.arrays import ArrayInfo
from mlirfuse.runtime.device import cuda
from mlirfuse.support.dtypes import dtype_of, from_mlir, promote, rounded

FLOAT8 = (mf.float8_e4m3fn, mf.float8_e5m2)


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_names(dtype, context) -> None:
    assert dtype_of(dtype.name) is dtype
    assert dtype_of(getattr(ml_dtypes, dtype.name)) is dtype
    assert from_mlir(dtype.mlir()) is dtype
    assert dtype.bytes == dtype.numpy.itemsize == 1


def test_promotion() -> None:
    assert promote(*FLOAT8) is mf.float16
    assert all(promote(a, b) is b for a in FLOAT8 for b in (mf.float16, mf.bfloat16, mf.float32, mf.float64))


@pytest.mark.parametrize(("dtype", "largest"), [(mf.float8_e4m3fn, 448), (mf.float8_e5m2, 57344)], ids=str)
def test_rounding_saturates(dtype, largest) -> None:
    values = np.array([1e9, np.inf, -np.inf, np.nan, 0.3, largest * 1.05], np.float32)
    expected = np.array([largest, largest, -largest, np.nan, np.float32(0.3).astype(dtype.numpy), largest], np.float32)
    np.testing.assert_array_equal(rounded(values, dtype.numpy).astype(np.float32), expected)


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
@pytest.mark.parametrize("other", [mf.float16, mf.bfloat16, mf.float32, mf.float64, mf.int32], ids=str)
def test_casts_there_and_back(dtype, other) -> None:
    x = np.arange(256, dtype=np.uint8).view(dtype.numpy)
    if other.kind == "int":  # small whole numbers
        x = x[np.isfinite(x) & (abs(x.astype(np.float32)) < 1000) & (x == np.trunc(x.astype(np.float32)))]
    wide, narrow = mf.fuse(lambda x: (x.astype(other), x.astype(other).astype(dtype)), target="interpret")(x)
    assert (wide.dtype, narrow.dtype) == (other.numpy, dtype.numpy)
    for result in (wide, narrow):
        np.testing.assert_array_equal(result.astype(np.float32), x.astype(np.float32))


def test_rounding_to_float8_is_never_left_out() -> None:
    x = np.linspace(0, 3, 64, dtype=np.float32)
    fn = mf.fuse(lambda x: x.astype(mf.float8_e5m2).astype(mf.float32) * 2, target="interpret", fast_math=True)
    np.testing.assert_array_equal(fn(x), x.astype(ml_dtypes.float8_e5m2).astype(np.float32) * 2)


def test_data_moves_and_numbers_are_rounded() -> None:
    x = np.arange(24).reshape(2, 12).astype(ml_dtypes.float8_e4m3fn)
    filled = mf.fuse(lambda x: mf.where(x.astype(mf.float32) > 5, x, 1e6), target="interpret")(x)
    assert filled.dtype == x.dtype
    np.testing.assert_array_equal(
        filled.astype(np.float32), np.where(x.astype(np.float32) > 5, x.astype(np.float32), 448)
    )


@pytest.mark.parametrize(
    "fn",
    [lambda x: x + x, lambda x: mf.exp(x), lambda x: x > 0, lambda x: mf.sum(x, axis=-1), lambda x: x**2, mf.isnan],
)
def test_nothing_is_computed_in_float8(fn) -> None:
    with pytest.raises(DTypeError, match=r"does not compute in float8_e4m3fn(.|\n)*astype"):
        mf.fuse(fn).lower(mf.TensorSpec((4, 8), mf.float8_e4m3fn))


def test_older_targets_refuse_casts() -> None:
    with pytest.raises(TargetError, match="sm_80 cannot convert float8_e5m2"):
        mf.fuse(lambda x: x.astype(mf.float16), target="sm_80").lower(mf.TensorSpec((4, 8), mf.float8_e5m2)).compile()


def test_cupy_has_none(monkeypatch) -> None:
    with pytest.raises(ArgumentError, match="CuPy has no arrays of float8_e4m3fn"):
        cuda.allocator("cupy", (4,), "float8_e4m3fn", 0)


@pytest.mark.parametrize("columns", [33, 64, 1000])
def test_rows_of_float8(columns) -> None:
    """Reductions of what was cast from float8 compare and sum in float32, where infinity is a number."""

    def softmax(x):
        e = mf.exp(x.astype(mf.float32) - mf.max(x.astype(mf.float32), axis=-1, keepdims=True))
        return e / mf.sum(e, axis=-1, keepdims=True), mf.max(x.astype(mf.float32), axis=-1)

    x = np.random.default_rng(0).standard_normal((3, columns)).astype(ml_dtypes.float8_e4m3fn)
    result, largest = mf.fuse(softmax, target="interpret")(x)
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(axis=-1, keepdims=True))
    np.testing.assert_allclose(result, e / e.sum(axis=-1, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(largest, wide.max(axis=-1))


def test_tuning_needs_arrays_that_cupy_has() -> None:
    with pytest.raises(ArgumentError, match="CuPy has no arrays of float8_e5m2"):
        tuning.random_arguments([ArrayInfo(0, (4, 4), (4, 1), mf.float8_e5m2, 0, "cupy")])
