// RUN: mlirfuse-opt %s --fuse-flatten-joins --split-input-file --show-remarks 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// A row of two parts, with a dimension of one element in front, below another array: one join of three parts.
// CHECK-DAG: #[[TOP:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[LEFT:.*]] = affine_map<(d0, d1) -> (d0 - 1, d1)>
// CHECK-DAG: #[[RIGHT:.*]] = affine_map<(d0, d1) -> (d0 - 1, d1 - 4)>
// CHECK-LABEL: func.func @row
// REMARK: fuse-flatten-joins: applied: a join of 2 parts is one of 3
// CHECK: %[[A:.*]] = tensor.expand_shape %arg0 {{\[\[}}0, 1]] {{.*}} into tensor<1x4xf32>
// CHECK: %[[B:.*]] = tensor.expand_shape %arg1 {{\[\[}}0, 1]] {{.*}} into tensor<1x4xf32>
// CHECK-DAG: "fuse.gathered_view"(%arg2) {basis = array<i64: 2, 8>, map = #[[TOP]], {{.*}}(tensor<1x4xf32>) -> tensor<2x8xf32>
// CHECK-DAG: "fuse.gathered_view"(%[[A]]) {basis = array<i64: 2, 8>, map = #[[LEFT]], {{.*}} -> tensor<2x8xf32>
// CHECK-DAG: "fuse.gathered_view"(%[[A]]) {{.*}}inside = array<i64: 1, 4>, map = #[[LEFT]], {{.*}} -> tensor<2x8xi1>
// CHECK-DAG: "fuse.gathered_view"(%[[B]]) {{.*}}inside = array<i64: 1, 4>, map = #[[RIGHT]], {{.*}} -> tensor<2x8xi1>
// CHECK: linalg.generic
// CHECK-COUNT-3: arith.select
// CHECK-NOT: arith.select
#id1 = affine_map<(i) -> (i)>
#second1 = affine_map<(i) -> (i - 4)>
#id = affine_map<(i, j) -> (i, j)>
#below = affine_map<(i, j) -> (i - 1, j)>
func.func @row(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<1x4xf32>) -> tensor<2x8xf32> {
  %0 = "fuse.gathered_view"(%a) {basis = array<i64: 8>, map = #id1, ranks = array<i64: 1>} : (tensor<4xf32>) -> tensor<8xf32>
  %1 = "fuse.gathered_view"(%b) {basis = array<i64: 8>, map = #second1, ranks = array<i64: 1>} : (tensor<4xf32>) -> tensor<8xf32>
  %2 = "fuse.gathered_view"(%a) {basis = array<i64: 8>, inside = array<i64: 4>, map = #id1, ranks = array<i64: 1>} : (tensor<4xf32>) -> tensor<8xi1>
  %3 = "fuse.gathered_view"(%b) {basis = array<i64: 8>, inside = array<i64: 4>, map = #second1, ranks = array<i64: 1>} : (tensor<4xf32>) -> tensor<8xi1>
  %e = tensor.empty() : tensor<8xf32>
  %row = linalg.generic {indexing_maps = [#id1, #id1, #id1, #id1, #id1], iterator_types = ["parallel"]}
      ins(%0, %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xi1>, tensor<8xi1>) outs(%e : tensor<8xf32>) {
  ^bb0(%l: f32, %r: f32, %p: i1, %q: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %s = arith.select %p, %l, %zero : f32
    %t = arith.select %q, %r, %s : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %d = tensor.expand_shape %row [[0, 1]] output_shape [1, 8] : tensor<8xf32> into tensor<1x8xf32>
  %4 = "fuse.gathered_view"(%c) {basis = array<i64: 2, 8>, map = #id, ranks = array<i64: 1, 1>} : (tensor<1x4xf32>) -> tensor<2x8xf32>
  %5 = "fuse.gathered_view"(%d) {basis = array<i64: 2, 8>, map = #below, ranks = array<i64: 1, 1>} : (tensor<1x8xf32>) -> tensor<2x8xf32>
  %6 = "fuse.gathered_view"(%c) {basis = array<i64: 2, 8>, inside = array<i64: 1, 4>, map = #id, ranks = array<i64: 1, 1>} : (tensor<1x4xf32>) -> tensor<2x8xi1>
  %7 = "fuse.gathered_view"(%d) {basis = array<i64: 2, 8>, inside = array<i64: 1, 8>, map = #below, ranks = array<i64: 1, 1>} : (tensor<1x8xf32>) -> tensor<2x8xi1>
  %f = tensor.empty() : tensor<2x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%4, %5, %6, %7 : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xi1>, tensor<2x8xi1>) outs(%f : tensor<2x8xf32>) {
  ^bb0(%l: f32, %r: f32, %p: i1, %q: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %s = arith.select %p, %l, %zero : f32
    %t = arith.select %q, %r, %s : f32
    linalg.yield %t : f32
  } -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// Parts of 3, 5 and 8 elements: as one join they could not be stored where they belong.
// CHECK-LABEL: func.func @unequal
// REMARK: fuse-flatten-joins: declined: the parts of its parts have other shapes
// CHECK-COUNT-4: arith.select
#id1 = affine_map<(i) -> (i)>
#second1 = affine_map<(i) -> (i - 3)>
#id = affine_map<(i, j) -> (i, j)>
#below = affine_map<(i, j) -> (i - 1, j)>
func.func @unequal(%a: tensor<3xf32>, %b: tensor<5xf32>, %c: tensor<1x8xf32>) -> tensor<2x8xf32> {
  %0 = "fuse.gathered_view"(%a) {basis = array<i64: 8>, map = #id1, ranks = array<i64: 1>} : (tensor<3xf32>) -> tensor<8xf32>
  %1 = "fuse.gathered_view"(%b) {basis = array<i64: 8>, map = #second1, ranks = array<i64: 1>} : (tensor<5xf32>) -> tensor<8xf32>
  %2 = "fuse.gathered_view"(%a) {basis = array<i64: 8>, inside = array<i64: 3>, map = #id1, ranks = array<i64: 1>} : (tensor<3xf32>) -> tensor<8xi1>
  %3 = "fuse.gathered_view"(%b) {basis = array<i64: 8>, inside = array<i64: 5>, map = #second1, ranks = array<i64: 1>} : (tensor<5xf32>) -> tensor<8xi1>
  %e = tensor.empty() : tensor<8xf32>
  %row = linalg.generic {indexing_maps = [#id1, #id1, #id1, #id1, #id1], iterator_types = ["parallel"]}
      ins(%0, %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xi1>, tensor<8xi1>) outs(%e : tensor<8xf32>) {
  ^bb0(%l: f32, %r: f32, %p: i1, %q: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %s = arith.select %p, %l, %zero : f32
    %t = arith.select %q, %r, %s : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %d = tensor.expand_shape %row [[0, 1]] output_shape [1, 8] : tensor<8xf32> into tensor<1x8xf32>
  %4 = "fuse.gathered_view"(%c) {basis = array<i64: 2, 8>, map = #id, ranks = array<i64: 1, 1>} : (tensor<1x8xf32>) -> tensor<2x8xf32>
  %5 = "fuse.gathered_view"(%d) {basis = array<i64: 2, 8>, map = #below, ranks = array<i64: 1, 1>} : (tensor<1x8xf32>) -> tensor<2x8xf32>
  %6 = "fuse.gathered_view"(%c) {basis = array<i64: 2, 8>, inside = array<i64: 1, 8>, map = #id, ranks = array<i64: 1, 1>} : (tensor<1x8xf32>) -> tensor<2x8xi1>
  %7 = "fuse.gathered_view"(%d) {basis = array<i64: 2, 8>, inside = array<i64: 1, 8>, map = #below, ranks = array<i64: 1, 1>} : (tensor<1x8xf32>) -> tensor<2x8xi1>
  %f = tensor.empty() : tensor<2x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%4, %5, %6, %7 : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xi1>, tensor<2x8xi1>) outs(%f : tensor<2x8xf32>) {
  ^bb0(%l: f32, %r: f32, %p: i1, %q: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %s = arith.select %p, %l, %zero : f32
    %t = arith.select %q, %r, %s : f32
    linalg.yield %t : f32
  } -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// The row is a result too.
// CHECK-LABEL: func.func @used_elsewhere
// REMARK: fuse-flatten-joins: declined: a part is a join that is used elsewhere
// CHECK-COUNT-4: arith.select
#id = affine_map<(i) -> (i)>
#second = affine_map<(i) -> (i - 3)>
#third = affine_map<(i) -> (i - 6)>
func.func @used_elsewhere(%a: tensor<3xf32>, %b: tensor<3xf32>) -> (tensor<6xf32>, tensor<9xf32>) {
  %0 = "fuse.gathered_view"(%a) {basis = array<i64: 6>, map = #id, ranks = array<i64: 1>} : (tensor<3xf32>) -> tensor<6xf32>
  %1 = "fuse.gathered_view"(%b) {basis = array<i64: 6>, map = #second, ranks = array<i64: 1>} : (tensor<3xf32>) -> tensor<6xf32>
  %2 = "fuse.gathered_view"(%a) {basis = array<i64: 6>, inside = array<i64: 3>, map = #id, ranks = array<i64: 1>} : (tensor<3xf32>) -> tensor<6xi1>
  %3 = "fuse.gathered_view"(%b) {basis = array<i64: 6>, inside = array<i64: 3>, map = #second, ranks = array<i64: 1>} : (tensor<3xf32>) -> tensor<6xi1>
  %e = tensor.empty() : tensor<6xf32>
  %row = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%0, %1, %2, %3 : tensor<6xf32>, tensor<6xf32>, tensor<6xi1>, tensor<6xi1>) outs(%e : tensor<6xf32>) {
  ^bb0(%l: f32, %r: f32, %p: i1, %q: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %s = arith.select %p, %l, %zero : f32
    %t = arith.select %q, %r, %s : f32
    linalg.yield %t : f32
  } -> tensor<6xf32>
  %4 = "fuse.gathered_view"(%row) {basis = array<i64: 9>, map = #id, ranks = array<i64: 1>} : (tensor<6xf32>) -> tensor<9xf32>
  %5 = "fuse.gathered_view"(%a) {basis = array<i64: 9>, map = #third, ranks = array<i64: 1>} : (tensor<3xf32>) -> tensor<9xf32>
  %6 = "fuse.gathered_view"(%row) {basis = array<i64: 9>, inside = array<i64: 6>, map = #id, ranks = array<i64: 1>} : (tensor<6xf32>) -> tensor<9xi1>
  %7 = "fuse.gathered_view"(%a) {basis = array<i64: 9>, inside = array<i64: 3>, map = #third, ranks = array<i64: 1>} : (tensor<3xf32>) -> tensor<9xi1>
  %f = tensor.empty() : tensor<9xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%4, %5, %6, %7 : tensor<9xf32>, tensor<9xf32>, tensor<9xi1>, tensor<9xi1>) outs(%f : tensor<9xf32>) {
  ^bb0(%l: f32, %r: f32, %p: i1, %q: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %s = arith.select %p, %l, %zero : f32
    %t = arith.select %q, %r, %s : f32
    linalg.yield %t : f32
  } -> tensor<9xf32>
  return %row, %y : tensor<6xf32>, tensor<9xf32>
}

// -----

// CHECK-LABEL: func.func @no_join
// REMARK: fuse-flatten-joins: declined: no joined arrays are joined again
func.func @no_join(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
