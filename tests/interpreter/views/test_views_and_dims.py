"""Views and merged dimensions mean the same at every level, with leading extents dynamic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.harnesses.compiling import module_at

X = np.random.default_rng(0).normal(size=(3, 4, 8)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32)
STATIC, DYNAMIC = (3, 4, 8), ("b", "s", 8)

Case = tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def fused_softmax(x: Any) -> Any:
    e = mf.exp(x - mf.max(x, axis=-1, keepdims=True))
    return e / mf.sum(e, axis=-1, keepdims=True)


CASES: dict[str, Case] = {
    "rows of two dimensions": (lambda x, w: mf.sum(x * w, axis=(1, 2)), lambda x, w: (x * w).sum((1, 2)), ("b", 4, 8)),
    "kept dimensions": (
        lambda x, w: (x - mf.mean(x, axis=(1, 2), keepdims=True)) * w,
        lambda x, w: (x - x.mean((1, 2), keepdims=True)) * w,
        ("b", 4, 8),
    ),
    "batches": (lambda x, w: fused_softmax(x), lambda x, w: softmax(x), DYNAMIC),
    "batches twice": (lambda x, w: fused_softmax(fused_softmax(x)), lambda x, w: softmax(softmax(x)), DYNAMIC),
    "a result of fewer dimensions": (
        lambda x, w: (mf.max(x, axis=-1), x * 2.0),
        lambda x, w: (x.max(-1), x * 2),
        DYNAMIC,
    ),
    "one dimension is left": (lambda x, w: mf.exp(x) * 2.0, lambda x, w: np.exp(x) * 2, STATIC),
    "a transposed result": (
        lambda x, w: mf.permute_dims(mf.exp(x), (2, 0, 1)),
        lambda x, w: np.exp(x).transpose(2, 0, 1),
        DYNAMIC,
    ),
    "a transposed argument": (
        lambda x, w: (mf.permute_dims(x, (1, 0, 2)), w),
        lambda x, w: (x.transpose(1, 0, 2), w),
        DYNAMIC,
    ),
    "a transposed operand": (
        lambda x, w: mf.permute_dims(x, (1, 2, 0)) + mf.expand_dims(w, -1),
        lambda x, w: x.transpose(1, 2, 0) + w[..., None],
        STATIC,
    ),
    "read in two orders": (
        lambda x, w: mf.permute_dims(x, (1, 0, 2)) * 2.0 + mf.sum(x, axis=0)[:, None, :],
        lambda x, w: x.transpose(1, 0, 2) * 2 + x.sum(0)[:, None, :],
        STATIC,
    ),
    "a broadcast operand": (
        lambda x, w: mf.broadcast_to(w, (3, 4, 8)) * x,
        lambda x, w: w * x,
        STATIC,
    ),
    "one run of what run time counts": (
        lambda x, w: mf.exp(mf.reshape(x, (-1,))) - mf.sum(mf.reshape(x * 2.0, (-1,))),
        lambda x, w: np.exp(x.reshape(-1)) - (x * 2).sum(),
        ("b", 4, 8),
    ),
    "leading dimensions together": (
        lambda x, w: mf.mean(mf.reshape(x, (-1, 8)), axis=0),
        lambda x, w: x.reshape(-1, 8).mean(0),
        ("b", 4, 8),
    ),
    "extents that no argument has": (
        lambda x, w: mf.permute_dims(mf.reshape(x * 2.0, (-1, 2)) + 1.0, (1, 0)),
        lambda x, w: (x * 2 + 1).reshape(-1, 2).T,
        DYNAMIC,
    ),
    "a transposed view that is reshaped": (
        lambda x, w: mf.reshape(mf.permute_dims(x, (0, 2, 1)), (3, 32)),
        lambda x, w: x.transpose(0, 2, 1).reshape(3, 32),
        STATIC,
    ),
}


@pytest.mark.parametrize("stage", ["linalg", "tile", "gpu"])
@pytest.mark.parametrize("name", CASES)
def test_levels_agree_with_numpy(name: str, stage: str) -> None:
    fn, reference, shape = CASES[name]
    module = module_at(stage, fn, [mf.TensorSpec(shape, mf.float32), mf.TensorSpec((4, 8), mf.float32)])
    function = next(f for f in module.body.operations if "fuse.results" in f.operation.attributes)
    results = interpreter.run(module, function.operation.attributes["sym_name"].value, [X, W])
    wanted = reference(X, W)
    for got, want in zip(results, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_views_launch_nothing() -> None:
    def views(x: Any) -> Any:
        return mf.permute_dims(x, (1, 0, 2)), mf.reshape(x, (12, 8)), mf.expand_dims(x, 0)

    compiled = mf.fuse(views).lower(mf.TensorSpec(STATIC, mf.float32)).compile()
    assert compiled.program.launches == ()
    assert not compiled.binaries


@pytest.mark.parametrize("stage", ["linalg", "tile", "gpu"])
@pytest.mark.parametrize("shape", [(5, 33), (1, 7), (2, 1), (3, 5, 129), (300, 17), (4, 2, 8), (0, 5)])
def test_runs_of_odd_length(shape: tuple[int, ...], stage: str) -> None:
    """Elementwise kernels of mixed element sizes, whose memory is one run; its end is accessed element by element."""

    def fn(x: Any, y: Any) -> Any:
        return x * y.astype(mf.float16), y + 1.0

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=shape).astype(np.float16), rng.normal(size=shape).astype(np.float32)
    dynamic = (*(f"n{d}" for d in range(len(shape) - 1)), shape[-1])
    module = module_at(stage, fn, [mf.TensorSpec(dynamic, mf.float16), mf.TensorSpec(dynamic, mf.float32)])
    results = interpreter.run(module, "fn", [x, y])
    np.testing.assert_array_equal(results[0], x * y.astype(np.float16))
    np.testing.assert_array_equal(results[1], y + np.float32(1))
