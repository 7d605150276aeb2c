"""Races in shared and global memory, and what orders accesses."""

from __future__ import annotations

import numpy as np
import pytest

from mlirfuse.errors import InterpreterError
from tests.support.kernels import SHARED

TYPE = f"memref<64xf32, {SHARED}>"
WORKGROUP = f"%s : {TYPE}"
EXCHANGE = f"""
  %c63 = arith.constant 63 : index
  %other = arith.subi %c63, %t : index
  %v = memref.load %in0[%t] : memref<64xf32>
  memref.store %v, %s[%t] : {TYPE}
  {{sync}}
  %r = memref.load %s[%other] : {TYPE}
  memref.store %r, %out0[%t] : memref<64xf32>"""


def arrays() -> tuple[np.ndarray, np.ndarray]:
    return np.arange(64, dtype=np.float32), np.zeros(64, np.float32)


def test_a_barrier_orders_write_and_read(run_threads):
    x, out = arrays()
    run_threads(EXCHANGE.format(sync="gpu.barrier"), [x], [out], threads=64, workgroup=WORKGROUP)
    np.testing.assert_array_equal(out, x[::-1])


def test_no_barrier_between_write_and_read(run_threads):
    x, out = arrays()
    with pytest.raises(InterpreterError, match=r"memref.load: shared-memory race with a write by block 0, thread 63"):
        run_threads(EXCHANGE.format(sync=""), [x], [out], threads=64, workgroup=WORKGROUP)


def test_a_shuffle_orders_nothing(run_threads):
    x, out = arrays()
    sync = "%o = arith.constant 1 : i32\n%w = arith.constant 32 : i32\n%u, %p = gpu.shuffle xor %v, %o, %w : f32"
    with pytest.raises(InterpreterError, match="shared-memory race"):
        run_threads(EXCHANGE.format(sync=sync), [x], [out], threads=64, workgroup=WORKGROUP)


WARPS = "%all = arith.constant -1 : i32\nnvvm.bar.warp.sync %all : i32"


def test_a_barrier_of_a_warp_orders_no_other_warp(run_threads):
    """Of 64 threads, the first warp reads what the second has written; a warp's own elements it may read."""
    x, out = arrays()
    with pytest.raises(InterpreterError, match=r"memref.load: shared-memory race with a write by block 0, thread 63"):
        run_threads(EXCHANGE.format(sync=WARPS), [x], [out], threads=64, workgroup=WORKGROUP)
    within = EXCHANGE.replace("arith.subi %c63, %t", "arith.xori %t, %c31").replace(
        "%c63 = arith.constant 63", "%c31 = arith.constant 31"
    )
    run_threads(within.format(sync=WARPS), [x], [out], threads=64, workgroup=WORKGROUP)
    np.testing.assert_array_equal(out, x[np.arange(64) ^ 31])


def test_what_lanes_of_a_warp_have_read_may_be_written_behind_a_barrier_of_the_warp(run_threads):
    """All lanes of a warp read one element, which one of them then writes."""
    x, out = arrays()
    body = f"""
      %first = arith.andi %t, %c32 : index
      %v = memref.load %in0[%t] : memref<64xf32>
      memref.store %v, %s[%t] : {TYPE}
      {WARPS}
      %r = memref.load %s[%first] : {TYPE}
      {{sync}}
      memref.store %v, %s[%t] : {TYPE}
      memref.store %r, %out0[%t] : memref<64xf32>"""
    again = "nvvm.bar.warp.sync %all : i32"
    run_threads(body.format(sync=again), [x], [out], threads=64, workgroup=WORKGROUP)
    np.testing.assert_array_equal(out, x[np.arange(64) & 32])
    with pytest.raises(InterpreterError, match="race with a read by block 0"):
        run_threads(body.format(sync=""), [x], [out], threads=64, workgroup=WORKGROUP)


def test_a_read_may_not_be_overwritten_before_a_barrier(run_threads):
    x, out = arrays()
    overwrite = f"{{sync}}\nmemref.store %v, %s[%t] : {TYPE}"
    body = EXCHANGE.format(sync="gpu.barrier") + "\n" + overwrite
    run_threads(body.format(sync="gpu.barrier"), [x], [out], threads=64, workgroup=WORKGROUP)
    with pytest.raises(InterpreterError, match=r"memref.store: shared-memory race with a read"):
        run_threads(body.format(sync=""), [x], [out], threads=64, workgroup=WORKGROUP)


