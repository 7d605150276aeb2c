"""Extents as numbers of run time: values, and how often a function is compiled for arrays of several extents."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf

Function = Callable[..., Any]
ROWS = (4, 7, 16)


def compiled(function: Function, reference: Function, shapes: Any, **options: Any) -> int:
    """The number of compilations for arrays of these shapes, whose results are compared with NumPy's."""
    fused, rng = mf.fuse(function, target="interpret", **options), np.random.default_rng(0)
    for shape in shapes:
        x = rng.normal(size=shape).astype(np.float32)
        result, expected = fused(x), reference(x)
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, expected, rtol=2e-5, atol=1e-5)
    return len(fused._compiled)


def both(x: Any) -> Any:
    return mf if isinstance(x, mf.Tensor) else np


ONCE: dict[str, Function] = {
    "mean": lambda x: both(x).sum(x, axis=0) / x.shape[0],
    "variance": lambda x: both(x).sum(x * x, axis=0) / (x.shape[0] - 1),
    "multiplied": lambda x: x.shape[0] * x + x * x.shape[0],
    "a reciprocal": lambda x: (1 / x.shape[0]) * x,
    "powers": lambda x: x * x.shape[0] ** -0.5 + x.shape[0] ** 2,
    "quotients": lambda x: x + x.shape[0] // 3 + x.shape[0] % 3,
    "all elements": lambda x: both(x).sum(x) / (x.shape[0] * x.shape[1]),
    "a scalar of NumPy": lambda x: x * (np.float32(2) * x.shape[0]),
    "NumPy's function": lambda x: (x / np.sqrt(x.shape[0])).astype(np.float32),
    "a choice of elements": lambda x: both(x).where(x.shape[0] > 5, x, x * 2),
    "negated": lambda x: x + -x.shape[0] * 3,
    "a shape": lambda x: x.reshape(x.shape[0] * 2, 4) + 1,
}
EACH: dict[str, Function] = {
    "if": lambda x: x * 2 if x.shape[0] > 5 else x + 0,
    "equality": lambda x: x * 2 if x.shape[0] == 7 else x + 0,
    "range": lambda x: sum((x for _ in range(x.shape[0])), x * 0),
    "math": lambda x: x / math.sqrt(x.shape[0]),
    "float": lambda x: x * float(x.shape[0]),
    "max": lambda x: x * max(x.shape[0], 5),
    "a slice": lambda x: x[: x.shape[0] - 1] * 2,
}


@pytest.mark.parametrize("name", ONCE)
def test_arithmetic_needs_one_compilation(name: str) -> None:
    assert compiled(ONCE[name], ONCE[name], [(n, 8) for n in ROWS]) == 1


@pytest.mark.parametrize("name", EACH)
def test_a_number_while_tracing_needs_one_compilation_each(name: str) -> None:
    assert compiled(EACH[name], EACH[name], [(n, 8) for n in ROWS]) == len(ROWS)


def test_an_extent_of_an_array_that_is_not_read() -> None:
    fused = mf.fuse(lambda x, w: w * x.shape[0], target="interpret")
    for rows in ROWS:
        np.testing.assert_array_equal(fused(np.zeros((rows, 8), np.float32), np.ones(8, np.float32)), [rows] * 8)
    assert len(fused._compiled) == 1


def test_extents_of_reduced_constants() -> None:
    """No kernel reads what has them: they are compiled as numbers, those of the array that has them."""
    fused = mf.fuse(lambda x, y: (x, mf.min(mf.mean(mf.full_like(y, 3), axis=2), axis=-1)), target="interpret")
    for rows in ROWS:
        _, found = fused(np.ones(4, np.float32), np.ones((rows, 5, 3), np.float32))
        np.testing.assert_array_equal(found, np.full(rows, 3, np.float32))


def softmax_of_columns(x: Any) -> Any:
    e = both(x).exp(x - both(x).max(x, axis=0))
    return e / both(x).sum(e, axis=0)


def standardised(x: Any) -> Any:
    axes = (0, 2)
    return (x - both(x).mean(x, axis=axes, keepdims=True)) / both(x).std(x, axis=axes, keepdims=True)


REDUCTIONS: dict[str, Function] = {
    "max": lambda x: both(x).max(x, axis=0),
    "min": lambda x: both(x).min(x),
    "max, kept": lambda x: x - both(x).max(x, axis=0, keepdims=True),
    "softmax": softmax_of_columns,
    "sum, outer and inner": lambda x: both(x).sum(x, axis=(0, 2)),
    "max, outer and inner": lambda x: both(x).max(x, axis=(0, 2)),
    "standardised, outer and inner": standardised,
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_run_time_extents(name: str) -> None:
    function, inner = REDUCTIONS[name], (3, 8) if "outer" in name else (8,)
    shapes = [(n, *inner) for n in (*ROWS, 40)]
    assert compiled(function, function, shapes, dynamic_reductions=True) == 1
    assert compiled(function, function, shapes) == len(shapes)


MERGED: dict[str, Function] = {
    "mean of two dimensions": lambda x: both(x).mean(x, axis=(0, 1)),
    "centred": lambda x: x - both(x).mean(x, axis=(0, 1), keepdims=True),
    "squared": lambda x: both(x).sum(x, axis=(0, 1)) / (x.shape[0] * x.shape[0]),
    "reduced after": lambda x: both(x).sum(x * x.shape[0], axis=(1, 2)),
}


@pytest.mark.parametrize("name", MERGED)
def test_extents_of_merged_dimensions_are_numbers_too(name: str) -> None:
    assert compiled(MERGED[name], MERGED[name], [(n, 3, 8) for n in ROWS[:2]]) == 1
