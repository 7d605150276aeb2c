"""Tiles that an epilogue reads come through the stages of its result; protocols with one thing wrong are caught."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.errors import InterpreterError
from tests.support.contractions.residuals import (
    SCHEDULES,
    argument_stages,
    gate,
    later_result,
    masked,
    residual,
    residual_inputs,
    residual_results,
    single,
    swapped,
    two_results,
)
from tests.support.contractions.warpgroup_schedules import warpgroup_schedule
from tests.support.harnesses.compiling import module_at, specs_of
from tests.support.kernels import parse
from tests.support.pairwise import combined


@combined({"schedule": SCHEDULES}, turns={"fn": [residual, gate], "stage": ["tile", "gpu"], "resident": [2, 4]})
def test_tiles_come_through_the_stages_of_results(
    schedule: str, fn: Callable[..., Any], stage: str, resident: int
) -> None:
    """Rows and columns that are no multiple of a tile's, and more tiles than a block's consumer groups."""
    inputs = residual_inputs(fn, 648, 200, 72)
    module = module_at(stage, fn, specs_of(inputs), SCHEDULES[schedule])
    assert "fuse.staged_tile" in str(module)
    results = interpreter.run(module, fn.__name__, inputs, order="random", resident=resident)
    np.testing.assert_array_equal(results[0], residual_results(fn, inputs)[0])


@combined({"schedule": SCHEDULES}, turns={"stage": ["tile", "gpu"], "resident": [2, 4]})
def test_tiles_of_other_types_are_prefetched(schedule: str, stage: str, resident: int) -> None:
    """A factor in float32 and a mask; the extents are such that tensor maps describe both."""
    inputs = residual_inputs(masked, 328, 208, 72)
    module = module_at(stage, masked, specs_of(inputs), SCHEDULES[schedule])
    assert str(module).count("fuse.prefetch_tile") == 2
    results = interpreter.run(module, "masked", inputs, order="random", resident=resident)
    np.testing.assert_array_equal(results[0], residual_results(masked, inputs)[0])


@combined(
    {"grid": [{}, {"persistent": True}, {"consumer_groups": 2}], "transposed": [False, True]},
    turns={"stage": ["tile", "gpu"], "resident": [2, 4]},
)
def test_tiles_of_other_types_have_stages_of_their_own(
    grid: dict[str, Any], transposed: bool, stage: str, resident: int
) -> None:
    """The float32 factor; the mask, of which rows are no whole swizzle atoms, is prefetched."""
    inputs = residual_inputs(masked, 328, 208, 72)
    schedule = argument_stages(warpgroup_schedule(64, 64, stages=3, **grid))
    module = module_at(stage, masked, specs_of(inputs), swapped(schedule) if transposed else schedule)
    assert "fuse.staged_tile" in str(module)
    assert str(module).count("fuse.prefetch_tile") == 1
    results = interpreter.run(module, "masked", inputs, order="random", resident=resident)
    np.testing.assert_array_equal(results[0], residual_results(masked, inputs)[0])


@combined(
    {"grid": [{}, {"persistent": True}, {"consumer_groups": 2}], "transposed": [False, True]},
    turns={"stage": ["tile", "gpu"]},
)
def test_wide_results_have_a_stage_for_each_subtile(grid: dict[str, Any], transposed: bool, stage: str) -> None:
    """Four subtiles of float32, through which what is added comes."""
    inputs = residual_inputs(single, 328, 208, 72)
    schedule = argument_stages(warpgroup_schedule(64, 128, stages=2, **grid))
    module = module_at(stage, single, specs_of(inputs), swapped(schedule) if transposed else schedule)
    assert "fuse.staged_tile" in str(module)
    assert "fuse.prefetch_tile" not in str(module)
    results = interpreter.run(module, "single", inputs, order="random", resident=2)
    np.testing.assert_array_equal(results[0], residual_results(single, inputs)[0])


@combined({"grid": [{}, {"persistent": True}, {"consumer_groups": 2}]}, turns={"stage": ["tile", "gpu"]})
def test_masks_have_stages_of_their_own(grid: dict[str, Any], stage: str) -> None:
    """Rows of a byte an element, of 128 columns."""
    inputs = residual_inputs(masked, 328, 208, 72)
    schedule = argument_stages(warpgroup_schedule(64, 128, stages=2, **grid))
    module = module_at(stage, masked, specs_of(inputs), schedule)
    assert "x64x128xi1, #gpu.address_space<workgroup>" in str(module)
    assert "fuse.prefetch_tile" not in str(module)
    results = interpreter.run(module, "masked", inputs, order="random", resident=2)
    np.testing.assert_array_equal(results[0], residual_results(masked, inputs)[0])


@combined(
    {
        "fn": [single, two_results, later_result],
        "stage": ["tile", "gpu"],
        "grid": [{}, {"persistent": True}, {"consumer_groups": 2}],
        "transposed": [False, True],
    }
)
def test_wider_and_several_results(fn: Callable[..., Any], stage: str, grid: dict[str, Any], transposed: bool) -> None:
    inputs = residual_inputs(fn, 328, 104, 72)
    schedule = warpgroup_schedule(64, 64, **grid)
    module = module_at(stage, fn, specs_of(inputs), swapped(schedule) if transposed else schedule)
    assert "fuse.staged_tile" in str(module)
    results = interpreter.run(module, fn.__name__, inputs, order="random", resident=1)
    for result, want in zip(results, residual_results(fn, inputs), strict=True):
        np.testing.assert_array_equal(result.astype(np.float64), want)


def test_an_operand_may_be_what_is_read() -> None:
    def fn(x, w):
        return x + x @ w.mT

    x, w = residual_inputs(fn, 136, 136, 136)
    module = module_at("gpu", fn, specs_of([x, w]), warpgroup_schedule(64, 64))
    assert "fuse.staged_tile" in str(module)
    (result,) = interpreter.run(module, "fn", [x, w], order="random")
    np.testing.assert_array_equal(result, x + x.astype(np.float64) @ w.T)


def test_rows_may_be_dynamic() -> None:
    inputs = residual_inputs(residual, 200, 128, 72)
    specs = [mf.TensorSpec((None, a.shape[1]) if a.shape[0] == 200 else a.shape, "float16") for a in inputs]
    module = module_at("gpu", residual, specs, SCHEDULES["consumer_groups"])
    assert "fuse.staged_tile" in str(module)
    (result,) = interpreter.run(module, "residual", inputs, order="random", resident=1)
    np.testing.assert_array_equal(result, residual_results(residual, inputs)[0])


MUTANTS = {
    "the consumers do not wait for the tile": (
        r'"fuse.mbarrier_wait"\([^\n]*\n(?=[^\n]*"fuse.staged_tile")',
        "",
        "unwritten|in flight",
    ),
    "the producer does not wait for the stores": (
        r'"fuse.mbarrier_wait"\([^\n]*\n(?=[^\n]*"fuse.mbarrier_expect"[^\n]*bytes = 8192)',
        "",
        "still reads the stage|in flight|more arrivals",
    ),
    "the stages are free before their stores have read": (
        r'"fuse.async_store_wait"\(\) \{pending = 0',
        '"fuse.async_store_wait"() {pending = 1',
        "still reads the stage|asynchronous store",
    ),
    "the stages are never free": (
        r'"fuse.async_store_wait"\(\) \{pending = 0[^\n]*\n([^\n]*)"fuse.mbarrier_arrive"[^\n]*\n',
        r'"fuse.async_store_wait"() {pending = 0 : i64} : () -> ()\n',
        "deadlock",
    ),
    "the phases of the stages are one apart": (
        r"%c0_i32\) -> \(index, i32, i32\)",
        "%c1_i32) -> (index, i32, i32)",
        "unwritten|in flight|deadlock",
    ),
    "too few bytes are announced": ("bytes = 8192", "bytes = 4096", "deadlock"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(name: str) -> None:
    pattern, replacement, message = MUTANTS[name]
    inputs = residual_inputs(residual, 648, 64, 72)
    text = str(module_at("tile", residual, specs_of(inputs), warpgroup_schedule(64, 64, persistent=True)))
    text, count = re.subn(pattern, replacement, text)
    assert count, f"nothing to change for {name}"

    def run_in_many_orders() -> None:
        for seed in range(6):
            interpreter.run(parse(text), "residual", inputs, order="random", seed=seed, resident=1)

    with pytest.raises(InterpreterError, match=message):
        run_in_many_orders()
