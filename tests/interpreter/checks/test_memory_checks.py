"""Bounds, alignment, reads of unwritten memory: each check finds its bug and leaves right code alone."""

from __future__ import annotations

import numpy as np
import pytest

from mlirfuse import interpreter
from mlirfuse.errors import InterpreterError
from tests.support.kernels import SHARED, parse

COPY = """
  %i = arith.addi %t, %c{shift} : index
  %v = memref.load %in0[%i] : memref<33xf32>
  memref.store %v, %out0[%t] : memref<32xf32>"""


def arrays(count: int = 33) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(count, dtype=np.float32), np.zeros(32, np.float32)


def test_an_access_in_bounds_is_left_alone(run_threads):
    x, out = arrays()
    run_threads(COPY.format(shift=1), [x], [out])
    np.testing.assert_array_equal(out, x[1:])


def test_a_load_out_of_bounds_names_op_line_block_thread_and_index(run_threads):
    x, out = arrays()
    with pytest.raises(InterpreterError) as caught:
        run_threads(COPY.format(shift=2), [x], [out], blocks=1)
    text = str(caught.value)
    assert "memref.load: out-of-bounds access" in text
    assert "index (33)" in text
    assert "block 0, thread 31" in text
    assert caught.value.where is not None
    assert caught.value.where.startswith("-:")


def test_a_vector_access_that_ends_out_of_bounds(run_threads):
    x, out = np.arange(36, dtype=np.float32), np.zeros(32, np.float32)
    body = """
      %v = vector.load %in0[%t] : memref<36xf32>, vector<8xf32>
      %e = vector.extract %v[7] : f32 from vector<8xf32>
      memref.store %e, %out0[%t] : memref<32xf32>"""
    with pytest.raises(InterpreterError, match=r"out-of-bounds access: index \(36\).*thread 29"):
        run_threads(body, [x], [out])


def test_a_masked_thread_may_point_anywhere(run_threads):
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    body = """
      %in = arith.cmpi ult, %t, %c8 : index
      scf.if %in {
        %v = memref.load %in0[%t] : memref<8xf32>
        memref.store %v, %out0[%t] : memref<8xf32>
      }"""
    run_threads(body, [x], [out])
    np.testing.assert_array_equal(out, x)


def test_bounds_are_checked_even_without_checks(run_threads):
    x, out = arrays()
    with pytest.raises(InterpreterError, match="out-of-bounds"):
        run_threads(COPY.format(shift=2), [x], [out], checks=False)


def test_a_view_out_of_bounds(run_threads):
    out = np.zeros(32, np.float32)
    body = """
      %v = memref.subview %in0[%c8] [32] [1] : memref<33xf32> to memref<32xf32, strided<[1], offset: ?>>
      %e = memref.load %v[%t] : memref<32xf32, strided<[1], offset: ?>>
      memref.store %e, %out0[%t] : memref<32xf32>"""
    with pytest.raises(InterpreterError, match=r"memref.subview: out-of-bounds view"):
        run_threads(body, [arrays()[0]], [out])


VECTOR_COPY = """
  %i = arith.muli %t, %c4 : index
  %j = arith.addi %i, %c{shift} : index
  %v = vector.load %in0[%j] {{alignment = 16 : i64}} : memref<136xf32>, vector<4xf32>
  %e = vector.extract %v[0] : f32 from vector<4xf32>
  memref.store %e, %out0[%t] : memref<32xf32>"""


@pytest.mark.parametrize("shift", [0, 4])
def test_an_aligned_vector_access_is_left_alone(run_threads, shift):
    x, out = arrays(136)
    run_threads(VECTOR_COPY.format(shift=shift), [x], [out])
    np.testing.assert_array_equal(out, x[shift::4][:32])


def test_a_misaligned_index(run_threads):
    x, out = arrays(136)
    with pytest.raises(InterpreterError, match=r"vector.load: misaligned access: .*index \(2\).*block 0, thread 0"):
        run_threads(VECTOR_COPY.format(shift=2), [x], [out])


def test_a_base_that_is_less_aligned_than_the_access_claims(run_threads):
    x, out = arrays(136)
    with pytest.raises(InterpreterError, match="base is 8-byte aligned"):
        run_threads(VECTOR_COPY.format(shift=0), [x], [out], align=8)


def test_shared_memory_is_aligned_as_it_says(run_threads):
    body = """
      %i = arith.muli %t, %c4 : index
      %v = arith.constant dense<1.0> : vector<4xf32>
      vector.store %v, %s[%i] {{alignment = 16 : i64}} : {type}, vector<4xf32>"""
    type_ = f"memref<128xf32, {SHARED}>"
    run_threads(body.format(type=type_), [], [], workgroup=f"%s : {type_} {{llvm.align = 16 : i64}}")
    with pytest.raises(InterpreterError, match="misaligned"):
        run_threads(body.format(type=type_), [], [], workgroup=f"%s : {type_}")


def test_a_read_of_shared_memory_that_nobody_wrote(run_threads):
    out = np.zeros(32, np.float32)
    body = """
      %low = arith.cmpi ult, %t, %c{limit} : index
      %one = arith.constant 1.0 : f32
      scf.if %low {{ memref.store %one, %s[%t] : {type} }}
      gpu.barrier
      %v = memref.load %s[%t] : {type}
      memref.store %v, %out0[%t] : memref<32xf32>"""
    type_ = f"memref<32xf32, {SHARED}>"
    run_threads(body.format(limit=32, type=type_), [], [out], workgroup=f"%s : {type_}")
    with pytest.raises(InterpreterError, match=r"never written: index \(8\).*thread 8"):
        run_threads(body.format(limit=8, type=type_), [], [out], workgroup=f"%s : {type_}")


def test_a_read_of_an_output_before_it_is_written(run_threads):
    out = np.zeros(32, np.float32)
    body = """
      %v = memref.load %out0[%t] : memref<32xf32>
      memref.store %v, %out0[%t] : memref<32xf32>"""
    with pytest.raises(InterpreterError, match="never written"):
        run_threads(body, [], [out])


def test_a_store_to_an_input(run_threads):
    x, _ = arrays(32)
    with pytest.raises(InterpreterError, match="store to an input"):
        run_threads("%v = arith.constant 0.0 : f32\nmemref.store %v, %in0[%t] : memref<32xf32>", [x], [])


def test_a_result_that_is_not_written_in_full(load):
    text = str(load("layer_norm")).replace("%c1000 : index\n", "%c8 : index\n", 1)
    with pytest.raises(InterpreterError, match=r"never wrote element \(0, 8\) of its result 0"):
        interpreter.run(parse(text), "layer_norm", [np.ones((2, 1000), np.float16), np.ones(1000, np.float16)])
