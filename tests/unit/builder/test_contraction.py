"""Matrix products give NumPy's numbers in every form, accumulate wide, and say what they cannot do."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from mlirfuse import builder as mf
from mlirfuse.errors import ArgumentError, DTypeError, ShapeError, TraceError
from tests.support.harnesses.builder_harness import ops, run, spec_of, traced

SHAPES = [
    ((3, 4), (4, 5)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((4,), (4,)),
    ((1, 4), (4, 1)),
    ((3, 1), (1, 5)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (7, 4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)),
]


def integers(shape: tuple[int, ...], dtype: object, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.int32, np.int64])
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_integers_are_exact(left, right, dtype) -> None:
    x, w = integers(left, dtype, 1), integers(right, dtype, 2)
    actual = run(lambda x, w: x @ w, x, w)
    expected = np.asarray(x.astype(np.int64) @ w.astype(np.int64))
    assert actual.dtype == x.dtype
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(actual.astype(np.int64), expected)


@pytest.mark.parametrize("form", ["nn", "nt", "tn", "tt"])
def test_transposes_of_operands(form) -> None:
    x = integers((4, 3) if form[0] == "t" else (3, 4), np.float32, 1)
    w = integers((5, 4) if form[1] == "t" else (4, 5), np.float32, 2)
    fn = lambda x, w: (x.T if form[0] == "t" else x) @ (w.T if form[1] == "t" else w)  # noqa: E731
    np.testing.assert_array_equal(run(fn, x, w), fn(x, w))


def test_half_precision_accumulates_in_float32_and_rounds_once() -> None:
    x, w = np.full((1, 4096), 1, np.float16), np.ones((4096, 1), np.float16)
    x[0, 0] = 2048  # from here on float16 cannot count by ones
    assert run(lambda x, w: x @ w, x, w) == np.float16(2048 + 4095)
    wide = run(lambda x, w: mf.matmul(x, w, dtype=np.float32), x, w)
    assert wide.dtype == np.float32
    assert wide == 2048 + 4095


def test_mixed_dtypes_promote() -> None:
    x, w = integers((3, 4), np.float16, 1), integers((4, 5), np.int8, 2)
    actual = run(lambda x, w: x @ w, x, w)
    assert actual.dtype == np.float16
    np.testing.assert_array_equal(actual, x @ w)


@pytest.mark.parametrize(
    ("fn", "error", "message"),
    [
        (lambda x, w: x @ w, ShapeError, r"matmul of shapes \(3, 4\) and \(3, 5\): 4 columns do not match 3 rows"),
        (lambda x, w: (x > 0) @ (w > 0).T, DTypeError, "matmul does not take bool"),
        (lambda x, w: x @ 2.0, TraceError, "matmul takes a tensor"),
        (lambda x, w: mf.sum(x) @ w, ShapeError, r"matmul of shapes \(\) and \(3, 5\)"),
    ],
)
def test_bad_operands_are_errors_at_the_users_line(fn, error, message) -> None:
    x, w = integers((3, 4), np.float32, 1), integers((3, 5), np.float32, 2)
    with pytest.raises(error, match=message) as caught:
        traced(fn, spec_of(x), spec_of(w))
    assert "builder/test_contraction.py:" in caught.value.where


@pytest.mark.parametrize("dynamic", [(0, ()), (1, ()), (0, 1)], ids=str)
def test_extents_of_matrices_must_be_static(dynamic) -> None:
    x, w = integers((4, 3), np.float32, 1), integers((4, 5), np.float32, 2)
    specs = [spec_of(a, dynamic=(0,) if n in dynamic else ()) for n, a in enumerate((x, w))]
    with pytest.raises(mf.NeedsStatic, match="matmul of"):
        traced(lambda x, w: x.T @ w, *specs)


def test_batches_may_be_dynamic() -> None:
    x, w = integers((2, 3, 4), np.float32, 1), integers((4, 5), np.float32, 2)
    np.testing.assert_array_equal(run(lambda x, w: x @ w, x, w, dynamic=()), x @ w)
    module = traced(lambda x, w: x @ w, spec_of(x, dynamic=(0,)), spec_of(w))
    assert str(ops(module, "linalg.generic")[0].results[0].type) == "tensor<?x3x5xf32>"


def test_float8_gives_float32_also_for_mixed_kinds() -> None:
    x, w = np.full((2, 64), 3, ml_dtypes.float8_e4m3fn), np.full((64, 2), 5, ml_dtypes.float8_e5m2)
    result = run(lambda x, w: x @ w, x, w)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, 960)
    half = run(lambda x, w: mf.matmul(x, w, dtype=np.float16), x, w)
    assert half.dtype == np.float16
    with_half = run(lambda x, w: mf.matmul(x.astype(np.float16), w), x, w)
    assert with_half.dtype == np.float16


@pytest.mark.parametrize(
    ("dtype", "precision"),
    [
        ("float32", "fast"),
        ("float32", "fast_accum"),
        ("float16", "tf32"),
        ("float8_e4m3fn", "tf32"),
        ("float64", "3xtf32"),
    ],
)
def test_precisions_are_for_their_dtypes(dtype, precision) -> None:
    x = np.ones((4, 4), getattr(ml_dtypes, dtype, dtype))
    with pytest.raises(ArgumentError, match=f"matmul of {dtype} has no precision '{precision}'"):
        run(lambda x: mf.matmul(x, x, precision=precision), x)


def test_a_precision_is_on_the_multiplication() -> None:
    x = np.ones((4, 8), np.float32)
    plain = traced(lambda x: mf.matmul(x, x.T, precision="ieee"), spec_of(x))
    assert "fuse.precision" not in str(plain)
    named = str(traced(lambda x: mf.matmul(x, x.T, precision="tf32"), spec_of(x)))
    assert 'arith.mulf %in, %in_0 {fuse.precision = "tf32"}' in named
