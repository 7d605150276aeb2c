"""Kernels that were chosen for some run-time extents are right for extents far from these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.api.argument_specs import numpy_specs
from mlirfuse.interpreter import run
from mlirfuse.target import target_of

Function = Callable[..., Any]
LARGE, SMALL = 1 << 20, 2
FEW_SMS = target_of("sm_90a").with_sms(8)


def both(x: Any) -> Any:
    return mf if isinstance(x, mf.Tensor) else np


def rotary(x: Any, c: Any) -> Any:
    return x[..., 8:] * c[:, None], -x[..., :8] * c[:, None]


def column_norm(x: Any) -> Any:
    return x / both(x).sqrt(both(x).sum(x * x, axis=0) + 1)


def whole_norm(x: Any) -> Any:
    return x / both(x).sqrt(both(x).sum(x * x) + 1)


def softmax(x: Any) -> Any:
    e = both(x).exp(x - both(x).max(x, axis=-1, keepdims=True))
    return e / both(x).sum(e, axis=-1, keepdims=True)


def groups(x: Any) -> Any:
    d = x - both(x).mean(x, axis=(1, 3), keepdims=True)
    return d / both(x).sqrt(both(x).mean(d * d, axis=(1, 3), keepdims=True) + 1e-5)


def swapped(x: Any, y: Any) -> Any:
    return x.transpose(1, 0, 2) + y


def gram(x: Any) -> Any:
    return x @ x.mT if isinstance(x, mf.Tensor) else x @ x.swapaxes(-1, -2)


def backward(x: Any, dy: Any) -> Any:
    return x * dy - both(x).mean(dy, axis=-1, keepdims=True), both(x).sum(x * dy, axis=0)


PROGRAMS: dict[str, tuple[Function, list[tuple[int | str, ...]]]] = {
    "rotary": (rotary, [("n", "h", 16), ("n", 8)]),
    "column norm": (column_norm, [("n", 40)]),
    "norm": (whole_norm, [("n", 40)]),
    "softmax": (softmax, [("n", 96)]),
    "groups": (groups, [("n", 24, 4, 8)]),
    "swapped": (swapped, [("n", "h", 12), ("h", "n", 12)]),
    "gram": (gram, [("n", 24, 40)]),
    "backward": (backward, [("n", 64), ("n", 64)]),
}


@pytest.mark.parametrize("expected", [LARGE, SMALL], ids=["large", "small"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_extent_is_right_whatever_was_expected(name: str, expected: int) -> None:
    fn, shapes = PROGRAMS[name]
    hints = {"n": expected, "h": max(2, expected >> 15)}
    specs = [
        mf.TensorSpec(shape, mf.float32, hints=[None if isinstance(n, int) else hints[n] for n in shape])
        for shape in shapes
    ]
    compiled = mf.fuse(fn, target=FEW_SMS).lower(*specs).compile_to_interpret()
    rng = np.random.default_rng(0)
    for extents in ({"n": 3, "h": 5}, {"n": 37, "h": 2}):
        arrays = [
            rng.normal(size=[n if isinstance(n, int) else extents[n] for n in shape]).astype(np.float32)
            for shape in shapes
        ]
        found = run(compiled.interpreted, compiled.program.name, arrays)
        wanted = fn(*(array.astype(np.float64) for array in arrays))
        for result, reference in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            np.testing.assert_allclose(result, reference, rtol=3e-5, atol=3e-5)


def test_variants_of_a_function_are_right() -> None:
    """A variant for many rows, and one for few, each with few rows, many rows, and what is between.

    Each operation has a kernel of its own, as one kernel of all serves few rows as well as many.
    """
    fused = mf.fuse(column_norm, target=FEW_SMS, fusion="off")
    rng = np.random.default_rng(1)
    variants = {}
    for rows in (2, 1 << 18, 5):
        array = np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (rows, 96), (384, 4), writeable=False)
        compiled = fused._compile(lambda extents, array=array: numpy_specs([array], extents, "x"), FEW_SMS)
        variants[id(compiled)] = compiled
    assert len(variants) == 2
    for rows in (2, 60):
        x = rng.normal(size=(rows, 96)).astype(np.float32)
        for compiled in variants.values():
            (found,) = run(compiled.interpreted, compiled.program.name, [x])
            np.testing.assert_allclose(found, column_norm(x.astype(np.float64)), rtol=3e-5, atol=3e-5)


def test_tiles_go_on_behind_a_short_dimension_that_is_expected() -> None:
    """Whatever the dimension's extent is in the end."""

    def gated(x: Any, w: Any) -> Any:
        return mf.tanh(x) * w + x

    specs = [
        mf.TensorSpec(("n", "b", 64), "float32", hints=(90000, 4, None)),
        mf.TensorSpec(("n", 1, 1), "float32", hints=(90000, None, None)),
    ]
    (schedule,) = mf.fuse(gated, target="sm_90a").lower(*specs).compile().schedules.values()
    assert schedule.tile[0] > 1
    assert schedule.tile[1:] == (4, 64)
    fused, rng = mf.fuse(gated, target="interpret", schedule=schedule), np.random.default_rng(0)
    for rows, short in ((37, 4), (20, 7), (9, 13)):
        x = rng.standard_normal((rows, short, 64)).astype(np.float32)
        w = rng.standard_normal((rows, 1, 1)).astype(np.float32)
        np.testing.assert_allclose(fused(x, w), np.tanh(x) * w + x, rtol=1e-5, atol=1e-6)


def test_what_is_left_of_a_kernel_may_have_more_results_of_run_time_extents() -> None:
    """The statistics of planes that readers compute from, in place of one array."""

    def fn(x: Any) -> Any:
        centred = x - mf.mean(x, axis=(1, 2), keepdims=True)
        chosen = mf.where(x > 0.25, centred, 0.5 * x)
        shares = chosen / mf.sum(mf.exp(chosen), axis=(1, 2), keepdims=True)
        damped = (shares - chosen + chosen) * mf.tanh(x) - shares
        return damped / mf.mean(damped)

    spec = mf.TensorSpec(("n", 12, 8, 256), mf.float32, hints=(651, None, None, None))
    compiled = mf.fuse(fn, target="sm_90a").lower(spec).compile(choose_again=False)
    assert "recompute" in compiled.explain(verbose=True)
    x = np.random.default_rng(0).normal(size=(3, 12, 8, 256)).astype(np.float32)
    (found,) = run(compiled.module_at("tile"), "fn", [x])
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=(1, 2), keepdims=True)
    chosen = np.where(wide > 0.25, centred, 0.5 * wide)
    shares = chosen / np.exp(chosen).sum(axis=(1, 2), keepdims=True)
    damped = shares * np.tanh(wide) - shares
    np.testing.assert_allclose(found, damped / damped.mean(), rtol=2e-2, atol=2e-3)
