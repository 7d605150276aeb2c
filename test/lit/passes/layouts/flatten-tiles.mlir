// RUN: mlirfuse-opt --fuse-flatten-tiles --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#rows = {vector = array<i64: 1, 1, 1>, lanes = array<i64: 1, 32, 1>, warps = array<i64: 1, 1, 7>, repeats = array<i64: 1, 1, 7>, blocks = array<i64: 1, 1, 1>}
#column = affine_map<(d0) -> (0, d0, 0)>
// Tiles of 32 rows of 49 are runs of memory, the last of which has fewer rows; reads are next to the first, which is
// used in between. The tile of one number a row is read as it is.
// CHECK-LABEL: func.func private @rows_kernel
// CHECK: %[[X:.*]] = vector.transfer_read %{{.*}} {fuse.flat, {{.*}} : memref<?x?x49xf16>, vector<1x32x49xf16>
// CHECK-NEXT: %[[Z:.*]] = vector.transfer_read %{{.*}} {fuse.flat, {{.*}} : memref<?x?x49xf16>, vector<1x32x49xf16>
// CHECK: vector.transfer_read %{{.*}} : memref<?xf16>, vector<1x32x1xf16>
// CHECK: arith.negf %[[X]]
// CHECK: vector.transfer_write %{{.*}} {fuse.flat, {{.*}} : vector<1x32x49xf16>, memref<?x?x49xf16>
// expected-remark @below {{2 read(s) and 1 write(s) of runs of memory}}
func.func private @rows_kernel(%x: memref<?x?x49xf16>, %z: memref<?x?x49xf16>, %w: memref<?xf16>, %y: memref<?x?x49xf16>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 32, 49>, layout = #rows, flat = true}} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  scf.forall (%n, %block) in (4, 2) {
    %c = arith.muli %block, %c32 : index
    %0 = vector.transfer_read %x[%n, %c, %c0], %pad {in_bounds = [true, false, true]} : memref<?x?x49xf16>, vector<1x32x49xf16>
    %1 = vector.transfer_read %w[%c], %pad {in_bounds = [true, false, true], permutation_map = #column} : memref<?xf16>, vector<1x32x1xf16>
    %less = arith.negf %0 : vector<1x32x49xf16>
    %2 = vector.transfer_read %z[%n, %c, %c0], %pad {in_bounds = [true, false, true]} : memref<?x?x49xf16>, vector<1x32x49xf16>
    %3 = vector.broadcast %1 : vector<1x32x1xf16> to vector<1x32x49xf16>
    %4 = arith.mulf %less, %3 : vector<1x32x49xf16>
    %5 = arith.addf %4, %2 : vector<1x32x49xf16>
    vector.transfer_write %5, %y[%n, %c, %c0] {in_bounds = [true, false, true]} : vector<1x32x49xf16>, memref<?x?x49xf16>
  } {mapping = [#gpu.block<x>, #gpu.block<y>]}
  return
}

// -----

#rows = {vector = array<i64: 1, 1>, lanes = array<i64: 32, 1>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 49>, blocks = array<i64: 1, 1>}
#row = affine_map<(d0) -> (d0, 0)>
// A thread reduces a row of its own. The offset of the second array's tile is computed behind the first read.
// CHECK-LABEL: func.func private @sums_kernel
// CHECK: vector.transfer_read %{{.*}} {fuse.flat, {{.*}} : memref<64x49xf16>, vector<32x49xf16>
// CHECK-NEXT: arith.addi
// CHECK-NEXT: vector.transfer_read %{{.*}} {fuse.flat, {{.*}} : memref<128x49xf16>, vector<32x49xf16>
// CHECK: vector.multi_reduction
// CHECK: vector.transfer_write %{{.*}} {in_bounds = [true]} : vector<32xf16>, memref<64xf16>
// expected-remark @below {{2 read(s) and 0 write(s) of runs of memory}}
func.func private @sums_kernel(%x: memref<64x49xf16>, %z: memref<128x49xf16>, %y: memref<64xf16>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 49>, layout = #rows, flat = true}} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<32xf16>
  scf.forall (%block) in (2) {
    %i = arith.muli %block, %c32 : index
    %0 = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true, true]} : memref<64x49xf16>, vector<32x49xf16>
    %j = arith.addi %i, %c64 : index
    %1 = vector.transfer_read %z[%j, %c0], %pad {in_bounds = [true, true]} : memref<128x49xf16>, vector<32x49xf16>
    %2 = arith.mulf %0, %1 : vector<32x49xf16>
    %3 = vector.multi_reduction <add>, %2, %zero [1] : vector<32x49xf16> to vector<32xf16>
    vector.transfer_write %3, %y[%i] {in_bounds = [true]} : vector<32xf16>, memref<64xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#rows = {vector = array<i64: 1, 8>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A schedule without flat tiles.
// CHECK-LABEL: func.func private @by_rows_kernel
// CHECK-NOT: fuse.flat
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

#rows = {vector = array<i64: 1, 1>, lanes = array<i64: 32, 1>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 9>, blocks = array<i64: 1, 1>}
// The argument is aligned to 2 bytes; the result is another one's columns.
// CHECK-LABEL: func.func private @unaligned_kernel
// CHECK-NOT: vector.transfer_{{.*}}fuse.flat
// expected-remark @below {{no contiguous array is accessed in whole tiles}}
func.func private @unaligned_kernel(%x: memref<64x9xf16> {fuse.align = 2 : i64}, %y: memref<64x9xf16, strided<[16, 1]>>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 9>, layout = #rows, flat = true}} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  scf.forall (%block) in (2) {
    %i = arith.muli %block, %c32 : index
    %0 = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true, true]} : memref<64x9xf16>, vector<32x9xf16>
    vector.transfer_write %0, %y[%i, %c0] {in_bounds = [true, true]} : vector<32x9xf16>, memref<64x9xf16, strided<[16, 1]>>
  } {mapping = [#gpu.block<x>]}
  return
}
