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
func.func @rows(%x: tensor<?x8xf32> {fuse.name = "x", fuse.strides = ["?", 1]}, %e: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
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

// So does a reshape that is only returned.
// CHECK-LABEL: func.func @returned
// CHECK: %[[COPY:.*]] = linalg.generic
// CHECK-SAME: fuse.copied = -1
// CHECK: tensor.collapse_shape %[[COPY]]
// CHECK: return
func.func @returned(%x: tensor<4x8xf32> {fuse.strides = ["?", 1]}) -> tensor<2x16xf32> {
  // expected-remark @below {{copies argument 0: a reshape of it may be no view}}
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
func.func @views(%x: tensor<3x4x8xf32> {fuse.strides = ["packed", "negative", 1]}, %e: tensor<12x2x4xf32>) -> tensor<12x2x4xf32> {
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

// A transposed array is copied by an op that reads the array itself; splitting its dimensions is a view.
// CHECK-LABEL: func.func @transposed
// CHECK: %[[COPY:.*]] = linalg.generic
// CHECK-SAME: ins(%arg0 : tensor<4x8xf32>)
// CHECK-SAME: fuse.copied = -1
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[COPY]]
// CHECK: %[[T:.*]] = linalg.transpose ins(%arg0
// CHECK: %[[SPLIT:.*]] = tensor.expand_shape %[[T]]
// CHECK: return %[[FLAT]], %[[SPLIT]]
func.func @transposed(%x: tensor<4x8xf32> {fuse.name = "x"}) -> (tensor<32xf32>, tensor<2x4x4xf32>) {
  %e = tensor.empty() : tensor<8x4xf32>
  %t = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  // expected-remark @below {{copies x: a reshape of it may be no view}}
  %0 = tensor.collapse_shape %t [[0, 1]] : tensor<8x4xf32> into tensor<32xf32>
  %s = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  %1 = tensor.expand_shape %s [[0, 1], [2]] output_shape [2, 4, 4] : tensor<8x4xf32> into tensor<2x4x4xf32>
  return %0, %1 : tensor<32xf32>, tensor<2x4x4xf32>
}

// -----

// Rows of a slice have gaps between them, whole rows of an array have none.
// CHECK-LABEL: func.func @sliced
// CHECK: %[[SLICE:.*]] = tensor.extract_slice %arg0[0, 2]
// CHECK: %[[COPY:.*]] = linalg.generic
// CHECK-SAME: ins(%[[SLICE]]
// CHECK: tensor.collapse_shape %[[COPY]]
// CHECK: %[[ROWS:.*]] = tensor.extract_slice %arg0[1, 0]
// CHECK: tensor.collapse_shape %[[ROWS]]
func.func @sliced(%x: tensor<4x8xf32> {fuse.name = "x"}) -> (tensor<16xf32>, tensor<24xf32>) {
  %0 = tensor.extract_slice %x[0, 2] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  // expected-remark @below {{copies x: a reshape of it may be no view}}
  %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>
  %2 = tensor.extract_slice %x[1, 0] [3, 8] [1, 1] : tensor<4x8xf32> to tensor<3x8xf32>
  %3 = tensor.collapse_shape %2 [[0, 1]] : tensor<3x8xf32> into tensor<24xf32>
  return %1, %3 : tensor<16xf32>, tensor<24xf32>
}

// -----

// A reshape whose extent alone is asked for is not made.
// CHECK-LABEL: func.func @extent
// CHECK-NOT: fuse.copied
// CHECK-NOT: tensor.collapse_shape
// CHECK: %[[T:.*]] = linalg.transpose
// CHECK: %[[AXIS:.*]] = arith.constant 2
// CHECK: %[[N:.*]] = tensor.dim %[[T]], %[[AXIS]]
// CHECK: tensor.empty(%[[N]])
func.func @extent(%x: tensor<?x3x2xf32> {fuse.name = "x"}) -> tensor<6x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x3x2xf32>
  %e = tensor.empty(%n) : tensor<2x3x?xf32>
  %t = linalg.transpose ins(%x : tensor<?x3x2xf32>) outs(%e : tensor<2x3x?xf32>) permutation = [2, 1, 0]
  %0 = tensor.collapse_shape %t [[0, 1], [2]] : tensor<2x3x?xf32> into tensor<6x?xf32>
  %m = tensor.dim %0, %c1 : tensor<6x?xf32>
  %zero = arith.constant 0.0 : f32
  %f = tensor.empty(%m) : tensor<6x?xf32>
  %y = linalg.fill ins(%zero : f32) outs(%f : tensor<6x?xf32>) -> tensor<6x?xf32>
  return %y : tensor<6x?xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>
#second = affine_map<(d0) -> (d0 - 12)>

// A view of a gathered view is copied too: a kernel is passed what such a view is of.
// CHECK-LABEL: func.func @gathered
// CHECK: %[[VIEW:.*]] = "fuse.gathered_view"(%arg0)
// CHECK: %[[COPY:.*]] = linalg.generic
// CHECK-SAME: ins(%[[VIEW]] : tensor<24xf32>)
// CHECK: tensor.extract_slice %[[COPY]]
func.func @gathered(%x: tensor<12xf32>, %e: tensor<5xf32>) -> tensor<5xf32> {
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 24>, map = #second, ranks = array<i64: 1>} : (tensor<12xf32>) -> tensor<24xf32>
  // expected-remark @below {{copies a result: a view of it is no view of memory}}
  %0 = tensor.extract_slice %v[0] [5] [5] : tensor<24xf32> to tensor<5xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%0 : tensor<5xf32>) outs(%e : tensor<5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %y = math.exp %a : f32
    linalg.yield %y : f32
  } -> tensor<5xf32>
  return %1 : tensor<5xf32>
}
