"""Tile programs: blocks of one thread over whole-tile vectors."""

from __future__ import annotations

import numpy as np
import pytest

from mlirfuse import interpreter
from mlirfuse.errors import ArgumentError, InterpreterError
from tests.support.kernels import SHARED, parse

SHIFT = """
func.func private @mean_shift_0(tensor<?x40xf16>, tensor<40xf16>) -> tensor<?x40xf16>
  attributes {fuse.launch = @mean_shift_0_kernel, fuse.result_extents = array<i64: 0, 0>}
func.func @mean_shift(%x: tensor<?x40xf16>, %w: tensor<40xf16>) -> tensor<?x40xf16> {
  %0 = call @mean_shift_0(%x, %w) : (tensor<?x40xf16>, tensor<40xf16>) -> tensor<?x40xf16>
  return %0 : tensor<?x40xf16>
}
func.func private @mean_shift_0_kernel(%x: memref<?x40xf16>, %w: memref<40xf16>, %y: memref<?x40xf16>)
    attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %n = arith.constant dense<40.0> : vector<4x1xf32>
  %m = memref.dim %x, %c0 : memref<?x40xf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 4)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 4)>(%block)
    %0 = vector.transfer_read %x[%row, %c0], %pad {in_bounds = [false, true]} : memref<?x40xf16>, vector<4x40xf16>
    %1 = arith.extf %0 : vector<4x40xf16> to vector<4x40xf32>
    %2 = vector.multi_reduction <add>, %1, %zero [1] : vector<4x40xf32> to vector<4xf32>
    %3 = vector.shape_cast %2 : vector<4xf32> to vector<4x1xf32>
    %mean = arith.divf %3, %n : vector<4x1xf32>
    %4 = vector.broadcast %mean : vector<4x1xf32> to vector<4x40xf32>
    %5 = arith.subf %1, %4 : vector<4x40xf32>
    %6 = vector.transfer_read %w[%c0], %pad {in_bounds = [true, true], permutation_map = affine_map<(d0) -> (0, d0)>}
      : memref<40xf16>, vector<1x40xf16>
    %7 = arith.extf %6 : vector<1x40xf16> to vector<1x40xf32>
    %8 = vector.broadcast %7 : vector<1x40xf32> to vector<4x40xf32>
    %9 = arith.mulf %5, %8 : vector<4x40xf32>
    %10 = arith.truncf %9 : vector<4x40xf32> to vector<4x40xf16>
    vector.transfer_write %10, %y[%row, %c0] {in_bounds = [false, true]} : vector<4x40xf16>, memref<?x40xf16>
  } {mapping = [#gpu.block<x>]}
  return
}
"""


@pytest.mark.parametrize("order", ["launch", "reversed", "random"])
@pytest.mark.parametrize("rows", [0, 1, 4, 10])
def test_a_persistent_row_program(order, rows):
    rng = np.random.default_rng(0)
    x, w = rng.random((rows, 40)).astype(np.float16), rng.random(40).astype(np.float16)
    (y,) = interpreter.run(parse(SHIFT), "mean_shift", [x, w], order=order, seed=2)
    h = x.astype(np.float32)
    np.testing.assert_allclose(y, ((h - h.mean(1, keepdims=True)) * w).astype(np.float16), rtol=2e-3, atol=1e-4)


def test_an_in_bounds_claim_that_is_false():
    text = SHIFT.replace("%pad {in_bounds = [false, true]}", "%pad {in_bounds = [true, true]}", 1)
    with pytest.raises(InterpreterError, match=r"vector.transfer_read: out-of-bounds access: index \(10, 0\)"):
        interpreter.run(parse(text), "mean_shift", [np.ones((10, 40), np.float16), np.ones(40, np.float16)])


def test_blocks_that_overlap():
    text = SHIFT.replace("(d0 * 4)", "(d0 * 3)")
    with pytest.raises(InterpreterError, match=r"vector.transfer_write: global race with a write by block 0"):
        interpreter.run(parse(text), "mean_shift", [np.ones((8, 40), np.float16), np.ones(40, np.float16)])


