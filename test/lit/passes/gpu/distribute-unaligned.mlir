// RUN: mlirfuse-opt --fuse-distribute --canonicalize --cse --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// An argument that is aligned to 4 bytes only is read element by element.
// CHECK-LABEL: gpu.func @unaligned
// CHECK-NOT: vector.load
// CHECK-COUNT-4: memref.load
func.func private @unaligned(%x: memref<?x128xf32> {fuse.align = 4 : i64}, %y: memref<?xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  %m = memref.dim %x, %c0 : memref<?x128xf32>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 1)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 1)>(%block)
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [false, true]} : memref<?x128xf32>, vector<1x128xf32>
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [1] : vector<1x128xf32> to vector<1xf32>
    vector.transfer_write %1, %y[%row] {fuse.layout = #layout, in_bounds = [false]} : vector<1xf32>, memref<?xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
// One branch tests the row for all of its fragments; a branch inside it tests the last fragment.
// CHECK-LABEL: gpu.func @ragged_rows
// CHECK: arith.addf
// CHECK: arith.addf
// CHECK: %[[ROW:.*]] = arith.cmpi ult, %{{.*}}, %dim
// CHECK-NEXT: scf.if %[[ROW]] {
// CHECK: vector.store
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %c200
// CHECK-NEXT: scf.if %[[INSIDE]] {
// CHECK: vector.store
// CHECK: gpu.return
func.func private @ragged_rows(%x: memref<?x200xf32> {fuse.align = 16 : i64}, %y: memref<?x200xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 200>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %m = memref.dim %x, %c0 : memref<?x200xf32>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 2)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 2)>(%block)
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, fuse.streaming, in_bounds = [false, true]} : memref<?x200xf32>, vector<2x200xf32>
    %1 = arith.addf %0, %0 : vector<2x200xf32>
    vector.transfer_write %1, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [false, true]} : vector<2x200xf32>, memref<?x200xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 3>, blocks = array<i64: 1, 1>, shift_to = array<i64: 0, 8>}
