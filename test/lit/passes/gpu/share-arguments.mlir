// RUN: mlirfuse-opt %s --fuse-share-arguments --split-input-file --show-remarks 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// Two views of one array, and the array itself, are read through the first argument; a result is written where it was.
// CHECK-LABEL: func.func private @sum_kernel
// CHECK: "fuse.gathered_view"(%arg0)
// CHECK: "fuse.gathered_view"(%arg0)
// CHECK: vector.transfer_read %arg0
// CHECK: vector.transfer_write %{{.*}}, %arg3
// REMARK: fuse-share-arguments: applied: 2 arguments of sum_kernel are read through others
#before = affine_map<(p, c) -> (p - 1, c)>
#after = affine_map<(p, c) -> (p + 1, c)>
func.func @windows(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = "fuse.gathered_view"(%x) {basis = array<i64: 8, 16>, ranks = array<i64: 1, 1>, map = #before}
      : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = "fuse.gathered_view"(%x) {basis = array<i64: 8, 16>, ranks = array<i64: 1, 1>, map = #after}
      : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = call @sum(%0, %1, %x) : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}
func.func private @sum_kernel(%a: memref<8x16xf32>, %b: memref<8x16xf32>, %c: memref<8x16xf32>, %y: memref<8x16xf32>)
    attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %0 = "fuse.gathered_view"(%a) {basis = array<i64: 8, 16>, ranks = array<i64: 1, 1>, map = #before}
      : (memref<8x16xf32>) -> memref<8x16xf32, strided<[16, 1]>>
  %1 = "fuse.gathered_view"(%b) {basis = array<i64: 8, 16>, ranks = array<i64: 1, 1>, map = #after}
      : (memref<8x16xf32>) -> memref<8x16xf32, strided<[16, 1]>>
  scf.forall (%i) in (8) {
    %2 = vector.transfer_read %0[%i, %c0], %zero {in_bounds = [true, true]}
        : memref<8x16xf32, strided<[16, 1]>>, vector<1x16xf32>
    %3 = vector.transfer_read %1[%i, %c0], %zero {in_bounds = [true, true]}
        : memref<8x16xf32, strided<[16, 1]>>, vector<1x16xf32>
    %4 = vector.transfer_read %c[%i, %c0], %zero {in_bounds = [true, true]} : memref<8x16xf32>, vector<1x16xf32>
    %5 = arith.addf %2, %3 : vector<1x16xf32>
    %6 = arith.addf %5, %4 : vector<1x16xf32>
    vector.transfer_write %6, %y[%i, %c0] {in_bounds = [true, true]} : vector<1x16xf32>, memref<8x16xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
func.func private @sum(tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    attributes {fuse.launch = @sum_kernel}

// -----

// Two arrays, and an array that one call of two passes twice.
// CHECK-LABEL: func.func private @add_kernel
// CHECK: vector.transfer_read %arg0
// CHECK: vector.transfer_read %arg1
// REMARK: fuse-share-arguments: declined: no two arguments are known to be the same array
func.func @twice(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = call @add(%x, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = call @add(%x, %y) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
func.func private @add_kernel(%a: memref<8xf32>, %b: memref<8xf32>, %c: memref<8xf32>) attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (1) {
    %0 = vector.transfer_read %a[%c0], %zero {in_bounds = [true]} : memref<8xf32>, vector<8xf32>
    %1 = vector.transfer_read %b[%c0], %zero {in_bounds = [true]} : memref<8xf32>, vector<8xf32>
    %2 = arith.addf %0, %1 : vector<8xf32>
    vector.transfer_write %2, %c[%c0] {in_bounds = [true]} : vector<8xf32>, memref<8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
func.func private @add(tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> attributes {fuse.launch = @add_kernel}

// -----

// Windows that begin beside aligned elements are views of an array that is aligned.
// CHECK-LABEL: func.func private @beside_kernel
// CHECK-SAME: %arg0: memref<8x16xf32> {fuse.align = 16 : i64}, %arg1: memref<8x16xf32> {fuse.align = 4 : i64}
// CHECK-COUNT-2: "fuse.gathered_view"(%arg0)
// REMARK: fuse-share-arguments: applied: 1 arguments of beside_kernel are read through others
#even = affine_map<(p, c) -> (p, c + 2)>
#odd = affine_map<(p, c) -> (p, c + 1)>
func.func @beside(%x: tensor<8x16xf32> {fuse.align = 16 : i64}) -> tensor<8x14xf32> {
  %0 = "fuse.gathered_view"(%x) {basis = array<i64: 8, 14>, ranks = array<i64: 1, 1>, map = #even}
      : (tensor<8x16xf32>) -> tensor<8x14xf32>
  %1 = "fuse.gathered_view"(%x) {basis = array<i64: 8, 14>, ranks = array<i64: 1, 1>, map = #odd}
      : (tensor<8x16xf32>) -> tensor<8x14xf32>
  %2 = call @beside_0(%0, %1) : (tensor<8x14xf32>, tensor<8x14xf32>) -> tensor<8x14xf32>
  return %2 : tensor<8x14xf32>
}
func.func private @beside_kernel(%a: memref<8x16xf32> {fuse.align = 8 : i64}, %b: memref<8x16xf32> {fuse.align = 4 : i64},
    %y: memref<8x14xf32>) attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %0 = "fuse.gathered_view"(%a) {basis = array<i64: 8, 14>, ranks = array<i64: 1, 1>, map = #even}
      : (memref<8x16xf32>) -> memref<8x14xf32, strided<[2, 1]>>
  %1 = "fuse.gathered_view"(%b) {basis = array<i64: 8, 14>, ranks = array<i64: 1, 1>, map = #odd}
      : (memref<8x16xf32>) -> memref<8x14xf32, strided<[3, 1]>>
  scf.forall (%i) in (8) {
    %2 = vector.transfer_read %0[%i, %c0], %zero {in_bounds = [true, true]}
        : memref<8x14xf32, strided<[2, 1]>>, vector<1x14xf32>
    %3 = vector.transfer_read %1[%i, %c0], %zero {in_bounds = [true, true]}
        : memref<8x14xf32, strided<[3, 1]>>, vector<1x14xf32>
    %4 = arith.addf %2, %3 : vector<1x14xf32>
    vector.transfer_write %4, %y[%i, %c0] {in_bounds = [true, true]} : vector<1x14xf32>, memref<8x14xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
func.func private @beside_0(tensor<8x14xf32>, tensor<8x14xf32>) -> tensor<8x14xf32> attributes {fuse.launch = @beside_kernel}
