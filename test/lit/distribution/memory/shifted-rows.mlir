// RUN: mlirfuse-opt --fuse-assign-layouts --fuse-distribute --canonicalize --cse %s | FileCheck %s

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>,
           blocks = array<i64: 1, 1>, shift_to = array<i64: 0, 4>}
// No row is read before the reduction, so no shift is known, and rows are not shifted. Elements of the layout from column
// 41 on are left out. The stored row has any alignment, so it is stored element by element.
// CHECK-LABEL: gpu.func @nothing_is_read
// CHECK: %[[END:.*]] = arith.constant dense<41> : vector<4xi32>
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %[[END]] : vector<4xi32>
// CHECK: arith.select %[[INSIDE]], %{{.*}} : vector<4xi1>, vector<4xi32>
// CHECK: gpu.shuffle
// CHECK-NOT: vector.store
// CHECK: memref.store
func.func private @nothing_is_read(%y: memref<5x1xi32>, %z: memref<5x41xi32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 41>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %threes = arith.constant dense<3> : vector<1x41xi32>
  %zero = arith.constant dense<0> : vector<1xi32>
  scf.forall (%row) in (5) {
    %sum = vector.multi_reduction <add>, %threes, %zero [1] : vector<1x41xi32> to vector<1xi32>
    %each = vector.shape_cast %sum : vector<1xi32> to vector<1x1xi32>
    vector.transfer_write %each, %y[%row, %c0] {in_bounds = [true, true]} : vector<1x1xi32>, memref<5x1xi32>
    vector.transfer_write %threes, %z[%row, %c0] {in_bounds = [true, true]} : vector<1x41xi32>, memref<5x41xi32>
  } {mapping = [#gpu.block<x>]}
  return
}
