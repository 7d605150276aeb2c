// RUN: mlirfuse-opt --fuse-expand-exp-sums --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Rows in chunks: the maximum, and then the exponentials about it. Dynamic extents are the source's.
// CHECK-LABEL: func.func private @chunked
// CHECK-SAME: (%[[X:.*]]: tensor<?x1000xf32>)
// CHECK-NOT: fuse.exp_sum
// CHECK: %[[M:.*]] = tensor.dim %[[X]]
// CHECK: tensor.empty(%[[M]])
// CHECK: %[[MAX:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]{{.*}} ins(%[[X]] :
// CHECK: arith.maximumf
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]{{.*}} ins(%[[X]], %[[MAX]] :
// CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[ACC:.*]]: f32):
// CHECK: %[[D:.*]] = arith.subf %[[A]], %[[B]]
// CHECK: %[[E:.*]] = math.exp %[[D]]
// CHECK: arith.addf %[[ACC]], %[[E]]
// CHECK-NOT: fuse.exp_sum
// CHECK: return %[[MAX]], %[[SUM]]
func.func private @chunked(%x: tensor<?x1000xf32>) -> (tensor<?xf32>, tensor<?xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0, 0, 0>, fuse.schedule = {tile = array<i64: 1, 256>, persistence = "multi_pass", layout = #layout}} {
  %0:2 = "fuse.exp_sum"(%x) {dims = array<i64: 1>} : (tensor<?x1000xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xf32>
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Rows that stay in registers need one exchange for both results.
// CHECK-LABEL: func.func private @whole_rows
// CHECK: fuse.exp_sum
// CHECK-NOT: linalg.generic
// expected-remark @below {{no sums of exponentials, or rows that stay whole in registers}}
func.func private @whole_rows(%x: tensor<?x256xf32>) -> (tensor<?xf32>, tensor<?xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0, 0, 0>, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %0:2 = "fuse.exp_sum"(%x) {dims = array<i64: 1>} : (tensor<?x256xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xf32>
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// CHECK-LABEL: func.func private @no_exp_sums
// CHECK: return %{{.*}} : tensor<?x1000xf32>
// expected-remark @below {{no sums of exponentials, or rows that stay whole in registers}}
func.func private @no_exp_sums(%x: tensor<?x1000xf32>) -> tensor<?x1000xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>, fuse.schedule = {tile = array<i64: 1, 256>, persistence = "multi_pass", layout = #layout}} {
  return %x : tensor<?x1000xf32>
}
