"""Reductions of the same data through different reshapes, in one kernel where the shapes have dimensions in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter


def norm_and_columns(x):
    """Rows of batches, and columns of all rows."""
    h = x.astype(mf.float32)
    normalised = h * mf.rsqrt(mf.mean(h * h, axis=-1, keepdims=True) + 1e-5)
    return normalised, mf.sum(mf.reshape(h, (-1, h.shape[-1])), axis=0)


def stored_and_columns(x):
    """A kernel without reductions, all of whose dimensions could be one."""
    h = x.astype(mf.float32) * 2
    return h, mf.sum(mf.reshape(h, (-1, h.shape[-1])), axis=0)


def rows_and_heads(x):
    h = x.astype(mf.float32)
    return mf.sum(h, axis=-1), mf.sum(mf.reshape(h, (-1, 4, h.shape[-1] // 4)), axis=0)


def columns_and_rows(x):
    h = x.astype(mf.float32)
    return mf.sum(h, axis=(0, 1)), mf.sum(mf.reshape(h, (-1, h.shape[-1])), axis=-1)


def two_reshapes(x):
    """Both read the array in a shape of its own."""
    h = x.astype(mf.float32)
    rows = mf.sum(mf.reshape(h, (4, -1, 64)), axis=-1)
    return rows, mf.sum(mf.reshape(h, (-1, 2, 4, 16)), axis=(0, 1))


def reference(function: Any, x: np.ndarray) -> list[np.ndarray]:
    h = x.astype(np.float64)
    rows = h.reshape(-1, h.shape[-1])
    if function is norm_and_columns:
        return [h / np.sqrt((h * h).mean(-1, keepdims=True) + 1e-5), rows.sum(0)]
    if function is stored_and_columns:
        return [h * 2, 2 * rows.sum(0)]
    if function is rows_and_heads:
        return [h.sum(-1), rows.reshape(-1, 4, h.shape[-1] // 4).sum(0)]
    if function is columns_and_rows:
        return [rows.sum(0), rows.sum(-1)]
    return [h.reshape(4, -1, 64).sum(-1), h.reshape(-1, 2, 4, 16).sum((0, 1))]


CASES: tuple[tuple[Any, tuple[int, ...]], ...] = (
    (norm_and_columns, (3, 5, 64)),
    (norm_and_columns, (3, 2, 2, 40)),
    (rows_and_heads, (12, 64)),
    (columns_and_rows, (3, 5, 64)),
    (two_reshapes, (8, 64)),
)


@pytest.mark.parametrize("stage", ["tile", "gpu"])
@pytest.mark.parametrize(("function", "shape"), CASES)
def test_one_kernel_reads_the_data_once(function: Any, shape: tuple[int, ...], stage: str) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float16)
    compiled = mf.fuse(function, target="sm_90a", mix_order="fused").lower(mf.TensorSpec(shape, mf.float16)).compile()
    assert len(compiled.schedules) == 1
    results = interpreter.run(compiled.module_at(stage), function.__name__, [x], sms=3, order="random", seed=1)
    for result, exact in zip(results, reference(function, x), strict=True):
        np.testing.assert_allclose(result, exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("function", [norm_and_columns, stored_and_columns, columns_and_rows])
def test_any_number_of_batches(function: Any) -> None:
    spec = mf.TensorSpec(("batches", 5, 64), mf.float16)
    assert len(mf.fuse(function, target="sm_90a").lower(spec).compile().schedules) == 1
    fused = mf.fuse(function, target="interpret", mix_order="fused")
    for batches in (0, 1, 4):
        x = np.random.default_rng(0).standard_normal((batches, 5, 64)).astype(np.float16)
        for result, exact in zip(fused(x), reference(function, x), strict=True):
            assert result.shape == exact.shape
            np.testing.assert_allclose(result, exact, rtol=1e-4, atol=1e-4)


def other_rows(x):
    h = x.astype(mf.float32)
    return mf.sum(h, axis=0), mf.sum(mf.reshape(h, (96, 64)), axis=-1)


def test_shapes_of_nothing_in_common_stay_apart_and_say_so() -> None:
    """Rows of 96 elements, and rows of 64: neither extent divides the other."""
    spec = mf.TensorSpec((64, 96), mf.float16)
    reason = "it reads 64 x 96 elements as 96 x 64, and"
    compiled = mf.fuse(other_rows, target="sm_90a").lower(spec).compile()
    assert len(compiled.program.launches) == 2
    assert reason in compiled.explain(verbose=True)
    with pytest.raises(mf.MlirFuseError, match=reason):
        mf.fuse(other_rows, target="sm_90a", mix_order="fused").lower(spec).compile()


def heads_of_rows(x):
    return mf.sum(mf.reshape(x, (64, 4, 64)), axis=-1), mf.sum(x, axis=-1)


@pytest.mark.parametrize(
    ("function", "shape", "launches"), [(heads_of_rows, (64, 256), 2), (stored_and_columns, (3, 5, 64), 1)]
)
def test_reshapes_between_reductions_of_one_order_are_no_error(
    function: Any, shape: tuple[int, ...], launches: int
) -> None:
    spec = mf.TensorSpec(shape, mf.float32)
    compiled = mf.fuse(function, target="sm_90a", mix_order="fused").lower(spec).compile()
    assert len(compiled.program.launches) == launches


def of_one_element(x):
    """The first result is a tensor without dimensions that two are added to."""
    return mf.max(x, keepdims=True), mf.max(x, axis=0), mf.sum(x[:, None], axis=1)


@pytest.mark.parametrize("shape", [(4, 8), (1, 8), (33, 1), (2, 3, 5)])
def test_views_of_single_elements_have_no_dimensions_in_common(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    results = mf.fuse(of_one_element, target="interpret")(x)
    for result, exact in zip(results, (x.max(keepdims=True), x.max(0), x), strict=True):
        assert result.shape == exact.shape
        np.testing.assert_array_equal(result, exact)
