"""`concat` and `stack`: views of the whole in the kernels that read it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.harnesses.compiling import module_at, specs_of
from tests.support.pairwise import some
from tests.support.views.joined import JOINED_RESULTS, RESHAPED_JOINS, Joined, parts_and_mean, rotated, rotated_in_numpy


@pytest.mark.parametrize("seed", some(range(300), 40))
def test_random_joins(seed: int) -> None:
    function = Joined(seed)
    arrays = function.arrays()

    def traced(*given: Any) -> Any:
        return function(mf, *given)

    found = np.asarray(mf.fuse(traced, target="interpret")(*arrays))
    np.testing.assert_allclose(found, function(np, *arrays), rtol=1e-5, atol=1e-5)


def test_rotary_halves_are_one_kernel() -> None:
    rng = np.random.default_rng(0)
    x, cos, sin = (rng.standard_normal(s).astype(np.float32) for s in ((2, 8, 4, 64), (8, 1, 64), (8, 1, 64)))
    module = module_at("gpu", rotated, specs_of([x, cos, sin]))
    assert str(module).count("gpu.func") == 1
    (found,) = interpreter.run(module, "rotated", [x, cos, sin])
    np.testing.assert_array_equal(found, rotated_in_numpy(x, cos, sin))


def test_other_numbers_of_rows() -> None:
    """Joined arrays have static extents: another call is compiled for its own."""
    fused = mf.fuse(lambda x, y: mf.concat([x, y]), target="interpret")
    for rows in (3, 5, 3):
        x, y = np.full((rows, 4), 1.0, np.float32), np.full((2 * rows, 4), 2.0, np.float32)
        np.testing.assert_array_equal(np.asarray(fused(x, y)), np.concatenate([x, y]))


def test_extents_of_run_time_beside_numbers() -> None:
    """Seven rows of an argument, and of what was made seven rows of."""
    x, v = np.arange(49, dtype=np.float32).reshape(7, 7), np.arange(14, dtype=np.float32).reshape(7, 2)
    wide = np.broadcast_to(v.reshape(-1)[:7], (7, 7))

    def joined(x: Any, v: Any) -> Any:
        made = mf.broadcast_to(v.reshape(14)[:7].reshape(1, 7), (7, 7))
        return mf.concat([x, made], axis=1), mf.stack([made, x])

    concatenated, stacked = mf.fuse(joined, target="interpret")(x, v)
    np.testing.assert_array_equal(np.asarray(concatenated), np.concatenate([x, wide], axis=1))
    np.testing.assert_array_equal(np.asarray(stacked), np.stack([wide, x]))


def test_dtypes_are_promoted() -> None:
    x, y = np.arange(6, dtype=np.int32).reshape(2, 3), np.full((2, 3), 0.5, np.float16)
    found = np.asarray(mf.fuse(lambda x, y: mf.stack([x, y]), target="interpret")(x, y))
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, np.stack([x.astype(np.float16), y]))


@pytest.mark.parametrize("rows", [0, 3])
def test_empty_parts(rows: int) -> None:
    x, y = np.ones((rows, 4), np.float32), np.ones((0, 4), np.float32)
    found = np.asarray(mf.fuse(lambda x, y: mf.concat([x, y, x]), target="interpret")(x, y))
    np.testing.assert_array_equal(found, np.concatenate([x, y, x]))


def test_flattened() -> None:
    x, y = np.arange(6.0, dtype=np.float32).reshape(2, 3), np.arange(4.0, dtype=np.float32)
    found = np.asarray(mf.fuse(lambda x, y: mf.concat([x, y], axis=None), target="interpret")(x, y))
    np.testing.assert_array_equal(found, np.concatenate([x, y], axis=None))


def test_means_of_joined_bytes() -> None:
    """Of which a third is read of each part: less than a byte an element."""
    x = np.random.default_rng(0).integers(-9, 10, (7, 129)).astype(np.int8)

    def means(x: Any) -> Any:
        y = mf.permute_dims(x, (1, 0))
        m = mf.mean(mf.concat([y, y, y], axis=1), axis=-1, keepdims=True)
        return m / mf.sqrt(mf.mean(m * m, axis=-1, keepdims=True) + 1e-5)

    m = np.concatenate([x.T] * 3, axis=1).mean(axis=-1, keepdims=True)
    want = m / np.sqrt(m * m + 1e-5)
    np.testing.assert_allclose(np.asarray(mf.fuse(means, target="interpret")(x)), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", JOINED_RESULTS)
def test_results_in_parts(name: str, dtype: Any) -> None:
    """One kernel computes all parts, and stores them where they belong."""
    function, shapes = JOINED_RESULTS[name]
    rng = np.random.default_rng(len(name))
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    module = module_at("gpu", lambda *given: function(mf, mf.concat, *given), specs_of(arrays))
    assert str(module).count("gpu.func") == 1 + (name == "transposed pairs")
    found = mf.fuse(lambda *given: function(mf, mf.concat, *given), target="interpret")(*arrays)
    wanted = function(np, np.concatenate, *(array.astype(np.float64) for array in arrays))
    np.testing.assert_allclose(
        np.asarray(found, np.float64), wanted, rtol=0, atol=2e-5 if dtype == np.float32 else 2e-2
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("columns", [257, 6, 12, 64])
@pytest.mark.parametrize("rows", [2, 4])
def test_parts_of_a_kernel_with_one_dimension(rows: int, columns: int, dtype: Any) -> None:
    """Parts begin anywhere inside of a thread's vectors."""
    x = np.random.default_rng(columns).standard_normal((rows, columns)).astype(dtype)
    _, mean, joined = mf.fuse(parts_and_mean, target="interpret")(x)
    np.testing.assert_allclose(float(mean), np.abs(x.astype(np.float64)).mean(), rtol=1e-3)
    np.testing.assert_array_equal(joined, np.concatenate([np.abs(x), -np.abs(x), np.abs(x)], axis=-1))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("shape", [(3, 4), (5, 2), (3, 8), (64, 4)])
