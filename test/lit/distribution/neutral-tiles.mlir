// RUN: mlirfuse-opt --fuse-assign-layouts --fuse-distribute --canonicalize --cse --split-input-file %s | FileCheck %s

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 4, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A reduction of neutral elements gives the neutral element, without an exchange between warps; the first warp stores.
// CHECK-LABEL: gpu.func @nothing_to_add
// CHECK-NOT: gpu.barrier
// CHECK-NOT: gpu.shuffle
// CHECK-NOT: workgroup
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<4xf32>
// CHECK: scf.if
// CHECK-NEXT: vector.store %[[ZERO]], %{{.*}} : memref<8x128xf32>, vector<4xf32>
func.func private @nothing_to_add(%y: memref<8x128xf32> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 4, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %none = arith.constant dense<0.0> : vector<4x128xf32>
  %zero = arith.constant dense<0.0> : vector<128xf32>
  scf.forall (%block) in (8) {
    %1 = vector.multi_reduction <add>, %none, %zero [0] : vector<4x128xf32> to vector<128xf32>
    vector.transfer_write %1, %y[%block, %c0] {in_bounds = [true]} : vector<128xf32>, memref<8x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 4, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Ones are not neutral for a sum.
// CHECK-LABEL: gpu.func @ones
// CHECK: gpu.barrier
func.func private @ones(%y: memref<8x128xf32> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 4, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %ones = arith.constant dense<1.0> : vector<4x128xf32>
  %zero = arith.constant dense<0.0> : vector<128xf32>
  scf.forall (%block) in (8) {
    %1 = vector.multi_reduction <add>, %ones, %zero [0] : vector<4x128xf32> to vector<128xf32>
    vector.transfer_write %1, %y[%block, %c0] {in_bounds = [true]} : vector<128xf32>, memref<8x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A splat that loses a dimension keeps its other extents.
// CHECK-LABEL: gpu.func @renamed
// CHECK: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : vector<4xf32>
// CHECK: vector.store %[[TWO]], %{{.*}} : memref<8x128xf32>, vector<4xf32>
func.func private @renamed(%y: memref<8x128xf32> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %two = arith.constant dense<2.0> : vector<1x128xf32>
  scf.forall (%block) in (8) {
    %1 = vector.shape_cast %two : vector<1x128xf32> to vector<128xf32>
    vector.transfer_write %1, %y[%block, %c0] {in_bounds = [true]} : vector<128xf32>, memref<8x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}
// For a constant whose tile lost a dimension before, the write says which dimension remains.
// CHECK-LABEL: gpu.func @column
// CHECK: scf.if
// CHECK-NEXT: memref.store %{{.*}}, %{{.*}}[%c0]
// CHECK-NEXT: memref.store %{{.*}}, %{{.*}}[%c1]
func.func private @column(%y: memref<2xf32> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %two = arith.constant dense<2.0> : vector<2xf32>
  scf.forall (%block) in (1) {
    vector.transfer_write %two, %y[%c0] {fuse.dims = array<i64: 0>, in_bounds = [true]} : vector<2xf32>, memref<2xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
