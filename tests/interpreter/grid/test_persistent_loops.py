"""Grid reductions in every order of blocks: how partials may be combined, and what a block needs the others for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mlir import ir

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.errors import InterpreterError
from mlirfuse.target import target_of
from tests.support.pairwise import combined
from tests.support.reductions.backward import BACKWARD, Backward
from tests.support.reductions.numerics import DTYPES
from tests.support.reductions.persistent_loop_cases import (
    COLUMNS,
    ORDERS,
    SMS,
    arrivals,
    check_mutants,
    drop_arrival,
    looping,
)

F16 = DTYPES["float16"]
ROWS = 150
NAMES = ("rms_norm_backward", "layer_norm_backward", "batch_norm_sums")


def asked(grid_reduction: Any, backward: Backward, stage: str) -> ir.Module:
    """The function as it is compiled for a caller who asks for that second stage."""
    fused = mf.fuse(backward.fn, target="sm_90a", grid_reduction=grid_reduction)
    return fused.lower(*backward.specs(COLUMNS, F16)).compile().module_at(stage)


def with_grid_reduction(grid_reduction: str, backward: Backward, stage: str, **changes: Any) -> ir.Module:
    """The function, with the schedule that the heuristics choose but for how partials are combined, and other fields of
    the persistent loop.
    """
    return looping(backward, stage, F16, grid_reduction=grid_reduction, **changes)


@combined({"name": NAMES, "resident": [1, 2, None]}, turns={"stage": ["tile", "gpu"]})
def test_the_last_block_combines_in_any_order_with_any_residency(name: str, resident: int | None, stage: str) -> None:
    backward = BACKWARD[name]
    module = with_grid_reduction("last_block", backward, stage)
    assert "fuse.cooperative" not in str(module)
    assert "fuse.semaphore_wait" not in str(module)
    for rows in (1, ROWS):
        inputs = backward.inputs(rows, COLUMNS, F16, seed=rows)
        for order in ORDERS:
            results = interpreter.run(module, name, inputs, sms=SMS, resident=resident, **order)
            backward.check(results, inputs)


@pytest.mark.parametrize("stage", ["tile", "gpu"])
@pytest.mark.parametrize("name", NAMES)
def test_slices_are_combined_by_all_in_any_order(name: str, stage: str) -> None:
    backward = BACKWARD[name]
    module = with_grid_reduction("grid_sync", backward, stage)
    assert "fuse.cooperative" in str(module)
    inputs = backward.inputs(ROWS, COLUMNS, F16)
    for order in ORDERS:
        for sms in (
            1,
            SMS,
        ):  # on one, every block has rows, and a step of the second stage lies behind the last block's partial
            backward.check(interpreter.run(module, name, inputs, sms=sms, **order), inputs)


@pytest.mark.parametrize("stage", ["tile", "gpu"])
@pytest.mark.parametrize("name", NAMES)
def test_parts_are_added_atomically_in_any_order_with_any_residency(name: str, stage: str) -> None:
    """The sums are zero again when a kernel ends, which the interpreter checks."""
    backward = BACKWARD[name]
    module = asked("atomics", backward, stage)
    assert "fuse.accumulate" in str(module)
    assert "fuse.cooperative" not in str(module)
    for rows in (1, ROWS):
        inputs = backward.inputs(rows, COLUMNS, F16, seed=rows)
        for resident in (1, None):
            for order in ORDERS:
                backward.check(interpreter.run(module, name, inputs, sms=SMS, resident=resident, **order), inputs)


def everything(x):
    """Two numbers, which every thread of a block holds."""
    return mf.sum(x), mf.sum(x * x)


def columns_of_three(x):
    return mf.sum(x, axis=(0, 1))


@pytest.mark.parametrize("stage", ["tile", "gpu"])
@pytest.mark.parametrize(("function", "shape"), [(everything, (37, 11)), (columns_of_three, (9, 5, 6))])
def test_sums_over_everything_and_over_two_dimensions(function: Any, shape: tuple[int, ...], stage: str) -> None:
    x = np.random.default_rng(0).integers(-8, 9, shape).astype(np.float32)
    spec = mf.TensorSpec(("rows", *shape[1:]), mf.float32)
    module = mf.fuse(function, target="sm_90a", grid_reduction="atomics").lower(spec).compile().module_at(stage)
    assert "fuse.accumulate" in str(module)
    results = interpreter.run(module, function.__name__, [x], sms=SMS, order="random", seed=2)
    wanted = [x.sum(), (x**2).sum()] if function is everything else [x.sum((0, 1))]
    for result, exact in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(result, exact)


@combined({"name": NAMES, "stage": ["tile", "gpu"], "grid_reduction": ["grid_sync", "last_block"]})
def test_blocks_that_store_a_partial_every_few_tiles(name: str, stage: str, grid_reduction: str) -> None:
    """Periods that come out even and that do not, and persistent loops too short for one."""
    backward = BACKWARD[name]
    module = with_grid_reduction(grid_reduction, backward, stage, period=2, peeled=False)
    for rows in (1, 1024, 1100):
        inputs = backward.inputs(rows, COLUMNS, F16, seed=rows)
        backward.check(interpreter.run(module, name, inputs, sms=1, order="random", seed=rows), inputs)


@combined({"name": NAMES, "stage": ["tile", "gpu"], "period": [0, 2]})
def test_a_second_kernel_needs_nobody_resident(name: str, stage: str, period: int) -> None:
    """More blocks than tiles as well: each stores a partial, that of an idle block neutral. Periods are added up."""
    backward = BACKWARD[name]
    peeled = {"peeled": False} if period else {}
    module = with_grid_reduction("second_kernel", backward, stage, blocks=3, period=period, **peeled)
    assert "fuse.semaphore" not in str(module)
    assert "fuse.cooperative" not in str(module)
    for rows in (1, 700):
        inputs = backward.inputs(rows, COLUMNS, F16, seed=rows)
        for order in ORDERS:
            backward.check(interpreter.run(module, name, inputs, sms=SMS, resident=1, **order), inputs)


def mean_and_rows(x):
    """A mean of everything, and sums of rows that the persistent loop stores as it goes."""
    return mf.mean(x), mf.sum(x, axis=1)


@combined({"function": [everything, mean_and_rows], "columns": [32, 257, 384], "stage": ["tile", "gpu"]})
def test_a_second_kernel_combines_reductions_of_no_dimension(function: Any, columns: int, stage: str) -> None:
    """They are one slice, a loop over which does not stay a loop."""
    x = np.random.default_rng(0).integers(-8, 9, (16, columns)).astype(np.float32)
    fused = mf.fuse(function, target=target_of("sm_90a").with_sms(SMS), grid_reduction="second_kernel")
    module = fused.lower(mf.TensorSpec(("rows", columns), mf.float32)).compile().module_at(stage)
    assert str(module).count("call @") == 2
    wanted = [x.sum(), (x**2).sum()] if function is everything else [x.mean(), x.sum(1)]
    results = interpreter.run(module, function.__name__, [x], sms=SMS, order="random", seed=2)
    for result, exact in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result, exact, rtol=1e-6)


@pytest.mark.parametrize(
    ("stage", "refusal"),
    [
        ("tile", "none of the 1 resident blocks can continue"),
        ("gpu", "needs all of its [0-9]+ blocks resident at once, and only 1"),
    ],
)
def test_slices_need_all_blocks_resident(stage: str, refusal: str) -> None:
    """Blocks that wait for each other are launched whole or not at all; a tile program is stuck."""
    backward = BACKWARD["rms_norm_backward"]
    module = with_grid_reduction("grid_sync", backward, stage)
    inputs = backward.inputs(ROWS, COLUMNS, F16)
    with pytest.raises(InterpreterError, match=refusal):
        interpreter.run(module, backward.name, inputs, sms=SMS, resident=1)
    backward.check(interpreter.run(module, backward.name, inputs, sms=SMS, resident=64), inputs)


@pytest.mark.parametrize("name", ["rms_norm_backward", "batch_norm_sums"])
@pytest.mark.parametrize("grid_reduction", ["grid_sync", "last_block"])
def test_results_are_the_same_bits_in_every_order(name: str, grid_reduction: str) -> None:
    """Parts are added by the numbers of their blocks, not as they come."""
    backward = BACKWARD[name]
    module = with_grid_reduction(grid_reduction, backward, "gpu")
    inputs = backward.inputs(ROWS, COLUMNS, F16)
    first, *others = [interpreter.run(module, name, inputs, sms=SMS, **order) for order in ORDERS]
    for results in others:
        for a, b in zip(results, first, strict=True):
            np.testing.assert_array_equal(a, b)


KINDS = ("drop-barrier", "drop-store", "relax-arrive", "raise-limit")


@pytest.mark.parametrize("grid_reduction", ["last_block", "atomics"])
def test_bugs_in_the_last_block_s_protocol_are_caught(grid_reduction: str) -> None:
    """With atomics also an addition that is missing, and sums that nobody clears, or while others still read them."""
    backward = BACKWARD["rms_norm_backward"]
    module = (
        asked(grid_reduction, backward, "gpu")
        if grid_reduction == "atomics"
        else with_grid_reduction(grid_reduction, backward, "gpu")
    )
    inputs = backward.inputs(ROWS, COLUMNS, F16)
    harmless = ("drop-store",) if grid_reduction == "atomics" else ()  # a block without a tile adds zeros
    check_mutants(module, backward, [inputs], KINDS, harmless)


@pytest.mark.parametrize(("grid_reduction", "number"), [("grid_sync", 0), ("grid_sync", 1), ("last_block", 0)])
def test_an_arrival_that_is_missing_is_caught(grid_reduction: str, number: int) -> None:
    """Without the first one there is no second stage or a deadlock; without the departure the semaphore is not 0."""
    backward = BACKWARD["rms_norm_backward"]
    module = with_grid_reduction(grid_reduction, backward, "tile")
    inputs = backward.inputs(ROWS, COLUMNS, F16)
    drop_arrival(arrivals(module)[number])
    with pytest.raises((InterpreterError, AssertionError)):
        backward.check(interpreter.run(module, backward.name, inputs, sms=SMS), inputs)
