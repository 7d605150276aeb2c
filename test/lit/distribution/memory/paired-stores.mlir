// RUN: mlirfuse-opt --fuse-assign-layouts --fuse-distribute --canonicalize --cse --split-input-file %s | FileCheck %s

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Eight numbers of 4 bytes take two stores. Even lanes store the first halves of theirs and the neighbour's, odd lanes the
// second: each pair of lanes stores 32 contiguous bytes at a time, once its own, once its neighbour's.
// CHECK-LABEL: gpu.func @halves
// CHECK-SAME: %{{[a-z0-9]+}}: memref<256xbf16> {{.*}}, %[[Y:[a-z0-9]+]]: memref<256xf32>
// CHECK: %[[COLUMN:.*]] = arith.muli %[[LANE:.*]], %c8
// CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : vector<8xbf16> to vector<8xf32>
// CHECK: %[[SIDE:.*]] = arith.remui %[[LANE]], %c2
// CHECK: %[[ODD:.*]] = arith.cmpi ne, %[[SIDE]], %c0
// CHECK: %[[E:.*]]:8 = vector.to_elements %[[WIDE]]
// CHECK: %[[SENT:.*]] = arith.select %[[ODD]], %[[E]]#0, %[[E]]#4
// CHECK: %[[GOT:.*]], %{{.*}} = gpu.shuffle xor %[[SENT]], %c1_i32
// CHECK-COUNT-3: gpu.shuffle
// CHECK-NOT: gpu.shuffle
// CHECK: %[[FIRST:.*]] = arith.select %[[ODD]], %[[GOT]], %[[E]]#0
// CHECK: %[[SECOND:.*]] = arith.select %[[ODD]], %[[E]]#4, %[[GOT]]
// CHECK: %[[BACK:.*]] = arith.muli %[[SIDE]], %c-4
// CHECK: %[[START:.*]] = arith.addi %[[COLUMN]], %[[BACK]]
// CHECK: %[[OWN:.*]] = vector.from_elements %[[FIRST]]
// CHECK: vector.store %[[OWN]], %[[Y]][%[[START]]] {alignment = 16 : i64}
// CHECK: %[[NEXT:.*]] = arith.addi %[[START]], %c8
// CHECK: %[[OTHER:.*]] = vector.from_elements %[[SECOND]]
// CHECK: vector.store %[[OTHER]], %[[Y]][%[[NEXT]]] {alignment = 16 : i64}
func.func private @halves(%x: memref<256xbf16> {fuse.align = 16 : i64}, %y: memref<256xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : bf16
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0], %pad {in_bounds = [true, true], permutation_map = affine_map<(d0) -> (0, d0)>} : memref<256xbf16>, vector<1x256xbf16>
    %1 = arith.extf %0 : vector<1x256xbf16> to vector<1x256xf32>
    %2 = vector.shape_cast %1 : vector<1x256xf32> to vector<256xf32>
    vector.transfer_write %2, %y[%c0] {in_bounds = [true]} : vector<256xf32>, memref<256xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 2, 16>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Lanes whose row is past the end take part in the exchange, and skip the store.
// CHECK-LABEL: gpu.func @clipped_rows
// CHECK-COUNT-4: gpu.shuffle
// CHECK-NOT: gpu.shuffle
// CHECK: scf.if
// CHECK-COUNT-2: vector.store {{.*}} {alignment = 16 : i64}
// If only one lane of a pair may be out of bounds, lanes store their own fragments.
// CHECK-LABEL: gpu.func @clipped_columns
// CHECK-NOT: gpu.shuffle
// CHECK: scf.if
// CHECK-COUNT-2: vector.store {{.*}} {alignment = 16 : i64}
// CHECK-NOT: gpu.shuffle
// Narrow elements are exchanged as words of 32 bits.
// CHECK-LABEL: gpu.func @packed
// CHECK: vector.bitcast %{{.*}} : vector<16xf16> to vector<8xi32>
// CHECK-COUNT-4: gpu.shuffle
// CHECK-NOT: gpu.shuffle
// CHECK: vector.bitcast %{{.*}} : vector<8xi32> to vector<16xf16>
// CHECK-COUNT-2: vector.store {{.*}} {alignment = 16 : i64} : memref<512xf16>, vector<8xf16>
// A fragment of 16 bytes is one store.
// CHECK-LABEL: gpu.func @narrow
// CHECK-NOT: gpu.shuffle
// CHECK: vector.store {{.*}} : memref<2x128xbf16>, vector<8xbf16>
// CHECK-NOT: gpu.shuffle
func.func private @clipped_rows(%x: memref<?x128xbf16> {fuse.align = 16 : i64}, %y: memref<?x128xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : bf16
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [false, true]} : memref<?x128xbf16>, vector<2x128xbf16>
    %1 = arith.extf %0 : vector<2x128xbf16> to vector<2x128xf32>
    vector.transfer_write %1, %y[%c0, %c0] {in_bounds = [false, true]} : vector<2x128xf32>, memref<?x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
func.func private @clipped_columns(%x: memref<2x120xbf16> {fuse.align = 16 : i64}, %y: memref<2x120xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 120>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : bf16
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<2x120xbf16>, vector<2x120xbf16>
    %1 = arith.extf %0 : vector<2x120xbf16> to vector<2x120xf32>
    vector.transfer_write %1, %y[%c0, %c0] {in_bounds = [true, true]} : vector<2x120xf32>, memref<2x120xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
#wide = {vector = array<i64: 1, 16>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @packed(%x: memref<512xi8> {fuse.align = 16 : i64}, %y: memref<512xf16>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 512>, layout = #wide}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0 : i8
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0], %pad {in_bounds = [true, true], permutation_map = affine_map<(d0) -> (0, d0)>} : memref<512xi8>, vector<1x512xi8>
    %1 = arith.sitofp %0 : vector<1x512xi8> to vector<1x512xf16>
    %2 = vector.shape_cast %1 : vector<1x512xf16> to vector<512xf16>
    vector.transfer_write %2, %y[%c0] {in_bounds = [true]} : vector<512xf16>, memref<512xf16>
  } {mapping = [#gpu.block<x>]}
  return
}
func.func private @narrow(%x: memref<2x128xbf16> {fuse.align = 16 : i64}, %y: memref<2x128xbf16>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : bf16
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<2x128xbf16>, vector<2x128xbf16>
    vector.transfer_write %0, %y[%c0, %c0] {in_bounds = [true, true]} : vector<2x128xbf16>, memref<2x128xbf16>
  } {mapping = [#gpu.block<x>]}
  return
}
