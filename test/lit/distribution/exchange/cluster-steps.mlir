// RUN: mlirfuse-opt --fuse-assign-layouts --fuse-distribute --canonicalize --cse --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 2>}
// In a loop all warps of a cluster send their partials to all blocks, and wait for the partials of all warps: four of 4
// bytes a step. Two mbarriers, and two copies of the memory, alternate.
// CHECK-LABEL: gpu.func @sends
// CHECK-SAME: workgroup(%[[BARRIERS:[a-z0-9]+]] : memref<2xi64, #gpu.address_space<workgroup>>
// CHECK-SAME: %[[PARTIALS:[a-z0-9]+]] : memref<8xf32, #gpu.address_space<workgroup>>
// CHECK: "fuse.mbarrier_init"(%[[BARRIERS]]) {arrivals = 1 : i64}
// CHECK-NEXT: "fuse.cluster_barrier"
// CHECK: scf.for {{.*}} iter_args(%[[ROUNDS:[a-z0-9]+]] = %c0{{.*}}) -> (index)
// CHECK: %[[NUMBER:.*]] = arith.remui %[[ROUNDS]], %c2
// CHECK: %[[PHASE:.*]] = arith.divui %[[ROUNDS]], %c2
// CHECK: scf.if
// CHECK-NEXT: "fuse.mbarrier_expect"(%[[BARRIERS]], %[[NUMBER]]) {bytes = 16 : i64}
// CHECK: "fuse.cluster_send"(%{{[0-9]+}}, %[[PARTIALS]], %{{[0-9]+}}, %{{[0-9]+}}, %[[BARRIERS]], %[[NUMBER]]) {peers = 2 : i64}
// CHECK: %[[PARITY:.*]] = arith.index_cast %[[PHASE]] : index to i32
// CHECK: "fuse.mbarrier_wait"(%[[BARRIERS]], %[[NUMBER]], %[[PARITY]]) {cluster}
// CHECK: %[[MORE:.*]] = arith.addi %[[ROUNDS]], %c1
// CHECK: %[[NEXT:.*]] = arith.remui %[[MORE]], %c4
// CHECK: vector.load %[[PARTIALS]]
// CHECK-NOT: fuse.cluster_barrier
// CHECK: scf.yield %[[NEXT]] : index
func.func private @sends(%x: memref<8x512xf32> {fuse.align = 16 : i64}, %y: memref<8xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 512>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%block) in (1) {
    scf.for %row = %c0 to %c8 step %c1 {
      %0 = vector.transfer_read %x[%row, %c0], %pad {in_bounds = [true, true]} : memref<8x512xf32>, vector<1x512xf32>
      %1 = vector.multi_reduction <add>, %0, %zero [1] : vector<1x512xf32> to vector<1xf32>
      vector.transfer_write %1, %y[%row] {in_bounds = [true]} : vector<1xf32>, memref<8xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 2>}
// If rows are on different warps but the sum is over both, half of the warps would not send, and their reads would not be
// ordered. So barriers are used.
// CHECK-LABEL: gpu.func @copies
// CHECK-NOT: fuse.cluster_send
// CHECK: scf.for
// CHECK: "fuse.cluster_store"
// CHECK: "fuse.cluster_barrier"
// CHECK-NOT: fuse.cluster_send
// CHECK: gpu.return
func.func private @copies(%x: memref<8x256xf32> {fuse.align = 16 : i64}, %y: memref<8xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%block) in (1) {
    scf.for %row = %c0 to %c8 step %c1 {
      %0 = vector.transfer_read %x[%row, %c0], %pad {in_bounds = [true, true]} : memref<8x256xf32>, vector<1x256xf32>
      %1 = vector.multi_reduction <add>, %0, %zero [1] : vector<1x256xf32> to vector<1xf32>
      vector.transfer_write %1, %y[%row] {in_bounds = [true]} : vector<1xf32>, memref<8xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 2>}
// Numbers of 2 bytes cannot be sent.
// CHECK-LABEL: gpu.func @narrow
// CHECK-NOT: fuse.cluster_send
// CHECK: "fuse.cluster_store"
func.func private @narrow(%x: memref<8x512xf16> {fuse.align = 16 : i64}, %y: memref<8xf16>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 512>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<1xf16>
  scf.forall (%block) in (1) {
    scf.for %row = %c0 to %c8 step %c1 {
      %0 = vector.transfer_read %x[%row, %c0], %pad {in_bounds = [true, true]} : memref<8x512xf16>, vector<1x512xf16>
      %1 = vector.multi_reduction <add>, %0, %zero [1] : vector<1x512xf16> to vector<1xf16>
      vector.transfer_write %1, %y[%row] {in_bounds = [true]} : vector<1xf16>, memref<8xf16>
    }
  } {mapping = [#gpu.block<x>]}
  return
}
