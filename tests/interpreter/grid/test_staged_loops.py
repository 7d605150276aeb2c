"""Tile programs whose persistent loops load ahead into shared memory: a copy happens as late as its wait, and has its
own slot.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from mlir import ir

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.errors import InterpreterError
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.grid.second_stage import FEW_TILES
from tests.support.kernels import parse
from tests.support.reductions.backward import BACKWARD
from tests.support.reductions.numerics import DTYPES
from tests.support.reductions.persistent_loop_cases import looping

BF16 = DTYPES["bfloat16"]
NAME = "rms_norm_backward"


def staged(name: str, columns: int) -> ir.Module:
    """A tile program with its rings."""
    module = looping(BACKWARD[name], "tile", BF16, columns)
    with module.context:
        run_pipeline(module, "builtin.module(fuse-stage-persistent-loop)")
    assert "fuse.copy_fragments" in str(module)
    return module


@pytest.mark.parametrize("columns", [384, 1000])
@pytest.mark.parametrize("name", ["rms_norm_backward", "layer_norm_backward", "softmax_backward", "batch_norm_sums"])
def test_results(name: str, columns: int) -> None:
    """From no full tile to several steps a block, so that slots are used again."""
    backward, module = BACKWARD[name], staged(name, columns)
    for rows, sms in ((1, 4), (45, 1), (333, 2)):
        inputs = backward.inputs(rows, columns, BF16, seed=rows)
        backward.check(interpreter.run(module, name, inputs, order="random", sms=sms), inputs)


def test_tiles_of_one_column() -> None:
    """Vectors run along rows, of which a slot has one element each: they are contiguous there."""
    specs = (mf.TensorSpec((3, 7, 2, 2), "float32"), mf.TensorSpec((2, 3, 7, 2), "float32"))

    def function(x: Any, y: Any) -> Any:
        return mf.minimum(mf.permute_dims(x, (3, 0, 1, 2)), y), mf.max(x, axis=3)

    compiled = mf.fuse(function, target="sm_90a", grid_reduction="grid_sync").lower(*specs).compile()
    x, y = (np.random.default_rng(0).standard_normal(spec.shape).astype(np.float32) for spec in specs)
    found = interpreter.run(compiled.module_at("gpu"), "function", [x, y], order="random")
    for one, expected in zip(found, (np.minimum(x.transpose(3, 0, 1, 2), y), x.max(axis=3)), strict=True):
        np.testing.assert_array_equal(one, expected)


def mutated(pattern: str, replacement: str, columns: int = 384) -> ir.Module:
    text, count = re.subn(pattern, replacement, str(staged(NAME, columns)), count=1)
    assert count == 1, pattern
    return parse(text)


SHARED_ROW = 1600
"""Columns of rows of several warps each, three tiles of which are under way."""
ROW = 4096
"""Columns of a tile of one row, of which two blocks share an SM."""
FEW, MANY = 2 * FEW_TILES, 2 * FEW_TILES + 1
"""Rows of two blocks that load one tile ahead, and of two that load two."""


@pytest.mark.parametrize("name", ["rms_norm_backward", "layer_norm_backward"])
def test_blocks_with_few_tiles_load_one_ahead(name: str) -> None:
    backward, module = BACKWARD[name], staged(name, ROW)
    assert "wait.group 1" in str(module)
    for rows, sms in ((1, 4), (FEW, 1), (MANY, 1)):
        inputs = backward.inputs(rows, ROW, BF16, seed=rows)
        backward.check(interpreter.run(module, name, inputs, order="random", sms=sms), inputs)


@pytest.mark.parametrize(("rows", "pending"), [(FEW, 1), (MANY, 2)])
def test_either_wait_leaves_no_group_more(rows: int, pending: int) -> None:
    inputs = BACKWARD[NAME].inputs(rows, ROW, BF16)
    module = mutated(rf"nvvm.cp.async.wait.group {pending}", f"nvvm.cp.async.wait.group {pending + 1}", ROW)
    with pytest.raises(InterpreterError, match="read of memory that was never written"):
        interpreter.run(module, NAME, inputs, sms=1)


@pytest.mark.parametrize("rows", [FEW, MANY])
def test_a_copy_into_the_other_mode_s_slot_is_noticed(rows: int) -> None:
    """With few tiles the slot behind the one in work is free, otherwise that before it; here it is reversed."""
    backward = BACKWARD[NAME]
    inputs = backward.inputs(rows, ROW, BF16)
    (before,) = re.findall(r"(%\d+) = arith.select %\d+, %c2\w*, %\d+", str(staged(NAME, ROW)))
    broken = mutated(rf"(arith.select %\w+), (%\w+), {before} :", rf"\1, {before}, \2 :", ROW)
    with pytest.raises((AssertionError, InterpreterError)):
        backward.check(interpreter.run(broken, NAME, inputs, sms=1), inputs)


def test_a_wait_that_leaves_one_group_more_reads_what_was_never_written() -> None:
    inputs = BACKWARD[NAME].inputs(333, SHARED_ROW, BF16)
    module = mutated(r"nvvm.cp.async.wait.group 2", "nvvm.cp.async.wait.group 3", SHARED_ROW)
    with pytest.raises(InterpreterError, match="read of memory that was never written"):
        interpreter.run(module, NAME, inputs, sms=1)


def test_a_copy_into_the_slot_in_work_is_noticed() -> None:
    """The slot after the one in work holds the next tile: its copy is lost."""
    backward = BACKWARD[NAME]
    inputs = backward.inputs(333, SHARED_ROW, BF16)
    text = str(staged(NAME, SHARED_ROW))
    (slot,) = re.findall(r"arith.cmpi eq, (%\w+), %c2\w* : index", text)
    loop = text.index("cp.async.wait.group 2")
    *_, free = re.findall(r"memref.subview %\w+\[(%\w+), 0, 0\]", text[:loop])
    broken = text[:loop].replace(f"[{free}, 0, 0]", f"[{slot}, 0, 0]") + text[loop:]
    assert broken != text
    with pytest.raises((AssertionError, InterpreterError)):
        backward.check(interpreter.run(parse(broken), NAME, inputs, sms=1), inputs)


def test_row_values_that_come_with_another_tile_are_noticed() -> None:
    """Where no warp waits for another they are copied with their tile; here each step takes those of the first slot."""
    backward = BACKWARD[NAME]
    inputs = backward.inputs(333, 384, BF16)
    copies = re.findall(r"memref.subview (%\w+)\[(%\w+), 0, 0\] \[1, 8, 16\]", str(staged(NAME, 384)))
    broken = mutated(rf"(memref.subview {copies[-1][0]})\[{copies[-1][1]}, 0, 0\]", r"\1[%c0, 0, 0]")
    with pytest.raises((AssertionError, InterpreterError)):
        backward.check(interpreter.run(broken, NAME, inputs, sms=1), inputs)


def test_rows_over_clusters_are_for_the_gpu_stage() -> None:
    """A tile program has one thread of control for all blocks of a cluster, each of which has a ring of its own."""
    backward = BACKWARD["layer_norm_backward"]
    inputs = backward.inputs(2, 20480, BF16)
    with pytest.raises(InterpreterError, match="holds one block's part of .*: run the gpu stage"):
        interpreter.run(staged(backward.name, 20480), backward.name, inputs, sms=2)
