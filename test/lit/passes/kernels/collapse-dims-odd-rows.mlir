// RUN: mlirfuse-opt --fuse-collapse-dims --split-input-file --verify-diagnostics %s | FileCheck %s

#id = affine_map<(i, j, k) -> (i, j, k)>
#none = affine_map<(i, j, k) -> ()>

// All is reduced, and no access has two of 7 times 11 elements: it is one row, of run-time length.
// CHECK-LABEL: func.func @odd(
// CHECK-SAME: %[[X:.*]]: tensor<?x7x11xf32>
// CHECK: %[[ROW:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0, 1, 2]] : tensor<?x7x11xf32> into tensor<?xf32>
// CHECK: call @odd_0(%[[ROW]]) : (tensor<?xf32>) -> tensor<f32>
// CHECK: iterator_types = ["reduction"]
func.func @odd(%x: tensor<?x7x11xf32>) -> tensor<f32> {
  %0 = call @odd_0(%x) : (tensor<?x7x11xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// expected-remark @below {{3 dimensions became 1}}
func.func private @odd_0(%x: tensor<?x7x11xf32>) -> tensor<f32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %0 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction", "reduction", "reduction"]}
       ins(%x : tensor<?x7x11xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

#id = affine_map<(i, j, k) -> (i, j, k)>
#none = affine_map<(i, j, k) -> ()>

// Rows of 7 times 12 elements have accesses of four.
// CHECK-LABEL: func.func @even(
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2]] : tensor<?x7x12xf32> into tensor<?x84xf32>
// CHECK: iterator_types = ["reduction", "reduction"]
func.func @even(%x: tensor<?x7x12xf32>) -> tensor<f32> {
  %0 = call @even_0(%x) : (tensor<?x7x12xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// expected-remark @below {{3 dimensions became 2}}
func.func private @even_0(%x: tensor<?x7x12xf32>) -> tensor<f32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %0 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction", "reduction", "reduction"]}
       ins(%x : tensor<?x7x12xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// What is kept is no part of a row.
// CHECK-LABEL: func.func private @kept_0
// CHECK: iterator_types = ["parallel", "reduction"]
func.func @kept(%x: tensor<?x77xf32>) -> tensor<?xf32> {
  %0 = call @kept_0(%x) : (tensor<?x77xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
// expected-remark @below {{no neighbouring dimensions can be merged}}
func.func private @kept_0(%x: tensor<?x77xf32>) -> tensor<?xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x77xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x77xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
