// RUN: mlirfuse-opt %s --fuse-fold-joins --split-input-file --show-remarks 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// Zeros on both sides of an array: a view of the array has them.
// CHECK: #[[SHIFTED:.*]] = affine_map<(d0) -> (d0 - 1)>
// CHECK-LABEL: func.func @padded
// REMARK: fuse-fold-joins: applied: zeros are left out of joined arrays
// CHECK: %[[V:.*]] = "fuse.gathered_view"(%arg0) {basis = array<i64: 10>, map = #[[SHIFTED]]{{.*}} -> tensor<10xf32>
// CHECK-NOT: gathered_view
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[V]] : tensor<10xf32>)
// CHECK-NOT: arith
// CHECK: return %[[Y]]
#id = affine_map<(i) -> (i)>
#second = affine_map<(i) -> (i - 1)>
#third = affine_map<(i) -> (i - 9)>
func.func @padded(%x: tensor<8xf32>) -> tensor<10xf32> {
  %e = tensor.empty() : tensor<1xf32>
  %zeros = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<1xf32>) {
  ^bb0(%out: f32):
    %0 = arith.constant 0.0 : f32
    linalg.yield %0 : f32
  } -> tensor<1xf32>
  %a = "fuse.gathered_view"(%zeros) {basis = array<i64: 10>, map = #id, ranks = array<i64: 1>} : (tensor<1xf32>) -> tensor<10xf32>
  %b = "fuse.gathered_view"(%x) {basis = array<i64: 10>, map = #second, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<10xf32>
  %c = "fuse.gathered_view"(%zeros) {basis = array<i64: 10>, map = #third, ranks = array<i64: 1>} : (tensor<1xf32>) -> tensor<10xf32>
  %p = "fuse.gathered_view"(%zeros) {basis = array<i64: 10>, inside = array<i64: 1>, map = #id, ranks = array<i64: 1>} : (tensor<1xf32>) -> tensor<10xi1>
  %q = "fuse.gathered_view"(%x) {basis = array<i64: 10>, inside = array<i64: 8>, map = #second, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<10xi1>
  %r = "fuse.gathered_view"(%zeros) {basis = array<i64: 10>, inside = array<i64: 1>, map = #third, ranks = array<i64: 1>} : (tensor<1xf32>) -> tensor<10xi1>
  %f = tensor.empty() : tensor<10xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b, %c, %p, %q, %r : tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<10xi1>, tensor<10xi1>, tensor<10xi1>)
      outs(%f : tensor<10xf32>) {
  ^bb0(%1: f32, %2: f32, %3: f32, %4: i1, %5: i1, %6: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %7 = arith.select %4, %1, %zero : f32
    %8 = arith.select %5, %2, %7 : f32
    %9 = arith.select %6, %3, %8 : f32
    linalg.yield %9 : f32
  } -> tensor<10xf32>
  return %y : tensor<10xf32>
}

// -----

// Negative zeros are no zeros.
// CHECK-LABEL: func.func @negative
// REMARK: fuse-fold-joins: declined: no part is filled with zeros, or all are
// CHECK-COUNT-2: arith.select
#id = affine_map<(i) -> (i)>
#second = affine_map<(i) -> (i - 1)>
func.func @negative(%x: tensor<8xf32>) -> tensor<9xf32> {
  %zero = arith.constant -0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %a = "fuse.gathered_view"(%zeros) {basis = array<i64: 9>, map = #id, ranks = array<i64: 1>} : (tensor<1xf32>) -> tensor<9xf32>
  %b = "fuse.gathered_view"(%x) {basis = array<i64: 9>, map = #second, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<9xf32>
  %p = "fuse.gathered_view"(%zeros) {basis = array<i64: 9>, inside = array<i64: 1>, map = #id, ranks = array<i64: 1>} : (tensor<1xf32>) -> tensor<9xi1>
  %q = "fuse.gathered_view"(%x) {basis = array<i64: 9>, inside = array<i64: 8>, map = #second, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<9xi1>
  %f = tensor.empty() : tensor<9xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b, %p, %q : tensor<9xf32>, tensor<9xf32>, tensor<9xi1>, tensor<9xi1>) outs(%f : tensor<9xf32>) {
  ^bb0(%1: f32, %2: f32, %3: i1, %4: i1, %out: f32):
    %nothing = arith.constant 0.0 : f32
    %5 = arith.select %3, %1, %nothing : f32
    %6 = arith.select %4, %2, %5 : f32
    linalg.yield %6 : f32
  } -> tensor<9xf32>
  return %y : tensor<9xf32>
}

// -----

// The zeros were selected over an element of the array.
// CHECK-LABEL: func.func @overlapping
// REMARK: fuse-fold-joins: declined: parts overlap
// CHECK-COUNT-2: arith.select
#id = affine_map<(i) -> (i)>
func.func @overlapping(%x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %a = "fuse.gathered_view"(%x) {basis = array<i64: 8>, map = #id, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<8xf32>
  %b = "fuse.gathered_view"(%zeros) {basis = array<i64: 8>, map = #id, ranks = array<i64: 1>} : (tensor<1xf32>) -> tensor<8xf32>
  %p = "fuse.gathered_view"(%x) {basis = array<i64: 8>, inside = array<i64: 8>, map = #id, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<8xi1>
  %q = "fuse.gathered_view"(%zeros) {basis = array<i64: 8>, inside = array<i64: 1>, map = #id, ranks = array<i64: 1>} : (tensor<1xf32>) -> tensor<8xi1>
  %f = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b, %p, %q : tensor<8xf32>, tensor<8xf32>, tensor<8xi1>, tensor<8xi1>) outs(%f : tensor<8xf32>) {
  ^bb0(%1: f32, %2: f32, %3: i1, %4: i1, %out: f32):
    %nothing = arith.constant 0.0 : f32
    %5 = arith.select %3, %1, %nothing : f32
    %6 = arith.select %4, %2, %5 : f32
    linalg.yield %6 : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @no_join
// REMARK: fuse-fold-joins: declined: no arrays are joined
func.func @no_join(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