def test_a_program_that_skips_rows():
    text = SHIFT.replace("(d0 * 4)", "(d0 * 5)")
    with pytest.raises(InterpreterError, match=r"never wrote element \(4, 0\) of its result 0"):
        interpreter.run(parse(text), "mean_shift", [np.ones((8, 40), np.float16), np.ones(40, np.float16)])


def test_chunks_with_accumulators_and_shared_memory():
    """Rows processed in chunks by an scf.for, kept in shared memory between the persistent loops."""
    shared = f"memref<2x32xf32, {SHARED}>"
    module = parse(f"""
      func.func private @k(%x: memref<?x32xf32>, %y: memref<?x32xf32>) attributes {{fuse.kernel}} {{
        %c0 = arith.constant 0 : index
        %c8 = arith.constant 8 : index
        %c32 = arith.constant 32 : index
        %pad = arith.constant 0.0 : f32
        %zero = arith.constant dense<0.0> : vector<2xf32>
        %m = memref.dim %x, %c0 : memref<?x32xf32>
        %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 2)>()[%m]
        scf.forall (%block) in (%blocks) {{
          %row = affine.apply affine_map<(d0) -> (d0 * 2)>(%block)
          %keep = memref.alloc() : {shared}
          %sum = scf.for %k = %c0 to %c32 step %c8 iter_args(%acc = %zero) -> vector<2xf32> {{
            %v = vector.transfer_read %x[%row, %k], %pad {{in_bounds = [false, true]}}
              : memref<?x32xf32>, vector<2x8xf32>
            vector.transfer_write %v, %keep[%c0, %k] {{in_bounds = [true, true]}} : vector<2x8xf32>, {shared}
            %s = vector.multi_reduction <add>, %v, %acc [1] : vector<2x8xf32> to vector<2xf32>
            scf.yield %s : vector<2xf32>
          }}
          %c = vector.shape_cast %sum : vector<2xf32> to vector<2x1xf32>
          %b = vector.broadcast %c : vector<2x1xf32> to vector<2x8xf32>
          scf.for %k = %c0 to %c32 step %c8 {{
            %v = vector.transfer_read %keep[%c0, %k], %pad {{in_bounds = [true, true]}} : {shared}, vector<2x8xf32>
            %r = arith.divf %v, %b : vector<2x8xf32>
            vector.transfer_write %r, %y[%row, %k] {{in_bounds = [false, true]}} : vector<2x8xf32>, memref<?x32xf32>
          }}
        }} {{mapping = [#gpu.block<x>]}}
        return
      }}""")
    x = np.random.default_rng(0).random((5, 32), np.float32)
    y = np.zeros_like(x)
    interpreter.run_kernel(module, "k", [x], [y], resident=1)
    np.testing.assert_allclose(y, x / x.sum(1, keepdims=True), rtol=1e-6)


def test_moments_and_masks_on_tile_vectors():
    module = parse("""
      func.func private @k(%x: memref<3x8xf32>, %y: memref<3x2xf32>) {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c3 = arith.constant 3 : index
        %c5 = arith.constant 5 : index
        %pad = arith.constant 0.0 : f32
        %two = arith.constant dense<2.0> : vector<3x8xf32>
        %mask = vector.create_mask %c3, %c5 : vector<3x8xi1>
        %v = vector.transfer_read %x[%c0, %c0], %pad, %mask {in_bounds = [true, true]}
          : memref<3x8xf32>, vector<3x8xf32>
        %d = arith.select %mask, %v, %two : vector<3x8xi1>, vector<3x8xf32>
        %s, %q = "fuse.moments"(%d) {dims = array<i64: 1>} : (vector<3x8xf32>) -> (vector<3xf32>, vector<3xf32>)
        vector.transfer_write %s, %y[%c0, %c0] {in_bounds = [true], permutation_map = affine_map<(d0, d1) -> (d0)>}
          : vector<3xf32>, memref<3x2xf32>
        vector.transfer_write %q, %y[%c0, %c1] {in_bounds = [true], permutation_map = affine_map<(d0, d1) -> (d0)>}
          : vector<3xf32>, memref<3x2xf32>
        return
      }""")
    x, y = np.random.default_rng(0).random((3, 8), np.float32), np.zeros((3, 2), np.float32)
    interpreter.run_kernel(module, "k", [x], [y])
    filled = np.where(np.arange(8) < 5, x, 2)
    np.testing.assert_allclose(y, np.stack([filled.sum(1), filled.var(1) * 8], axis=1), rtol=1e-5)


