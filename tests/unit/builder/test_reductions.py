"""Reductions give NumPy's numbers, accumulate wide, and say what they cannot do."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from mlirfuse import builder as mf
from mlirfuse.errors import DTypeError, ShapeError, TraceError
from tests.support.harnesses.builder_harness import ops, run, spec_of, traced

AXES = [None, 0, 1, -1, (0, 2), (2, 0), (0, 1, 2), ()]
FLOAT_REDUCTIONS = {mf.sum: np.sum, mf.prod: np.prod, mf.mean: np.mean, mf.max: np.max, mf.min: np.min}
FLOAT_REDUCTIONS |= {mf.var: np.var, mf.std: np.std}


def values(dtype) -> np.ndarray:
    return np.random.default_rng(1).normal(1, 0.3, (3, 4, 5)).astype(dtype)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("fn", FLOAT_REDUCTIONS, ids=lambda fn: fn.__name__)
def test_float32(fn, axis, keepdims) -> None:
    x = values(np.float32)
    actual = run(lambda x: fn(x, axis=axis, keepdims=keepdims), x)
    expected = FLOAT_REDUCTIONS[fn](x, axis=axis, keepdims=keepdims)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
@pytest.mark.parametrize("fn", FLOAT_REDUCTIONS, ids=lambda fn: fn.__name__)
def test_other_floats_round_once(fn, dtype) -> None:
    x = values(dtype)
    actual = run(lambda x: fn(x, axis=1), x)
    exact = FLOAT_REDUCTIONS[fn](x.astype(np.float64), axis=1)
    assert actual.dtype == x.dtype
    # 0.6 of a unit in the last place: one rounding, and a little for the float32 accumulator.
    np.testing.assert_allclose(actual.astype(np.float64), exact, rtol=0.6 * float(ml_dtypes.finfo(dtype).eps) + 1e-15)


def test_half_precision_accumulates_in_float32() -> None:
    x = np.full(4096, 1.0, np.float16)
    x[0] = 2048  # from here on float16 cannot count by ones
    assert run(mf.sum, x) == np.float16(2048 + 4095)
    module = traced(mf.sum, spec_of(x))
    assert str(ops(module, "linalg.fill")[0].results[0].type) == "tensor<f32>"


def test_variance_is_accurate_far_from_zero() -> None:
    x = (1000 + np.random.default_rng(2).normal(size=512)).astype(np.float32)
    np.testing.assert_allclose(run(mf.var, x), np.var(x.astype(np.float64)), rtol=1e-5)


@pytest.mark.parametrize("correction", [0, 1, 0.5, 3, 4])
def test_correction(correction) -> None:
    x = np.array([[1, 2, 4], [8, 1, 1]], np.float32)
    with np.errstate(all="ignore"):
        expected = np.sum((x - x.mean(1, keepdims=True)) ** 2, axis=1) / np.float32(max(3 - correction, 0))
    np.testing.assert_allclose(run(lambda x: x.var(1, correction=correction), x), expected, rtol=1e-6)
    np.testing.assert_allclose(run(lambda x: x.std(1, correction=correction), x), np.sqrt(expected), rtol=1e-6)


@pytest.mark.parametrize("fn", [mf.max, mf.min, mf.sum, mf.mean], ids=lambda fn: fn.__name__)
def test_nan_and_infinity(fn) -> None:
    x = np.array([[1, np.nan, 3], [-np.inf, 2, 3], [np.inf, -np.inf, 0], [-np.inf] * 3], np.float32)
    with np.errstate(all="ignore"):
        expected = FLOAT_REDUCTIONS[fn](x, axis=1)
    np.testing.assert_array_equal(run(lambda x: fn(x, axis=1), x), expected)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_integers_add_up_in_int64(dtype) -> None:
    x = np.array([[100, -2, 100], [4, 5, -100]], dtype)
    results = run(lambda x: (x.sum(1), x.prod(1), x.max(1), x.min(1), x.sum(dtype="int32")), x)
    expected = (np.sum(x, 1), np.prod(x, 1), x.max(1), x.min(1), np.sum(x, dtype=np.int32))
    for actual, wanted in zip(results, expected, strict=True):
        assert actual.dtype == wanted.dtype
        np.testing.assert_array_equal(actual, wanted)


def test_integer_mean_is_float32() -> None:
    x = np.array([1, 2, 4], np.int32)
    mean, variance = run(lambda x: (x.mean(), x.var()), x)
    assert mean.dtype == variance.dtype == np.float32
    np.testing.assert_allclose([mean, variance], [x.mean(), x.var()], rtol=1e-6)


def test_bools() -> None:
    x = np.array([[True, False], [True, True], [False, False]])
    results = run(lambda x: (x.any(1), x.all(1), x.sum(1), x.mean(1)), x)
    for actual, wanted in zip(results, (x.any(1), x.all(1), x.sum(1), x.mean(1, dtype=np.float32)), strict=True):
        assert actual.dtype == wanted.dtype
        np.testing.assert_array_equal(actual, wanted)


def test_any_and_all_of_numbers() -> None:
    x = np.array([[0, np.nan], [0, -0.0], [1, 2]], np.float32)
    for fn, numpy_fn in ((mf.any, np.any), (mf.all, np.all)):
        np.testing.assert_array_equal(
            run(lambda x, fn=fn: fn(x, axis=1, keepdims=True), x), numpy_fn(x, 1, keepdims=True)
        )


def test_dtype_casts_before_the_sum() -> None:
    x = np.array([0.6, 0.6, 0.6], np.float32)
    assert run(lambda x: mf.sum(x, dtype="int32"), x) == 0
    assert run(lambda x: mf.mean(x, dtype="float64"), x).dtype == np.float64


def test_mean_divides_by_the_exact_count() -> None:
    x = np.arange(7, dtype=np.float32) / 3
    assert run(mf.mean, x) == np.sum(x, dtype=np.float32) / np.float32(7)
    module = traced(mf.mean, spec_of(x))
    assert len(ops(module, "arith.divf")) == 1


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_dynamic_rows(rows) -> None:
    x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
    np.testing.assert_allclose(
        run(lambda x: x - x.mean(1, keepdims=True), x, dynamic=(0,)), x - x.mean(1, keepdims=True)
    )


@pytest.mark.parametrize(
    "fn",
    [
        mf.max,
        lambda x: mf.sum(x, axis=1),
        lambda x: mf.sum(x, axis=(1, 2)),
        lambda x: mf.sum(mf.expand_dims(x, 0), axis=2),
        lambda x: mf.mean(x, axis=1),
        lambda x: mf.max(x, axis=(0, 1)),
    ],
)
def test_reducing_a_dynamic_dimension_asks_for_its_extent(fn) -> None:
    with pytest.raises(mf.NeedsStatic) as caught:
        traced(lambda y, x: fn(x), mf.TensorSpec((None, 4), "float32"), mf.TensorSpec((3, "m", 4), "float32"))
    assert caught.value.symbol == "m"
    assert caught.value.sources == ((1, 1),)


@pytest.mark.parametrize(("axis", "left"), [(0, "4x"), ((0, 1), "4x"), (None, "")])
def test_leading_dimensions_are_summed_as_they_are(axis, left) -> None:
    shape = ("b", 4) if axis == 0 else ("b", "s", 4)
    module = traced(lambda x: mf.sum(x, axis=axis), mf.TensorSpec(shape, "float32"))
    assert f"-> tensor<{left}f32>" in str(module)


@pytest.mark.parametrize("correction", [0, 1, 7])
def test_the_number_of_elements_may_be_dynamic(correction) -> None:
    x = np.random.default_rng(0).standard_normal((5, 2, 3)).astype(np.float32)
    count = np.float32(max(10 - correction, 0))
    mean, variance = run(lambda x: (x.mean((0, 1)), mf.var(x, (0, 1), correction=correction)), x, dynamic=(0, 1))
    with np.errstate(divide="ignore"):
        expected = ((x - x.mean((0, 1))) ** 2).sum((0, 1)) / count
    np.testing.assert_allclose(mean, x.mean((0, 1)), rtol=1e-5)
    np.testing.assert_allclose(variance, expected, rtol=1e-5)


def test_errors() -> None:
    spec = mf.TensorSpec((4, 0), "float32")
    cases = [
        (lambda x: mf.sum(x, axis=2), ShapeError, "axis 2 is out of range for 2 dimensions"),
        (lambda x: mf.sum(x, axis=-3), ShapeError, "axis -3 is out of range"),
        (lambda x: mf.sum(x, axis=(0, -2)), ShapeError, "twice"),
        (lambda x: mf.sum(x, axis=0.5), ShapeError, "no int"),
        (lambda x: mf.max(x, axis=1), ShapeError, "no elements"),
        (lambda x: mf.max(x > 0, axis=0), DTypeError, "bool"),
        (lambda x: mf.sum(x, dtype="bool"), DTypeError, "any or all"),
        (lambda x: mf.sum(x, dtype="complex64"), DTypeError, "complex64"),
        (lambda x: mf.sum(3.0), TraceError, "takes a tensor"),
    ]
    for fn, error, message in cases:
        with pytest.raises(error, match=message) as caught:
            traced(fn, spec)
        assert caught.value.where is not None, message
        assert "builder/test_reductions.py:" in caught.value.where
