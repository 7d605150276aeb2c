// RUN: mlirfuse-opt --fuse-transpose-tiles --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#transposed = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0) -> (0, d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 8, 1>, blocks = array<i64: 1, 1>}
#across = {vector = array<i64: 4, 1>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>}
// Transposed arrays are read in the transposed layout; tiles of one type are converted together, before the first use. Other
// tiles, and values of one number a row or a column, get their layout later.
// CHECK-LABEL: func.func private @reads_kernel
// CHECK: %[[X:.*]] = vector.transfer_read %{{.*}}fuse.layout = {{.*}}lanes = array<i64: 8, 4>{{.*}}memref<64x32xf32>
// CHECK: %[[Y:.*]] = vector.transfer_read %{{.*}}fuse.layout = {{.*}}memref<64x32xf32>
// CHECK: %[[H:.*]] = vector.transfer_read %{{.*}}fuse.layout = {{.*}}memref<64x32xf16>
// CHECK: %[[W:.*]] = vector.transfer_read
// CHECK-NOT: fuse.layout
// CHECK: %[[B:.*]] = vector.transfer_read
// CHECK-NOT: fuse.layout
// CHECK: %[[T:.*]]:2 = "fuse.convert_layout"(%[[X]], %[[Y]]) {fuse.layout = {{.*}}lanes = array<i64: 4, 8>
// CHECK: %[[U:.*]] = "fuse.convert_layout"(%[[H]]) {fuse.layout = {{.*}}lanes = array<i64: 4, 8>
// CHECK: arith.addf %[[T]]#0, %[[T]]#1
// CHECK: arith.extf %[[U]]
// CHECK-NOT: fuse.layout
// CHECK: vector.transfer_write
// expected-remark @below {{3 read(s) and 0 write(s) through shared memory}}
func.func private @reads_kernel(%x: memref<64x32xf32>, %y: memref<64x32xf32>, %h: memref<64x32xf16>, %w: memref<32x64xf32>, %b: memref<64xf32>, %z: memref<32x64xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout, transposed = {dim = 0, layout = #across}}} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %pad = arith.constant 0.0 : f32
  %pad16 = arith.constant 0.0 : f16
  scf.forall (%block) in (2) {
    %j = arith.muli %block, %c32 : index
    %0 = vector.transfer_read %x[%j, %c0], %pad {in_bounds = [true, true], permutation_map = #transposed} : memref<64x32xf32>, vector<32x32xf32>
    %1 = vector.transfer_read %y[%j, %c0], %pad {in_bounds = [true, true], permutation_map = #transposed} : memref<64x32xf32>, vector<32x32xf32>
    %2 = vector.transfer_read %h[%j, %c0], %pad16 {in_bounds = [true, true], permutation_map = #transposed} : memref<64x32xf16>, vector<32x32xf16>
    %3 = vector.transfer_read %w[%c0, %j], %pad {in_bounds = [true, true]} : memref<32x64xf32>, vector<32x32xf32>
    %4 = vector.transfer_read %b[%j], %pad {in_bounds = [true, true], permutation_map = #row} : memref<64xf32>, vector<1x32xf32>
    %5 = arith.addf %0, %1 : vector<32x32xf32>
    %6 = arith.extf %2 : vector<32x32xf16> to vector<32x32xf32>
    %7 = arith.addf %5, %6 : vector<32x32xf32>
    %8 = arith.addf %7, %3 : vector<32x32xf32>
    %9 = vector.broadcast %4 : vector<1x32xf32> to vector<32x32xf32>
    %10 = arith.addf %8, %9 : vector<32x32xf32>
    vector.transfer_write %10, %z[%c0, %j] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#transposed = affine_map<(d0, d1) -> (d1, d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 8, 1>, blocks = array<i64: 1, 1>}
#across = {vector = array<i64: 4, 1>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>}
// The tile of a transposed result is converted to the transposed layout before the write.
// CHECK-LABEL: func.func private @writes_kernel
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK: %[[T:.*]] = "fuse.convert_layout"(%[[SUM]]) {fuse.layout = {{.*}}lanes = array<i64: 8, 4>
// CHECK: vector.transfer_write %[[T]], {{.*}}fuse.layout = {{.*}}lanes = array<i64: 8, 4>
// expected-remark @below {{0 read(s) and 1 write(s) through shared memory, mirrored tiles side by side}}
func.func private @writes_kernel(%x: memref<32x64xf32>, %y: memref<64x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout, transposed = {dim = 0, layout = #across, mirrored = true}}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x64xf32>, vector<32x32xf32>
    %1 = arith.addf %0, %0 : vector<32x32xf32>
    vector.transfer_write %1, %y[%c0, %c0] {in_bounds = [true, true], permutation_map = #transposed} : vector<32x32xf32>, memref<64x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 8, 1>, blocks = array<i64: 1, 1>}
#across = {vector = array<i64: 4, 1>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>}
// expected-remark @below {{no array is accessed in whole tiles along the transposed dimension}}
func.func private @nothing_across_kernel(%x: memref<32x64xf32>, %y: memref<32x64xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout, transposed = {dim = 0, layout = #across}}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x64xf32>, vector<32x32xf32>
    vector.transfer_write %0, %y[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#transposed = affine_map<(d0, d1) -> (d1, d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 8, 1>, blocks = array<i64: 1, 1>}
// expected-remark @below {{1 uncoalesced access(es), as scheduled}}
func.func private @scheduled_so_kernel(%x: memref<64x32xf32>, %y: memref<32x64xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true], permutation_map = #transposed} : memref<64x32xf32>, vector<32x32xf32>
    vector.transfer_write %0, %y[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#other = affine_map<(d0, d1, d2) -> (d1, d0, d2)>
#layout = {vector = array<i64: 1, 1, 2>, lanes = array<i64: 2, 16, 1>, warps = array<i64: 1, 1, 1>, repeats = array<i64: 8, 1, 1>, blocks = array<i64: 1, 1, 1>}
#across = {vector = array<i64: 1, 1, 2>, lanes = array<i64: 16, 2, 1>, warps = array<i64: 1, 1, 1>, repeats = array<i64: 1, 8, 1>, blocks = array<i64: 1, 1, 1>}
// Both arrays are contiguous along the last dimension, which is short: the one behind it tells them apart.
// CHECK-LABEL: func.func private @pairs_kernel
// CHECK: %[[X:.*]] = vector.transfer_read
// CHECK-NOT: fuse.layout
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK: %[[T:.*]] = "fuse.convert_layout"(%[[SUM]]) {fuse.layout = {{.*}}lanes = array<i64: 16, 2, 1>
// CHECK: vector.transfer_write %[[T]], {{.*}}fuse.layout = {{.*}}lanes = array<i64: 16, 2, 1>
// expected-remark @below {{0 read(s) and 1 write(s) through shared memory}}
func.func private @pairs_kernel(%x: memref<16x64x2xf32>, %y: memref<64x16x2xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 16, 16, 2>, layout = #layout, transposed = {dim = 2, then = array<i64: 0>, layout = #across}}} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%block) in (4) {
    %j = arith.muli %block, %c16 : index
    %0 = vector.transfer_read %x[%c0, %j, %c0], %pad {in_bounds = [true, true, true]} : memref<16x64x2xf32>, vector<16x16x2xf32>
    %1 = arith.addf %0, %0 : vector<16x16x2xf32>
    vector.transfer_write %1, %y[%j, %c0, %c0] {in_bounds = [true, true, true], permutation_map = #other} : vector<16x16x2xf32>, memref<64x16x2xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
