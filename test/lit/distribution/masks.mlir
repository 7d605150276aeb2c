// RUN: mlirfuse-opt --fuse-assign-layouts --fuse-distribute --canonicalize --cse --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 2, 16>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}
// A mask of rows in bounds: one comparison for each of a thread's two rows, and none along the columns.
// CHECK-LABEL: gpu.func @rows
// CHECK-SAME: %{{[a-z0-9]+}}: memref<?x64xf32>, %{{[a-z0-9]+}}: memref<4x64xf32>, %[[BOUND:[a-z0-9]+]]: index
// CHECK: vector.load %{{.*}}[%[[ROW:.*]], %[[COLUMN:.*]]] {
// CHECK: %[[NEXT:.*]] = arith.addi %[[ROW]], %c2
// CHECK: %[[FIRST:.*]] = arith.cmpi ult, %[[ROW]], %[[BOUND]] : index
// CHECK-NEXT: %[[SECOND:.*]] = arith.cmpi ult, %[[NEXT]], %[[BOUND]] : index
// CHECK-NOT: arith.cmpi
// CHECK-DAG: %[[MASK:.*]] = vector.broadcast %[[FIRST]] : i1 to vector<4xi1>
// CHECK-DAG: %[[MASK2:.*]] = vector.broadcast %[[SECOND]] : i1 to vector<4xi1>
// CHECK-DAG: arith.select %[[MASK]],
// CHECK-DAG: arith.select %[[MASK2]],
func.func private @rows(%x: memref<?x64xf32>, %y: memref<4x64xf32>, %bound: index)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 4, 64>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<4x64xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<?x64xf32>, vector<4x64xf32>
    %1 = vector.create_mask %bound, %c1 : vector<4x1xi1>
    %2 = vector.broadcast %1 : vector<4x1xi1> to vector<4x64xi1>
    %3 = arith.select %2, %0, %zero : vector<4x64xi1>, vector<4x64xf32>
    vector.transfer_write %3, %y[%c0, %c0] {in_bounds = [true, true]} : vector<4x64xf32>, memref<4x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 1>, lanes = array<i64: 2, 16>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}
// Constant bounds in two dimensions, which canonicalisation turns into a constant mask.
// CHECK-LABEL: gpu.func @corner
// CHECK-DAG: %[[ROW:.*]] = arith.cmpi ult, %{{.*}}, %c3
// CHECK-DAG: %[[COLUMN:.*]] = arith.cmpi ult, %{{.*}}, %c10
// CHECK: arith.andi
// CHECK: arith.select
func.func private @corner(%x: memref<4x16xf32>, %y: memref<4x16xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 4, 16>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<4x16xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<4x16xf32>, vector<4x16xf32>
    %1 = vector.constant_mask [3, 10] : vector<4x16xi1>
    %2 = arith.select %1, %0, %zero : vector<4x16xi1>, vector<4x16xf32>
    vector.transfer_write %2, %y[%c0, %c0] {in_bounds = [true, true]} : vector<4x16xf32>, memref<4x16xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 2, 16>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}
// A mask may end within a thread's vector; dimensions that the mask covers entirely need no comparison.
// CHECK-LABEL: gpu.func @inside_of_a_vector(
// CHECK: %[[E0:.*]] = arith.cmpi ult, %[[C:.*]], %{{.*}} : index
// CHECK: %[[I1:.*]] = arith.addi %[[C]]
// CHECK: %[[E1:.*]] = arith.cmpi ult, %[[I1]]
// CHECK: %[[E2:.*]] = arith.cmpi ult
// CHECK: %[[E3:.*]] = arith.cmpi ult
// CHECK: %[[M:.*]] = vector.from_elements %[[E0]], %[[E1]], %[[E2]], %[[E3]] : vector<4xi1>
// CHECK-NOT: arith.cmpi
// CHECK: arith.select %[[M]], %{{.*}} : vector<4xi1>, vector<4xf32>
// CHECK: arith.select %[[M]], %{{.*}} : vector<4xi1>, vector<4xf32>
func.func private @inside_of_a_vector(%x: memref<4x64xf32>, %y: memref<4x64xf32>, %bound: index)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 4, 64>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<4x64xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<4x64xf32>, vector<4x64xf32>
    %1 = vector.create_mask %c4, %bound : vector<4x64xi1>
    %2 = arith.select %1, %0, %zero : vector<4x64xi1>, vector<4x64xf32>
    vector.transfer_write %2, %y[%c0, %c0] {in_bounds = [true, true]} : vector<4x64xf32>, memref<4x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
