"""Chunks of the fewest elements a thread, with the other reduced dimensions whole in each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.harnesses.compiling import module_at, specs_of


def _integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-8, 8, shape).astype(np.float32)


@pytest.mark.parametrize("rows", [4, 5, 6, 129])
def test_total_in_chunks_of_some_rows(rows: int) -> None:
    """The contiguous dimension is whole in each chunk, and the last chunk has any number of rows."""

    def scaled(x: Any, y: Any) -> Any:
        return x + y - mf.max(x + y), mf.sum(x)

    x, y = _integers(rows, 258), _integers(258)
    layout = mf.BlockedLayout((1, 2), (1, 32), (1, 5), (1, 1), (4, 1))
    schedule = mf.Schedule((4, 258), layout, "multi_pass")
    results = interpreter.run(module_at("gpu", scaled, specs_of([x, y]), schedule), "scaled", [x, y])
    for found, exact in zip(results, (x + y - (x + y).max(), x.sum()), strict=True):
        np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("columns", [256, 257, 300])
def test_several_sets_of_dimensions_in_chunks_of_what_they_share(columns: int) -> None:
    def several(x: Any) -> Any:
        highest = mf.max(x, axis=-1, keepdims=True)
        return mf.any(x > 6, axis=(0, 2)), mf.sum(x, axis=-1), mf.sum(x - highest, axis=(0, 2)), x - highest

    x = _integers(2, 3, columns)
    layout = mf.BlockedLayout((1, 1, 1), (2, 1, 16), (1, 1, 8), (1, 1, 1), (1, 1, 2))
    schedule = mf.Schedule((2, 1, 256), layout, "multi_pass")
    results = interpreter.run(module_at("gpu", several, specs_of([x]), schedule), "several", [x])
    apart = x - x.max(-1, keepdims=True)
    for found, exact in zip(results, ((x > 6).any((0, 2)), x.sum(-1), apart.sum((0, 2)), apart), strict=True):
        np.testing.assert_array_equal(found, exact)
