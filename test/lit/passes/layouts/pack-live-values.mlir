// RUN: mlirfuse-opt --fuse-pack-live-values --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// CHECK-LABEL: func.func private @packed
func.func private @packed(%x: memref<8x256xf16>, %y: memref<8x256xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, order = "depth", layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%block) in (8) {
    // CHECK: %[[N:.*]] = vector.transfer_read
    %0 = vector.transfer_read %x[%block, %c0], %pad {in_bounds = [true, true]} : memref<8x256xf16>, vector<1x256xf16>
    // CHECK: %[[W:.*]] = arith.extf %[[N]]
    %1 = arith.extf %0 : vector<1x256xf16> to vector<1x256xf32>
    // CHECK: %[[S:.*]] = vector.multi_reduction <add>, %[[W]]
    %2 = vector.multi_reduction <add>, %1, %zero [1] : vector<1x256xf32> to vector<1xf32>
    %3 = vector.shape_cast %2 : vector<1xf32> to vector<1x1xf32>
    %4 = vector.broadcast %3 : vector<1x1xf32> to vector<1x256xf32>
    // CHECK: %[[P:.*]] = "fuse.optimization_barrier"(%[[N]], %{{.*}}) : (vector<1x256xf16>, vector<1x1xf32>) -> vector<1x256xf16>
    // CHECK: %[[V:.*]] = arith.extf %[[P]]
    // CHECK: arith.subf %[[V]],
    %5 = arith.subf %1, %4 : vector<1x256xf32>
    vector.transfer_write %5, %y[%block, %c0] {in_bounds = [true, true]} : vector<1x256xf32>, memref<8x256xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A loop-invariant tile stays narrow around the loop, and is cast in each step: the optimization barrier depends on the
// step's number, so that the cast is not hoisted again. A row value stays wide.
// CHECK-LABEL: func.func private @around_a_loop
// CHECK: %[[N:.*]] = vector.transfer_read
// CHECK: %[[ROW:.*]] = arith.extf %{{.*}} : vector<1x1xf16> to vector<1x1xf32>
// CHECK: scf.for %[[T:[a-z0-9]+]] =
// CHECK: %[[STEP:.*]] = arith.index_cast %[[T]] : index to i32
// CHECK: %[[AFTER:.*]] = vector.broadcast %[[STEP]] : i32 to vector<1x1xi32>
// CHECK: %[[P:.*]] = "fuse.optimization_barrier"(%[[N]], %[[AFTER]]) : (vector<1x256xf16>, vector<1x1xi32>) -> vector<1x256xf16>
// CHECK: %[[W:.*]] = arith.extf %[[P]]
// Both uses share one cast.
// CHECK: arith.addf %{{.*}}, %[[W]]
// CHECK: arith.mulf %{{.*}}, %[[W]]
// CHECK-NOT: arith.extf
// CHECK: vector.broadcast %[[ROW]]
// expected-remark @below {{1 cast(s) repeated in a loop or after a reduction}}
func.func private @around_a_loop(%x: memref<256xf16>, %r: memref<1xf16>, %y: memref<1x256xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, order = "depth", layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<1x256xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0], %pad {in_bounds = [true, true], permutation_map = affine_map<(d0) -> (0, d0)>} : memref<256xf16>, vector<1x256xf16>
    %1 = arith.extf %0 : vector<1x256xf16> to vector<1x256xf32>
    %2 = vector.transfer_read %r[%c0], %pad {in_bounds = [true, true], permutation_map = affine_map<(d0) -> (d0, 0)>} : memref<1xf16>, vector<1x1xf16>
    %3 = arith.extf %2 : vector<1x1xf16> to vector<1x1xf32>
    %4 = scf.for %t = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (vector<1x256xf32>) {
      %5 = arith.addf %acc, %1 : vector<1x256xf32>
      %6 = arith.mulf %5, %1 : vector<1x256xf32>
      %7 = vector.broadcast %3 : vector<1x1xf32> to vector<1x256xf32>
      %8 = arith.mulf %6, %7 : vector<1x256xf32>
      scf.yield %8 : vector<1x256xf32>
    }
    vector.transfer_write %4, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1x256xf32>, memref<1x256xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// expected-remark @below {{no widened tile lives across a reduction}}
func.func private @nothing_wide() attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, order = "depth", layout = #layout}} {
  scf.forall (%block) in (8) {
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// expected-remark @below {{scheduled with order = 'breadth', which does not save registers}}
func.func private @breadth() attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  scf.forall (%block) in (8) {
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// expected-error @below {{kernel has no fuse.schedule}}
func.func private @unscheduled() attributes {fuse.kernel} {
  scf.forall (%block) in (8) {
  } {mapping = [#gpu.block<x>]}
  return
}
