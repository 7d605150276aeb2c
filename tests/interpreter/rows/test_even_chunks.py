"""Chunks of fewer elements than threads cover, so that rows leave no remainder, by one block a row or by several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from tests.support.harnesses.compiling import module_at, specs_of
from tests.support.reductions.staged import staged, staged_exactly


@pytest.mark.parametrize("cluster", [1, 2, 4])
@pytest.mark.parametrize("persistence", ["multi_pass", "shared"])
def test_rows_in_even_chunks(persistence: str, cluster: int) -> None:
    """Of 1200 elements in three chunks of 400, which 512 would be covered by."""

    def centred(x: Any) -> Any:
        h = mf.maximum(x, 0.0) * 2.0
        return h - mf.max(h, axis=-1, keepdims=True), mf.sum(h, axis=-1)

    if persistence == "shared" and cluster > 1:
        pytest.skip("rows in shared memory are one block's")
    x = np.random.default_rng(0).integers(-8, 8, (3, 1200)).astype(np.float32)
    layout = mf.BlockedLayout((1, 4), (1, 32), (1, 4 // cluster), (1, 1), (1, cluster))
    schedule = mf.Schedule((1, 400), layout, persistence)
    module = module_at("gpu", centred, specs_of([x]), schedule)
    h = np.maximum(x, 0) * 2
    found = interpreter.run(module, "centred", [x])
    for got, exact in zip(found, (h - h.max(-1, keepdims=True), h.sum(-1)), strict=True):
        np.testing.assert_array_equal(got, exact)


def test_short_rows_depth_first() -> None:
    """The order of rows whose registers the assembler found short, of a gate that lives across its maximum."""

    def scaled(x: Any) -> Any:
        h = x * mf.sigmoid(x)
        return h / mf.max(mf.abs(h), axis=-1, keepdims=True)

    x = np.random.default_rng(0).standard_normal((3, 640)).astype(np.float32)
    schedule = mf.Schedule((1, 640), mf.BlockedLayout((1, 4), (1, 32), (1, 1), (1, 5), (1, 1)), order="depth")
    (found,) = interpreter.run(module_at("gpu", scaled, specs_of([x]), schedule), "scaled", [x])
    h = x.astype(np.float64) / (1 + np.exp(-x.astype(np.float64)))
    np.testing.assert_allclose(found, h / np.abs(h).max(-1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("persistence", ["multi_pass", "shared"])
@pytest.mark.parametrize("columns", [1200, 1024, 996])
def test_results_are_written_by_the_first_pass_that_can(persistence: str, columns: int) -> None:
    x = np.random.default_rng(columns).integers(-8, 8, (3, columns)).astype(np.float32)
    schedule = mf.Schedule((1, 400), mf.BlockedLayout((1, 4), (1, 32), (1, 4), (1, 1), (1, 1)), persistence)
    found = interpreter.run(module_at("gpu", staged, specs_of([x]), schedule), "staged", [x])
    for got, exact in zip(found, staged_exactly(x), strict=True):
        np.testing.assert_array_equal(got, exact)


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 255, 256, 264, 300])
def test_chunks_of_any_number_of_rows(rows: int) -> None:
    """Whole chunks in groups of 32, and a partial one behind them; the deviations are a second pass, with stores."""

    def columns(x: Any) -> Any:
        return mf.max(x, axis=0), x - mf.sum(x, axis=0)

    x = np.random.default_rng(rows).integers(-8, 8, (rows, 40)).astype(np.float32)
    layout = mf.BlockedLayout((1, 1), (1, 32), (2, 1), (4, 1), (1, 1))
    module = module_at(
        "gpu", columns, [mf.TensorSpec(("n", 40), mf.float32)], mf.Schedule((8, 32), layout, "multi_pass")
    )
    for got, exact in zip(interpreter.run(module, "columns", [x]), (x.max(0), x - x.sum(0)), strict=True):
        np.testing.assert_array_equal(got, exact)
