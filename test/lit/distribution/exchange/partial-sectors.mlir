// RUN: mlirfuse-opt --fuse-distribute --canonicalize --cse --split-input-file %s | FileCheck %s

// Four lanes of two bf16, and two neighbouring fragments a thread: the second access of a warp reads the other half of the
// sectors that the first one read, so the loads may not bypass the L1.
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
// CHECK-LABEL: gpu.func @halves
// CHECK-NOT: nontemporal
// CHECK-COUNT-2: vector.load {{.*}} {alignment = 4 : i64} : memref<8x16xbf16>, vector<2xbf16>
// CHECK-COUNT-2: vector.store {{.*}} {alignment = 4 : i64, nontemporal = true}
func.func private @halves(%x: memref<8x16xbf16> {fuse.align = 16 : i64}, %y: memref<8x16xbf16> {fuse.align = 16 : i64}) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 8, 16>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : bf16
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : memref<8x16xbf16>, vector<8x16xbf16>
    vector.transfer_write %0, %y[%c0, %c0] {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : vector<8x16xbf16>, memref<8x16xbf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// With f32 an access reads whole sectors, and a bf16 row of one access shares no sector with another access.
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
#row = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}
// CHECK-LABEL: gpu.func @whole
// CHECK-COUNT-2: vector.load {{.*}}nontemporal = true} : memref<8x16xf32>
// CHECK-LABEL: gpu.func @rows
// CHECK-COUNT-2: vector.load {{.*}}nontemporal = true} : memref<16x8xbf16>
func.func private @whole(%x: memref<8x16xf32> {fuse.align = 16 : i64}, %y: memref<8x16xf32> {fuse.align = 16 : i64}) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 8, 16>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : memref<8x16xf32>, vector<8x16xf32>
    vector.transfer_write %0, %y[%c0, %c0] {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : vector<8x16xf32>, memref<8x16xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

func.func private @rows(%x: memref<16x8xbf16> {fuse.align = 16 : i64}, %y: memref<16x8xbf16> {fuse.align = 16 : i64}) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 16, 8>, layout = #row}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : bf16
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {fuse.layout = #row, fuse.streaming, in_bounds = [true, true]} : memref<16x8xbf16>, vector<16x8xbf16>
    vector.transfer_write %0, %y[%c0, %c0] {fuse.layout = #row, fuse.streaming, in_bounds = [true, true]} : vector<16x8xbf16>, memref<16x8xbf16>
  } {mapping = [#gpu.block<x>]}
  return
}
