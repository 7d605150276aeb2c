// RUN: mlirfuse-opt --fuse-assign-layouts --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Ops that touch memory or other threads get the layout; elementwise ops work in their operands'.
// CHECK-LABEL: func.func private @anchors
func.func private @anchors(%x: memref<8x256xf32>, %y: memref<8x256xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%block) in (8) {
    // CHECK: vector.transfer_read {{.*}}fuse.layout = {blocks = array<i64: 1, 1>, lanes = array<i64: 1, 32>
    %0 = vector.transfer_read %x[%block, %c0], %pad {in_bounds = [true, true]} : memref<8x256xf32>, vector<1x256xf32>
    // CHECK: arith.addf %{{.*}}, %{{.*}} : vector<1x256xf32>
    %1 = arith.addf %0, %0 : vector<1x256xf32>
    // CHECK: vector.transfer_write {{.*}}fuse.layout =
    vector.transfer_write %1, %y[%block, %c0] {in_bounds = [true, true]} : vector<1x256xf32>, memref<8x256xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// expected-remark @below {{not a tile program}}
func.func private @tensors(%x: tensor<8x256xf32>) -> tensor<8x256xf32> attributes {fuse.kernel} {
  return %x : tensor<8x256xf32>
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @too_small(%x: memref<8x256xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%block) in (8) {
    // expected-error @below {{layout covers 128 of the tile's 256 elements in dimension 1}}
    %0 = vector.transfer_read %x[%block, %c0], %pad {in_bounds = [true, true]} : memref<8x256xf32>, vector<1x256xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 4, 1>, blocks = array<i64: 1, 1>}
#other = {vector = array<i64: 1, 1>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}
// A given layout is kept; the loop gets the layout of the tile that it carries.
// CHECK-LABEL: func.func private @several(
// CHECK: scf.for
// CHECK: vector.transfer_read %{{.*}}repeats = array<i64: 2, 1>, vector = array<i64: 1, 1>
// CHECK: vector.transfer_read %{{.*}}repeats = array<i64: 4, 1>, vector = array<i64: 1, 4>
// CHECK: } {fuse.layout = {{.*}}repeats = array<i64: 4, 1>, vector = array<i64: 1, 4>
func.func private @several(%x: memref<4x128xf32>, %z: memref<2x32xf32>, %y: memref<4x128xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 4, 128>, layout = #layout}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %pad = arith.constant 0.0 : f32
    %zero = arith.constant dense<0.0> : vector<4x128xf32>
    %slots = memref.alloc() : memref<2x32xf32, #gpu.address_space<workgroup>>
    %total = scf.for %i = %c0 to %c4 step %c1 iter_args(%sum = %zero) -> (vector<4x128xf32>) {
      %0 = vector.transfer_read %z[%c0, %c0], %pad {fuse.layout = #other, in_bounds = [true, true]} : memref<2x32xf32>, vector<2x32xf32>
      vector.transfer_write %0, %slots[%c0, %c0] {fuse.layout = #other, in_bounds = [true, true]} : vector<2x32xf32>, memref<2x32xf32, #gpu.address_space<workgroup>>
      %1 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<4x128xf32>, vector<4x128xf32>
      %2 = arith.addf %1, %sum : vector<4x128xf32>
      scf.yield %2 : vector<4x128xf32>
    }
    vector.transfer_write %total, %y[%c0, %c0] {in_bounds = [true, true]} : vector<4x128xf32>, memref<4x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
#second_stage = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// The partials of a persistent loop are stored in a reduce-scatter layout; the branch gets the layout of the tile.
// CHECK-LABEL: func.func private @reduce_scatter(
// CHECK: vector.multi_reduction {{.*}}warps = array<i64: 2, 1>
// CHECK: vector.transfer_write {{.*}}repeats = array<i64: 1, 1>{{.*}}warps = array<i64: 1, 2>
// CHECK: } {fuse.layout = {{.*}}warps = array<i64: 2, 1>
func.func private @reduce_scatter(%x: memref<2x256xf32>, %some: i1, %y: memref<256xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 256>, layout = #layout,
        persistent_loop = {dims = array<i64: 0>, grid_reduction = "grid_sync", second_stage_tile = array<i64: 2, 128>, second_stage_layout = #second_stage}}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<256xf32>
  scf.forall (%block) in (1) {
    scf.if %some {
      %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<2x256xf32>, vector<2x256xf32>
      %1 = vector.multi_reduction <add>, %0, %zero [0] : vector<2x256xf32> to vector<256xf32>
      vector.transfer_write %1, %y[%c0] {in_bounds = [true]} : vector<256xf32>, memref<256xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}
// What threads reduce of their own, and what becomes of it, has one element for each thread; a mask has the layout of
// the tile that it is for, and the loop that of what it carries.
// CHECK-LABEL: func.func private @thread_sums(
// CHECK: scf.for
// CHECK: vector.transfer_read {{.*}}vector = array<i64: 1, 4>
// CHECK: vector.create_mask {{.*}}vector = array<i64: 1, 4>
// CHECK: "fuse.thread_reduce"{{.*}}repeats = array<i64: 2, 1>, vector = array<i64: 1, 1>, warps = array<i64: 1, 2>
// CHECK: } {fuse.layout = {{.*}}vector = array<i64: 1, 1>
// CHECK: vector.multi_reduction {{.*}}vector = array<i64: 1, 1>
// CHECK: vector.transfer_write {{.*}}vector = array<i64: 1, 1>
func.func private @thread_sums(%x: memref<2x?xf32>, %y: memref<2xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 256>, layout = #layout}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c256 = arith.constant 256 : index
    %n = memref.dim %x, %c1 : memref<2x?xf32>
    %pad = arith.constant 0.0 : f32
    %none = arith.constant dense<0.0> : vector<2x256xf32>
    %zero = arith.constant dense<0.0> : vector<2x64xf32>
    %start = arith.constant dense<0.0> : vector<2xf32>
    %0 = scf.for %i = %c0 to %n step %c256 iter_args(%acc = %zero) -> (vector<2x64xf32>) {
      %1 = vector.transfer_read %x[%c0, %i], %pad {in_bounds = [true, false]} : memref<2x?xf32>, vector<2x256xf32>
      %left = arith.subi %n, %i : index
      %mask = vector.create_mask %c2, %left : vector<2x256xi1>
      %2 = arith.select %mask, %1, %none : vector<2x256xi1>, vector<2x256xf32>
      %3 = "fuse.thread_reduce"(%2, %acc) {dims = array<i64: 1>, kind = #vector.kind<add>, neighbours = array<i64: 4>} : (vector<2x256xf32>, vector<2x64xf32>) -> vector<2x64xf32>
      scf.yield %3 : vector<2x64xf32>
    }
    %4 = vector.multi_reduction <add>, %0, %start [1] : vector<2x64xf32> to vector<2xf32>
    vector.transfer_write %4, %y[%c0] {in_bounds = [true]} : vector<2xf32>, memref<2xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
