// RUN: mlirfuse-opt %s --fuse-copy-reshaped --split-input-file --verify-diagnostics=only-expected | FileCheck %s

#id = affine_map<(d0) -> (d0)>

// Rows with gaps between them cannot be merged by a view: the sum reads a copy, which two reshapes share.
// CHECK-LABEL: func.func @rows
// CHECK: %[[COPY:.*]] = linalg.generic
// CHECK-SAME: ins(%arg0 : tensor<?x8xf32>)
// CHECK: ^bb0(%[[IN:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: linalg.yield %[[IN]] : f32
// CHECK-NOT: linalg.generic
// CHECK: tensor.collapse_shape %[[COPY]]
// CHECK: tensor.collapse_shape %[[COPY]]
func.func @rows(%x: tensor<?x8xf32> {fuse.name = "x", fuse.strides = array<i64: -1, 1>}, %e: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  // expected-remark @below {{copies x: a reshape of it may be no view}}
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<?x8xf32> into tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%0 : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  %2 = tensor.collapse_shape %x [[0, 1]] : tensor<?x8xf32> into tensor<?xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%2 : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.log %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %1, %3 : tensor<?xf32>, tensor<?xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>

// A reshape that is only returned is left to the framework.
// CHECK-LABEL: func.func @returned
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @returned(%x: tensor<4x8xf32> {fuse.strides = array<i64: -1, 1>}) -> tensor<2x16xf32> {
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  %1 = tensor.expand_shape %0 [[0, 1]] output_shape [2, 16] : tensor<32xf32> into tensor<2x16xf32>
  return %1 : tensor<2x16xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// Splitting a dimension is a view of any array, and so is merging packed dimensions.
// CHECK-LABEL: func.func @views
// CHECK: tensor.expand_shape %arg0
// CHECK-NEXT: tensor.collapse_shape
// CHECK-NEXT: linalg.generic
// CHECK-NOT: linalg.generic
func.func @views(%x: tensor<3x4x8xf32> {fuse.strides = array<i64: -3, -2, 1>}, %e: tensor<12x2x4xf32>) -> tensor<12x2x4xf32> {
  %0 = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [3, 4, 2, 4] : tensor<3x4x8xf32> into tensor<3x4x2x4xf32>
  %1 = tensor.collapse_shape %0 [[0, 1], [2], [3]] : tensor<3x4x2x4xf32> into tensor<12x2x4xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1 : tensor<12x2x4xf32>) outs(%e : tensor<12x2x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<12x2x4xf32>
  return %2 : tensor<12x2x4xf32>
}

// -----

#diagonal = affine_map<(d0, d1) -> (d1, d0, d1)>
#id = affine_map<(d0, d1) -> (d0, d1)>

// A diagonal that is returned is copied; one of an array with a run-time stride reads a copy of the array.
// CHECK-LABEL: func.func @diagonals
// CHECK: %[[VIEW:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<4x3x4xf32>)
// CHECK: %[[COPY:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<4x3x4xf32>)
// CHECK: %[[OTHER:.*]] = linalg.generic {{.*}} ins(%[[COPY]] : tensor<4x3x4xf32>)
// CHECK: %[[FIRST:.*]] = linalg.generic {{.*}} ins(%[[VIEW]] : tensor<3x4xf32>)
// CHECK: %[[SECOND:.*]] = linalg.generic {{.*}} ins(%[[OTHER]] : tensor<3x4xf32>)
// CHECK: return %[[FIRST]], %[[SECOND]]
func.func @diagonals(%x: tensor<4x3x4xf32>, %y: tensor<4x3x4xf32> {fuse.strides = array<i64: -1, -1, 1>})
    -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %e = tensor.empty() : tensor<3x4xf32>
  %0 = linalg.generic {indexing_maps = [#diagonal, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<4x3x4xf32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<3x4xf32>
  // expected-remark @below {{copies an array: a diagonal of it has no known strides}}
  %1 = linalg.generic {indexing_maps = [#diagonal, #id], iterator_types = ["parallel", "parallel"]}
       ins(%y : tensor<4x3x4xf32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<3x4xf32>
  // expected-remark @below {{copies a diagonal}}
  // expected-remark @below {{copies a diagonal}}
  return %0, %1 : tensor<3x4xf32>, tensor<3x4xf32>
}
