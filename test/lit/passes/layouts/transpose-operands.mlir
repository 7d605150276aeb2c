// RUN: mlirfuse-opt --show-remarks --fuse-transpose-operands --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>,
           blocks = array<i64: 1, 1>, run = array<i64: 4, 1>}

// k is contiguous in both operands, and becomes the first dimension of both tiles.
// CHECK: #[[KM:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK: #[[K_M:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK: #[[K_N:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: func.func private @both_0_kernel(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x160xf32>, %[[W:[a-z0-9]+]]: memref<64x160xf32>
// CHECK: scf.for %[[K:[a-z0-9]+]] =
// The mask of rows, and `fuse.undefined` on values past their end, now refer to the tile's second dimension.
// CHECK: %[[A:.*]] = vector.transfer_read %[[X]][%[[ROW:.*]], %[[K]]], %{{.*}} {fuse.undefined = array<i64: 1>, in_bounds = [true, false], permutation_map = #[[KM]]} : memref<?x160xf32>, vector<32x16xf32>
// CHECK: %[[B:.*]] = vector.transfer_read %[[W]][%{{.*}}, %[[K]]], %{{.*}} {in_bounds = [true, true], permutation_map = #[[KM]]} : memref<64x160xf32>, vector<32x32xf32>
// CHECK: vector.contract {indexing_maps = [#[[K_M]], #[[K_N]], #{{.*}}], {{.*}}} %[[A]], %[[B]], %{{.*}} {fuse.instruction = "fma"}
func.func private @both_0_kernel(%x: memref<?x160xf32>, %w: memref<64x160xf32>, %y: memref<?x64xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 16, 32>, layout = #layout,
                contraction = {k = 32, instruction = "fma", transposed_operands = true}}} {
  scf.forall (%block) in (2) {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c160 = arith.constant 160 : index
    %pad = arith.constant 0.0 : f32
    %zero = arith.constant dense<0.0> : vector<16x32xf32>
    %column = arith.muli %block, %c32 : index
    %acc = scf.for %k = %c0 to %c160 step %c32 iter_args(%sum = %zero) -> (vector<16x32xf32>) {
      %a = vector.transfer_read %x[%c0, %k], %pad {in_bounds = [false, true], fuse.undefined = array<i64: 0>} : memref<?x160xf32>, vector<16x32xf32>
      %b = vector.transfer_read %w[%column, %k], %pad {in_bounds = [true, true]} : memref<64x160xf32>, vector<32x32xf32>
      %next = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %sum {fuse.instruction = "fma"}
          : vector<16x32xf32>, vector<32x32xf32> into vector<16x32xf32>
      scf.yield %next : vector<16x32xf32>
    }
    vector.transfer_write %acc, %y[%c0, %column] {in_bounds = [false, true]} : vector<16x32xf32>, memref<?x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mbk = affine_map<(b, m, n, k) -> (b, m, k)>
#bkn = affine_map<(b, m, n, k) -> (b, k, n)>
#bmn = affine_map<(b, m, n, k) -> (b, m, n)>
#layout = {vector = array<i64: 1, 1, 1>, lanes = array<i64: 1, 4, 8>, warps = array<i64: 1, 1, 1>, repeats = array<i64: 1, 2, 1>, blocks = array<i64: 1, 1, 1>}

// Operand B has its columns last already, the left one is computed: its tile goes through shared memory as it is.
// CHECK-LABEL: func.func private @neither_0_kernel(
// CHECK: vector.transfer_read %{{.*}} {in_bounds = [true, true, true]} : memref<3x8x32xf32>, vector<1x8x32xf32>
// CHECK: vector.transfer_read %{{.*}} {in_bounds = [true, true, true]} : memref<3x32x8xf32>, vector<1x32x8xf32>
// expected-remark @below {{k is contiguous in no operand that is read from memory}}
func.func private @neither_0_kernel(%x: memref<3x8x32xf32>, %w: memref<3x32x8xf32>, %y: memref<3x8x8xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 8, 8>, layout = #layout,
                contraction = {k = 32, instruction = "fma", transposed_operands = true}}} {
  scf.forall (%block) in (3) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    %zero = arith.constant dense<0.0> : vector<1x8x8xf32>
    %raw = vector.transfer_read %x[%block, %c0, %c0], %pad {in_bounds = [true, true, true]} : memref<3x8x32xf32>, vector<1x8x32xf32>
    %a = math.exp %raw : vector<1x8x32xf32>
    %b = vector.transfer_read %w[%block, %c0, %c0], %pad {in_bounds = [true, true, true]} : memref<3x32x8xf32>, vector<1x32x8xf32>
    %acc = vector.contract {indexing_maps = [#mbk, #bkn, #bmn], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} %a, %b, %zero {fuse.instruction = "fma"}
        : vector<1x8x32xf32>, vector<1x32x8xf32> into vector<1x8x8xf32>
    vector.transfer_write %acc, %y[%block, %c0, %c0] {in_bounds = [true, true, true]} : vector<1x8x8xf32>, memref<3x8x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 1>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}

// CHECK-LABEL: func.func private @as_they_are_0_kernel(
// CHECK-COUNT-2: vector.transfer_read %{{.*}} {in_bounds = [true, true]} : memref<8x32xf32>, vector<8x32xf32>
// expected-remark @below {{scheduled without transposed operands}}
func.func private @as_they_are_0_kernel(%x: memref<8x32xf32>, %w: memref<8x32xf32>, %y: memref<8x8xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 8, 8>, layout = #layout, contraction = {k = 32, instruction = "fma"}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    %zero = arith.constant dense<0.0> : vector<8x8xf32>
    %a = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x32xf32>, vector<8x32xf32>
    %b = vector.transfer_read %w[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x32xf32>, vector<8x32xf32>
    %acc = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %zero {fuse.instruction = "fma"}
        : vector<8x32xf32>, vector<8x32xf32> into vector<8x8xf32>
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<8x8xf32>, memref<8x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
