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

// -----

// Two dimensions number the columns as digits do: the view is the array, divided; and a view of every second group of
// them is one of the divided array.
// CHECK-DAG: #[[OTHERS:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2, 1)>
// CHECK-LABEL: func.func @digits
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x12xf32>, %[[Y:[a-z0-9]+]]: tensor<8x12x2xf32>
// CHECK-DAG: %[[WHOLE:.*]] = tensor.expand_shape %[[X]] {{\[\[0\], \[1, 2\]\]}} output_shape [8, 3, 4]
// CHECK-DAG: %[[DIVIDED:.*]] = tensor.expand_shape %[[Y]] {{\[\[0\], \[1, 2\], \[3\]\]}} output_shape [8, 3, 4, 2]
// CHECK-DAG: %[[SECOND:.*]] = "fuse.gathered_view"(%[[DIVIDED]]) {basis = array<i64: 8, 3, 4>, map = #[[OTHERS]]
// CHECK: linalg.add ins(%[[WHOLE]], %[[SECOND]]
// REMARK: fuse-reshape-gathers: applied: 2 gathered views of divided dimensions
func.func @digits(%x: tensor<8x12xf32>, %y: tensor<8x12x2xf32>) -> tensor<8x3x4xf32> {
  %a = "fuse.gathered_view"(%x) {basis = array<i64: 8, 3, 4>, map = affine_map<(n, g, k) -> (n, g * 4 + k)>, ranks = array<i64: 1, 1, 1>}
      : (tensor<8x12xf32>) -> tensor<8x3x4xf32>
  %b = "fuse.gathered_view"(%y) {basis = array<i64: 8, 3, 4>, map = affine_map<(n, g, k) -> (n, g * 4 + k, 1)>, ranks = array<i64: 1, 1, 1>}
      : (tensor<8x12x2xf32>) -> tensor<8x3x4xf32>
  %e = tensor.empty() : tensor<8x3x4xf32>
  %z = linalg.add ins(%a, %b : tensor<8x3x4xf32>, tensor<8x3x4xf32>) outs(%e : tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  return %z : tensor<8x3x4xf32>
}

// -----

// Dimensions that leave columns out, or have some twice, divide no axis.
// CHECK-LABEL: func.func @windows
// CHECK-NOT: tensor.expand_shape
// REMARK: fuse-reshape-gathers: declined: no gathered view is reshaped
func.func @windows(%x: tensor<8x12xf32>) -> tensor<8x3x3xf32> {
  %a = "fuse.gathered_view"(%x) {basis = array<i64: 8, 3, 3>, map = affine_map<(n, g, k) -> (n, g * 4 + k)>, ranks = array<i64: 1, 1, 1>}
      : (tensor<8x12xf32>) -> tensor<8x3x3xf32>
  %b = "fuse.gathered_view"(%x) {basis = array<i64: 8, 3, 3>, map = affine_map<(n, g, k) -> (n, g * 2 + k)>, ranks = array<i64: 1, 1, 1>}
      : (tensor<8x12xf32>) -> tensor<8x3x3xf32>
  %e = tensor.empty() : tensor<8x3x3xf32>
  %z = linalg.add ins(%a, %b : tensor<8x3x3xf32>, tensor<8x3x3xf32>) outs(%e : tensor<8x3x3xf32>) -> tensor<8x3x3xf32>
  return %z : tensor<8x3x3xf32>
}
