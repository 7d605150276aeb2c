// RUN: mlirfuse-opt --fuse-assign-layouts --fuse-distribute --canonicalize --cse --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 2>, blocks = array<i64: 1, 1>}
// A thread adds its two vectors of each row to its sum of that row, element by element; only then do lanes meet.
// CHECK-LABEL: gpu.func @vectors
// CHECK-COUNT-4: vector.load %arg0{{.*}} vector<2xf32>
// CHECK: %[[A0:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK: %[[A1:.*]] = arith.addf %[[A0]], %{{.*}} : f32
// CHECK: %[[B0:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK: %[[B1:.*]] = arith.addf %[[B0]], %{{.*}} : f32
// CHECK: %[[A2:.*]] = arith.addf %[[A1]], %{{.*}} : f32
// CHECK: %[[A3:.*]] = arith.addf %[[A2]], %{{.*}} : f32
// CHECK: %[[B2:.*]] = arith.addf %[[B1]], %{{.*}} : f32
// CHECK: %[[B3:.*]] = arith.addf %[[B2]], %{{.*}} : f32
// CHECK: gpu.shuffle xor %[[A3]]
// CHECK: gpu.shuffle xor %[[B3]]
func.func private @vectors(%x: memref<2x128xf32> {fuse.align = 16 : i64}, %y: memref<2xf32> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  %start = arith.constant dense<1.0> : vector<2x32xf32>
  %zero = arith.constant dense<0.0> : vector<2xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %none {in_bounds = [true, true]} : memref<2x128xf32>, vector<2x128xf32>
    %1 = "fuse.thread_reduce"(%0, %start) {dims = array<i64: 1>, kind = #vector.kind<add>, neighbours = array<i64: 2>} : (vector<2x128xf32>, vector<2x32xf32>) -> vector<2x32xf32>
    %2 = vector.multi_reduction <add>, %1, %zero [1] : vector<2x32xf32> to vector<2xf32>
    vector.transfer_write %2, %y[%c0] {in_bounds = [true]} : vector<2xf32>, memref<2xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 2>, blocks = array<i64: 1, 1>}
func.func private @another_number(%x: memref<2x128xf32> {fuse.align = 16 : i64}, %y: memref<2xf32> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  %start = arith.constant dense<1.0> : vector<2x32xf32>
  %zero = arith.constant dense<0.0> : vector<2xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %none {in_bounds = [true, true]} : memref<2x128xf32>, vector<2x128xf32>
    // expected-error @below {{[4] neighbours are not those of one thread along the dimensions [1] of}}
    %1 = "fuse.thread_reduce"(%0, %start) {dims = array<i64: 1>, kind = #vector.kind<add>, neighbours = array<i64: 4>} : (vector<2x128xf32>, vector<2x32xf32>) -> vector<2x32xf32>
    %2 = vector.multi_reduction <add>, %1, %zero [1] : vector<2x32xf32> to vector<2xf32>
    vector.transfer_write %2, %y[%c0] {in_bounds = [true]} : vector<2xf32>, memref<2xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
