"""Rows side by side, each of several warps, which do not wait for each other in a persistent loop."""

from __future__ import annotations

import numpy as np
import pytest

from mlirfuse import interpreter
from mlirfuse.errors import InterpreterError
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
