// RUN: mlirfuse-opt --fuse-skip-zeros --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 4>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}

// Filters of 3 taps with a stride of 2: columns below 64 meet taps 0 and 2, and the others tap 1 alone.
// CHECK-LABEL: func.func private @classes_0_kernel
// REMARK: fuse-skip-zeros: applied: tiles sum 75 % of k in the mean
// CHECK: %[[COLUMN:.*]] = arith.remui %arg3, %{{.*}} : index
// CHECK: %[[FIRST:.*]] = arith.muli %[[COLUMN]], %{{.*}} : index
// CHECK: %[[OUTER:.*]] = arith.divui %[[FIRST]], %{{.*}} : index
// CHECK: %[[CLASS:.*]] = arith.remui %[[OUTER]], %{{.*}} : index
// CHECK: %[[WEIGHTED:.*]] = arith.muli %[[CLASS]], %{{.*}} : index
// CHECK: %[[LEFT:.*]] = arith.subi %{{.*}}, %[[WEIGHTED]] : index
// CHECK: %[[TAPS:.*]] = arith.divsi
// CHECK: %[[COUNT:.*]] = arith.minsi %[[TAPS]], %{{.*}} : index
// CHECK: arith.muli %{{.*}}, %{{.*}} : index
// CHECK: %[[LAST:.*]] = arith.addi %{{.*}}, %{{.*}} : index
// CHECK: %[[END:.*]] = arith.addi %{{.*}}, %c1{{.*}} : index
// CHECK: scf.for %{{.*}} = %c0 to %{{[0-9]+}} step %c32
func.func private @classes_0_kernel(%x: memref<256x64xf16>, %w: memref<32x3x64xf16>, %y: memref<256x128xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout,
                contraction = {k = 32, instruction = "mma"}}} {
  %c0 = arith.constant 0 : index
  %view = "fuse.gathered_view"(%w) {basis = array<i64: 2, 32, 2, 64>, ranks = array<i64: 2, 2>,
      map = affine_map<(j, f, a, c) -> (f, j * 2 + a, c)>} : (memref<32x3x64xf16>) -> memref<64x128xf16, strided<[64, 1]>>
  scf.forall (%block) in (32) {
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %i = arith.divui %block, %c4 : index
    %j = arith.remui %block, %c4 : index
    %row = arith.muli %i, %c32 : index
    %column = arith.muli %j, %c32 : index
    %acc = scf.for %k = %c0 to %c64 step %c32 iter_args(%sum = %zero) -> (vector<32x32xf32>) {
      %a = vector.transfer_read %x[%row, %k], %pad {in_bounds = [true, true]} : memref<256x64xf16>, vector<32x32xf16>
      %b = vector.transfer_read %view[%k, %column], %pad {in_bounds = [true, true]} : memref<64x128xf16, strided<[64, 1]>>, vector<32x32xf16>
      %next = vector.contract {fuse.instruction = "mma", indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %sum
          : vector<32x32xf16>, vector<32x32xf16> into vector<32x32xf32>
      scf.yield %next : vector<32x32xf32>
    }
    vector.transfer_write %acc, %y[%row, %column] {in_bounds = [true, true]} : vector<32x32xf32>, memref<256x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 4>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}

// Classes of 16 columns, two of which are in a tile: rejected.
// CHECK-LABEL: func.func private @narrow_0_kernel
// REMARK: fuse-skip-zeros: declined: tiles of 32 columns have several classes, of 16 columns
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c32
func.func private @narrow_0_kernel(%x: memref<32x64xf16>, %w: memref<32x3x16xf16>, %y: memref<32x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout,
                contraction = {k = 32, instruction = "mma"}}} {
  %c0 = arith.constant 0 : index
  %view = "fuse.gathered_view"(%w) {basis = array<i64: 2, 32, 2, 16>, ranks = array<i64: 2, 2>,
      map = affine_map<(j, f, a, c) -> (f, j * 2 + a, c)>} : (memref<32x3x16xf16>) -> memref<64x32xf16, strided<[16, 1]>>
  scf.forall (%block) in (1) {
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %column = arith.muli %block, %c32 : index
    %acc = scf.for %k = %c0 to %c64 step %c32 iter_args(%sum = %zero) -> (vector<32x32xf32>) {
      %a = vector.transfer_read %x[%c0, %k], %pad {in_bounds = [true, true]} : memref<32x64xf16>, vector<32x32xf16>
      %b = vector.transfer_read %view[%k, %column], %pad {in_bounds = [true, true]} : memref<64x32xf16, strided<[16, 1]>>, vector<32x32xf16>
      %next = vector.contract {fuse.instruction = "mma", indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %sum
          : vector<32x32xf16>, vector<32x32xf16> into vector<32x32xf32>
      scf.yield %next : vector<32x32xf32>
    }
    vector.transfer_write %acc, %y[%c0, %column] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 4>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}

// Plain operands have elements everywhere: no match.
// CHECK-LABEL: func.func private @plain_0_kernel
// REMARK: fuse-skip-zeros: declined: no operand is a gathered view
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c32
func.func private @plain_0_kernel(%x: memref<32x64xf16>, %w: memref<32x64xf16>, %y: memref<32x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout,
                contraction = {k = 32, instruction = "mma"}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %acc = scf.for %k = %c0 to %c64 step %c32 iter_args(%sum = %zero) -> (vector<32x32xf32>) {
      %a = vector.transfer_read %x[%c0, %k], %pad {in_bounds = [true, true]} : memref<32x64xf16>, vector<32x32xf16>
      %b = vector.transfer_read %w[%c0, %k], %pad {in_bounds = [true, true]} : memref<32x64xf16>, vector<32x32xf16>
      %next = vector.contract {fuse.instruction = "mma", indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %sum
          : vector<32x32xf16>, vector<32x32xf16> into vector<32x32xf32>
      scf.yield %next : vector<32x32xf32>
    }
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
