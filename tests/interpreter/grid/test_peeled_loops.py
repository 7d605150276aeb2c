"""Persistent loops whose last step is peeled: partials are stored in its middle, and neutral ones by blocks without a
tile.
"""

from __future__ import annotations

from typing import Any

import pytest
from mlir import ir

from mlirfuse import interpreter
from mlirfuse.errors import InterpreterError
from mlirfuse.passmanager.manager import run_pipeline
from tests.support.pairwise import combined
from tests.support.reductions.backward import BACKWARD, Backward
from tests.support.reductions.numerics import DTYPES
from tests.support.reductions.persistent_loop_cases import (
    COLUMNS,
    ORDERS,
    SIDE_BY_SIDE,
    SIDE_BY_SIDE_COLUMNS,
    SMS,
    arrivals,
    check_mutants,
    drop_arrival,
    looping,
)

BF16 = DTYPES["bfloat16"]
NAMES = ("rms_norm_backward", "layer_norm_backward")
ROWS = 150
"""Tiles of several rows, the last of which is ragged."""
ROW = 4096
"""A tile of one row."""
CLUSTER = 16384
"""A tile of a row that two blocks share."""


def peeled(backward: Backward, stage: str, columns: int = COLUMNS, **changes: Any) -> ir.Module:
    """The function with its persistent loop peeled; the tile stage with its rings and the peeled step."""
    module = looping(backward, stage, BF16, columns, peeled=True, **changes)
    if stage == "tile":
        with module.context:
            run_pipeline(module, "builtin.module(fuse-stage-persistent-loop,fuse-peel-persistent-loop)")
        assert "nvvm.cp.async.wait.group 0" in str(module)
    return module


@combined(
    {"name": NAMES, "grid_reduction": ["grid_sync", "last_block", "second_kernel", "atomics"], "stage": ["tile", "gpu"]}
)
def test_results(name: str, grid_reduction: str, stage: str) -> None:
    """One tile for two blocks, one each, and several."""
    backward = BACKWARD[name]
    module = peeled(
        backward, stage, grid_reduction=grid_reduction, **({"blocks": 5} if grid_reduction == "second_kernel" else {})
    )
    for (rows, sms), order in zip(((1, SMS), (ROWS, SMS), (1100, 1)), ORDERS, strict=True):
        inputs = backward.inputs(rows, COLUMNS, BF16, seed=rows)
        backward.check(interpreter.run(module, name, inputs, sms=sms, **order), inputs)


@pytest.mark.parametrize("stage", ["tile", "gpu"])
@pytest.mark.parametrize("name", NAMES)
def test_tiles_of_a_row(name: str, stage: str) -> None:
    backward = BACKWARD[name]
    module = peeled(backward, stage, ROW)
    for rows, sms in ((1, 1), (2, 1), (5, 1), (35, 1)):
        inputs = backward.inputs(rows, ROW, BF16, seed=rows)
        backward.check(interpreter.run(module, name, inputs, sms=sms, order="random", seed=rows), inputs)


@pytest.mark.parametrize(
    ("columns", "layout", "stage"),
    [
        (SIDE_BY_SIDE_COLUMNS, SIDE_BY_SIDE, "tile"),
        (SIDE_BY_SIDE_COLUMNS, SIDE_BY_SIDE, "gpu"),
        (CLUSTER, {}, "gpu"),
    ],
)
def test_tiles_that_several_warps_or_blocks_share(columns: int, layout: dict[str, Any], stage: str) -> None:
    """Warps exchange partials where a block has a tile, and not where it has none; the last tile may lack a row."""
    backward = BACKWARD["rms_norm_backward"]
    module = peeled(backward, stage, columns, layout=layout)
    for rows in (1, 3, 6, 13):
        inputs = backward.inputs(rows, columns, BF16, seed=rows)
        backward.check(interpreter.run(module, backward.name, inputs, sms=2, order="random", seed=rows), inputs)


def test_no_rows() -> None:
    """One block without a tile writes the reduction of no elements."""
    backward = BACKWARD["layer_norm_backward"]
    inputs = backward.inputs(0, COLUMNS, BF16)
    backward.check(interpreter.run(peeled(backward, "gpu"), backward.name, inputs, sms=SMS), inputs)


KINDS = ("drop-barrier", "drop-store", "relax-arrive")
"""The counter wraps when a block departs; a limit that is too high does no harm before."""


def test_bugs_in_the_protocol_are_caught() -> None:
    backward = BACKWARD["rms_norm_backward"]
    module = peeled(backward, "gpu")
    cases = [backward.inputs(rows, COLUMNS, BF16) for rows in (0, 1, 1100)]  # no tile, one, several a block
    check_mutants(module, backward, cases, KINDS)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_arrival_that_is_missing_is_caught(number: int) -> None:
    """That of a block with a tile, that of one without, and the departure."""
    backward = BACKWARD["rms_norm_backward"]
    module = peeled(backward, "tile")
    inputs = backward.inputs(1, COLUMNS, BF16)
    found = arrivals(module)
    assert len(found) == 3
    drop_arrival(found[number])
    with pytest.raises((InterpreterError, AssertionError)):
        backward.check(interpreter.run(module, backward.name, inputs, sms=SMS), inputs)
