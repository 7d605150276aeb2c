// RUN: mlirfuse-opt --fuse-distribute --canonicalize --cse --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 2>}
// A row over two blocks of a cluster: partial sums are exchanged in distributed shared memory.
// CHECK-DAG: #[[GRID:.*]] = affine_map<()[s0] -> (s0 * 2)>
// CHECK-LABEL: gpu.func @cluster
// CHECK-SAME: fuse.grid = #[[GRID]]
// CHECK-SAME: known_cluster_size = array<i32: 2, 1, 1>
// CHECK: gpu.cluster_block_id x
// CHECK: "fuse.cluster_barrier"
// CHECK: "fuse.cluster_store"
// CHECK: "fuse.cluster_barrier"
// CHECK: gpu.return
func.func private @cluster(%x: memref<?x256xf32> {fuse.align = 16 : i64}, %y: memref<?xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  %m = memref.dim %x, %c0 : memref<?x256xf32>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 1)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 1)>(%block)
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [false, true]} : memref<?x256xf32>, vector<1x256xf32>
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [1] : vector<1x256xf32> to vector<1xf32>
    vector.transfer_write %1, %y[%row] {fuse.layout = #layout, in_bounds = [false]} : vector<1xf32>, memref<?xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Blocks that stay: the grid is the smaller of two numbers, one of which only the launch knows; in the kernel it is the
// size of the grid. The last block writes: one thread reads the semaphore, and broadcasts the result.
// CHECK-DAG: #[[GRID:.*]] = affine_map<()[s0, s1] -> (s0 ceildiv 8, s1)>
// CHECK-LABEL: gpu.func @last_block
// CHECK-SAME: %{{.*}}: memref<1xi32> {fuse.workspace = "semaphores"})
// CHECK-SAME: workgroup(%[[TOLD:.*]] : memref<1xi32, #gpu.address_space<workgroup>> {{.*}})
// CHECK-SAME: fuse.cooperative, fuse.grid = #[[GRID]], fuse.grid_operands = array<i64: 0, 0, -1, 2>
// CHECK: %[[BLOCKS:.*]] = gpu.grid_dim x
// CHECK-NOT: fuse.resident_blocks
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %[[BLOCKS]]
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK-NEXT: %[[OLD:.*]] = "fuse.semaphore_arrive"
// CHECK-NEXT: memref.store %[[OLD]], %[[TOLD]]
// CHECK: gpu.barrier
// CHECK-NEXT: %[[SEEN:.*]] = memref.load %[[TOLD]]
// CHECK: arith.cmpi eq, %[[SEEN]]
// CHECK: scf.if
// CHECK-NEXT: scf.if
// CHECK-NEXT: "fuse.semaphore_wait"
// CHECK-NEXT: }
// CHECK-NEXT: gpu.barrier
func.func private @last_block(%x: memref<?x256xf32> {fuse.align = 16 : i64}, %y: memref<?x256xf32>, %semaphores: memref<1xi32> {fuse.workspace = "semaphores"}) attributes {fuse.kernel, fuse.cooperative, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i32
  %pad = arith.constant 0.0 : f32
  %m = memref.dim %x, %c0 : memref<?x256xf32>
  %resident = "fuse.resident_blocks"() {per_sm = 2 : i64} : () -> index
  %blocks = affine.min affine_map<(d0)[s0] -> (s0 ceildiv 8, d0)>(%resident)[%m]
  scf.forall (%block) in (%blocks) {
    scf.for %row = %block to %m step %blocks {
      %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<?x256xf32>, vector<1x256xf32>
      vector.transfer_write %0, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x256xf32>, memref<?x256xf32>
    }
    %old = "fuse.semaphore_arrive"(%semaphores, %c0, %one) : (memref<1xi32>, index, i32) -> i32
    %last = arith.cmpi eq, %old, %one : i32
    scf.if %last {
      "fuse.semaphore_wait"(%semaphores, %c0, %one) : (memref<1xi32>, index, i32) -> ()
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 2>}
// What the device holds counts whole clusters. The arrival's result is unused: no barrier follows it.
// CHECK-DAG: #[[GRID:.*]] = affine_map<()[s0] -> ((s0 floordiv 2) * 2)>
// CHECK-LABEL: gpu.func @resident_clusters
// CHECK-SAME: fuse.grid = #[[GRID]], fuse.grid_operands = array<i64: -1, 1>
// CHECK: "fuse.cluster_barrier"
// CHECK: "fuse.cluster_barrier"
// CHECK: scf.if
// CHECK-NEXT: fuse.semaphore_arrive
// CHECK-NEXT: }
// CHECK-NEXT: gpu.return
func.func private @resident_clusters(%x: memref<?x256xf32> {fuse.align = 16 : i64}, %y: memref<?x256xf32>, %semaphores: memref<1xi32> {fuse.workspace = "semaphores"}) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i32
  %pad = arith.constant 0.0 : f32
  %resident = "fuse.resident_blocks"() {per_sm = 1 : i64} : () -> index
  scf.forall (%block) in (%resident) {
    %0 = vector.transfer_read %x[%block, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<?x256xf32>, vector<1x256xf32>
    vector.transfer_write %0, %y[%block, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x256xf32>, memref<?x256xf32>
    %old = "fuse.semaphore_arrive"(%semaphores, %c0, %one) : (memref<1xi32>, index, i32) -> i32
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 2>}
// As many clusters as rows, but eight at least, where the device holds so many.
// CHECK-DAG: #[[GRID:.*]] = affine_map<()[s0, s1] -> (s1 * 2, (s0 floordiv 2) * 2)>
// CHECK-LABEL: gpu.func @at_least
// CHECK-SAME: fuse.grid = #[[GRID]], fuse.grid_least = array<i64: 16, 0>, fuse.grid_operands = array<i64: -1, 1, 0, 0>
// CHECK: gpu.grid_dim x
// CHECK-NOT: affine.max
func.func private @at_least(%x: memref<?x256xf32> {fuse.align = 16 : i64}, %y: memref<?x256xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %m = memref.dim %x, %c0 : memref<?x256xf32>
  %resident = "fuse.resident_blocks"() {per_sm = 1 : i64} : () -> index
  %wanted = affine.max affine_map<()[s0] -> (s0, 8)>()[%m]
  %blocks = affine.min affine_map<()[s0, s1] -> (s0, s1)>()[%wanted, %resident]
  scf.forall (%block) in (%blocks) {
    scf.for %row = %block to %m step %blocks {
      %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<?x256xf32>, vector<1x256xf32>
      vector.transfer_write %0, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x256xf32>, memref<?x256xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @most_of_two(%x: memref<?x256xf32> {fuse.align = 16 : i64}, %y: memref<?x256xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %m = memref.dim %x, %c0 : memref<?x256xf32>
  %resident = "fuse.resident_blocks"() {per_sm = 1 : i64} : () -> index
  // expected-error @below {{the number of blocks is the maximum of 2 run-time numbers, one is allowed}}
  %wanted = affine.max affine_map<()[s0] -> (s0, s0 ceildiv 2 + 4)>()[%m]
  %blocks = affine.min affine_map<()[s0, s1] -> (s0, s1)>()[%wanted, %resident]
  scf.forall (%block) in (%blocks) {
    %0 = vector.transfer_read %x[%block, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<?x256xf32>, vector<1x256xf32>
    vector.transfer_write %0, %y[%block, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x256xf32>, memref<?x256xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
