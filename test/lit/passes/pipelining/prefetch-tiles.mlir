// RUN: mlirfuse-opt --fuse-prefetch-tiles --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks
// RUN: mlirfuse-opt --fuse-prefetch-tiles --target=sm_80 --split-input-file --show-remarks %s 2>&1 | FileCheck %s --check-prefix=SM80
// RUN: mlirfuse-opt --fuse-prefetch-tiles --fuse-prefetch-tiles --split-input-file %s | FileCheck %s
// RUN: mlirfuse-opt --fuse-prefetch-tiles --sms=10 --split-input-file %s | FileCheck %s --check-prefix=SMALL

#row = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}

// SM80-NOT: fuse.prefetch_rows
// SM80: declined: sm_80 has no bulk prefetches

// Behind the sum, a prefetch of the rows of the block one wave later.
// REMARK: applied: sums_0_kernel prefetches 1 tile(s) 792 blocks ahead
// CHECK-LABEL: func.func private @sums_0_kernel(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x256xf32>
// CHECK: %[[LATER:.*]] = arith.constant 792 : index
// CHECK: scf.forall (%[[T:.*]]) in
// CHECK: vector.multi_reduction
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[T]], %[[LATER]] : index
// CHECK-NEXT: %[[ROW:.*]] = affine.apply #{{.*}}(%[[NEXT]])
// CHECK-NEXT: "fuse.prefetch_rows"(%[[X]], %[[ROW]]) {rows = 2 : i64} : (memref<?x256xf32>, index) -> ()
// CHECK-NEXT: vector.shape_cast
// SMALL: arith.constant 60 : index
func.func private @sums_0_kernel(%x: memref<?x256xf32>, %w: memref<256xf32>, %y: memref<?x256xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 256>, blocks_per_sm = 6 : i64, layout = #row}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<2xf32>
  %rows = memref.dim %x, %c0 : memref<?x256xf32>
  %tiles = affine.apply affine_map<()[s0] -> (s0 ceildiv 2)>()[%rows]
  scf.forall (%t) in (%tiles) {
    %row = affine.apply affine_map<(d0) -> (d0 * 2)>(%t)
    %a = vector.transfer_read %x[%row, %c0], %pad {fuse.streaming, in_bounds = [false, true]} : memref<?x256xf32>, vector<2x256xf32>
    %b = vector.transfer_read %w[%c0], %pad {in_bounds = [true, true], permutation_map = affine_map<(d0) -> (0, d0)>} : memref<256xf32>, vector<2x256xf32>
    %r = vector.multi_reduction <add>, %a, %none [1] : vector<2x256xf32> to vector<2xf32>
    %c = vector.shape_cast %r : vector<2xf32> to vector<2x1xf32>
    %s = vector.broadcast %c : vector<2x1xf32> to vector<2x256xf32>
    %d = arith.subf %a, %s : vector<2x256xf32>
    %e = arith.mulf %d, %b : vector<2x256xf32>
    vector.transfer_write %e, %y[%row, %c0] {fuse.streaming, in_bounds = [false, true]} : vector<2x256xf32>, memref<?x256xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// Nothing goes round: a block writes what it has read, and others read meanwhile.
// REMARK: declined: scaled_0_kernel has no reduction in its tiles
// CHECK-LABEL: func.func private @scaled_0_kernel(
// CHECK-NOT: fuse.prefetch_rows
#row = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @scaled_0_kernel(%x: memref<?x256xf32>, %y: memref<?x256xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #row}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %rows = memref.dim %x, %c0 : memref<?x256xf32>
  scf.forall (%t) in (%rows) {
    %a = vector.transfer_read %x[%t, %c0], %pad {fuse.streaming, in_bounds = [true, true]} : memref<?x256xf32>, vector<1x256xf32>
    %b = arith.mulf %a, %a : vector<1x256xf32>
    vector.transfer_write %b, %y[%t, %c0] {fuse.streaming, in_bounds = [true, true]} : vector<1x256xf32>, memref<?x256xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// Columns of a transposed tile are not contiguous, and data that every block reads are in the L2 already.
// REMARK: declined: apart_0_kernel reads no tiles of whole rows that no other block reads
// CHECK-LABEL: func.func private @apart_0_kernel(
// CHECK-NOT: fuse.prefetch_rows
#row = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @apart_0_kernel(%x: memref<256x?xf32>, %w: memref<1x256xf32>, %y: memref<?x256xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #row}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<1xf32>
  %rows = memref.dim %y, %c0 : memref<?x256xf32>
  scf.forall (%t) in (%rows) {
    %a = vector.transfer_read %x[%c0, %t], %pad {fuse.streaming, in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : memref<256x?xf32>, vector<1x256xf32>
    %b = vector.transfer_read %w[%c0, %c0], %pad {in_bounds = [true, true]} : memref<1x256xf32>, vector<1x256xf32>
    %m = arith.mulf %a, %b : vector<1x256xf32>
    %r = vector.multi_reduction <add>, %m, %none [1] : vector<1x256xf32> to vector<1xf32>
    %c = vector.shape_cast %r : vector<1xf32> to vector<1x1xf32>
    %s = vector.broadcast %c : vector<1x1xf32> to vector<1x256xf32>
    vector.transfer_write %s, %y[%t, %c0] {fuse.streaming, in_bounds = [true, true]} : vector<1x256xf32>, memref<?x256xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// Rows of 256 KB, two blocks an SM: prefetched tiles would evict one another.
// REMARK: declined: tiles of 66 MB a wave are too large for the L2 of 50 MB
// CHECK-LABEL: func.func private @long_0_kernel(
// CHECK-NOT: fuse.prefetch_rows
#row = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 32>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>}
func.func private @long_0_kernel(%x: memref<?x65536xf32>, %y: memref<?xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 65536>, blocks_per_sm = 2 : i64, layout = #row}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<1xf32>
  %rows = memref.dim %x, %c0 : memref<?x65536xf32>
  scf.forall (%t) in (%rows) {
    %a = vector.transfer_read %x[%t, %c0], %pad {fuse.streaming, in_bounds = [true, true]} : memref<?x65536xf32>, vector<1x65536xf32>
    %r = vector.multi_reduction <add>, %a, %none [1] : vector<1x65536xf32> to vector<1xf32>
    vector.transfer_write %r, %y[%t] {in_bounds = [true]} : vector<1xf32>, memref<?xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
