"""Walks whose last tile is worked on behind the loop: parts leave in its midst, and blocks without a tile leave one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from backward import BACKWARD, Backward
from compiling import module_at
from mlir import ir
from mlir.dialects import arith
from numerics import DTYPES

import mlirfuse as mf
from mlirfuse import interpreter, pipeline
from mlirfuse.analysis.kernels import kernels
from mlirfuse.errors import InterpreterError
from mlirfuse.interpreter.mutation import mutants, plant, site
from mlirfuse.passes.manager import run_pipeline
from mlirfuse.rewriting import nested
from mlirfuse.schedule.schedule import schedule_of

BF16 = DTYPES["bfloat16"]
NAMES = ("rms_norm_backward", "layer_norm_backward")
ROWS, COLUMNS, SMS = 150, 64, 3
"""Tiles of several rows, the last of which is ragged."""
ROW = 4096
"""A tile of one row, as the heuristics have it where they peel."""
ORDERS: tuple[dict[str, Any], ...] = ({}, {"order": "reversed"}, {"order": "random", "seed": 7})


def peeled(backward: Backward, stage: str, columns: int = COLUMNS, **changes: Any) -> ir.Module:
    """The function with its schedule's walk peeled; the tile stage with its rings, and its last step apart."""
    specs = backward.specs(columns, BF16)
    module = mf.fuse(backward.fn, target="sm_90a").lower(*specs).module
    with module.context:
        run_pipeline(module, pipeline.named("fuse-graph-pipeline", "sm_90a"))
    (kernel,) = kernels(module.operation)
    schedule = schedule_of(kernel)
    assert schedule.walk is not None
    schedule = replace(schedule, walk=replace(schedule.walk, peeled=True, **changes))
    module = module_at(stage, backward.fn, specs, schedule)
    if stage == "tile":
        with module.context:
            run_pipeline(module, "builtin.module(fuse-stage-walk,fuse-peel-walk)")
        assert "nvvm.cp.async.wait.group 0" in str(module)
    return module


@pytest.mark.parametrize("stage", ["tile", "gpu"])
@pytest.mark.parametrize("finish", ["slices", "last_block", "second_kernel", "atomics"])
@pytest.mark.parametrize("name", NAMES)
def test_results(name: str, finish: str, stage: str) -> None:
    """One tile for two blocks, one each, and several."""
    backward = BACKWARD[name]
    module = peeled(backward, stage, finish=finish, **({"blocks": 5} if finish == "second_kernel" else {}))
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


def test_no_rows() -> None:
    """One block, without a tile, writes the totals of nothing."""
    backward = BACKWARD["layer_norm_backward"]
    inputs = backward.inputs(0, COLUMNS, BF16)
    backward.check(interpreter.run(peeled(backward, "gpu"), backward.name, inputs, sms=SMS), inputs)


KINDS = ("drop-barrier", "drop-store", "relax-arrive")
"""The counter wraps when a block departs; a limit that is too high does no harm before."""


def test_bugs_in_the_protocol_are_caught() -> None:
    backward = BACKWARD["rms_norm_backward"]
    module = peeled(backward, "gpu")
    cases = [backward.inputs(rows, COLUMNS, BF16) for rows in (1, 1100)]  # blocks without a tile, and with several

    def notices(mutated: ir.Operation) -> bool:
        try:
            for inputs in cases:
                for order in ORDERS:
                    backward.check(interpreter.run(mutated, backward.name, inputs, sms=SMS, **order), inputs)
        except (InterpreterError, AssertionError):
            return True
        return False

    tried = [mutant for mutant in mutants(module) if mutant.kind in KINDS]
    survivors = [f"{m}: {site(module, m)}" for m in tried if not notices(plant(module, m))]
    assert {m.kind for m in tried} == set(KINDS)
    assert not survivors


@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_arrival_that_is_missing_is_caught(number: int) -> None:
    """That of a block with a tile, that of one without, and the departure."""
    backward = BACKWARD["rms_norm_backward"]
    module = peeled(backward, "tile")
    inputs = backward.inputs(1, COLUMNS, BF16)
    with module.context:
        arrivals = [op for op in nested(module.operation) if op.name == "fuse.semaphore_arrive"]
        assert len(arrivals) == 3
        arrival = arrivals[number]
        with ir.InsertionPoint(arrival), arrival.location:
            nothing = arith.ConstantOp(arrival.results[0].type, 0).result
        arrival.results[0].replace_all_uses_with(nothing)
        arrival.erase()
    with pytest.raises((InterpreterError, AssertionError)):
        backward.check(interpreter.run(module, backward.name, inputs, sms=SMS), inputs)
