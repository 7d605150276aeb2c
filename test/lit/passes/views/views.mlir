// RUN: mlirfuse-opt %s --fuse-views --split-input-file --verify-diagnostics=only-expected | FileCheck %s

#left = affine_map<(m, n, k) -> (m, k)>
#right = affine_map<(m, n, k) -> (k, n)>
#result = affine_map<(m, n, k) -> (m, n)>

// CHECK-DAG: #[[MK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[NK:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @operand
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {indexing_maps = [#[[MK]], #[[NK]], #[[MN]]]
// CHECK-SAME: ins(%{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<6x8xf32>)
func.func @operand(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>, %init: tensor<4x6xf32>) -> tensor<4x6xf32> {
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

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d0, 0)>
#vector = affine_map<(d0, d1) -> (d1)>

// A kept dimension and a broadcast are read through; the broadcast is returned as well, and stays.

// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[VECTOR:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @rows
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[S:.*]]: tensor<4xf32>, %[[V:.*]]: tensor<8xf32>
// CHECK-NOT: tensor.expand_shape
// CHECK: %[[WIDE:.*]] = linalg.generic
// CHECK: %[[Y:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[ROW]], #[[VECTOR]], #[[ID]]]
// CHECK-SAME: ins(%[[X]], %[[S]], %[[V]] :
// CHECK: return %[[Y]], %[[WIDE]]
func.func @rows(%x: tensor<4x8xf32>, %s: tensor<4xf32>, %v: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %kept = tensor.expand_shape %s [[0, 1]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
  %wide = linalg.generic {indexing_maps = [#vector, #id], iterator_types = ["parallel", "parallel"]}
      ins(%v : tensor<8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #column, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %kept, %wide : tensor<4x8xf32>, tensor<4x1xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %p = arith.mulf %d, %c : f32
    linalg.yield %p : f32
  } -> tensor<4x8xf32>
  return %y, %wide : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Only the broadcast gives the number of columns of the sum.

// CHECK-LABEL: func.func @alone
// CHECK-COUNT-2: linalg.generic
// expected-remark @below {{no op reads a view}}
func.func @alone(%s: tensor<4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %wide = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%wide : tensor<4x8xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %t = arith.addf %sum, %a : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// An op with several results is no copy, though it yields its first operand: its readers are left alone.
#id = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func @two_results
// CHECK: %[[R:.*]]:2 = linalg.generic
// CHECK: linalg.generic {{.*}} ins(%[[R]]#1 :
// expected-remark @below {{no op reads a view}}
func.func @two_results(%x: tensor<64xf32>, %y: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0:2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
         outs(%x, %y : tensor<64xf32>, tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %v = arith.addf %a, %b : f32
    linalg.yield %a, %v : f32, f32
  } -> (tensor<64xf32>, tensor<64xf32>)
  %e = tensor.empty() : tensor<64xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
       ins(%0#1 : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %0#0, %1 : tensor<64xf32>, tensor<64xf32>
}

// -----

// A transposition that undoes another one leaves the source; two that do not become one.
// CHECK-LABEL: func.func @undone
// CHECK-SAME: %[[X:.*]]: tensor<2x3x4xf32>
// CHECK: %[[Y:.*]] = linalg.transpose ins(%[[X]] : tensor<2x3x4xf32>) {{.*}} permutation = [2, 0, 1]
// CHECK-NOT: linalg.transpose
// CHECK: return %[[X]], %[[Y]]
func.func @undone(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<4x2x3xf32>) {
  %e0 = tensor.empty() : tensor<3x4x2xf32>
  %t0 = linalg.transpose ins(%x : tensor<2x3x4xf32>) outs(%e0 : tensor<3x4x2xf32>) permutation = [1, 2, 0]
  %e1 = tensor.empty() : tensor<2x3x4xf32>
  %t1 = linalg.transpose ins(%t0 : tensor<3x4x2xf32>) outs(%e1 : tensor<2x3x4xf32>) permutation = [2, 0, 1]
  %e2 = tensor.empty() : tensor<4x2x3xf32>
  %t2 = linalg.transpose ins(%t0 : tensor<3x4x2xf32>) outs(%e2 : tensor<4x2x3xf32>) permutation = [1, 2, 0]
  return %t1, %t2 : tensor<2x3x4xf32>, tensor<4x2x3xf32>
}
