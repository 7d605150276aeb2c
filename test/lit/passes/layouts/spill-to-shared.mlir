// RUN: mlirfuse-opt --fuse-spill-to-shared --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 4>, blocks = array<i64: 1, 1>}
// A tile made before the reduction and used behind it goes through shared memory; the narrow source of a cast has an
// optimization barrier already.
// CHECK-LABEL: func.func private @spilled
func.func private @spilled(%x: memref<8x1024xf16>, %w: memref<1024xf32>, %y: memref<8x1024xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 1024>, order = "depth", shared_spill = 3 : i64, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  %wide_pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%block) in (8) {
    // CHECK: %[[W:.*]] = vector.transfer_read %{{.*}} : memref<1024xf32>
    %w0 = vector.transfer_read %w[%c0], %wide_pad {in_bounds = [true, true], permutation_map = affine_map<(d0) -> (0, d0)>} : memref<1024xf32>, vector<1x1024xf32>
    // CHECK: %[[X:.*]] = vector.transfer_read %{{.*}} : memref<8x1024xf16>
    // CHECK: %[[K:.*]] = "fuse.spill_to_shared"(%[[X]]) {fragments = 3 : i64}
    // CHECK: arith.extf %[[K]]
    %0 = vector.transfer_read %x[%block, %c0], %pad {fuse.streaming, in_bounds = [true, true]} : memref<8x1024xf16>, vector<1x1024xf16>
    %1 = arith.extf %0 : vector<1x1024xf16> to vector<1x1024xf32>
    // CHECK: %[[E:.*]] = math.exp
    // CHECK: %[[KE:.*]] = "fuse.spill_to_shared"(%[[E]]) {fragments = 3 : i64}
    %e = math.exp %1 : vector<1x1024xf32>
    // CHECK: vector.multi_reduction <add>, %[[KE]]
    %2 = vector.multi_reduction <add>, %e, %zero [1] : vector<1x1024xf32> to vector<1xf32>
    %3 = vector.shape_cast %2 : vector<1xf32> to vector<1x1xf32>
    // CHECK: "fuse.optimization_barrier"(%[[K]],
    %p = "fuse.optimization_barrier"(%0, %3) : (vector<1x1024xf16>, vector<1x1xf32>) -> vector<1x1024xf16>
    %v = arith.extf %p : vector<1x1024xf16> to vector<1x1024xf32>
    // CHECK: %[[T:.*]] = vector.shape_cast
    // CHECK: %[[PE:.*]] = "fuse.optimization_barrier"(%[[KE]], %[[T]]) : (vector<1x1024xf32>, vector<1x1xf32>)
    // CHECK: arith.mulf %{{.*}}, %[[PE]]
    %4 = arith.mulf %v, %e : vector<1x1024xf32>
    // Data that many blocks read are read again, or stay in registers.
    // CHECK: arith.mulf %{{.*}}, %[[W]]
    %5 = arith.mulf %4, %w0 : vector<1x1024xf32>
    vector.transfer_write %5, %y[%block, %c0] {in_bounds = [true, true]} : vector<1x1024xf32>, memref<8x1024xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 4>, blocks = array<i64: 1, 1>}
// CHECK-LABEL: func.func private @in_registers
// CHECK-NOT: fuse.spill_to_shared
// expected-remark @below {{the schedule keeps everything in registers}}
func.func private @in_registers() attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 1024>, layout = #layout}} {
  scf.forall (%block) in (8) {
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 16, 2>, warps = array<i64: 8, 1>, repeats = array<i64: 8, 1>, blocks = array<i64: 1, 1>}
// Reductions along columns: their results, one fragment a thread, stay in registers, at their lower rank where only a
// broadcast reads them.
// CHECK-LABEL: func.func private @columns
func.func private @columns(%x: memref<1024x8xf32>, %y: memref<1024x8xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1024, 8>, order = "depth", shared_spill = 3 : i64, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<8xf32>
  scf.forall (%block) in (1) {
    // CHECK: %[[X:.*]] = vector.transfer_read
    // CHECK: %[[K:.*]] = "fuse.spill_to_shared"(%[[X]]) {fragments = 3 : i64}
    %0 = vector.transfer_read %x[%c0, %c0], %pad {fuse.streaming, in_bounds = [true, true]} : memref<1024x8xf32>, vector<1024x8xf32>
    // CHECK: %[[A:.*]] = vector.multi_reduction <minimumf>, %[[K]]
    // CHECK-NOT: fuse.spill_to_shared
    %1 = vector.multi_reduction <minimumf>, %0, %zero [0] : vector<1024x8xf32> to vector<8xf32>
    // CHECK: %[[TA:.*]] = vector.shape_cast %[[A]] : vector<8xf32> to vector<1x8xf32>
    // CHECK: %[[P:.*]] = "fuse.optimization_barrier"(%[[K]], %[[TA]]) : (vector<1024x8xf32>, vector<1x8xf32>)
    // CHECK: %[[B:.*]] = vector.multi_reduction <maximumf>, %[[P]]
    %2 = vector.multi_reduction <maximumf>, %0, %zero [0] : vector<1024x8xf32> to vector<8xf32>
    // CHECK: vector.broadcast %[[A]] : vector<8xf32> to vector<1024x8xf32>
    %3 = vector.broadcast %1 : vector<8xf32> to vector<1024x8xf32>
    // CHECK: vector.broadcast %[[B]]
    %4 = vector.broadcast %2 : vector<8xf32> to vector<1024x8xf32>
    // CHECK: %[[TB:.*]] = vector.shape_cast %[[B]] : vector<8xf32> to vector<1x8xf32>
    // CHECK: "fuse.optimization_barrier"(%[[K]], %[[TB]])
    %5 = arith.subf %0, %3 : vector<1024x8xf32>
    %6 = arith.mulf %5, %4 : vector<1024x8xf32>
    vector.transfer_write %6, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1024x8xf32>, memref<1024x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
