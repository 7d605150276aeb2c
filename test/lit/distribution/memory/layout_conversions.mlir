// RUN: mlirfuse-opt --fuse-assign-layouts --fuse-distribute --canonicalize --cse --split-input-file %s | FileCheck %s

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 4, 1>, blocks = array<i64: 1, 1>}
#across = {vector = array<i64: 4, 1>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 4>, blocks = array<i64: 1, 1>}
// A lane stores elements of a column one by one, and loads vectors of rows after a barrier. Rows have 32 floats, with a gap
// of eight after each four rows, so that four lanes along a column and eight along a row access 32 banks.
// CHECK-LABEL: gpu.func @turned
// CHECK-SAME: workgroup(%[[SLOT:.*]] : memref<544xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// CHECK-COUNT-4: vector.load {{.*}} vector<4xf32>
// CHECK: %[[E:.*]]:4 = vector.to_elements
// CHECK: memref.store %[[E]]#0, %[[SLOT]][%[[AT:.*]]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[AT]], %c32
// CHECK: memref.store %[[E]]#1, %[[SLOT]][%[[NEXT]]]
// CHECK-COUNT-14: memref.store
// CHECK-NOT: memref.store
// CHECK: gpu.barrier
// CHECK-COUNT-4: vector.load %[[SLOT]][{{.*}}] {alignment = 16 : i64} : memref<544xf32, #gpu.address_space<workgroup>>, vector<4xf32>
// CHECK-NOT: gpu.barrier
// CHECK-COUNT-4: vector.store
func.func private @turned(%x: memref<32x16xf32> {fuse.align = 16 : i64}, %y: memref<16x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 16, 32>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {fuse.layout = #across, in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : memref<32x16xf32>, vector<16x32xf32>
    %1 = "fuse.convert_layout"(%0) : (vector<16x32xf32>) -> vector<16x32xf32>
    vector.transfer_write %1, %y[%c0, %c0] {in_bounds = [true, true]} : vector<16x32xf32>, memref<16x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 4, 1>, blocks = array<i64: 1, 1>}
#across = {vector = array<i64: 4, 1>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 4>, blocks = array<i64: 1, 1>}
// Two tiles share one barrier; in a loop a second barrier precedes the next stores. A scalar has no layout.
// CHECK-LABEL: gpu.func @looped
// CHECK: scf.for
// CHECK-COUNT-32: memref.store
// CHECK: gpu.barrier
// CHECK-COUNT-8: vector.load {{.*}}workgroup
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: vector.store
func.func private @looped(%x: memref<32x160xf32> {fuse.align = 16 : i64}, %y: memref<160x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 16, 32>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c80 = arith.constant 80 : index
  %c160 = arith.constant 160 : index
  %pad = arith.constant 0.0 : f32
  %one = arith.constant dense<1.0> : vector<16x32xf32>
  scf.forall (%block) in (1) {
    scf.for %i = %c0 to %c80 step %c16 {
      %j = arith.addi %i, %c80 : index
      %0 = vector.transfer_read %x[%c0, %i], %pad {fuse.layout = #across, in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : memref<32x160xf32>, vector<16x32xf32>
      %1 = vector.transfer_read %x[%c0, %j], %pad {fuse.layout = #across, in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : memref<32x160xf32>, vector<16x32xf32>
      %2:3 = "fuse.convert_layout"(%0, %one, %1) : (vector<16x32xf32>, vector<16x32xf32>, vector<16x32xf32>) -> (vector<16x32xf32>, vector<16x32xf32>, vector<16x32xf32>)
      %3 = arith.addf %2#0, %2#2 : vector<16x32xf32>
      %4 = arith.addf %3, %2#1 : vector<16x32xf32>
      vector.transfer_write %4, %y[%i, %c0] {in_bounds = [true, true]} : vector<16x32xf32>, memref<160x32xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return
}
