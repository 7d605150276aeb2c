// RUN: mlirfuse-opt %s --fuse-divide-joins --split-input-file --show-remarks 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// The sum of a row and of its halves in the other order: each half of the sum is of both halves of the row.
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[BEHIND:.*]] = affine_map<(d0, d1) -> (d0, d1 - 8)>
// CHECK-LABEL: func.func @turned
// REMARK: fuse-divide-joins: applied: 1 joins are of what was computed of them
// CHECK-SAME: %[[X:.*]]: tensor<4x16xf32>
// CHECK: %[[X1:.*]] = tensor.extract_slice %[[X]][0, 8] [4, 8] [1, 1]
// CHECK: %[[X0:.*]] = tensor.extract_slice %[[X]][0, 0] [4, 8] [1, 1]
// CHECK: %[[RIGHT:.*]] = tensor.extract_slice %[[X]][0, 8] [4, 8] [1, 1]
// CHECK: %[[LEFT:.*]] = tensor.extract_slice %[[X]][0, 0] [4, 8] [1, 1]
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%[[X1]], %[[LEFT]] : tensor<4x8xf32>, tensor<4x8xf32>)
// CHECK: arith.addf
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%[[X0]], %[[RIGHT]] : tensor<4x8xf32>, tensor<4x8xf32>)
// CHECK: arith.addf
// CHECK-DAG: %[[AV:.*]] = "fuse.gathered_view"(%[[A]]) {basis = array<i64: 4, 16>, map = #[[ID]], ranks = array<i64: 1, 1>}
// CHECK-DAG: %[[BV:.*]] = "fuse.gathered_view"(%[[B]]) {basis = array<i64: 4, 16>, map = #[[BEHIND]], ranks = array<i64: 1, 1>}
// CHECK-DAG: %[[AIN:.*]] = "fuse.gathered_view"(%[[A]]) {basis = array<i64: 4, 16>, inside = array<i64: 4, 8>, map = #[[ID]]
// CHECK-DAG: %[[BIN:.*]] = "fuse.gathered_view"(%[[B]]) {basis = array<i64: 4, 16>, inside = array<i64: 4, 8>, map = #[[BEHIND]]
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[AV]], %[[BV]], %[[AIN]], %[[BIN]]
// CHECK: arith.select
// CHECK: arith.select
// CHECK: return %[[Y]]
#id = affine_map<(i, j) -> (i, j)>
#behind = affine_map<(i, j) -> (i, j - 8)>
func.func @turned(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %r = tensor.extract_slice %x[0, 8] [4, 8] [1, 1] : tensor<4x16xf32> to tensor<4x8xf32>
  %l = tensor.extract_slice %x[0, 0] [4, 8] [1, 1] : tensor<4x16xf32> to tensor<4x8xf32>
  %0 = "fuse.gathered_view"(%r) {basis = array<i64: 4, 16>, map = #id, ranks = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x16xf32>
  %1 = "fuse.gathered_view"(%l) {basis = array<i64: 4, 16>, map = #behind, ranks = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x16xf32>
  %2 = "fuse.gathered_view"(%r) {basis = array<i64: 4, 16>, inside = array<i64: 4, 8>, map = #id, ranks = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x16xi1>
  %3 = "fuse.gathered_view"(%l) {basis = array<i64: 4, 16>, inside = array<i64: 4, 8>, map = #behind, ranks = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x16xi1>
  %e = tensor.empty() : tensor<4x16xf32>
  %join = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %1, %2, %3 : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xi1>, tensor<4x16xi1>) outs(%e : tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: f32, %p: i1, %q: i1, %out: f32):
    %s = arith.select %p, %a, %zero : f32
    %t = arith.select %q, %b, %s : f32
    linalg.yield %t : f32
  } -> tensor<4x16xf32>
  %sum = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %join : tensor<4x16xf32>, tensor<4x16xf32>) outs(%e : tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x16xf32>
  return %sum : tensor<4x16xf32>
}

// -----

// Each part is taken where the other one is: this is no join.
// CHECK-LABEL: func.func @crossed
// REMARK: fuse-divide-joins: declined: nothing is computed of a join of equal parts
// CHECK: arith.select
// CHECK: arith.select
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} : tensor<16xf32>, tensor<16xf32>)
// CHECK: arith.addf
// CHECK: return %[[Y]]
#id = affine_map<(i) -> (i)>
#behind = affine_map<(i) -> (i - 8)>
func.func @crossed(%x: tensor<16xf32>, %l: tensor<8xf32>, %r: tensor<8xf32>) -> tensor<16xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = "fuse.gathered_view"(%l) {basis = array<i64: 16>, map = #id, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<16xf32>
  %1 = "fuse.gathered_view"(%r) {basis = array<i64: 16>, map = #behind, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<16xf32>
  %2 = "fuse.gathered_view"(%l) {basis = array<i64: 16>, inside = array<i64: 8>, map = #id, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<16xi1>
  %3 = "fuse.gathered_view"(%r) {basis = array<i64: 16>, inside = array<i64: 8>, map = #behind, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<16xi1>
  %e = tensor.empty() : tensor<16xf32>
  %join = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%0, %1, %2, %3 : tensor<16xf32>, tensor<16xf32>, tensor<16xi1>, tensor<16xi1>) outs(%e : tensor<16xf32>) {
  ^bb0(%a: f32, %b: f32, %p: i1, %q: i1, %out: f32):
    %s = arith.select %q, %a, %zero : f32
    %t = arith.select %p, %b, %s : f32
    linalg.yield %t : f32
  } -> tensor<16xf32>
  %sum = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %join : tensor<16xf32>, tensor<16xf32>) outs(%e : tensor<16xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<16xf32>
  return %sum : tensor<16xf32>
}

// -----

// The join is returned as it is.
// CHECK-LABEL: func.func @returned
// REMARK: fuse-divide-joins: declined: what is computed of the join is no result
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK: return %[[Y]]
#id = affine_map<(i) -> (i)>
#behind = affine_map<(i) -> (i - 8)>
func.func @returned(%l: tensor<8xf32>, %r: tensor<8xf32>) -> tensor<16xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = "fuse.gathered_view"(%l) {basis = array<i64: 16>, map = #id, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<16xf32>
  %1 = "fuse.gathered_view"(%r) {basis = array<i64: 16>, map = #behind, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<16xf32>
  %2 = "fuse.gathered_view"(%l) {basis = array<i64: 16>, inside = array<i64: 8>, map = #id, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<16xi1>
  %3 = "fuse.gathered_view"(%r) {basis = array<i64: 16>, inside = array<i64: 8>, map = #behind, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<16xi1>
  %e = tensor.empty() : tensor<16xf32>
  %join = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%0, %1, %2, %3 : tensor<16xf32>, tensor<16xf32>, tensor<16xi1>, tensor<16xi1>) outs(%e : tensor<16xf32>) {
  ^bb0(%a: f32, %b: f32, %p: i1, %q: i1, %out: f32):
    %s = arith.select %p, %a, %zero : f32
    %t = arith.select %q, %b, %s : f32
    linalg.yield %t : f32
  } -> tensor<16xf32>
  return %join : tensor<16xf32>
}

// -----

// Nothing is joined.
// CHECK-LABEL: func.func @sum
// REMARK: fuse-divide-joins: declined: nothing is computed of a join of equal parts
#id = affine_map<(i) -> (i)>
func.func @sum(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}
