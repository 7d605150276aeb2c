// RUN: mlirfuse-opt --fuse-assign-layouts --fuse-distribute --canonicalize --cse --split-input-file %s | FileCheck %s

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>, run = array<i64: 4, 1>}
#schedule = {tile = array<i64: 16, 32>, layout = #layout}
// A thread has 4 x 4 elements. It reads one array by vectors, and the transposed one by runs, of which each has an
// element of four fragments.
// CHECK-LABEL: gpu.func @transposed
// CHECK-COUNT-4: vector.load %arg0[{{.*}}] {{.*}} : memref<16x32xf32>, vector<4xf32>
// CHECK: %[[R0:.*]] = vector.load %arg1[%[[J:.*]], %[[I:.*]]] {{.*}} : memref<32x16xf32>, vector<4xf32>
// CHECK: %[[E0:.*]]:4 = vector.to_elements %[[R0]]
// CHECK: %[[R1:.*]] = vector.load %arg1[%{{.*}}, %[[I]]] {{.*}} : memref<32x16xf32>, vector<4xf32>
// CHECK: %[[E1:.*]]:4 = vector.to_elements %[[R1]]
// CHECK: %[[E2:.*]]:4 = vector.to_elements
// CHECK: %[[E3:.*]]:4 = vector.to_elements
// CHECK: vector.from_elements %[[E0]]#0, %[[E1]]#0, %[[E2]]#0, %[[E3]]#0 : vector<4xf32>
// CHECK: vector.from_elements %[[E0]]#1, %[[E1]]#1, %[[E2]]#1, %[[E3]]#1 : vector<4xf32>
// CHECK-NOT: vector.load %arg1
func.func private @transposed(%x: memref<16x32xf32> {fuse.align = 16 : i64}, %z: memref<32x16xf32> {fuse.align = 16 : i64}, %y: memref<16x32xf32> {fuse.align = 16 : i64}) attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %none {in_bounds = [true, true]} : memref<16x32xf32>, vector<16x32xf32>
    %1 = vector.transfer_read %z[%c0, %c0], %none {in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : memref<32x16xf32>, vector<16x32xf32>
    %2 = arith.addf %0, %1 : vector<16x32xf32>
    vector.transfer_write %2, %y[%c0, %c0] {in_bounds = [true, true]} : vector<16x32xf32>, memref<16x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>, run = array<i64: 4, 1>}
#schedule = {tile = array<i64: 16, 32>, layout = #layout}
// Rows of 14 are no whole runs: elements are read one by one.
// CHECK-LABEL: gpu.func @partly_outside
// CHECK: memref.load %arg0
// CHECK-NOT: vector.load
func.func private @partly_outside(%z: memref<32x14xf32> {fuse.align = 8 : i64}, %y: memref<16x32xf32> {fuse.align = 16 : i64}) attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %z[%c0, %c0], %none {in_bounds = [false, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : memref<32x14xf32>, vector<16x32xf32>
    vector.transfer_write %0, %y[%c0, %c0] {in_bounds = [true, true]} : vector<16x32xf32>, memref<16x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>, run = array<i64: 4, 1>}
#schedule = {tile = array<i64: 16, 32>, layout = #layout}
// Where addresses are multiples of two elements only, a run is two accesses.
// CHECK-LABEL: gpu.func @halves
// CHECK-COUNT-8: vector.load %arg0[{{.*}}] {{.*}} : memref<32x16xf32>, vector<2xf32>
func.func private @halves(%z: memref<32x16xf32> {fuse.align = 8 : i64}, %y: memref<16x32xf32> {fuse.align = 16 : i64}) attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %z[%c0, %c0], %none {in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : memref<32x16xf32>, vector<16x32xf32>
    vector.transfer_write %0, %y[%c0, %c0] {in_bounds = [true, true]} : vector<16x32xf32>, memref<16x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
