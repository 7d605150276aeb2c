// RUN: mlirfuse-opt --fuse-assign-layouts --fuse-distribute --canonicalize --cse --split-input-file %s | FileCheck %s

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 4>, blocks = array<i64: 1, 1>}
// Four lanes have a row of each 8 columns, two each. They transpose four fragments, and each stores 16 contiguous bytes.
// CHECK-LABEL: gpu.func @quads
// CHECK-COUNT-4: vector.bitcast %{{.*}} : vector<2xf16> to vector<1xi32>
// CHECK-COUNT-4: gpu.shuffle
// CHECK-NOT: gpu.shuffle
// CHECK: %[[WHOLE:.*]] = vector.bitcast %{{.*}} : vector<4xi32> to vector<8xf16>
// CHECK: vector.store %[[WHOLE]], %{{.*}} {alignment = 16 : i64} : memref<8x32xf16>, vector<8xf16>
// CHECK-NOT: vector.store
// Lanes whose row is past the end take part, and skip the store.
// CHECK-LABEL: gpu.func @clipped_rows
// CHECK-COUNT-4: gpu.shuffle
// CHECK: scf.if
// CHECK: vector.store {{.*}} {alignment = 16 : i64}
// Rows that are aligned to 4 bytes take accesses of these.
// CHECK-LABEL: gpu.func @unaligned
// CHECK-NOT: gpu.shuffle
// CHECK-COUNT-4: vector.store {{.*}} {alignment = 4 : i64}
// Columns that may be past the end do too.
// CHECK-LABEL: gpu.func @clipped_columns
// CHECK-NOT: gpu.shuffle
// CHECK-COUNT-4: vector.store {{.*}} {alignment = 4 : i64}
func.func private @quads(%x: memref<8x32xf16> {fuse.align = 16 : i64}, %y: memref<8x32xf16> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 8, 32>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x32xf16>, vector<8x32xf16>
    vector.transfer_write %0, %y[%c0, %c0] {in_bounds = [true, true]} : vector<8x32xf16>, memref<8x32xf16>
  } {mapping = [#gpu.block<x>]}
  return
}
func.func private @clipped_rows(%x: memref<8x32xf16> {fuse.align = 16 : i64}, %y: memref<5x32xf16> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 8, 32>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x32xf16>, vector<8x32xf16>
    vector.transfer_write %0, %y[%c0, %c0] {in_bounds = [false, true]} : vector<8x32xf16>, memref<5x32xf16>
  } {mapping = [#gpu.block<x>]}
  return
}
func.func private @unaligned(%x: memref<8x32xf16> {fuse.align = 16 : i64}, %y: memref<8x34xf16> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 8, 32>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x32xf16>, vector<8x32xf16>
    vector.transfer_write %0, %y[%c0, %c0] {in_bounds = [true, true]} : vector<8x32xf16>, memref<8x34xf16>
  } {mapping = [#gpu.block<x>]}
  return
}
func.func private @clipped_columns(%x: memref<8x32xf16> {fuse.align = 16 : i64}, %y: memref<8x24xf16> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 8, 32>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x32xf16>, vector<8x32xf16>
    vector.transfer_write %0, %y[%c0, %c0] {in_bounds = [true, false]} : vector<8x32xf16>, memref<8x24xf16>
  } {mapping = [#gpu.block<x>]}
  return
}
