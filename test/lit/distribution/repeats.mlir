// RUN: mlirfuse-opt --fuse-assign-layouts --fuse-distribute --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
#schedule = {tile = array<i64: 8, 16>, layout = #layout}

// Each half of the columns is a thread's first or second fragment.
// CHECK-LABEL: gpu.func @halves
// CHECK: %[[A:.*]] = vector.load {{.*}} vector<2xf32>
// CHECK: %[[B:.*]] = vector.load {{.*}} vector<2xf32>
// CHECK: %[[S:.*]] = arith.subf %[[A]], %[[B]] : vector<2xf32>
// CHECK: vector.store %[[S]]
func.func private @halves(%x: memref<8x16xf32> {fuse.align = 16 : i64}, %y: memref<8x8xf32>) attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x16xf32>, vector<8x16xf32>
    %1 = vector.extract_strided_slice %0 {offsets = [0, 0], sizes = [8, 8], strides = [1, 1]} : vector<8x16xf32> to vector<8x8xf32>
    %2 = vector.extract_strided_slice %0 {offsets = [0, 8], sizes = [8, 8], strides = [1, 1]} : vector<8x16xf32> to vector<8x8xf32>
    %3 = arith.subf %1, %2 : vector<8x8xf32>
    vector.transfer_write %3, %y[%c0, %c0] {in_bounds = [true, true]} : vector<8x8xf32>, memref<8x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
#schedule = {tile = array<i64: 8, 16>, layout = #layout}
func.func private @across_threads(%x: memref<8x16xf32> {fuse.align = 16 : i64}, %y: memref<8x4xf32>) attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x16xf32>, vector<8x16xf32>
    // expected-error @below {{elements 4 to 8 are no whole repeats of}}
    %1 = vector.extract_strided_slice %0 {offsets = [0, 4], sizes = [8, 4], strides = [1, 1]} : vector<8x16xf32> to vector<8x4xf32>
    vector.transfer_write %1, %y[%c0, %c0] {in_bounds = [true, true]} : vector<8x4xf32>, memref<8x4xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