def test_a_thread_may_read_what_it_wrote(run_threads):
    x, out = arrays()
    body = EXCHANGE.format(sync="").replace("%s[%other]", "%s[%t]")
    run_threads(body, [x], [out], threads=64, workgroup=WORKGROUP)
    np.testing.assert_array_equal(out, x)


def test_two_threads_write_one_element_at_once(run_threads):
    x, _ = arrays()
    body = f"""
      %half = arith.divui %t, %c2 : index
      %v = memref.load %in0[%t] : memref<64xf32>
      memref.store %v, %s[%half] : {TYPE}"""
    with pytest.raises(InterpreterError, match=r"race with a write by block 0, thread \d+"):
        run_threads(body, [x], [], threads=64, workgroup=WORKGROUP)


def test_all_threads_write_one_element(run_threads):
    body = f"%v = arith.constant 1.0 : f32\nmemref.store %v, %s[%c0] : {TYPE}"
    with pytest.raises(InterpreterError, match="shared-memory race"):
        run_threads(body, [], [], threads=64, workgroup=WORKGROUP)
    one = f"%is = arith.cmpi eq, %t, %c0 : index\nscf.if %is {{ {body.replace(chr(10), chr(10) + '  ')} }}"
    run_threads(one, [], [], threads=64, workgroup=WORKGROUP)


@pytest.mark.parametrize("order", ["launch", "reversed", "random"])
def test_two_blocks_write_one_element(run_threads, order):
    x, out = arrays()
    body = "%v = memref.load %in0[%t] : memref<64xf32>\nmemref.store %v, %out0[{row}] : memref<{size}xf32>"
    with pytest.raises(InterpreterError, match="global race with a write by block"):
        run_threads(body.format(row="%t", size=64), [x], [out], threads=64, blocks=2, order=order)


def test_two_blocks_write_their_own_elements(run_threads):
    x, out = arrays()[0], np.zeros((2, 64), np.float32)
    body = "%v = memref.load %in0[%t] : memref<64xf32>\nmemref.store %v, %out0[%b, %t] : memref<2x64xf32>"
    run_threads(body, [x], [out], threads=64, blocks=2)
    np.testing.assert_array_equal(out, np.stack([x, x]))


def test_a_block_reads_what_another_may_be_writing(run_threads):
    x, out, workspace = arrays()[0], np.zeros((2, 64), np.float32), np.zeros((2, 64), np.float32)
    body = """
      %v = memref.load %in0[%t] : memref<64xf32>
      memref.store %v, %out1[%b, %t] : memref<2x64xf32>
      gpu.barrier
      %r = memref.load %out1[{block}, %t] : memref<2x64xf32>
      memref.store %r, %out0[%b, %t] : memref<2x64xf32>"""
    run_threads(body.format(block="%b"), [x], [out, workspace], threads=64, blocks=2)
    np.testing.assert_array_equal(out, np.stack([x, x]))
    with pytest.raises(InterpreterError, match="global race with a write by block 0"):
        run_threads(body.format(block="%c0"), [x], [out, workspace], threads=64, blocks=2)


def test_races_within_wider_elements_than_the_first_access(run_threads):
    """The shadow follows the smallest element: half of an f32 overwritten through an f16 view is seen."""
    body = """
      %bytes = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %wide = memref.view %bytes[%c0][] : memref<?xi8, #gpu.address_space<workgroup>>
        to memref<64xf32, #gpu.address_space<workgroup>>
      %narrow = memref.view %bytes[%c0][] : memref<?xi8, #gpu.address_space<workgroup>>
        to memref<128xf16, #gpu.address_space<workgroup>>
      %f = arith.constant 1.0 : f32
      %h = arith.constant 1.0 : f16
      memref.store %f, %wide[%t] : memref<64xf32, #gpu.address_space<workgroup>>
      memref.store %h, %narrow[{index}] : memref<128xf16, #gpu.address_space<workgroup>>"""
    double = "%d = arith.muli %t, %c2 : index\n"
    run_threads(double + body.format(index="%d"), [], [], threads=64)
    with pytest.raises(InterpreterError, match="shared-memory race"):
        run_threads(double + body.format(index="%t"), [], [], threads=64)
