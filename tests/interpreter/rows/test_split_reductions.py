"""Kernels that are split between their reductions and what uses the results, whatever is predicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.compiler import pipeline
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.support.dtypes import dtype_of
from tests.support.harnesses.compiling import specs_of

ALWAYS = "fuse-split-reductions{always=true}"


def normalised(x):
    return x * mf.rsqrt(mf.sum(x * x))


def softmax(x):
    e = mf.exp(x - mf.max(x, axis=0))
    return e / mf.sum(e, axis=0)


def with_its_statistics(x):
    mean = mf.mean(x, axis=(0, 2), keepdims=True)
    centred = x - mean
    scale = mf.rsqrt(mf.mean(centred * centred, axis=(0, 2), keepdims=True) + 1e-5)
    return centred * scale, mean, mf.max(x, axis=(0, 2))


def one_after_the_other(x):
    total = mf.sum(x * x)
    return x * mf.max(x * total) + total


def reduced_again(x, y):
    most = mf.max(x)
    return (x - most) * y, most, mf.sum((x - most) * y)


def beside_rows(x):
    """A sum over all is used along rows that are reduced, too."""
    return x / mf.sum(x, axis=1, keepdims=True) + mf.sum(x * x, axis=1, keepdims=True)


def correlated(x, y):
    """Statistics of two arrays, which nothing ties together before both are known."""
    a, b = x - mf.mean(x, axis=0), y - mf.mean(y, axis=0)
    return mf.sum(a * b, axis=0) * mf.rsqrt(mf.sum(a * a, axis=0) * mf.sum(b * b, axis=0))


def distances(x, y):
    return mf.sum(mf.abs(x / mf.max(x) - y / mf.max(y)))


SMALL = [
    (correlated, [(20, 6), (20, 6)], 3),
    (distances, [(70,), (70,)], 3),
    (normalised, [(77,)], 2),
    (normalised, [(8, 33)], 2),
    (softmax, [(40, 9)], 2),
    (softmax, [(5, 64, 3)], 2),
    (with_its_statistics, [(4, 5, 6)], 2),
    (one_after_the_other, [(100,)], 3),
    (reduced_again, [(60,), (60,)], 2),
    (beside_rows, [(6, 40)], 2),
]


def numpy_of(fn: Callable[..., Any], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The function's results in float64, by NumPy."""

    class Namespace:
        exp, max, sum, mean = staticmethod(np.exp), staticmethod(np.max), staticmethod(np.sum), staticmethod(np.mean)
        abs = staticmethod(np.abs)

        @staticmethod
        def rsqrt(x: np.ndarray) -> np.ndarray:
            return 1 / np.sqrt(x)

    inner = type(fn)(fn.__code__, {"mf": Namespace})
    results = inner(*(a.astype(np.float64) for a in arrays))
    return list(results) if isinstance(results, tuple) else [results]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("fn", "shapes", "kernels"), SMALL)
def test_two_kernels_compute_what_one_did(fn, shapes, kernels: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    arrays = [(rng.random(shape) + 0.5).astype(dtype_of(dtype).numpy) for shape in shapes]
    module = mf.fuse(fn, target="sm_90a").lower(*specs_of(arrays)).module
    text = pipeline.named("fuse-gpu-pipeline").replace("fuse-split-reductions", ALWAYS)
    assert ALWAYS in text
    with module.context:
        run_pipeline(module, text)
    if dtype == "float32":  # half precision rounds between reductions, which are then more
        assert str(module).count("call @") == kernels
    results = interpreter.run(module, fn.__name__, arrays, order="random", seed=1)
    tolerance = {"float32": 1e-5, "float16": 1e-2}[dtype]
    for result, exact in zip(results, numpy_of(fn, arrays), strict=True):
        np.testing.assert_allclose(result.astype(np.float64), exact, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("fn", "shape", "kernels"),
    [
        (normalised, (1 << 26,), 2),
        (softmax, (50000, 1024), 1),
        (softmax, (512, 16384), 1),
        (normalised, (1 << 12,), 1),
        (lambda x: x - mf.max(x, axis=1, keepdims=True), (8192, 4096), 1),
    ],
)
def test_cliffs_are_seen(fn, shape: tuple[int, ...], kernels: int) -> None:
    """Few blocks that reduce many numbers are slower than two kernels of the whole grid; rows on chip are not."""
    compiled = mf.fuse(fn, target="sm_90a").lower(mf.TensorSpec(shape, "float32")).compile(choose_again=False)
    combining = sum("second" in name or "_parts" in name for name in compiled.infos)  # a grid's or parts' results
    assert len(compiled.infos) == kernels + combining


def response_norm(x, w, b):
    """Channels by their norms over an image, relative to the mean norm: a statistic of few numbers for many pixels."""
    h = x.astype(mf.float32)
    size = mf.sqrt(mf.sum(h * h, axis=1, keepdims=True))
    return (w * (h * (size / (mf.mean(size, axis=-1, keepdims=True) + 1e-6))) + b + h).astype(x.dtype)


@pytest.mark.parametrize("images", [64, None])
def test_statistics_of_small_arrays_are_not_computed_for_every_row(images: int | None) -> None:
    """The kernel of the statistic does not read the large array; hints tell of how many images it is."""
    x = mf.TensorSpec((images, 784, 768), mf.bfloat16, hints=(64, None, None))
    weights = [mf.TensorSpec(768, mf.float32)] * 2
    compiled = mf.fuse(response_norm, target="sm_90a").lower(x, *weights).compile(choose_again=False)
    names = [name.removesuffix("_kernel") for name in compiled.infos]
    assert names == ["response_norm_0", "response_norm_1_reductions", "response_norm_1"]
