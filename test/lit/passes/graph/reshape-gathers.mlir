// RUN: mlirfuse-opt --fuse-reshape-gathers --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// A dimension that is divided has its parts for components.
// CHECK-DAG: #[[PAIRS:.*]] = affine_map<(d0, d1, d2) -> (d0 * 2 + d1 + 2, d2)>
// CHECK-LABEL: func.func @divided
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x10xf32>
// CHECK: %[[VIEW:.*]] = "fuse.gathered_view"(%[[X]]) {basis = array<i64: 3, 2, 10>, map = #[[PAIRS]], ranks = array<i64: 1, 1, 1>}
// CHECK-NOT: tensor.expand_shape
// CHECK: linalg.negf ins(%[[VIEW]]
// REMARK: fuse-reshape-gathers: applied: 1 reshapes of gathered views
func.func @divided(%x: tensor<8x10xf32>) -> tensor<3x2x10xf32> {
  %view = "fuse.gathered_view"(%x) {basis = array<i64: 6, 10>, map = affine_map<(i, j) -> (i + 2, j)>, ranks = array<i64: 1, 1>}
      : (tensor<8x10xf32>) -> tensor<6x10xf32>
  %pairs = tensor.expand_shape %view [[0, 1], [2]] output_shape [3, 2, 10] : tensor<6x10xf32> into tensor<3x2x10xf32>
  %e = tensor.empty() : tensor<3x2x10xf32>
  %y = linalg.negf ins(%pairs : tensor<3x2x10xf32>) outs(%e : tensor<3x2x10xf32>) -> tensor<3x2x10xf32>
  return %y : tensor<3x2x10xf32>
}

// -----

// Joined dimensions are numbered by the components of both, and those divided elsewhere by digits of a number.
// CHECK-DAG: #[[SAME:.*]] = affine_map<(d0, d1) -> (d0 + 2, d1)>
// CHECK-DAG: #[[DIGITS:.*]] = affine_map<(d0, d1) -> ((d0 * 15 + d1) floordiv 10 + 2, (d0 * 15 + d1) mod 10)>
// CHECK-LABEL: func.func @joined
// CHECK: %[[FLAT:.*]] = "fuse.gathered_view"(%{{.*}}) {basis = array<i64: 6, 10>, map = #[[SAME]], ranks = array<i64: 2>}
// CHECK: %[[ROWS:.*]] = "fuse.gathered_view"(%{{.*}}) {basis = array<i64: 4, 15>, map = #[[DIGITS]], ranks = array<i64: 1, 1>}
// CHECK: return %[[FLAT]], %[[ROWS]]
// REMARK: fuse-reshape-gathers: applied: 2 reshapes of gathered views
func.func @joined(%x: tensor<8x10xf32>) -> (tensor<60xf32>, tensor<4x15xf32>) {
  %view = "fuse.gathered_view"(%x) {basis = array<i64: 6, 10>, map = affine_map<(i, j) -> (i + 2, j)>, ranks = array<i64: 1, 1>}
      : (tensor<8x10xf32>) -> tensor<6x10xf32>
  %flat = tensor.collapse_shape %view [[0, 1]] : tensor<6x10xf32> into tensor<60xf32>
  %rows = tensor.expand_shape %flat [[0, 1]] output_shape [4, 15] : tensor<60xf32> into tensor<4x15xf32>
  return %flat, %rows : tensor<60xf32>, tensor<4x15xf32>
}

// -----

// A reshape of an array is left alone.
// CHECK-LABEL: func.func @array
// CHECK: tensor.collapse_shape
// REMARK: fuse-reshape-gathers: declined: no gathered view is reshaped
func.func @array(%x: tensor<8x10xf32>) -> tensor<80xf32> {
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<8x10xf32> into tensor<80xf32>
  return %flat : tensor<80xf32>
}
