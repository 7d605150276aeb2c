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
