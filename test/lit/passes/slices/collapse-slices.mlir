// RUN: mlirfuse-opt --fuse-collapse-slices --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#out = affine_map<(n) -> (n)>
#element = affine_map<(n) -> (n, 0, 0)>

// Elements of matrices are components of rows of nine.
// CHECK: #[[MAP:.*]] = affine_map<(d0) -> (d0, 0)>
// CHECK-LABEL: func.func @matrices(
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<?x3x3xf32>
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[A]] {{\[}}[0], [1, 2]] : tensor<?x3x3xf32> into tensor<?x9xf32>
// CHECK: %[[X:.*]] = tensor.extract_slice %[[ROWS]][0, 1] [%{{.*}}, 1] [1, 1] : tensor<?x9xf32> to tensor<?x1xf32>
// CHECK: %[[Y:.*]] = tensor.extract_slice %[[ROWS]][0, 6] [%{{.*}}, 1] [1, 1] : tensor<?x9xf32> to tensor<?x1xf32>
// CHECK: linalg.generic {indexing_maps = [#[[MAP]], #[[MAP]], #{{.*}}]{{.*}}} ins(%[[X]], %[[Y]] :
// expected-remark @below {{2 slices of several axes}}
func.func @matrices(%a: tensor<?x3x3xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?x3x3xf32>
  %x = tensor.extract_slice %a[0, 0, 1] [%n, 1, 1] [1, 1, 1] : tensor<?x3x3xf32> to tensor<?x1x1xf32>
  %y = tensor.extract_slice %a[0, 2, 0] [%n, 1, 1] [1, 1, 1] : tensor<?x3x3xf32> to tensor<?x1x1xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#element, #element, #out], iterator_types = ["parallel"]}
       ins(%x, %y : tensor<?x1x1xf32>, tensor<?x1x1xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A few of every third step of one coordinate; what else reads the slice has it in its own shape.
// CHECK-LABEL: func.func @steps(
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %arg0 {{\[}}[0], [1, 2]] : tensor<7x2x16xf32> into tensor<7x32xf32>
// CHECK: %[[X:.*]] = tensor.extract_slice %[[ROWS]][2, 17] [4, 5] [1, 3] : tensor<7x32xf32> to tensor<4x5xf32>
// CHECK: %[[Y:.*]] = tensor.expand_shape %[[X]] {{\[}}[0], [1, 2]] output_shape [4, 1, 5] : tensor<4x5xf32> into tensor<4x1x5xf32>
// CHECK: return %[[Y]]
// expected-remark @below {{1 slices of several axes}}
func.func @steps(%z: tensor<7x2x16xf32>) -> tensor<4x1x5xf32> {
  %x = tensor.extract_slice %z[2, 1, 1] [4, 1, 5] [1, 1, 3] : tensor<7x2x16xf32> to tensor<4x1x5xf32>
  return %x : tensor<4x1x5xf32>
}

// -----

// Runs of memory, one axis, and blocks of several axes stay.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: collapse_shape
// expected-remark @below {{no slice has single indices of several axes}}
func.func @others(%x: tensor<8x4x64xf32>) -> (tensor<8x1x64xf32>, tensor<8x4x1xf32>, tensor<8x2x2xf32>) {
  %run = tensor.extract_slice %x[0, 2, 0] [8, 1, 64] [1, 1, 1] : tensor<8x4x64xf32> to tensor<8x1x64xf32>
  %one = tensor.extract_slice %x[0, 0, 5] [8, 4, 1] [1, 1, 1] : tensor<8x4x64xf32> to tensor<8x4x1xf32>
  %block = tensor.extract_slice %x[0, 1, 5] [8, 2, 2] [1, 1, 1] : tensor<8x4x64xf32> to tensor<8x2x2xf32>
  return %run, %one, %block : tensor<8x1x64xf32>, tensor<8x4x1xf32>, tensor<8x2x2xf32>
}

// -----

// An argument whose axes are not one in memory is left alone.
// CHECK-LABEL: func.func @strided(
// CHECK-NOT: collapse_shape
// expected-remark @below {{no slice has single indices of several axes}}
func.func @strided(%a: tensor<8x3x3xf32> {fuse.strides = [9, 1, 3]}) -> tensor<8x1x1xf32> {
  %x = tensor.extract_slice %a[0, 0, 1] [8, 1, 1] [1, 1, 1] : tensor<8x3x3xf32> to tensor<8x1x1xf32>
  return %x : tensor<8x1x1xf32>
}

// -----

// Nor is a view of one.
// CHECK-LABEL: func.func @flipped(
// CHECK-NOT: collapse_shape
// expected-remark @below {{no slice has single indices of several axes}}
func.func @flipped(%a: tensor<8x3x3xf32>) -> tensor<8x1x1xf32> {
  %f = tensor.extract_slice %a[0, 2, 0] [8, 3, 3] [1, -1, 1] : tensor<8x3x3xf32> to tensor<8x3x3xf32>
  %x = tensor.extract_slice %f[0, 0, 1] [8, 1, 1] [1, 1, 1] : tensor<8x3x3xf32> to tensor<8x1x1xf32>
  return %x : tensor<8x1x1xf32>
}
