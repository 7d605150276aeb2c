"""Barriers and shuffles in divergent flow, clusters, deadlock."""

from __future__ import annotations

import numpy as np
import pytest

from mlirfuse import interpreter
from mlirfuse.errors import InterpreterError
from tests.support.kernels import SHARED, parse

BARRIER = "gpu.barrier"
CLUSTER_BARRIER = '"fuse.cluster_barrier"() : () -> ()'


@pytest.mark.parametrize("barrier", [BARRIER, CLUSTER_BARRIER])
def test_a_barrier_that_some_threads_skip(run_threads, barrier):
    body = "%low = arith.cmpi ult, %t, %c{limit} : index\nscf.if %low {{ {barrier} }}"
    run_threads(body.format(limit=32, barrier=barrier), [], [])
    with pytest.raises(InterpreterError, match=r"barrier in divergent flow: 24 of 32 threads.*block 0, thread 8"):
        run_threads(body.format(limit=8, barrier=barrier), [], [])


def test_a_barrier_in_a_loop_that_threads_leave_at_different_times(run_threads):
    with pytest.raises(InterpreterError, match="barrier in divergent flow"):
        run_threads("scf.for %i = %c0 to %t step %c1 { gpu.barrier }", [], [])


def test_a_barrier_under_a_condition_that_all_threads_share(run_threads):
    run_threads("%even = arith.cmpi eq, %b, %c0 : index\nscf.if %even { gpu.barrier }", [], [], blocks=2)


SHUFFLE = """
  %v = arith.index_cast %t : index to i32
  %o = arith.constant 1 : i32
  %w = arith.constant 32 : i32
  %in = arith.cmpi ult, %t, %c{limit} : index
  scf.if %in {{ %s, %p = gpu.shuffle {mode} %v, %o, %w : i32 }}"""


def test_a_shuffle_that_part_of_a_warp_skips(run_threads):
    run_threads(SHUFFLE.format(limit=32, mode="xor"), [], [], threads=64)
    with pytest.raises(InterpreterError, match=r"shuffle in divergent flow.*thread 8"):
        run_threads(SHUFFLE.format(limit=8, mode="xor"), [], [], threads=64)


def test_a_shuffle_from_a_thread_that_does_not_exist(run_threads):
    with pytest.raises(InterpreterError, match="shuffle reads thread 20, which does not exist"):
        run_threads(SHUFFLE.format(limit=32, mode="down"), [], [], threads=20)


CLUSTER = f"""
  %rank = gpu.cluster_block_id x
  %one = arith.constant 1.0 : f32
  %peer = arith.subi %c1, %rank : index
  {{before}}
  %first = arith.cmpi eq, %t, %c0 : index
  scf.if %first {{{{
    "fuse.cluster_store"(%one, %box, %c0, %{{target}}) : (f32, memref<1xf32, {SHARED}>, index, index) -> ()
  }}}}
  {{after}}"""
BOX = f"%box : memref<1xf32, {SHARED}>"


@pytest.mark.parametrize("order", ["launch", "reversed", "random"])
def test_a_cluster_store_between_barriers(run_threads, order):
    body = CLUSTER.format(before=CLUSTER_BARRIER, target="peer", after=CLUSTER_BARRIER)
    run_threads(body, [], [], blocks=4, cluster=2, workgroup=BOX, order=order)


def test_a_cluster_store_before_the_peer_is_known_to_run(run_threads):
    body = CLUSTER.format(before="", target="peer", after=CLUSTER_BARRIER)
    with pytest.raises(InterpreterError, match=r"fuse.cluster_store: block 1, .* may not have started"):
        run_threads(body, [], [], blocks=2, cluster=2, workgroup=BOX)


@pytest.mark.parametrize("order", ["launch", "reversed"])
def test_a_cluster_store_to_a_block_that_does_not_wait_for_it(run_threads, order):
    body = CLUSTER.format(before=CLUSTER_BARRIER, target="peer", after="")
    with pytest.raises(InterpreterError, match=r"has ended|ends while block"):
        run_threads(body, [], [], blocks=2, cluster=2, workgroup=BOX, order=order)


