"""`fuse.cluster_send`: what a cluster exchanges step by step at mbarriers, and every way to get it wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.errors import InterpreterError
from tests.support.forms import fastest
from tests.support.harnesses.compiling import module_at
from tests.support.kernels import SHARED
from tests.support.reductions.numerics import DTYPES

ROUNDS = 5
BARRIERS = f"memref<2xi64, {SHARED}>"
WORKGROUP = f"%partials : memref<4xf32, {SHARED}>, %bars : {BARRIERS}"
INIT = f'"fuse.mbarrier_init"(%bars) {{arrivals = 1 : i64}} : ({BARRIERS}) -> ()'
MEET = '"fuse.cluster_barrier"() : () -> ()'
EXPECT = f'"fuse.mbarrier_expect"(%bars, %number) {{bytes = 8 : i64}} : ({BARRIERS}, index) -> ()'
WAIT = f'"fuse.mbarrier_wait"(%bars, %number, %parity) {{cluster}} : ({BARRIERS}, index, i32) -> ()'

EXCHANGE = f"""
  %rank = gpu.cluster_block_id x
  {INIT}
  {MEET}
  %c5 = arith.constant {ROUNDS} : index
  %first = arith.cmpi eq, %t, %c0 : index
  scf.for %i = %c0 to %c5 step %c1 {{
    %number = arith.remui %i, %c2 : index
    %half = arith.divui %i, %c2 : index
    %phase = arith.remui %half, %c2 : index
    %parity = arith.index_cast %phase : index to i32
    scf.if %first {{ {EXPECT} }}
    %value = memref.load %in0[%i, %b] : memref<{ROUNDS}x4xf32>
    %copy = arith.muli %number, %c2 : index
    %place = arith.addi %copy, %rank : index
    "fuse.cluster_send"(%value, %partials, %place, %t, %bars, %number) {{peers = 2 : i64}}
        : (f32, memref<4xf32, {SHARED}>, index, index, {BARRIERS}, index) -> ()
    {WAIT}
    %next = arith.addi %copy, %c1 : index
    %a = memref.load %partials[%copy] : memref<4xf32, {SHARED}>
    %z = memref.load %partials[%next] : memref<4xf32, {SHARED}>
    %sum = arith.addf %a, %z : f32
    scf.if %first {{ memref.store %sum, %out0[%i, %b] : memref<{ROUNDS}x4xf32> }}
  }}"""
"""Two clusters of two blocks; every block adds up what both sent."""


def exchange(run_threads: Any, body: str, order: str = "launch", **options: Any) -> None:
    values = np.arange(4 * ROUNDS, dtype=np.float32).reshape(ROUNDS, 4)
    sums = np.zeros_like(values)
    run_threads(body, [values], [sums], blocks=4, cluster=2, workgroup=WORKGROUP, order=order, **options)
    pairs = values[:, ::2] + values[:, 1::2]
    assert_array_equal(sums, np.repeat(pairs, 2, axis=1))


def replaced(old: str, new: str) -> str:
    assert EXCHANGE.count(old) == 1, old
    return EXCHANGE.replace(old, new)


@pytest.mark.parametrize("order", ["launch", "reversed", "random"])
@pytest.mark.parametrize("threads", [32, 96])
def test_rounds(run_threads, threads, order):
    exchange(run_threads, EXCHANGE, order, threads=threads)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (WAIT, "", "race with a write by block|read of memory that was never written"),
        (WAIT, WAIT.replace(" {cluster}", ""), "does not acquire what other blocks have sent"),
        (EXPECT, EXPECT.replace("bytes = 8", "bytes = 12"), "(?s)deadlock: .*lacks 0 arrivals, 4 bytes"),
        (EXPECT, "", "(?s)deadlock: .*lacks 1 arrivals"),
        (MEET, "gpu.barrier", "has not allocated|may not have started|was never initialised"),
        (INIT, "", "was never initialised"),
        ("%copy = arith.muli %number, %c2", "%copy = arith.muli %c0, %c2", "race with a read by block"),
        ("%place = arith.addi %copy, %rank", "%place = arith.addi %copy, %c0", "race with a write by block"),
        ("%place = arith.addi %copy, %rank", "%place = arith.addi %c3, %rank", "out-of-bounds"),
    ],
    ids=["wait", "scope", "bytes", "expect", "barrier", "init", "alternate", "slot", "bounds"],
)
@pytest.mark.parametrize("order", ["launch", "reversed"])
def test_mistakes_are_noticed(run_threads, old, new, message, order):
    with pytest.raises(InterpreterError, match=message):
        exchange(run_threads, replaced(old, new), order)


def test_a_wait_for_the_other_phase_reads_too_early(run_threads):
    """A phase that is over lets it pass at once."""
    swapped = "%other = arith.subi %c1, %phase : index\n    %parity = arith.index_cast %other : index to i32"
    with pytest.raises(InterpreterError, match="race with a write by block|never written"):
        exchange(run_threads, replaced("%parity = arith.index_cast %phase : index to i32", swapped))


def test_one_mbarrier_for_all_rounds_gets_bytes_of_the_next(run_threads):
    """A block that is ahead sends in a step that its peer has not waited for yet."""
    body = replaced("%number = arith.remui %i, %c2 : index", "%number = arith.remui %c0, %c2 : index")
    with pytest.raises((InterpreterError, AssertionError)):
        exchange(run_threads, body)


def standardised(x):
    """A mean and a variance that are exchanged jointly, and a sum over rows, which needs a persistent loop."""
    h = x.astype(mf.float32)
    centred = h - mf.mean(h, axis=-1, keepdims=True)
    y = centred * mf.rsqrt(mf.mean(centred**2, axis=-1, keepdims=True) + 1e-5)
    return y, mf.sum(y, axis=0)


def softmax(x):
    """A maximum and a sum of exponentials likewise."""
    h = x.astype(mf.float32)
    e = mf.exp(h - mf.max(h, axis=-1, keepdims=True))
    y = e / mf.sum(e, axis=-1, keepdims=True)
    return y, mf.sum(y, axis=0)


def exact(name: str, h: np.ndarray) -> np.ndarray:
    if name == "standardised":
        return (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + 1e-5)
    e = np.exp(h - h.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("columns", [16384, 20488])
@pytest.mark.parametrize("function", [standardised, softmax])
def test_joint_reductions_merge_the_warps_of_all_blocks(function, columns):
    """Whole rows, and rows of which some warps hold padding."""
    specs = [mf.TensorSpec(("rows", columns), DTYPES["bfloat16"])]
    schedule = fastest(function, specs, lambda s: s.layout.cluster == 2, grid_reduction="grid_sync")
    module = module_at("gpu", function, specs, schedule)
    assert "fuse.cluster_send" in str(module)
    x = np.random.default_rng(0).normal(3, 1, (21, columns)).astype(DTYPES["bfloat16"])
    y, total = interpreter.run(module, function.__name__, [x], sms=8, order="random", seed=1)
    expected = exact(function.__name__, x.astype(np.float64))
    assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    assert_allclose(total, expected.sum(0), rtol=1e-5, atol=1e-5)
