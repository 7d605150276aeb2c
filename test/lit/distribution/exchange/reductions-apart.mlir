// RUN: mlirfuse-opt --fuse-distribute --canonicalize --cse --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#rows = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
#apart = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Two warps have a row each, and store all of it to shared memory. Each warp then loads half of the columns of both rows,
// and stores their sums.
// CHECK-LABEL: gpu.func @halves
// CHECK-SAME: %[[Y:[a-z0-9]+]]: memref<256xf32>) workgroup(%[[PARTIALS:.*]] : memref<512xf32
// CHECK-DAG: %[[LANE:.*]] = arith.remui %[[THREAD:.*]], %c32
// CHECK-DAG: %[[WARP:.*]] = arith.divui %[[THREAD]], %c32
// CHECK-COUNT-2: vector.store %{{.*}}, %[[PARTIALS]]
// CHECK: gpu.barrier
// CHECK: %[[A:.*]] = vector.load %[[PARTIALS]][%[[COLUMN:.*]]]
// CHECK: %[[OTHER:.*]] = arith.addi %[[COLUMN]], %c256
// CHECK: %[[B:.*]] = vector.load %[[PARTIALS]][%[[OTHER]]]
// CHECK-NOT: vector.load
// CHECK: %[[SUM:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NOT: scf.if
// CHECK: vector.store %[[SUM]], %[[Y]][%[[COLUMN]]]
// CHECK-NOT: vector.store
func.func private @halves(%x: memref<2x256xf32>, %y: memref<256xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 256>, layout = #rows}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<256xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {fuse.layout = #rows, in_bounds = [true, true]} : memref<2x256xf32>, vector<2x256xf32>
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #rows} [0] : vector<2x256xf32> to vector<256xf32>
    vector.transfer_write %1, %y[%c0] {fuse.layout = #apart, in_bounds = [true]} : vector<256xf32>, memref<256xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#rows = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 3>, blocks = array<i64: 1, 1>}
#apart = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
// Three fragments for two warps: the second warp's last fragment is past the end, so it loads the last valid one and
// stores nothing.
// CHECK-LABEL: gpu.func @ragged
// CHECK: gpu.barrier
// CHECK: arith.minui %{{.*}}, %c380
// CHECK: vector.store
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %c384
// CHECK: scf.if %[[INSIDE]]
// CHECK-NEXT: vector.store
func.func private @ragged(%x: memref<2x384xf32>, %y: memref<384xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 384>, layout = #rows}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<384xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {fuse.layout = #rows, in_bounds = [true, true]} : memref<2x384xf32>, vector<2x384xf32>
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #rows} [0] : vector<2x384xf32> to vector<384xf32>
    vector.transfer_write %1, %y[%c0] {fuse.layout = #apart, in_bounds = [true]} : vector<384xf32>, memref<384xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#columns = {vector = array<i64: 4, 1>, lanes = array<i64: 32, 1>, warps = array<i64: 2, 2>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}
#apart = {vector = array<i64: 4, 1>, lanes = array<i64: 32, 1>, warps = array<i64: 4, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Each pair of warps has half of the rows, and needs columns that the other pair sent partials of. So all four warps pass
// one barrier, in a loop too.
// CHECK-LABEL: gpu.func @groups
// CHECK-NOT: nvvm.barrier
// CHECK: scf.for
// CHECK-NOT: nvvm.barrier
// CHECK: gpu.barrier
// CHECK-NOT: nvvm.barrier
// CHECK: gpu.return
func.func private @groups(%x: memref<512x4xf32, strided<[1, 512]>>, %y: memref<512xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 512, 2>, layout = #columns}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<512xf32>
  scf.forall (%block) in (1) {
    scf.for %k = %c0 to %c2 step %c1 {
      %column = arith.muli %k, %c2 : index
      %0 = vector.transfer_read %x[%c0, %column], %pad {fuse.layout = #columns, in_bounds = [true, true]} : memref<512x4xf32, strided<[1, 512]>>, vector<512x2xf32>
      %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #columns} [1] : vector<512x2xf32> to vector<512xf32>
      vector.transfer_write %1, %y[%c0] {fuse.layout = #apart, fuse.dims = array<i64: 0>, in_bounds = [true]} : vector<512xf32>, memref<512xf32>
    } {fuse.layout = #columns}
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#turns = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>, blocks = array<i64: 1, 1>}
#other = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
func.func private @alone(%x: memref<2x512xf32>, %y: memref<512xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 512>, layout = #turns}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<512xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {fuse.layout = #turns, in_bounds = [true, true]} : memref<2x512xf32>, vector<2x512xf32>
    // expected-error @below {{the result of a reduction has another layout than its source}}
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #turns} [0] : vector<2x512xf32> to vector<512xf32>
    vector.transfer_write %1, %y[%c0] {fuse.layout = #other, in_bounds = [true]} : vector<512xf32>, memref<512xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
