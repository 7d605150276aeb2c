// RUN: mlirfuse-opt %s --fuse-rotate-joins --split-input-file --show-remarks 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// The last 8 elements, then the first: each is read one place on, modulo 9.
// CHECK: #[[ROTATED:.*]] = affine_map<(d0) -> ((d0 + 1) mod 9)>
// CHECK-LABEL: func.func @rotated
// REMARK: fuse-rotate-joins: applied: an array's slices are joined in another order
// CHECK: %[[V:.*]] = "fuse.gathered_view"(%arg0) {basis = array<i64: 9>, map = #[[ROTATED]]{{.*}} -> tensor<9xf32>
// CHECK-NOT: gathered_view
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[V]] : tensor<9xf32>)
// CHECK-NOT: arith.select
// CHECK: return %[[Y]]
#id = affine_map<(i) -> (i)>
#second = affine_map<(i) -> (i - 8)>
func.func @rotated(%x: tensor<9xf32>) -> tensor<9xf32> {
  %last = tensor.extract_slice %x[1] [8] [1] : tensor<9xf32> to tensor<8xf32>
  %first = tensor.extract_slice %x[0] [1] [1] : tensor<9xf32> to tensor<1xf32>
  %a = "fuse.gathered_view"(%last) {basis = array<i64: 9>, map = #id, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<9xf32>
  %b = "fuse.gathered_view"(%first) {basis = array<i64: 9>, map = #second, ranks = array<i64: 1>} : (tensor<1xf32>) -> tensor<9xf32>
  %p = "fuse.gathered_view"(%last) {basis = array<i64: 9>, inside = array<i64: 8>, map = #id, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<9xi1>
  %q = "fuse.gathered_view"(%first) {basis = array<i64: 9>, inside = array<i64: 1>, map = #second, ranks = array<i64: 1>} : (tensor<1xf32>) -> tensor<9xi1>
  %f = tensor.empty() : tensor<9xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b, %p, %q : tensor<9xf32>, tensor<9xf32>, tensor<9xi1>, tensor<9xi1>) outs(%f : tensor<9xf32>) {
  ^bb0(%1: f32, %2: f32, %3: i1, %4: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %5 = arith.select %3, %1, %zero : f32
    %6 = arith.select %4, %2, %5 : f32
    linalg.yield %6 : f32
  } -> tensor<9xf32>
  return %y : tensor<9xf32>
}

// -----

// A periodic border: the last column, all of them, and the first one.
// CHECK: #[[WRAPPED:.*]] = affine_map<(d0, d1) -> (d0, (d1 + 8) mod 9)>
// CHECK-LABEL: func.func @border
// REMARK: fuse-rotate-joins: applied: an array's slices are joined in another order
// CHECK: "fuse.gathered_view"(%arg0) {basis = array<i64: 4, 11>, map = #[[WRAPPED]]{{.*}} -> tensor<4x11xf32>
// CHECK-NOT: arith.select
#id = affine_map<(i, j) -> (i, j)>
#second = affine_map<(i, j) -> (i, j - 1)>
#third = affine_map<(i, j) -> (i, j - 10)>
func.func @border(%x: tensor<4x9xf32>) -> tensor<4x11xf32> {
  %last = tensor.extract_slice %x[0, 8] [4, 1] [1, 1] : tensor<4x9xf32> to tensor<4x1xf32>
  %first = tensor.extract_slice %x[0, 0] [4, 1] [1, 1] : tensor<4x9xf32> to tensor<4x1xf32>
  %a = "fuse.gathered_view"(%last) {basis = array<i64: 4, 11>, map = #id, ranks = array<i64: 1, 1>} : (tensor<4x1xf32>) -> tensor<4x11xf32>
  %b = "fuse.gathered_view"(%x) {basis = array<i64: 4, 11>, map = #second, ranks = array<i64: 1, 1>} : (tensor<4x9xf32>) -> tensor<4x11xf32>
  %c = "fuse.gathered_view"(%first) {basis = array<i64: 4, 11>, map = #third, ranks = array<i64: 1, 1>} : (tensor<4x1xf32>) -> tensor<4x11xf32>
  %p = "fuse.gathered_view"(%last) {basis = array<i64: 4, 11>, inside = array<i64: 4, 1>, map = #id, ranks = array<i64: 1, 1>} : (tensor<4x1xf32>) -> tensor<4x11xi1>
  %q = "fuse.gathered_view"(%x) {basis = array<i64: 4, 11>, inside = array<i64: 4, 9>, map = #second, ranks = array<i64: 1, 1>} : (tensor<4x9xf32>) -> tensor<4x11xi1>
  %r = "fuse.gathered_view"(%first) {basis = array<i64: 4, 11>, inside = array<i64: 4, 1>, map = #third, ranks = array<i64: 1, 1>} : (tensor<4x1xf32>) -> tensor<4x11xi1>
  %f = tensor.empty() : tensor<4x11xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b, %c, %p, %q, %r : tensor<4x11xf32>, tensor<4x11xf32>, tensor<4x11xf32>, tensor<4x11xi1>, tensor<4x11xi1>, tensor<4x11xi1>)
      outs(%f : tensor<4x11xf32>) {
  ^bb0(%1: f32, %2: f32, %3: f32, %4: i1, %5: i1, %6: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %7 = arith.select %4, %1, %zero : f32
    %8 = arith.select %5, %2, %7 : f32
    %9 = arith.select %6, %3, %8 : f32
    linalg.yield %9 : f32
  } -> tensor<4x11xf32>
  return %y : tensor<4x11xf32>
}

// -----

// Between the last element and the second one the array has another.
// CHECK-LABEL: func.func @left_out
// REMARK: fuse-rotate-joins: declined: parts do not follow each other in the array
// CHECK-COUNT-2: arith.select
#id = affine_map<(i) -> (i)>
#second = affine_map<(i) -> (i - 8)>
func.func @left_out(%x: tensor<10xf32>) -> tensor<9xf32> {
  %last = tensor.extract_slice %x[2] [8] [1] : tensor<10xf32> to tensor<8xf32>
  %first = tensor.extract_slice %x[1] [1] [1] : tensor<10xf32> to tensor<1xf32>
  %a = "fuse.gathered_view"(%last) {basis = array<i64: 9>, map = #id, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<9xf32>
  %b = "fuse.gathered_view"(%first) {basis = array<i64: 9>, map = #second, ranks = array<i64: 1>} : (tensor<1xf32>) -> tensor<9xf32>
  %p = "fuse.gathered_view"(%last) {basis = array<i64: 9>, inside = array<i64: 8>, map = #id, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<9xi1>
  %q = "fuse.gathered_view"(%first) {basis = array<i64: 9>, inside = array<i64: 1>, map = #second, ranks = array<i64: 1>} : (tensor<1xf32>) -> tensor<9xi1>
  %f = tensor.empty() : tensor<9xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b, %p, %q : tensor<9xf32>, tensor<9xf32>, tensor<9xi1>, tensor<9xi1>) outs(%f : tensor<9xf32>) {
  ^bb0(%1: f32, %2: f32, %3: i1, %4: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %5 = arith.select %3, %1, %zero : f32
    %6 = arith.select %4, %2, %5 : f32
    linalg.yield %6 : f32
  } -> tensor<9xf32>
  return %y : tensor<9xf32>
}

// -----

// Parts of two arrays are in no one place.
// CHECK-LABEL: func.func @two_arrays
// REMARK: fuse-rotate-joins: declined: parts are slices of several arrays, or in several orders
// CHECK-COUNT-2: arith.select
#id = affine_map<(i) -> (i)>
#second = affine_map<(i) -> (i - 8)>
func.func @two_arrays(%x: tensor<8xf32>, %z: tensor<1xf32>) -> tensor<9xf32> {
  %a = "fuse.gathered_view"(%x) {basis = array<i64: 9>, map = #id, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<9xf32>
  %b = "fuse.gathered_view"(%z) {basis = array<i64: 9>, map = #second, ranks = array<i64: 1>} : (tensor<1xf32>) -> tensor<9xf32>
  %p = "fuse.gathered_view"(%x) {basis = array<i64: 9>, inside = array<i64: 8>, map = #id, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<9xi1>
  %q = "fuse.gathered_view"(%z) {basis = array<i64: 9>, inside = array<i64: 1>, map = #second, ranks = array<i64: 1>} : (tensor<1xf32>) -> tensor<9xi1>
  %f = tensor.empty() : tensor<9xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b, %p, %q : tensor<9xf32>, tensor<9xf32>, tensor<9xi1>, tensor<9xi1>) outs(%f : tensor<9xf32>) {
  ^bb0(%1: f32, %2: f32, %3: i1, %4: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %5 = arith.select %3, %1, %zero : f32
    %6 = arith.select %4, %2, %5 : f32
    linalg.yield %6 : f32
  } -> tensor<9xf32>
  return %y : tensor<9xf32>
}

// -----

// CHECK-LABEL: func.func @no_join
// REMARK: fuse-rotate-joins: declined: no arrays are joined
func.func @no_join(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