def test_reversed_elements_of_rows_and_what_is_computed_of_them(shape: tuple[int, int], dtype: Any) -> None:
    """Indices that are divided count from the end, and are negative without what is added to them."""
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype) % 13

    def total(x: Any) -> Any:
        v = mf.flip(mf.reshape(x, (-1,)), axis=0)
        u = mf.concat([v, v * 0.5], axis=0)
        return u * 3, mf.sum(mf.astype(u, mf.float32))

    scaled, whole = mf.fuse(total, target="interpret")(x)
    want = np.concatenate([x.reshape(-1)[::-1], x.reshape(-1)[::-1] * 0.5]).astype(np.float64)
    np.testing.assert_allclose(scaled, want * 3, rtol=1e-3)
    np.testing.assert_allclose(float(whole), want.sum(), rtol=1e-3)


def test_products_of_joined_parts_that_are_computed() -> None:
    """The first thing that an operand of the product reads is a check, which reads nothing of an array."""
    rng = np.random.default_rng(0)
    a, s = (rng.standard_normal(shape).astype(np.float32) for shape in ((7, 4, 2), (7,)))

    def product(xp: Any, a: Any, s: Any) -> Any:
        row = xp.stack([s, s * 2], axis=-1)
        return xp.matmul(a, xp.stack([row, row + 1], axis=-2))

    found = mf.fuse(lambda a, s: product(mf, a, s), target="interpret")(a, s)
    np.testing.assert_allclose(found, product(np, a, s), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("shift", [1, 3, -1, -3])
def test_shifts_with_zeros(shift: int, first: int) -> None:
    """A view of a slice has zeros where that ends: the array's are the same only where it ends there too."""
    x = np.random.default_rng(0).standard_normal((9, 12)).astype(np.float32)

    def shifted(xp: Any, join: Any, x: Any) -> Any:
        n = x.shape[0] - 1 - abs(shift)  # of a slice that leaves out a row at one of the array's ends
        zeros, kept = xp.zeros_like(x[: abs(shift)]), x[first : first + n]
        return join([zeros, kept] if shift > 0 else [kept, zeros], axis=0) + x[1:] * 2

    def far(xp: Any, join: Any, x: Any) -> Any:
        zeros = xp.zeros_like(x[: abs(shift)])
        return x + join([zeros, x[:-shift]] if shift > 0 else [x[-shift:], zeros], axis=0)

    for function in (shifted, far):
        found = mf.fuse(lambda x, f=function: f(mf, mf.concat, x), target="interpret")(x)
        np.testing.assert_allclose(found, function(np, np.concatenate, x), rtol=1e-6)


@pytest.mark.parametrize("name", RESHAPED_JOINS)
def test_slices_of_reshaped_joins(name: str) -> None:
    function, shape = RESHAPED_JOINS[name]
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    found = mf.fuse(lambda x: function(mf, mf.concat, x), target="interpret")(x)
    for one, other in zip(found, function(np, np.concatenate, x.astype(np.float64)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
