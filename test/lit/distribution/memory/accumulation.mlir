// RUN: mlirfuse-opt --fuse-assign-layouts --fuse-distribute --canonicalize --cse --split-input-file %s | FileCheck %s

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Of the threads that hold the same columns, the first adds them; all threads clear the sums after a barrier.
// CHECK-LABEL: gpu.func @columns(
// CHECK-SAME: %{{[a-z0-9]+}}: memref<8x64xf32>, %[[SUMS:[a-z0-9]+]]: memref<1x64xf32>
// CHECK-DAG: %[[THREAD:.*]] = gpu.thread_id x
// CHECK-DAG: %[[COLUMN:.*]] = arith.muli %{{.*}}, %c8
// CHECK: gpu.shuffle
// CHECK: scf.if %{{.*}} {
// CHECK: "fuse.accumulate"(%{{.*}}, %[[SUMS]], %c0, %[[COLUMN]]) {alignment = 16 : i64} : (vector<8xf32>, memref<1x64xf32>, index, index) -> ()
// CHECK: gpu.barrier
// CHECK-DAG: %[[FLAT:.*]] = memref.collapse_shape %[[SUMS]] {{\[}}[0, 1]] : memref<1x64xf32> into memref<64xf32>
// CHECK-DAG: %[[FIRST:.*]] = arith.muli %[[THREAD]], %c4
// CHECK: scf.for %[[I:.*]] = %[[FIRST]] to %c64 step %c256
// CHECK: vector.store %{{.*}}, %[[FLAT]][%[[I]]] {alignment = 16 : i64} : memref<64xf32>, vector<4xf32>
func.func private @columns(%x: memref<8x64xf32>, %sums: memref<1x64xf32> {fuse.workspace = "semaphores"})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 8, 64>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<64xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x64xf32>, vector<8x64xf32>
    %1 = vector.multi_reduction <add>, %0, %zero [0] : vector<8x64xf32> to vector<64xf32>
    "fuse.accumulate"(%1, %sums, %c0, %c0) : (vector<64xf32>, memref<1x64xf32>, index, index) -> ()
    linalg.fill ins(%pad : f32) outs(%sums : memref<1x64xf32>)
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 4, 1>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Vectors along another dimension than the sums' last one are added element by element, without padding.
// CHECK-LABEL: gpu.func @rows(
// CHECK-SAME: %{{[a-z0-9]+}}: memref<28x7xf32>, %[[SUMS:[a-z0-9]+]]: memref<28x7xf32>
// CHECK: %[[INSIDE:.*]] = arith.andi
// CHECK: scf.if %[[INSIDE]] {
// CHECK: "fuse.accumulate"(%{{.*}}, %[[SUMS]], %[[ROW:.*]], %[[COLUMN:.*]]) {alignment = 4 : i64} : (f32,
// CHECK: %[[NEXT:.*]] = arith.addi %[[ROW]], %c1
// CHECK: "fuse.accumulate"(%{{.*}}, %[[SUMS]], %[[NEXT]], %[[COLUMN]])
// CHECK-COUNT-2: "fuse.accumulate"
func.func private @rows(%x: memref<28x7xf32>, %sums: memref<28x7xf32> {fuse.workspace = "semaphores"})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 28, 7>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<28x7xf32>, vector<28x7xf32>
    "fuse.accumulate"(%0, %sums, %c0, %c0) : (vector<28x7xf32>, memref<28x7xf32>, index, index) -> ()
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 2>}
// A scalar that all threads of a cluster hold is added by one thread; the cluster's threads clear the sums.
// CHECK-LABEL: gpu.func @one(
// CHECK: scf.if
// CHECK: "fuse.accumulate"(%{{.*}}, %{{.*}}, %c0) {alignment = 4 : i64} : (f32, memref<1xf32>, index) -> ()
// CHECK: "fuse.cluster_barrier"()
// CHECK: arith.muli %cluster_block_id_x, %c64
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %c1 step %c128
// CHECK: memref.store %{{.*}}[%[[I]]]
func.func private @one(%x: memref<1x1024xf32>, %sums: memref<1xf32> {fuse.workspace = "semaphores"})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 1024>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<1x1024xf32>, vector<1x1024xf32>
    %1 = vector.multi_reduction <add>, %0, %zero [1] : vector<1x1024xf32> to vector<1xf32>
    "fuse.accumulate"(%1, %sums, %c0) : (vector<1xf32>, memref<1xf32>, index) -> ()
    linalg.fill ins(%pad : f32) outs(%sums : memref<1xf32>)
  } {mapping = [#gpu.block<x>]}
  return
}