def test_strided_inputs_are_read_by_their_strides():
    module = parse("""
      func.func private @k(%x: memref<3x4xf32, strided<[?, 1]>>, %y: memref<3x4xf32>) {
        %c0 = arith.constant 0 : index
        %pad = arith.constant 0.0 : f32
        %v = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]}
          : memref<3x4xf32, strided<[?, 1]>>, vector<3x4xf32>
        vector.transfer_write %v, %y[%c0, %c0] {in_bounds = [true, true]} : vector<3x4xf32>, memref<3x4xf32>
        return
      }""")
    x, y = np.arange(30, dtype=np.float32).reshape(3, 10)[:, 2:6], np.zeros((3, 4), np.float32)
    interpreter.run_kernel(module, "k", [x], [y])
    np.testing.assert_array_equal(y, x)


def test_a_kernel_with_the_wrong_number_of_arrays():
    module = parse("func.func @k(%x: memref<4xf32>, %y: memref<4xf32>) { return }")
    with pytest.raises(InterpreterError, match="takes 2 arguments, got 1 inputs and 0 outputs"):
        interpreter.run_kernel(module, "k", [np.zeros(4, np.float32)], [])
    with pytest.raises(ArgumentError, match="is a kernel on memrefs"):
        interpreter.run(module, "k", [np.zeros(4, np.float32)] * 2)


def test_two_loops_over_blocks_follow_each_other():
    module = parse("""
      func.func private @k(%x: memref<8xf32>, %y: memref<8xf32>) {
        %c0 = arith.constant 0 : index
        %c7 = arith.constant 7 : index
        %w = memref.alloc() : memref<8xf32>
        scf.forall (%block) in (8) {
          %v = memref.load %x[%block] : memref<8xf32>
          memref.store %v, %w[%block] : memref<8xf32>
        } {mapping = [#gpu.block<x>]}
        scf.forall (%block) in (8) {
          %other = arith.subi %c7, %block : index
          %v = memref.load %w[%other] : memref<8xf32>
          memref.store %v, %y[%block] : memref<8xf32>
        } {mapping = [#gpu.block<x>]}
        return
      }""")
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    interpreter.run_kernel(module, "k", [x], [y], order="random")
    np.testing.assert_array_equal(y, x[::-1])


def test_a_read_that_lies_out_of_bounds_as_a_whole_is_padding():
    module = parse("""
      func.func private @k(%x: memref<2x4xf32>, %y: memref<3x4xf32>) {
        %c0 = arith.constant 0 : index
        %pad = arith.constant 7.0 : f32
        scf.forall (%row) in (3) {
          %v = vector.transfer_read %x[%row, %c0], %pad {in_bounds = [false, true]} : memref<2x4xf32>, vector<1x4xf32>
          vector.transfer_write %v, %y[%row, %c0] {in_bounds = [true, true]} : vector<1x4xf32>, memref<3x4xf32>
        } {mapping = [#gpu.block<x>]}
        return
      }""")
    x, y = np.ones((2, 4), np.float32), np.zeros((3, 4), np.float32)
    interpreter.run_kernel(module, "k", [x], [y])
    np.testing.assert_array_equal(y, [[1] * 4, [1] * 4, [7] * 4])
