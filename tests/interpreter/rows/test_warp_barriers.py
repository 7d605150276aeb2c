"""Rows side by side, each of several warps, which do not wait for each other in a persistent loop."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.errors import InterpreterError
from tests.support.harnesses.compiling import module_at
from tests.support.kernels import parse
from tests.support.reductions.backward import BACKWARD
from tests.support.reductions.numerics import DTYPES
from tests.support.reductions.persistent_loop_cases import ORDERS, SIDE_BY_SIDE, check_mutants, looping
from tests.support.reductions.persistent_loop_cases import SIDE_BY_SIDE_COLUMNS as COLUMNS


@pytest.mark.parametrize("name", ["rms_norm_backward", "layer_norm_backward"])
def test_results(name: str) -> None:
    """No tile, a ragged one, and several a block."""
    backward = BACKWARD[name]
    module = looping(backward, "gpu", DTYPES["bfloat16"], COLUMNS, SIDE_BY_SIDE)
    assert "number_of_threads = %c64_i32" in str(module)
    for rows, order in zip((0, 1, 21), ORDERS, strict=True):
        inputs = backward.inputs(rows, COLUMNS, DTYPES["bfloat16"], seed=rows)
        backward.check(interpreter.run(module, name, inputs, sms=2, **order), inputs)


def test_a_missing_barrier_is_noticed() -> None:
    backward = BACKWARD["rms_norm_backward"]
    module = looping(backward, "gpu", DTYPES["bfloat16"], COLUMNS, SIDE_BY_SIDE)
    rows = (9, 41)  # blocks with one tile, and with more
    cases = [backward.inputs(n, COLUMNS, DTYPES["bfloat16"], seed=9) for n in rows]
    check_mutants(module, backward, cases, ["drop-numbered-barrier"])


def within_groups(x: Any) -> tuple[Any, Any]:
    """Statistics of two warps, then of four, then of all that blocks see."""
    centered = x - mf.mean(x, axis=2, keepdims=True)
    spread = mf.sum(centered * centered, axis=(1, 2), keepdims=True) + 1
    scaled = centered / spread
    return scaled, mf.sum(scaled * scaled)


def test_groups_within_groups() -> None:
    """Four rows of four warps each, of which two and two share a part of a row."""
    module = module_at("gpu", within_groups, [mf.TensorSpec((None, 8, 512), mf.bfloat16)])
    assert set(re.findall(r"number_of_threads = %c(\d+)_i32", str(module))) == {"128"}
    x = np.random.default_rng(3).standard_normal((21, 8, 512)).astype(DTYPES["bfloat16"])
    scaled, total = interpreter.run(module, "within_groups", [x], sms=2)
    expected = x.astype(np.float64) - x.astype(np.float64).mean(2, keepdims=True)
    expected /= (expected**2).sum((1, 2), keepdims=True) + 1
    np.testing.assert_allclose(scaled.astype(np.float64), expected, rtol=1e-2, atol=1e-6)
    np.testing.assert_allclose(float(total), (expected**2).sum(), rtol=1e-2)


KERNEL = """
  gpu.module @k { gpu.func @k(%y: memref<128xi32>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>, fuse.grid = affine_map<() -> (1)>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : index
    %thread = gpu.thread_id x
    %warps = arith.constant WARPS : index
    %row = arith.divui %thread, %warps : index
    %number = arith.addi %row, %c1 : index
    %id = arith.index_cast %number : index to i32
    %threads = arith.constant COUNT : i32
    nvvm.barrier id = %id number_of_threads = %threads
    memref.store %id, %y[%thread] : memref<128xi32>
    gpu.return
  } }"""


def run(size: int, count: int) -> np.ndarray:
    """The number of the barrier that each thread has been at: one each `size` threads, which waits for `count`."""
    y = np.zeros(128, np.int32)
    interpreter.run_kernel(parse(KERNEL.replace("WARPS", str(size)).replace("COUNT", str(count))), "k", [], [y])
    return y


def test_numbers() -> None:
    np.testing.assert_array_equal(run(64, 64), np.repeat([1, 2], 64))


@pytest.mark.parametrize(("size", "count"), [(64, 32), (64, 128), (16, 16)])
def test_who_waits_for_others_than_come(size: int, count: int) -> None:
    with pytest.raises(InterpreterError, match="threads take part in barriers of"):
        run(size, count)


def test_barriers_of_two_kinds_of_groups() -> None:
    """Barriers of 64 and of 128 threads share the number 1."""
    second = """
    %halves = arith.constant 128 : index
    %half = arith.divui %thread, %halves : index
    %other = arith.addi %half, %c1 : index
    %other_id = arith.index_cast %other : index to i32
    %all = arith.constant 128 : i32
    nvvm.barrier id = %other_id number_of_threads = %all
    gpu.return"""
    text = KERNEL.replace("WARPS", "64").replace("COUNT", "64").replace("gpu.return", second.strip())
    with pytest.raises(InterpreterError, match="must have the same threads everywhere"):
        interpreter.run_kernel(parse(text), "k", [], [np.zeros(128, np.int32)])
