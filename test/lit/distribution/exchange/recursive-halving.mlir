// RUN: mlirfuse-opt --fuse-distribute --canonicalize --cse --split-input-file %s | FileCheck %s

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Even lanes reduce one sum and odd lanes the other: five shuffles for both, and two lanes of a warp write one sum each.
// CHECK-LABEL: gpu.func @two
// CHECK-SAME: workgroup(%[[A:[a-z0-9]+]] : memref<4xf32, #gpu.address_space<workgroup>> {{[^,]*}}) kernel
// CHECK: %[[LANE:.*]] = arith.remui %thread_id_x, %c32
// CHECK: %[[EVEN:.*]] = arith.cmpi eq, %{{.*}}, %c0 : index
// CHECK: %[[KEPT:.*]] = arith.select %[[EVEN]], %[[X:.*]], %[[Y:.*]] : f32
// CHECK: %[[GIVEN:.*]] = arith.select %[[EVEN]], %[[Y]], %[[X]] : f32
// CHECK: %[[OTHER:.*]], %{{.*}} = gpu.shuffle xor %[[GIVEN]], %c1_i32
// CHECK: arith.addf %[[KEPT]], %[[OTHER]]
// CHECK-COUNT-4: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
// CHECK: %[[WRITES:.*]] = arith.cmpi ult, %[[LANE]], %c2
// CHECK: scf.if %[[WRITES]]
// CHECK: %[[AT:.*]] = arith.select %[[EVEN]], %[[FIRST:.*]], %[[SECOND:.*]] : index
// CHECK: memref.store %{{.*}}, %[[A]][%[[AT]]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[A]][%c0]
// CHECK: memref.load %[[A]][%c1]
// CHECK: memref.load %[[A]][%c2]
// CHECK: memref.load %[[A]][%c3]
func.func private @two(%x: memref<?x256xf32> {fuse.align = 16 : i64}, %y: memref<?xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  %m = memref.dim %x, %c0 : memref<?x256xf32>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 1)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 1)>(%block)
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [false, true]} : memref<?x256xf32>, vector<1x256xf32>
    %1 = arith.mulf %0, %0 {fuse.layout = #layout} : vector<1x256xf32>
    %2 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [1] : vector<1x256xf32> to vector<1xf32>
    %3 = vector.multi_reduction <add>, %1, %zero {fuse.layout = #layout} [1] : vector<1x256xf32> to vector<1xf32>
    %4 = arith.divf %2, %3 {fuse.layout = #layout} : vector<1xf32>
    vector.transfer_write %4, %y[%row] {fuse.layout = #layout, in_bounds = [false]} : vector<1xf32>, memref<?xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 3, 1>, blocks = array<i64: 1, 1>}
// Sums of three rows: two are halved together, and one has a butterfly.
// CHECK-LABEL: gpu.func @three_rows
// CHECK-COUNT-10: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
// CHECK: gpu.return
func.func private @three_rows(%x: memref<3x256xf32> {fuse.align = 16 : i64}, %y: memref<3xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 3, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<3xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<3x256xf32>, vector<3x256xf32>
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [1] : vector<3x256xf32> to vector<3xf32>
    vector.transfer_write %1, %y[%c0] {fuse.layout = #layout, in_bounds = [true]} : vector<3xf32>, memref<3xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 2>, warps = array<i64: 1, 2>, repeats = array<i64: 4, 1>, blocks = array<i64: 1, 1>}
// No more values than lanes: four sums over two lanes are two pairs.
// CHECK-LABEL: gpu.func @few_lanes
// CHECK-COUNT-2: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
// CHECK: gpu.return
func.func private @few_lanes(%x: memref<4x16xf32> {fuse.align = 16 : i64}, %y: memref<4xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 4, 16>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<4xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<4x16xf32>, vector<4x16xf32>
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [1] : vector<4x16xf32> to vector<4xf32>
    vector.transfer_write %1, %y[%c0] {fuse.layout = #layout, in_bounds = [true]} : vector<4xf32>, memref<4xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A sum and a maximum have a butterfly each.
// CHECK-LABEL: gpu.func @unlike
// CHECK-COUNT-10: gpu.shuffle xor
// CHECK: gpu.return
func.func private @unlike(%x: memref<?x256xf32> {fuse.align = 16 : i64}, %y: memref<?xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  %m = memref.dim %x, %c0 : memref<?x256xf32>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 1)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 1)>(%block)
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [false, true]} : memref<?x256xf32>, vector<1x256xf32>
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [1] : vector<1x256xf32> to vector<1xf32>
    %2 = vector.multi_reduction <maximumf>, %0, %zero {fuse.layout = #layout} [1] : vector<1x256xf32> to vector<1xf32>
    %3 = arith.divf %1, %2 {fuse.layout = #layout} : vector<1xf32>
    vector.transfer_write %3, %y[%row] {fuse.layout = #layout, in_bounds = [false]} : vector<1xf32>, memref<?xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}
// In a row of one warp every lane needs every sum, so nothing is halved.
// CHECK-LABEL: gpu.func @one_warp
// CHECK-COUNT-10: gpu.shuffle xor
// CHECK: gpu.return
func.func private @one_warp(%x: memref<2x128xf32> {fuse.align = 16 : i64}, %y: memref<2xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<2xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<2x128xf32>, vector<2x128xf32>
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [1] : vector<2x128xf32> to vector<2xf32>
    vector.transfer_write %1, %y[%c0] {fuse.layout = #layout, in_bounds = [true]} : vector<2xf32>, memref<2xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
