"""Persistent loops whose whole tiles have a loop of their own: any number of tiles, and of blocks, and of rows left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from tests.support.harnesses.compiling import module_at


def total(x: Any) -> Any:
    return mf.max(x, axis=0), mf.sum(x, axis=0)


def scheduled(grid_reduction: str, period: int = 0) -> mf.Schedule:
    layout = mf.BlockedLayout((1, 2), (1, 32), (2, 1), (2, 1), (1, 1))
    second = mf.BlockedLayout((1, 2), (1, 32), (2, 1), (2, 1), (1, 1))
    blocks = 2 if grid_reduction == "second_kernel" else 0
    loop = PersistentLoop((0,), grid_reduction, (4, 64), second, period=period, blocks=blocks)
    return mf.Schedule((4, 64), layout, blocks_per_sm=1, persistent_loop=loop)


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 8, 9, 27, 28, 530])
@pytest.mark.parametrize("grid_reduction", ["grid_sync", "last_block"])
def test_rows_of_any_number(rows: int, grid_reduction: str) -> None:
    x = np.random.default_rng(rows).integers(-8, 8, (rows, 64)).astype(np.float32)
    specs = [mf.TensorSpec(("n", 64), mf.float32)]
    module = module_at("gpu", total, specs, scheduled(grid_reduction))
    found = interpreter.run(module, "total", [x], sms=3, order="random")
    for got, exact in zip(found, (x.max(0), x.sum(0)), strict=True):
        np.testing.assert_array_equal(got, exact)


@pytest.mark.parametrize("rows", [4, 31, 64, 67])
@pytest.mark.parametrize("grid_reduction", ["last_block", "second_kernel"])
def test_partials_of_periods(rows: int, grid_reduction: str) -> None:
    x = np.random.default_rng(rows).integers(-8, 8, (rows, 64)).astype(np.float32)
    specs = [mf.TensorSpec(("n", 64), mf.float32)]
    module = module_at("gpu", total, specs, scheduled(grid_reduction, period=2))
    found = interpreter.run(module, "total", [x], sms=2)
    for got, exact in zip(found, (x.max(0), x.sum(0)), strict=True):
        np.testing.assert_array_equal(got, exact)


def test_compensated_sums_keep_what_additions_lose() -> None:
    """Ones beside 2^25, of which a plain sum loses all: each block has some at first, and a second kernel adds two."""
    x = np.ones((400, 64), np.float32)
    x[:8] = 1 << 25
    module = module_at("gpu", total, [mf.TensorSpec(("n", 64), mf.float32)], scheduled("second_kernel", period=1))
    _, found = interpreter.run(module, "total", [x], sms=2)
    exact = x.sum(0, dtype=np.float64)
    assert np.abs(found - exact).max() <= 0.5 * np.spacing(np.float32(exact[0]))


@pytest.mark.parametrize("rows", [4, 8, 6])
def test_rows_of_a_known_number(rows: int) -> None:
    """One tile, which is whole, and several, of which none is ragged, or the last."""
    x = np.random.default_rng(rows).integers(-8, 8, (rows, 64)).astype(np.float32)
    module = module_at("gpu", total, [mf.TensorSpec((rows, 64), mf.float32)], scheduled("last_block"))
    for got, exact in zip(interpreter.run(module, "total", [x], sms=2), (x.max(0), x.sum(0)), strict=True):
        np.testing.assert_array_equal(got, exact)
