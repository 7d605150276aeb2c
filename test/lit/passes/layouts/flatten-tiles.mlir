// RUN: mlirfuse-opt --fuse-flatten-tiles --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#rows = {vector = array<i64: 1, 1, 1>, lanes = array<i64: 1, 32, 1>, warps = array<i64: 1, 1, 7>, repeats = array<i64: 1, 1, 7>, blocks = array<i64: 1, 1, 1>}
#run = {vector = array<i64: 1, 1, 8>, lanes = array<i64: 1, 1, 32>, warps = array<i64: 1, 1, 7>, repeats = array<i64: 1, 1, 1>, blocks = array<i64: 1, 1, 1>}
#column = affine_map<(d0) -> (0, d0, 0)>
// A tile of 32 rows of 49 is a run of 1568 elements; the tile of one number a row is read as it is.
// CHECK-DAG: #[[FIRST:.*]] = affine_map<(d0, d1, d2) -> (d0 * 3136 + d1 * 49 + d2)>
// CHECK-LABEL: func.func private @rows_kernel
// CHECK: %[[I:.*]] = affine.apply #[[FIRST]](%[[N:.*]], %[[C:.*]], %[[Z:.*]])
// CHECK: %[[X:.*]] = memref.collapse_shape %{{.*}} {{\[\[}}0, 1, 2]] : memref<?x64x49xf16> into memref<?xf16>
// CHECK: %[[R:.*]] = vector.transfer_read %[[X]][%[[I]]], %{{.*}}fuse.layout = {{.*}}vector = array<i64: 1, 1, 8>{{.*}} : memref<?xf16>, vector<1x1x1568xf16>
// CHECK: %[[T:.*]] = "fuse.convert_layout"(%[[R]]) : (vector<1x1x1568xf16>) -> vector<1x32x49xf16>
// CHECK: %[[W:.*]] = vector.transfer_read %{{.*}} : memref<64xf16>, vector<1x32x1xf16>
// CHECK: %[[Y:.*]] = arith.mulf %[[T]]
// CHECK: %[[F:.*]] = "fuse.convert_layout"(%[[Y]]) {fuse.layout = {{.*}}} : (vector<1x32x49xf16>) -> vector<1x1x1568xf16>
// CHECK: %[[V:.*]] = vector.shape_cast %[[F]] : vector<1x1x1568xf16> to vector<1568xf16>
// CHECK: vector.transfer_write %[[V]], {{.*}}fuse.dims = array<i64: 2>{{.*}} : vector<1568xf16>, memref<?xf16>
// expected-remark @below {{1 read(s) and 1 write(s) of whole runs of memory}}
func.func private @rows_kernel(%x: memref<?x64x49xf16>, %w: memref<64xf16>, %y: memref<?x64x49xf16>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 32, 49>, layout = #rows, flat = {layout = #run}}} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  scf.forall (%n, %block) in (4, 2) {
    %c = arith.muli %block, %c32 : index
    %0 = vector.transfer_read %x[%n, %c, %c0], %pad {in_bounds = [true, true, true]} : memref<?x64x49xf16>, vector<1x32x49xf16>
    %1 = vector.transfer_read %w[%c], %pad {in_bounds = [true, true, true], permutation_map = #column} : memref<64xf16>, vector<1x32x1xf16>
    %2 = vector.broadcast %1 : vector<1x32x1xf16> to vector<1x32x49xf16>
    %3 = arith.mulf %0, %2 : vector<1x32x49xf16>
    vector.transfer_write %3, %y[%n, %c, %c0] {in_bounds = [true, true, true]} : vector<1x32x49xf16>, memref<?x64x49xf16>
  } {mapping = [#gpu.block<x>, #gpu.block<y>]}
  return
}

// -----

#rows = {vector = array<i64: 1, 8>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A schedule without flat tiles.
// CHECK-LABEL: func.func private @by_rows_kernel
// CHECK-NOT: fuse.convert_layout
// expected-remark @below {{tiles are accessed by rows, as scheduled}}
func.func private @by_rows_kernel(%x: memref<8x64xf16>, %y: memref<8x64xf16>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 4, 64>, layout = #rows}} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %pad = arith.constant 0.0 : f16
  scf.forall (%block) in (2) {
    %i = arith.muli %block, %c4 : index
    %0 = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true, true]} : memref<8x64xf16>, vector<4x64xf16>
    vector.transfer_write %0, %y[%i, %c0] {in_bounds = [true, true]} : vector<4x64xf16>, memref<8x64xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#rows = {vector = array<i64: 1, 1>, lanes = array<i64: 32, 1>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 7>, blocks = array<i64: 1, 1>}
#run = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// The argument is aligned to 2 bytes; the result is another one's columns.
// CHECK-LABEL: func.func private @unaligned_kernel
// CHECK-NOT: fuse.convert_layout
// expected-remark @below {{no contiguous array is accessed in whole tiles}}
func.func private @unaligned_kernel(%x: memref<64x7xf16> {fuse.align = 2 : i64}, %y: memref<64x7xf16, strided<[16, 1]>>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 7>, layout = #rows, flat = {layout = #run}}} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  scf.forall (%block) in (2) {
    %i = arith.muli %block, %c32 : index
    %0 = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true, true]} : memref<64x7xf16>, vector<32x7xf16>
    vector.transfer_write %0, %y[%i, %c0] {in_bounds = [true, true]} : vector<32x7xf16>, memref<64x7xf16, strided<[16, 1]>>
  } {mapping = [#gpu.block<x>]}
  return
}
