"""Backward functions at every level, interpreted with all checks, against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backward import BACKWARD, Backward
from compiling import module_at
from numerics import DTYPES

import mlirfuse as mf
from mlirfuse import interpreter

COLUMNS = (257, 384, 1000, 1600, 5140)
ROWS = (1, 7, 100)
F16, BF16 = DTYPES["float16"], DTYPES["bfloat16"]
ORDERS: tuple[dict[str, Any], ...] = (
    {"order": "reversed"},
    {"order": "random", "seed": 3},
    {"order": "random", "seed": 4, "resident": 8},
)


def specs(inputs: list[np.ndarray]) -> list[mf.TensorSpec]:
    return [mf.TensorSpec(a.shape, a.dtype) for a in inputs]


def run(backward: Backward, inputs: list[np.ndarray], stage: str = "gpu", **order: Any) -> list[np.ndarray]:
    module = module_at(stage, backward.fn, specs(inputs))
    return interpreter.run(module, backward.name, inputs, **order)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("name", BACKWARD)
def test_sizes(name: str, columns: int) -> None:
    backward = BACKWARD[name]
    for rows, order in zip(ROWS, ORDERS, strict=True):
        inputs = backward.inputs(rows, columns, BF16, seed=columns)
        backward.check(run(backward, inputs, **order), inputs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stage", ["linalg", "tile", "gpu"])
@pytest.mark.parametrize("name", BACKWARD)
def test_levels_and_dtypes(name: str, stage: str, dtype: str) -> None:
    backward = BACKWARD[name]
    inputs = backward.inputs(37, 320, DTYPES[dtype])
    backward.check(run(backward, inputs, stage), inputs)


@pytest.mark.parametrize("name", BACKWARD)
def test_calls(name: str) -> None:
    """One function, called with several row counts."""
    backward = BACKWARD[name]
    fused = mf.fuse(backward.fn, target="interpret")
    for rows in (1, 7, 33, 100):
        inputs = backward.inputs(rows, 384, F16, seed=rows)
        backward.check(fused(*inputs), inputs)


@pytest.mark.parametrize("name", ["rms_norm_backward", "layer_norm_backward"])
def test_nan_stays_in_its_row_and_column(name: str) -> None:
    backward = BACKWARD[name]
    inputs = backward.inputs(37, 384, F16)
    clean = run(backward, inputs)
    inputs[0][20, 300] = np.nan
    dx, *vectors = run(backward, inputs)
    assert np.isnan(dx[20]).all()
    others = np.delete(np.arange(37), 20)
    np.testing.assert_array_equal(dx[others], clean[0][others])
    for vector, expected in zip(vectors, clean[1:], strict=True):
        assert np.flatnonzero(np.isnan(vector)).tolist() == [300]
        np.testing.assert_array_equal(np.delete(vector, 300), np.delete(expected, 300))
