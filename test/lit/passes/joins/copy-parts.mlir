// RUN: mlirfuse-opt %s --fuse-copy-parts --split-input-file --show-remarks 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// A component that stays as it is beside one that is computed of another: one op copies both.
// CHECK-LABEL: func.func @components
// REMARK: fuse-copy-parts: applied: copies the 2 parts of a result together
// CHECK: %[[X:.*]] = tensor.extract_slice %arg0[0, 0] [64, 1]
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK: arith.negf
// CHECK: %[[C:.*]]:2 = linalg.generic {{.*}} ins(%[[X]], %[[Y]] : tensor<64x1xf32>, tensor<64xf32>)
// CHECK-SAME: fuse.copied = -1
// CHECK-DAG: %[[P:.*]] = tensor.expand_shape %[[C]]#0
// CHECK-DAG: %[[Q:.*]] = tensor.expand_shape %[[C]]#1
// CHECK-DAG: "fuse.gathered_view"(%[[P]]) {{.*}} -> tensor<64x2xf32>
// CHECK-DAG: "fuse.gathered_view"(%[[Q]]) {{.*}} -> tensor<64x2xf32>
#row = affine_map<(i) -> (i)>
#id = affine_map<(i, j) -> (i, j)>
#second = affine_map<(i, j) -> (i, j - 1)>
func.func @components(%p: tensor<64x2xf32>) -> tensor<64x2xf32> {
  %0 = tensor.extract_slice %p[0, 0] [64, 1] [1, 1] : tensor<64x2xf32> to tensor<64x1xf32>
  %x = tensor.collapse_shape %0 [[0, 1]] : tensor<64x1xf32> into tensor<64xf32>
  %1 = tensor.extract_slice %p[0, 1] [64, 1] [1, 1] : tensor<64x2xf32> to tensor<64x1xf32>
  %y = tensor.collapse_shape %1 [[0, 1]] : tensor<64x1xf32> into tensor<64xf32>
  %e = tensor.empty() : tensor<64xf32>
  %n = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]} ins(%y : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.negf %in : f32
    linalg.yield %m : f32
  } -> tensor<64xf32>
  %a = tensor.expand_shape %x [[0, 1]] output_shape [64, 1] : tensor<64xf32> into tensor<64x1xf32>
  %b = tensor.expand_shape %n [[0, 1]] output_shape [64, 1] : tensor<64xf32> into tensor<64x1xf32>
  %2 = "fuse.gathered_view"(%a) {basis = array<i64: 64, 2>, map = #id, ranks = array<i64: 1, 1>} : (tensor<64x1xf32>) -> tensor<64x2xf32>
  %3 = "fuse.gathered_view"(%b) {basis = array<i64: 64, 2>, map = #second, ranks = array<i64: 1, 1>} : (tensor<64x1xf32>) -> tensor<64x2xf32>
  %4 = "fuse.gathered_view"(%a) {basis = array<i64: 64, 2>, inside = array<i64: 64, 1>, map = #id, ranks = array<i64: 1, 1>} : (tensor<64x1xf32>) -> tensor<64x2xi1>
  %5 = "fuse.gathered_view"(%b) {basis = array<i64: 64, 2>, inside = array<i64: 64, 1>, map = #second, ranks = array<i64: 1, 1>} : (tensor<64x1xf32>) -> tensor<64x2xi1>
  %f = tensor.empty() : tensor<64x2xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%2, %3, %4, %5 : tensor<64x2xf32>, tensor<64x2xf32>, tensor<64x2xi1>, tensor<64x2xi1>) outs(%f : tensor<64x2xf32>) {
  ^bb0(%l: f32, %r: f32, %s: i1, %t: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %u = arith.select %s, %l, %zero : f32
    %v = arith.select %t, %r, %u : f32
    linalg.yield %v : f32
  } -> tensor<64x2xf32>
  return %z : tensor<64x2xf32>
}

// -----

// Long runs of arrays that have nothing in common: blocks read one or the other.
// CHECK-LABEL: func.func @apart
// REMARK: fuse-copy-parts: declined: its parts are runs that have nothing in common
// CHECK-NOT: fuse.copied
#row = affine_map<(i) -> (i)>
#second = affine_map<(i) -> (i - 64)>
func.func @apart(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<128xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %n = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]} ins(%b : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.negf %in : f32
    linalg.yield %m : f32
  } -> tensor<64xf32>
  %2 = "fuse.gathered_view"(%a) {basis = array<i64: 128>, map = #row, ranks = array<i64: 1>} : (tensor<64xf32>) -> tensor<128xf32>
  %3 = "fuse.gathered_view"(%n) {basis = array<i64: 128>, map = #second, ranks = array<i64: 1>} : (tensor<64xf32>) -> tensor<128xf32>
  %4 = "fuse.gathered_view"(%a) {basis = array<i64: 128>, inside = array<i64: 64>, map = #row, ranks = array<i64: 1>} : (tensor<64xf32>) -> tensor<128xi1>
  %5 = "fuse.gathered_view"(%n) {basis = array<i64: 128>, inside = array<i64: 64>, map = #second, ranks = array<i64: 1>} : (tensor<64xf32>) -> tensor<128xi1>
  %f = tensor.empty() : tensor<128xf32>
  %z = linalg.generic {indexing_maps = [#row, #row, #row, #row, #row], iterator_types = ["parallel"]}
      ins(%2, %3, %4, %5 : tensor<128xf32>, tensor<128xf32>, tensor<128xi1>, tensor<128xi1>) outs(%f : tensor<128xf32>) {
  ^bb0(%l: f32, %r: f32, %s: i1, %t: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %u = arith.select %s, %l, %zero : f32
    %v = arith.select %t, %r, %u : f32
    linalg.yield %v : f32
  } -> tensor<128xf32>
  return %z : tensor<128xf32>
}

// -----

// Both parts are computed of both arrays, which would be read twice: what reads the result reads it from memory.
// CHECK-LABEL: func.func @read_again
// REMARK: fuse-copy-parts: applied: a result is stored by a kernel without the ops that read it
// REMARK: fuse-copy-parts: declined: all parts are computed of something that they have in common
// CHECK: attrs = {fuse.stored}
// CHECK-COUNT-2: arith.select
// CHECK: linalg.generic
// CHECK: arith.negf
#row = affine_map<(i) -> (i)>
#second = affine_map<(i) -> (i - 64)>
func.func @read_again(%a: tensor<64xf32>, %b: tensor<64xf32>, %c: tensor<64xf32>) -> (tensor<128xf32>, tensor<128xf32>) {
  %e = tensor.empty() : tensor<64xf32>
  %n = linalg.generic {indexing_maps = [#row, #row, #row, #row], iterator_types = ["parallel"]} ins(%a, %b, %c : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32, %out: f32):
    %p = arith.addf %x, %y : f32
    %m = arith.addf %p, %z : f32
    linalg.yield %m : f32
  } -> tensor<64xf32>
  %o = linalg.generic {indexing_maps = [#row, #row, #row, #row], iterator_types = ["parallel"]} ins(%a, %b, %c : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32, %out: f32):
    %p = arith.subf %x, %y : f32
    %m = arith.mulf %p, %z : f32
    linalg.yield %m : f32
  } -> tensor<64xf32>
  %2 = "fuse.gathered_view"(%n) {basis = array<i64: 128>, map = #row, ranks = array<i64: 1>} : (tensor<64xf32>) -> tensor<128xf32>
  %3 = "fuse.gathered_view"(%o) {basis = array<i64: 128>, map = #second, ranks = array<i64: 1>} : (tensor<64xf32>) -> tensor<128xf32>
  %4 = "fuse.gathered_view"(%n) {basis = array<i64: 128>, inside = array<i64: 64>, map = #row, ranks = array<i64: 1>} : (tensor<64xf32>) -> tensor<128xi1>
  %5 = "fuse.gathered_view"(%o) {basis = array<i64: 128>, inside = array<i64: 64>, map = #second, ranks = array<i64: 1>} : (tensor<64xf32>) -> tensor<128xi1>
  %f = tensor.empty() : tensor<128xf32>
  %z = linalg.generic {indexing_maps = [#row, #row, #row, #row, #row], iterator_types = ["parallel"]}
      ins(%2, %3, %4, %5 : tensor<128xf32>, tensor<128xf32>, tensor<128xi1>, tensor<128xi1>) outs(%f : tensor<128xf32>) {
  ^bb0(%l: f32, %r: f32, %s: i1, %t: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %u = arith.select %s, %l, %zero : f32
    %v = arith.select %t, %r, %u : f32
    linalg.yield %v : f32
  } -> tensor<128xf32>
  %w = linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel"]} ins(%z, %z : tensor<128xf32>, tensor<128xf32>) outs(%f : tensor<128xf32>) {
  ^bb0(%in: f32, %other: f32, %out: f32):
    %m = arith.negf %in : f32
    linalg.yield %m : f32
  } -> tensor<128xf32>
  return %z, %w : tensor<128xf32>, tensor<128xf32>
}

// -----

// CHECK-LABEL: func.func @no_join
// REMARK: fuse-copy-parts: declined: no result is joined of parts of one shape
func.func @no_join(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
