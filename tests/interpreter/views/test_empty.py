"""Arrays without elements, in every position and of every rank: what NumPy computes, and no unwritten result."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.errors import ShapeError


def ones(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.ones(shape, dtype)


def norm(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def fused_norm(x: Any, w: Any) -> Any:
    centred = x - mf.mean(x, axis=-1, keepdims=True)
    return centred * mf.rsqrt(mf.var(x, axis=-1, keepdims=True) + 1e-5) * w


Case = tuple[Callable[..., Any], Callable[..., Any], Sequence[tuple[int, ...]]]

CASES: dict[str, Case] = {
    "beside rows": (lambda x, w: (x + w, w * 2), lambda x, w: (x + w, w * 2), [(0, 8), (8,)]),
    "sums": (lambda x: (mf.sum(x, axis=0), mf.sum(x, axis=1)), lambda x: (x.sum(0), x.sum(1)), [(0, 8)]),
    "sums of columns": (lambda x: (mf.sum(x, axis=0), mf.sum(x, axis=1)), lambda x: (x.sum(0), x.sum(1)), [(8, 0)]),
    "kept": (lambda x: mf.prod(x, axis=1, keepdims=True), lambda x: x.prod(1, keepdims=True), [(3, 0, 4)]),
    "all": (lambda x: (mf.sum(x), mf.any(x), mf.all(x)), lambda x: (x.sum(), x.any(), x.all()), [(2, 0, 3)]),
    "means": (lambda x: (mf.mean(x, axis=0), mf.var(x, axis=0)), lambda x: (x.mean(0), x.var(0)), [(0, 8)]),
    "largest of rows": (lambda x: mf.max(x, axis=-1), lambda x: x.max(-1), [(0, 8)]),
    "norm": (fused_norm, lambda x, w: norm(x) * w, [(0, 8), (8,)]),
    "norm of no columns": (fused_norm, lambda x, w: norm(x) * w, [(3, 0), (0,)]),
    "backward": (
        lambda dy, x, w: (dy * w, mf.sum(dy * x, axis=0), mf.sum(dy, axis=0)),
        lambda dy, x, w: (dy * w, (dy * x).sum(0), dy.sum(0)),
        [(0, 8), (0, 8), (8,)],
    ),
    "no rows": (lambda x, w: x @ w + 1, lambda x, w: x @ w + 1, [(0, 8), (8, 4)]),
    "no columns": (lambda x, w: x @ w + 1, lambda x, w: x @ w + 1, [(3, 8), (8, 0)]),
    "no operands": (lambda x, w: x @ w + 1, lambda x, w: x @ w + 1, [(3, 0), (0, 4)]),
    "no batches": (lambda x, w: x @ w, lambda x, w: x @ w, [(0, 3, 8), (8, 4)]),
    "no operands of batches": (lambda x, w: x @ w, lambda x, w: x @ w, [(2, 5, 3, 0), (0, 4)]),
    "broadcast": (lambda x, y: x * y, lambda x, y: x * y, [(1, 3), (0, 1)]),
    "to nothing": (lambda x: mf.broadcast_to(x, (0, 4)), lambda x: np.broadcast_to(x, (0, 4)), [(4,)]),
    "reshaped": (lambda x: mf.reshape(x, (-1, 4)), lambda x: x.reshape(-1, 4), [(3, 0, 8)]),
    "reshaped, computed": (
        lambda x: mf.sum(mf.reshape(x + 1, (x.shape[0] * x.shape[1], x.shape[2])), axis=1, keepdims=True),
        lambda x: x.reshape(12, 0).sum(1, keepdims=True),
        [(3, 4, 0)],
    ),
    "transposed": (
        lambda x: (mf.permute_dims(x, (2, 0, 1)), mf.permute_dims(x * 2, (1, 2, 0))),
        lambda x: (x.transpose(2, 0, 1), x.transpose(1, 2, 0)),
        [(3, 0, 8)],
    ),
    "filled": (lambda x: mf.full_like(x, 3), lambda x: np.full_like(x, 3), [(0, 2)]),
    "the same twice": (lambda x: (x, x + 1, x + 1, mf.sum(x)), lambda x: (x, x + 1, x + 1, x.sum()), [(0,)]),
    "added to what is there": (
        lambda x, y: y + mf.sum(x, axis=0, keepdims=True),
        lambda x, y: y + x.sum(0, keepdims=True),
        [(0, 3), (4, 3)],
    ),
}


def check(results: Any, expected: Any) -> None:
    results, expected = (each if isinstance(each, tuple) else (each,) for each in (results, expected))
    for result, wanted in zip(results, expected, strict=True):
        assert result.shape == np.shape(wanted)
        np.testing.assert_allclose(np.asarray(result, np.float64), np.asarray(wanted, np.float64), rtol=1e-5)


@pytest.fixture(autouse=True)
def numpy_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of the mean of no numbers
        yield


@pytest.mark.parametrize("name", CASES)
def test_what_numpy_computes(name: str) -> None:
    fn, reference, shapes = CASES[name]
    arrays = [ones(*shape) for shape in shapes]
    check(mf.fuse(fn, target="interpret")(*arrays), reference(*arrays))


def test_largest_of_nothing() -> None:
    for axis in (0, None, (0, 1)):
        with pytest.raises(ShapeError, match="max over no elements"):
            mf.fuse(lambda x, axis=axis: mf.max(x, axis=axis), target="interpret")(ones(0, 8))


def test_calls_with_and_without_rows() -> None:
    fused = mf.fuse(lambda x, w: (x + w, w * 2, mf.sum(x, axis=0)), target="interpret")
    w = np.arange(8, dtype=np.float32)
    for count in (3, 0, 5, 0, 1, 0):
        x = ones(count, 8)
        check(fused(x, w), (x + w, w * 2, x.sum(0)))


def test_output_arrays_without_elements() -> None:
    """Equal results are arrays of their own."""
    out = ones(0, 8), ones(0, 8)
    assert mf.fuse(lambda x: (x + 1, x * 2), target="interpret")(ones(0, 8), out=out) is out


@pytest.mark.parametrize(
    "options", [{"mix_order": "fused"}, {"mix_order": "split"}, {"grid_reduction": "second_kernel"}], ids=str
)
def test_requests_about_kernels_of_rows(options: dict[str, Any]) -> None:
    fn, reference, _ = CASES["backward"]
    fused = mf.fuse(fn, target="interpret", **options)
    for rows in (0, 5, 0):
        arrays = [ones(rows, 8), ones(rows, 8), ones(8)]
        check(fused(*arrays), reference(*arrays))


def test_reshaped_rows_that_are_reduced() -> None:
    """The product of two run-time extents is the number of rows, also where these get an extent of 1 beside it."""

    def fn(x):
        h = mf.reshape(x, (-1, 8))
        scale = mf.max(mf.abs(h), axis=-1, keepdims=True) / 127
        logits = h - mf.max(h, axis=-1, keepdims=True)
        total = mf.sum(mf.exp(logits), axis=-1, keepdims=True)
        rms = h * mf.rsqrt(mf.mean(h * h, axis=-1, keepdims=True) + 1e-5)
        return rms, fused_norm(h, 2.0), h / scale, scale, logits - mf.log(total)

    fused = mf.fuse(fn, target="interpret")
    for shape in ((3, 4, 8), (2, 5, 8), (2, 3, 4, 8), (3, 0, 8), (7, 8)):
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        h = x.reshape(-1, 8).astype(np.float64)
        scale = np.abs(h).max(-1, keepdims=True) / 127
        logits = h - h.max(-1, keepdims=True)
        rms = h / np.sqrt((h * h).mean(-1, keepdims=True) + 1e-5)
        total = np.exp(logits).sum(-1, keepdims=True)
        for result, wanted in zip(fused(x), (rms, norm(h) * 2, h / scale, scale, logits - np.log(total)), strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_random_extents(seed: int) -> None:
    """Elementwise operations, reductions over some axes, and views, on shapes of which half the extents are 0."""
    rng = random.Random(seed)
    shape = [rng.choice((0, 0, 1, 3, 5)) for _ in range(rng.randint(1, 4))]
    axes = tuple(sorted(rng.sample(range(len(shape)), rng.randint(1, len(shape)))))
    order = tuple(rng.sample(range(len(shape)), len(shape)))
    keep = rng.random() < 0.5
    x, y = ones(*shape), ones(*(n if rng.random() < 0.6 else 1 for n in shape))

    def fn(x, y):
        z = mf.permute_dims(x * y + 1, order)
        return z, mf.sum(z, axis=axes, keepdims=keep), mf.mean(x, axis=axes), mf.reshape(z, (-1,)) * 2, y * 3

    def reference(x, y):
        z = (x * y + 1).transpose(order)
        return z, z.sum(axes, keepdims=keep), x.mean(axes), z.reshape(-1) * 2, y * 3

    check(mf.fuse(fn, target="interpret")(x, y), reference(x, y))