def test_two_blocks_store_to_one_peer(run_threads):
    body = CLUSTER.format(before=CLUSTER_BARRIER, target="c0", after=CLUSTER_BARRIER)
    with pytest.raises(InterpreterError, match="shared-memory race with a write by block 1, thread 0"):
        run_threads(body, [], [], blocks=2, cluster=2, workgroup=BOX)


def test_a_block_barrier_does_not_order_a_peers_store(run_threads):
    read = f"gpu.barrier\n%r = memref.load %box[%c0] : memref<1xf32, {SHARED}>"
    body = CLUSTER.format(before=CLUSTER_BARRIER, target="peer", after=read + "\n" + CLUSTER_BARRIER)
    with pytest.raises(
        InterpreterError, match="memref.load: (shared-memory race with a write by|read of memory)".replace(".", r"\.")
    ):
        run_threads(body, [], [], blocks=2, cluster=2, workgroup=BOX, order="random", seed=3)


def test_a_rank_outside_of_the_cluster(run_threads):
    body = CLUSTER.format(before=CLUSTER_BARRIER, target="c3", after=CLUSTER_BARRIER)
    with pytest.raises(InterpreterError, match="rank 3 in a cluster of 2 blocks"):
        run_threads(body, [], [], blocks=2, cluster=2, workgroup=BOX)


@pytest.mark.parametrize("order", ["launch", "reversed", "random"])
def test_deadlock_lists_who_waits_for_what(run_threads, order):
    body = (
        f"%rank = gpu.cluster_block_id x\n%is = arith.cmpi ne, %rank, %c2 : index\nscf.if %is {{ {CLUSTER_BARRIER} }}"
    )
    with pytest.raises(InterpreterError) as caught:
        run_threads(body, [], [], blocks=4, cluster=4, order=order)
    text = str(caught.value)
    assert "deadlock: none of the 3 resident blocks can continue" in text
    for block in (0, 1, 3):
        assert f"block {block} waits for fuse.cluster_barrier at -:" in text
    assert "(3 of 4 blocks arrived)" in text


def test_a_cluster_needs_all_of_its_blocks_resident(run_threads):
    run_threads(CLUSTER_BARRIER, [], [], blocks=4, cluster=2, resident=2)
    with pytest.raises(InterpreterError, match="cluster of 2 blocks cannot be dispatched with 1 resident"):
        run_threads(CLUSTER_BARRIER, [], [], blocks=4, cluster=2, resident=1)


def test_a_grid_that_splits_a_cluster(run_threads):
    with pytest.raises(InterpreterError, match="grid of 3 blocks is no multiple of its cluster of 2"):
        run_threads("", [], [], blocks=3, cluster=2)


def test_a_kernel_without_a_grid():
    module = parse("gpu.module @k { gpu.func @k() kernel { gpu.return } }")
    with pytest.raises(InterpreterError, match=r"@k has no fuse.grid"):
        interpreter.run_kernel(module, "k", [], [])


def test_reads_by_several_blocks_are_no_race(run_threads):
    out = np.zeros((3, 32), np.float32)
    body = "%v = memref.load %in0[%t] : memref<32xf32>\nmemref.store %v, %out0[%b, %t] : memref<3x32xf32>"
    run_threads(body, [np.arange(32, dtype=np.float32)], [out], blocks=3, order="random")
    np.testing.assert_array_equal(out, np.tile(np.arange(32), (3, 1)))


def test_an_error_says_how_to_reproduce_it(run_threads):
    body = "%low = arith.cmpi ult, %t, %c8 : index\nscf.if %low { gpu.barrier }"
    with pytest.raises(InterpreterError, match="order='random', seed=9, resident=2"):
        run_threads(body, [], [], blocks=4, order="random", seed=9, resident=2)
    with pytest.raises(InterpreterError) as caught:
        run_threads(body, [], [])
    assert caught.value.hint is None
