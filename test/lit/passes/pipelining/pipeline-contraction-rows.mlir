// RUN: mlirfuse-opt --fuse-pipeline-contraction --canonicalize --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 8>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// Of a tile that has all rows of an operand, only existing rows are copied where the others are undefined. The second
// read is not marked so, and is filled with zeros.
// CHECK-LABEL: func.func @few_rows
// CHECK: memref<3x128x64xbf16, #gpu.address_space<workgroup>>
// CHECK: "fuse.mbarrier_expect"(%{{.*}}) {bytes = 13824 : i64}
// CHECK: "fuse.async_load"({{.*}}) {dims = array<i64: 0, 1>, rows = 100 : i64}
// CHECK: "fuse.async_load"({{.*}}) {dims = array<i64: 0, 1>} :

// expected-remark @below {{3 stages, 2 warpgroups of consumers}}
func.func @few_rows(%A: memref<100x512xbf16> {fuse.align = 16 : i64}, %B: memref<5x512xbf16> {fuse.align = 16 : i64}, %C: memref<100x5xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<128x8xf32>
  scf.forall (%block) in (1) {
    %row = affine.apply affine_map<(d0) -> (d0 * 128)>(%block)
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x8xf32>) {
      %x = vector.transfer_read %A[%row, %k], %pad {in_bounds = [false, true], fuse.undefined = array<i64: 0>} : memref<100x512xbf16>, vector<128x64xbf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [false, true]} : memref<5x512xbf16>, vector<8x64xbf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xbf16>, vector<8x64xbf16> into vector<128x8xf32>
      scf.yield %next : vector<128x8xf32>
    }
    vector.transfer_write %acc, %C[%row, %c0] {in_bounds = [false, false]} : vector<128x8xf32>, memref<100x5xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 4, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 64, 16>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// The last of several tiles has fewer rows, and copies of its own. The bytes are those of both operands.
// CHECK-LABEL: func.func @last_rows
// CHECK: "fuse.warp_roles"
// CHECK: }, {
// CHECK: %[[A128:.*]] = arith.cmpi sge, %{{.*}}, %c128
// CHECK-NEXT: scf.if %[[A128]] {
// CHECK: %[[B32:.*]] = arith.cmpi sge, %{{.*}}, %c32
// CHECK-NEXT: scf.if %[[B32]] {
// CHECK: "fuse.mbarrier_expect"(%{{.*}}) {bytes = 5248 : i64}
// CHECK: "fuse.async_load"(%arg0, {{.*}}) {dims = array<i64: 0, 1>, rows = 36 : i64}
// CHECK: "fuse.async_load"(%arg1, {{.*}}) {dims = array<i64: 0, 1>, rows = 5 : i64}
// CHECK: } else {
// CHECK: "fuse.mbarrier_expect"(%{{.*}}) {bytes = 6656 : i64}
// CHECK: "fuse.async_load"(%arg0, {{.*}}) {dims = array<i64: 0, 1>, rows = 36 : i64}
// CHECK: "fuse.async_load"(%arg1, {{.*}}) {dims = array<i64: 0, 1>} :
// CHECK: } else {
// CHECK: scf.if
// CHECK: "fuse.mbarrier_expect"(%{{.*}}) {bytes = 8832 : i64}
// CHECK: "fuse.async_load"(%arg0, {{.*}}) {dims = array<i64: 0, 1>} :
// CHECK: "fuse.async_load"(%arg1, {{.*}}) {dims = array<i64: 0, 1>, rows = 5 : i64}
// CHECK: } else {
// CHECK: "fuse.mbarrier_expect"(%{{.*}}) {bytes = 10240 : i64}

// expected-remark @below {{3 stages, 1 warpgroups of consumers}}
func.func @last_rows(%A: memref<164x512xbf16> {fuse.align = 16 : i64}, %B: memref<37x512xbf16> {fuse.align = 16 : i64}, %C: memref<164x37xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<64x16xf32>
  scf.forall (%block) in (9) {
    %row = affine.apply affine_map<(d0) -> ((d0 floordiv 3) * 64)>(%block)
    %column = affine.apply affine_map<(d0) -> ((d0 mod 3) * 16)>(%block)
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<64x16xf32>) {
      %x = vector.transfer_read %A[%row, %k], %pad {in_bounds = [false, true], fuse.undefined = array<i64: 0>} : memref<164x512xbf16>, vector<64x64xbf16>
      %w = vector.transfer_read %B[%column, %k], %pad {in_bounds = [false, true], fuse.undefined = array<i64: 0>} : memref<37x512xbf16>, vector<16x64xbf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<64x64xbf16>, vector<16x64xbf16> into vector<64x16xf32>
      scf.yield %next : vector<64x16xf32>
    }
    vector.transfer_write %acc, %C[%row, %column] {in_bounds = [false, false]} : vector<64x16xf32>, memref<164x37xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 4, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 64, 16>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// Zeros are copied where the number of rows is dynamic, or where rows past the end are not undefined.
// CHECK-LABEL: func.func @zeros
// CHECK-NOT: rows =
// CHECK: "fuse.mbarrier_expect"(%{{.*}}) {bytes = 10240 : i64}
// CHECK-NOT: rows =

// expected-remark @below {{3 stages, 1 warpgroups of consumers}}
func.func @zeros(%A: memref<?x512xbf16> {fuse.align = 16 : i64}, %B: memref<37x512xbf16> {fuse.align = 16 : i64}, %C: memref<?x37xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<64x16xf32>
  %m = memref.dim %A, %c0 : memref<?x512xbf16>
  %tiles = affine.apply affine_map<()[s0] -> (s0 ceildiv 64)>()[%m]
  scf.forall (%block) in (%tiles) {
    %row = affine.apply affine_map<(d0) -> (d0 * 64)>(%block)
    %column = affine.apply affine_map<(d0) -> (d0 mod 3 * 16)>(%block)
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<64x16xf32>) {
      %x = vector.transfer_read %A[%row, %k], %pad {in_bounds = [false, true], fuse.undefined = array<i64: 0>} : memref<?x512xbf16>, vector<64x64xbf16>
      %w = vector.transfer_read %B[%column, %k], %pad {in_bounds = [false, true]} : memref<37x512xbf16>, vector<16x64xbf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<64x64xbf16>, vector<16x64xbf16> into vector<64x16xf32>
      scf.yield %next : vector<64x16xf32>
    }
    vector.transfer_write %acc, %C[%row, %column] {in_bounds = [false, false]} : vector<64x16xf32>, memref<?x37xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
