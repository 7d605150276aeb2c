// RUN: mlirfuse-opt %s --fuse-fold-transposes --split-input-file | FileCheck %s

#left = affine_map<(m, n, k) -> (m, k)>
#right = affine_map<(m, n, k) -> (k, n)>
#result = affine_map<(m, n, k) -> (m, n)>

// CHECK-DAG: #[[MK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[NK:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @factor
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {indexing_maps = [#[[MK]], #[[NK]], #[[MN]]]
// CHECK-SAME: ins(%{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<6x8xf32>)
func.func @factor(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>, %init: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<8x6xf32>
  %t = linalg.transpose ins(%w : tensor<6x8xf32>) outs(%e : tensor<8x6xf32>) permutation = [1, 0]
  %y = linalg.generic {indexing_maps = [#left, #right, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %t : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// Two transposes in a row, which together are a rotation: (a, b, c) to (c, a, b). The first one is returned, and stays.

// CHECK-DAG: #[[ROTATED:.*]] = affine_map<(d0, d1, d2) -> (d1, d2, d0)>
// CHECK-LABEL: func.func @chain
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1]
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {indexing_maps = [#[[ROTATED]],
// CHECK-SAME: ins(%{{.*}} : tensor<2x3x4xf32>)
func.func @chain(%x: tensor<2x3x4xf32>) -> (tensor<2x4x3xf32>, tensor<4x2x3xf32>) {
  %e0 = tensor.empty() : tensor<2x4x3xf32>
  %t0 = linalg.transpose ins(%x : tensor<2x3x4xf32>) outs(%e0 : tensor<2x4x3xf32>) permutation = [0, 2, 1]
  %e1 = tensor.empty() : tensor<4x2x3xf32>
  %t1 = linalg.transpose ins(%t0 : tensor<2x4x3xf32>) outs(%e1 : tensor<4x2x3xf32>) permutation = [1, 0, 2]
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%t1 : tensor<4x2x3xf32>) outs(%e1 : tensor<4x2x3xf32>) {
  ^bb0(%a: f32, %out: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<4x2x3xf32>
  return %t0, %y : tensor<2x4x3xf32>, tensor<4x2x3xf32>
}
