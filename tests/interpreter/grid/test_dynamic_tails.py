"""Persistent loops whose end blocks share: who takes a chunk is whoever comes first, and changes no bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlirfuse import interpreter
from mlirfuse.errors import InterpreterError
from mlirfuse.tiling.sync import dynamic_tail
from tests.support.pairwise import combined
from tests.support.reductions.backward import BACKWARD
from tests.support.reductions.numerics import DTYPES
from tests.support.reductions.persistent_loop_cases import ORDERS, SMS, arrivals, check_mutants, drop_arrival, looping

F16 = DTYPES["float16"]
BACKWARDS = BACKWARD["rms_norm_backward"]
ROWS, COLUMNS = 700, 64


@pytest.fixture(autouse=True)
def _long_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the tiles, and of few."""
    monkeypatch.setattr(dynamic_tail, "TAIL", 2)
    monkeypatch.setattr(dynamic_tail, "LEAST_CHUNKS", 1)


@combined({"stage": ["tile", "gpu"], "grid_reduction": ["grid_sync", "last_block"], "chunk": [1, 3]})
def test_results_in_any_order(stage: str, grid_reduction: str, chunk: int) -> None:
    module = looping(BACKWARDS, stage, F16, grid_reduction=grid_reduction, chunk=chunk)
    for rows in (1, 100, ROWS):
        inputs = BACKWARDS.inputs(rows, COLUMNS, F16, seed=rows)
        for sms in (1, SMS):
            for order in ORDERS:
                BACKWARDS.check(interpreter.run(module, BACKWARDS.name, inputs, sms=sms, **order), inputs)


def test_no_rows() -> None:
    module = looping(BACKWARDS, "gpu", F16, chunk=1)
    inputs = BACKWARDS.inputs(0, COLUMNS, F16)
    BACKWARDS.check(interpreter.run(module, BACKWARDS.name, inputs, sms=SMS), inputs)


@pytest.mark.parametrize("grid_reduction", ["grid_sync", "last_block"])
def test_the_same_bits_in_every_order(grid_reduction: str) -> None:
    module = looping(BACKWARDS, "gpu", F16, grid_reduction=grid_reduction, chunk=1)
    inputs = BACKWARDS.inputs(ROWS, COLUMNS, F16)
    seeds: list[dict[str, Any]] = [{"order": "random", "seed": seed} for seed in range(4)]
    first, *others = [interpreter.run(module, BACKWARDS.name, inputs, sms=SMS, **order) for order in (*ORDERS, *seeds)]
    for results in others:
        for a, b in zip(results, first, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("resident", [1, 2])
def test_nobody_waits_for_the_last_block(resident: int) -> None:
    """One block alone takes all chunks."""
    module = looping(BACKWARDS, "gpu", F16, grid_reduction="last_block", chunk=1)
    inputs = BACKWARDS.inputs(ROWS, COLUMNS, F16)
    for order in ORDERS:
        results = interpreter.run(module, BACKWARDS.name, inputs, sms=SMS, resident=resident, **order)
        BACKWARDS.check(results, inputs)


def test_bugs_in_the_protocol_are_caught() -> None:
    """But for the barrier before a block is told of its next chunk: those of its part's exchange are between two."""
    module = looping(BACKWARDS, "gpu", F16, grid_reduction="last_block", chunk=1)
    cases = [BACKWARDS.inputs(rows, COLUMNS, F16) for rows in (ROWS, 100)]  # with chunks, and without
    kinds = ("drop-barrier", "drop-store", "relax-arrive", "raise-limit")
    check_mutants(module, BACKWARDS, cases, kinds, harmless=["drop-barrier"])


@pytest.mark.parametrize("number", [1, 2])
def test_an_arrival_that_is_missing_is_caught(number: int) -> None:
    module = looping(BACKWARDS, "tile", F16, grid_reduction="grid_sync", chunk=1)
    inputs = BACKWARDS.inputs(ROWS, COLUMNS, F16)
    drop_arrival(arrivals(module)[number])
    with pytest.raises((InterpreterError, AssertionError)):
        BACKWARDS.check(interpreter.run(module, BACKWARDS.name, inputs, sms=SMS), inputs)
