// RUN: mlirfuse-opt %s --fuse-share-slices --split-input-file --show-remarks 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// The pairs of rows whose outer axes are one: the call passes the rows, with these axes made one, for the first slice.
// CHECK-LABEL: func.func @pairs
// CHECK-SAME: %[[X:.*]]: tensor<4x?x64xf32>
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[X]] {{\[}}[0, 1], [2]] : tensor<4x?x64xf32> into tensor<?x64xf32>
// CHECK: call @add(%[[ROWS]], %{{.*}}) : (tensor<?x64xf32>, tensor<?x32xf32>)
// CHECK-LABEL: func.func private @add_kernel
// CHECK-SAME: %arg0: memref<?x64xf32> {fuse.align = 16 : i64}, %arg1: memref<?x32xf32, strided<[64, 2]>>
// CHECK: %[[A:.*]] = memref.subview %arg0[0, 0] [%{{.*}}, 32] [1, 2]
// CHECK: %[[B:.*]] = memref.subview %arg0[0, 1] [%{{.*}}, 32] [1, 2]
// CHECK: memref.dim %arg0
// CHECK: vector.transfer_read %[[A]]
// CHECK: vector.transfer_read %[[B]]
// CHECK: func.func private @add(tensor<?x64xf32>, tensor<?x32xf32>)
// REMARK: fuse-share-slices: applied: 2 arguments of add_kernel are slices of others
func.func @pairs(%x: tensor<4x?x64xf32> {fuse.align = 16 : i64}) -> tensor<?x32xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<4x?x64xf32>
  %a = tensor.extract_slice %x[0, 0, 0] [4, %n, 32] [1, 1, 2] : tensor<4x?x64xf32> to tensor<4x?x32xf32>
  %b = tensor.extract_slice %x[0, 0, 1] [4, %n, 32] [1, 1, 2] : tensor<4x?x64xf32> to tensor<4x?x32xf32>
  %0 = tensor.collapse_shape %a [[0, 1], [2]] : tensor<4x?x32xf32> into tensor<?x32xf32>
  %1 = tensor.collapse_shape %b [[0, 1], [2]] : tensor<4x?x32xf32> into tensor<?x32xf32>
  %2 = call @add(%0, %1) : (tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32>
  return %2 : tensor<?x32xf32>
}
func.func private @add_kernel(
    %a: memref<?x32xf32, strided<[64, 2]>> {fuse.align = 16 : i64, fuse.strides = [64, 2]},
    %b: memref<?x32xf32, strided<[64, 2]>> {fuse.align = 4 : i64, fuse.strides = [64, 2]},
    %y: memref<?x32xf32>) attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %a, %c0 : memref<?x32xf32, strided<[64, 2]>>
  scf.forall (%i) in (%n) {
    %0 = vector.transfer_read %a[%i, %c0], %zero {in_bounds = [true, true]}
        : memref<?x32xf32, strided<[64, 2]>>, vector<1x32xf32>
    %1 = vector.transfer_read %b[%i, %c0], %zero {in_bounds = [true, true]}
        : memref<?x32xf32, strided<[64, 2]>>, vector<1x32xf32>
    %2 = arith.addf %0, %1 : vector<1x32xf32>
    vector.transfer_write %2, %y[%i, %c0] {in_bounds = [true, true]} : vector<1x32xf32>, memref<?x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
func.func private @add(tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32> attributes {fuse.launch = @add_kernel}

// -----

// Halves of a row are runs of memory by themselves.
// CHECK-LABEL: func.func private @halves_kernel
// CHECK-NOT: memref.subview
// REMARK: fuse-share-slices: declined: no arguments are slices that interleave
func.func @halves(%x: tensor<8x64xf32>) -> tensor<8x32xf32> {
  %a = tensor.extract_slice %x[0, 0] [8, 32] [1, 1] : tensor<8x64xf32> to tensor<8x32xf32>
  %b = tensor.extract_slice %x[0, 32] [8, 32] [1, 1] : tensor<8x64xf32> to tensor<8x32xf32>
  %0 = call @halves_0(%a, %b) : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}
func.func private @halves_kernel(%a: memref<8x32xf32, strided<[64, 1]>> {fuse.strides = [64, 1]},
    %b: memref<8x32xf32, strided<[64, 1]>> {fuse.strides = [64, 1]}, %y: memref<8x32xf32>)
    attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (8) {
    %0 = vector.transfer_read %a[%i, %c0], %zero {in_bounds = [true, true]}
        : memref<8x32xf32, strided<[64, 1]>>, vector<1x32xf32>
    %1 = vector.transfer_read %b[%i, %c0], %zero {in_bounds = [true, true]}
        : memref<8x32xf32, strided<[64, 1]>>, vector<1x32xf32>
    %2 = arith.addf %0, %1 : vector<1x32xf32>
    vector.transfer_write %2, %y[%i, %c0] {in_bounds = [true, true]} : vector<1x32xf32>, memref<8x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
func.func private @halves_0(tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32> attributes {fuse.launch = @halves_kernel}

// -----

// Corners of boxes are parts of what an access may have.
// CHECK-LABEL: func.func @corners
// CHECK: call @corners_0(%{{.*}}, %{{.*}}) : (tensor<?x4xf32>, tensor<?x2xf32>)
// CHECK-LABEL: func.func private @corners_kernel
// CHECK-SAME: %arg0: memref<?x4xf32>
// CHECK: memref.subview %arg0[0, 0] [%{{.*}}, 2] [1, 1] : memref<?x4xf32> to memref<?x2xf32, strided<[4, 1]>>
// CHECK: memref.subview %arg0[0, 2] [%{{.*}}, 2] [1, 1] : memref<?x4xf32> to memref<?x2xf32, strided<[4, 1], offset: 2>>
// REMARK: fuse-share-slices: applied: 2 arguments of corners_kernel are slices of others
func.func @corners(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %a = tensor.extract_slice %x[0, 0] [%n, 2] [1, 1] : tensor<?x4xf32> to tensor<?x2xf32>
  %b = tensor.extract_slice %x[0, 2] [%n, 2] [1, 1] : tensor<?x4xf32> to tensor<?x2xf32>
  %0 = call @corners_0(%a, %b) : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
func.func private @corners_kernel(%a: memref<?x2xf32, strided<[4, 1]>> {fuse.strides = [4, 1]},
    %b: memref<?x2xf32, strided<[4, 1]>> {fuse.strides = [4, 1]}, %y: memref<?x2xf32>)
    attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %a, %c0 : memref<?x2xf32, strided<[4, 1]>>
  scf.forall (%i) in (%n) {
    %0 = vector.transfer_read %a[%i, %c0], %zero {in_bounds = [true, true]}
        : memref<?x2xf32, strided<[4, 1]>>, vector<1x2xf32>
    %1 = vector.transfer_read %b[%i, %c0], %zero {in_bounds = [true, true]}
        : memref<?x2xf32, strided<[4, 1]>>, vector<1x2xf32>
    %2 = arith.subf %1, %0 : vector<1x2xf32>
    vector.transfer_write %2, %y[%i, %c0] {in_bounds = [true, true]} : vector<1x2xf32>, memref<?x2xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
func.func private @corners_0(tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32> attributes {fuse.launch = @corners_kernel}

// -----

// Two calls, of which one passes slices of two arrays.
// CHECK-LABEL: func.func private @two_kernel
// CHECK-NOT: memref.subview
// REMARK: fuse-share-slices: declined: no arguments are slices that interleave
func.func @two(%x: tensor<8x64xf32>, %z: tensor<8x64xf32>) -> (tensor<8x32xf32>, tensor<8x32xf32>) {
  %a = tensor.extract_slice %x[0, 0] [8, 32] [1, 2] : tensor<8x64xf32> to tensor<8x32xf32>
  %b = tensor.extract_slice %x[0, 1] [8, 32] [1, 2] : tensor<8x64xf32> to tensor<8x32xf32>
  %c = tensor.extract_slice %z[0, 1] [8, 32] [1, 2] : tensor<8x64xf32> to tensor<8x32xf32>
  %0 = call @two_0(%a, %b) : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  %1 = call @two_0(%a, %c) : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  return %0, %1 : tensor<8x32xf32>, tensor<8x32xf32>
}
func.func private @two_kernel(%a: memref<8x32xf32, strided<[64, 2]>> {fuse.strides = [64, 2]},
    %b: memref<8x32xf32, strided<[64, 2]>> {fuse.strides = [64, 2]}, %y: memref<8x32xf32>)
    attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (8) {
    %0 = vector.transfer_read %a[%i, %c0], %zero {in_bounds = [true, true]}
        : memref<8x32xf32, strided<[64, 2]>>, vector<1x32xf32>
    %1 = vector.transfer_read %b[%i, %c0], %zero {in_bounds = [true, true]}
        : memref<8x32xf32, strided<[64, 2]>>, vector<1x32xf32>
    %2 = arith.addf %0, %1 : vector<1x32xf32>
    vector.transfer_write %2, %y[%i, %c0] {in_bounds = [true, true]} : vector<1x32xf32>, memref<8x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
func.func private @two_0(tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32> attributes {fuse.launch = @two_kernel}