// Rows of an odd number of elements are shifted: what holds whole rows is accessed by aligned vectors, of which the first
// and the last one are masked; values that all rows share are shifted in registers. Single elements are loaded only at the
// end of the memory.
// CHECK-LABEL: gpu.func @shifted
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x513xf16>
// CHECK: %[[START:.*]] = arith.muli %block_id_x, %c513
// CHECK: arith.andi %[[START]], %c7
// CHECK: %[[FLAT:.*]] = memref.collapse_shape %[[X]] {{.*}} : memref<?x513xf16> into memref<?xf16>
// CHECK: vector.load %[[FLAT]][{{.*}}] {alignment = 16 : i64, nontemporal = true} : memref<?xf16>, vector<8xf16>
// CHECK: vector.load %[[FLAT]][{{.*}}] {alignment = 16 : i64, nontemporal = true} : memref<?xf16>, vector<8xf16>
// CHECK: scf.if
// CHECK: vector.load %[[FLAT]][{{.*}}] {alignment = 16 : i64, nontemporal = true} : memref<?xf16>, vector<8xf16>
// CHECK: %[[EACH:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : vector<8xi32>
// CHECK: arith.select %[[EACH]], %{{.*}} : vector<8xi1>, vector<8xf16>
// CHECK: vector.load %{{.*}} {alignment = 16 : i64} : memref<513xf16>, vector<8xf16>
// CHECK: vector.load %{{.*}} {alignment = 16 : i64} : memref<513xf16>, vector<8xf16>
// CHECK: arith.select %{{.*}} : i32
// CHECK: arith.shrui %{{.*}} : i64
// CHECK: vector.store %{{.*}} {alignment = 16 : i64, nontemporal = true} : memref<?xf16>, vector<8xf16>
func.func private @shifted(%x: memref<?x513xf16> {fuse.align = 16 : i64}, %w: memref<513xf16> {fuse.align = 16 : i64}, %y: memref<?x513xf16>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 513>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  %lowest = arith.constant dense<0xFC00> : vector<1xf16>
  %m = memref.dim %x, %c0 : memref<?x513xf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0)>()[%m]
  scf.forall (%row) in (%blocks) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : memref<?x513xf16>, vector<1x513xf16>
    %1 = vector.multi_reduction <maximumf>, %0, %lowest {fuse.layout = #layout} [1] : vector<1x513xf16> to vector<1xf16>
    %2 = vector.shape_cast %1 : vector<1xf16> to vector<1x1xf16>
    %3 = vector.broadcast %2 : vector<1x1xf16> to vector<1x513xf16>
    %4 = vector.transfer_read %w[%c0], %pad {fuse.layout = #layout, in_bounds = [true, true], permutation_map = affine_map<(d0) -> (0, d0)>} : memref<513xf16>, vector<1x513xf16>
    %5 = arith.subf %0, %3 : vector<1x513xf16>
    %6 = arith.mulf %5, %4 : vector<1x513xf16>
    vector.transfer_write %6, %y[%row, %c0] {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : vector<1x513xf16>, memref<?x513xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 5>, blocks = array<i64: 1, 1>, shift_to = array<i64: 0, 64>}
// Rows of whole vectors are shifted to lines of 64 elements. Of a fragment that may lie outside of its row the row's last
// vector is read, and nothing is written; fragments in between have no tests. Values that all rows share are shifted alike.
// CHECK-LABEL: gpu.func @lines
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x516xf16>
// CHECK-SAME: %[[W:[a-z0-9]+]]: memref<516xf16>
// CHECK: %[[START:.*]] = arith.muli %block_id_x, %c516
// CHECK: %[[SHIFT:.*]] = arith.andi %[[START]], %c63
// CHECK: %[[FLAT:.*]] = memref.collapse_shape %[[X]] {{.*}} : memref<?x516xf16> into memref<?xf16>
// CHECK: %[[FIRST:.*]] = arith.subi %{{.*}}, %[[SHIFT]]
// CHECK: %[[COLUMN:.*]] = arith.minui %[[FIRST]], %c512
// CHECK: %[[PLACE:.*]] = arith.addi %[[START]], %[[COLUMN]]
// CHECK: vector.load %[[FLAT]][%[[PLACE]]] {alignment = 8 : i64, nontemporal = true} : memref<?xf16>, vector<4xf16>
// CHECK-NOT: arith.minui
// CHECK-COUNT-3: vector.load %[[FLAT]]
// CHECK: arith.minui %{{.*}}, %c512
// CHECK: vector.load %[[FLAT]]
// CHECK-NOT: scf.if
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[FIRST]], %c516
// CHECK: arith.select %[[INSIDE]], %{{.*}} : vector<4xf16>
// CHECK: vector.load %[[W]][%[[COLUMN]]] {alignment = 8 : i64} : memref<516xf16>, vector<4xf16>
// CHECK-NOT: arith.shrui
// CHECK: scf.if %{{.*}} {
// CHECK: vector.store %{{.*}}, %{{.*}}[{{.*}}] {alignment = 8 : i64, nontemporal = true} : memref<?xf16>, vector<4xf16>
// CHECK-NEXT: }
// CHECK-COUNT-3: vector.store
// CHECK: scf.if
// CHECK-NEXT: vector.store
// CHECK-NOT: memref.store
func.func private @lines(%x: memref<?x516xf16> {fuse.align = 16 : i64}, %w: memref<516xf16> {fuse.align = 16 : i64}, %y: memref<?x516xf16>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 516>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  %lowest = arith.constant dense<0xFC00> : vector<1xf16>
  %m = memref.dim %x, %c0 : memref<?x516xf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0)>()[%m]
  scf.forall (%row) in (%blocks) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : memref<?x516xf16>, vector<1x516xf16>
    %1 = vector.multi_reduction <maximumf>, %0, %lowest {fuse.layout = #layout} [1] : vector<1x516xf16> to vector<1xf16>
    %2 = vector.shape_cast %1 : vector<1xf16> to vector<1x1xf16>
    %3 = vector.broadcast %2 : vector<1x1xf16> to vector<1x516xf16>
    %4 = vector.transfer_read %w[%c0], %pad {fuse.layout = #layout, in_bounds = [true, true], permutation_map = affine_map<(d0) -> (0, d0)>} : memref<516xf16>, vector<1x516xf16>
    %5 = arith.subf %0, %3 : vector<1x516xf16>
    %6 = arith.mulf %5, %4 : vector<1x516xf16>
    vector.transfer_write %6, %y[%row, %c0] {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : vector<1x516xf16>, memref<?x516xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 3>, blocks = array<i64: 1, 1>, shift_to = array<i64: 0, 8>}
// With recomputed addresses, the start and shift of a row are computed again after the reduction, from row and thread
// numbers behind an optimization barrier.
// CHECK-LABEL: gpu.func @shifted_late
// CHECK: %[[START:.*]] = arith.muli %block_id_x, %c513
// CHECK: arith.andi %[[START]], %c7
// CHECK: %[[THREAD:.*]] = arith.index_cast %thread_id_x{{.*}} : index to i32
// CHECK: "fuse.optimization_barrier"(%[[THREAD]], %{{.*}}) : (i32, f16) -> i32
// CHECK: %[[ROW:.*]] = arith.index_cast %block_id_x : index to i32
// CHECK: %[[OPAQUE:.*]] = "fuse.optimization_barrier"(%[[ROW]], %{{.*}}) : (i32, f16) -> i32
// CHECK: %[[LATE:.*]] = arith.index_cast %[[OPAQUE]] : i32 to index
// CHECK: %[[AGAIN:.*]] = arith.muli %[[LATE]], %c513
// CHECK: arith.andi %[[AGAIN]], %c7
// CHECK: vector.store %{{.*}} {alignment = 16 : i64, nontemporal = true} : memref<?xf16>, vector<8xf16>
func.func private @shifted_late(%x: memref<?x513xf16> {fuse.align = 16 : i64}, %y: memref<?x513xf16>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 513>, layout = #layout, rematerialize_addresses = true}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  %lowest = arith.constant dense<0xFC00> : vector<1xf16>
  %m = memref.dim %x, %c0 : memref<?x513xf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0)>()[%m]
  scf.forall (%row) in (%blocks) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : memref<?x513xf16>, vector<1x513xf16>
    %1 = vector.multi_reduction <maximumf>, %0, %lowest {fuse.layout = #layout} [1] : vector<1x513xf16> to vector<1xf16>
    %2 = vector.shape_cast %1 : vector<1xf16> to vector<1x1xf16>
    %3 = vector.broadcast %2 : vector<1x1xf16> to vector<1x513xf16>
    %4 = arith.subf %0, %3 : vector<1x513xf16>
    vector.transfer_write %4, %y[%row, %c0] {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : vector<1x513xf16>, memref<?x513xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 3>, blocks = array<i64: 1, 1>, realigned = array<i64: 0, 1>}
// Or they are realigned: two aligned windows of what holds whole rows become one fragment, and of the result, through shared
// memory, one aligned vector. Values that all rows share are accessed unshifted.
// CHECK-LABEL: gpu.func @realigned
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x513xf16>
// CHECK-SAME: %[[W:[a-z0-9]+]]: memref<513xf16>
// CHECK-SAME: workgroup(%[[STAGED:.*]] : memref<768xf16, #gpu.address_space<workgroup>>
// CHECK: %[[START:.*]] = arith.muli %block_id_x, %c513
// CHECK: %[[FLAT:.*]] = memref.collapse_shape %[[X]] {{.*}} : memref<?x513xf16> into memref<?xf16>
// CHECK: %[[LOW:.*]] = vector.load %[[FLAT]][{{.*}}] {alignment = 16 : i64} : memref<?xf16>, vector<8xf16>
// CHECK: %[[HIGH:.*]] = vector.load %[[FLAT]][{{.*}}] {alignment = 16 : i64} : memref<?xf16>, vector<8xf16>
// CHECK: arith.select %{{.*}} : i32
// CHECK: arith.shrui %{{.*}} : i64
// CHECK: vector.load %[[W]][{{.*}}] {alignment = 16 : i64} : memref<513xf16>, vector<8xf16>
// CHECK: vector.store %{{.*}}, %[[STAGED]][{{.*}}] {alignment = 16 : i64}
// CHECK: gpu.barrier
// CHECK: vector.load %[[STAGED]][{{.*}}] {alignment = 16 : i64}
// CHECK: vector.load %[[STAGED]][{{.*}}] {alignment = 16 : i64}
// CHECK: arith.shrui %{{.*}} : i64
// CHECK: vector.store %{{.*}} {alignment = 16 : i64, nontemporal = true} : memref<?xf16>, vector<8xf16>
func.func private @realigned(%x: memref<?x513xf16> {fuse.align = 16 : i64}, %w: memref<513xf16> {fuse.align = 16 : i64}, %y: memref<?x513xf16>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 513>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  %m = memref.dim %x, %c0 : memref<?x513xf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0)>()[%m]
  scf.forall (%row) in (%blocks) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : memref<?x513xf16>, vector<1x513xf16>
    %1 = vector.transfer_read %w[%c0], %pad {fuse.layout = #layout, in_bounds = [true, true], permutation_map = affine_map<(d0) -> (0, d0)>} : memref<513xf16>, vector<1x513xf16>
    %2 = arith.mulf %0, %1 : vector<1x513xf16>
    vector.transfer_write %2, %y[%row, %c0] {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : vector<1x513xf16>, memref<?x513xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 3>, blocks = array<i64: 1, 1>, shift_to = array<i64: 0, 8>}
func.func private @unaligned(%x: memref<?x513xf16> {fuse.align = 2 : i64}, %y: memref<?xf16>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 513>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  %lowest = arith.constant dense<0xFC00> : vector<1xf16>
  %m = memref.dim %x, %c0 : memref<?x513xf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0)>()[%m]
  scf.forall (%row) in (%blocks) {
    // expected-error @below {{memref<?x513xf16> has no rows, whole and aligned, that a layout could shift or realign}}
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<?x513xf16>, vector<1x513xf16>
    %1 = vector.multi_reduction <maximumf>, %0, %lowest {fuse.layout = #layout} [1] : vector<1x513xf16> to vector<1xf16>
    vector.transfer_write %1, %y[%row] {fuse.layout = #layout, in_bounds = [true]} : vector<1xf16>, memref<?xf16>
  } {mapping = [#gpu.block<x>]}
  return
}
