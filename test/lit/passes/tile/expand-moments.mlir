// RUN: mlirfuse-opt --fuse-expand-moments --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Rows in chunks: the sum, and then the squared deviations from the mean. Dynamic extents are the source's.
// CHECK-LABEL: func.func private @chunked
// CHECK-SAME: (%[[X:.*]]: tensor<?x1000xf32>)
// CHECK-NOT: fuse.moments
// CHECK: %[[M:.*]] = tensor.dim %[[X]]
// CHECK: tensor.empty(%[[M]])
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]{{.*}} ins(%[[X]] :
// CHECK: arith.addf
// CHECK: %[[M2:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]{{.*}} ins(%[[X]], %[[SUM]] :
// CHECK: ^bb0(%[[A:.*]]: f32, %[[S:.*]]: f32, %[[ACC:.*]]: f32):
// CHECK: %[[N:.*]] = arith.constant 1.000000e+03 : f32
// CHECK: %[[MEAN:.*]] = arith.divf %[[S]], %[[N]]
// CHECK: %[[D:.*]] = arith.subf %[[A]], %[[MEAN]]
// CHECK: %[[SQ:.*]] = arith.mulf %[[D]], %[[D]]
// CHECK: arith.addf %[[ACC]], %[[SQ]]
// CHECK-NOT: fuse.moments
// CHECK: return %[[SUM]], %[[M2]]
func.func private @chunked(%x: tensor<?x1000xf32>) -> (tensor<?xf32>, tensor<?xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0, 0, 0>, fuse.schedule = {tile = array<i64: 1, 256>, persistence = "multi_pass", layout = #layout}} {
  %0:2 = "fuse.moments"(%x) {dims = array<i64: 1>} : (tensor<?x1000xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xf32>
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Rows that stay in registers need one exchange for both results.
// CHECK-LABEL: func.func private @whole_rows
// CHECK: fuse.moments
// CHECK-NOT: linalg.generic
// expected-remark @below {{no moments, or rows that stay whole in registers}}
func.func private @whole_rows(%x: tensor<?x256xf32>) -> (tensor<?xf32>, tensor<?xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0, 0, 0>, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %0:2 = "fuse.moments"(%x) {dims = array<i64: 1>} : (tensor<?x256xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xf32>
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// CHECK-LABEL: func.func private @no_moments
// CHECK: return %{{.*}} : tensor<?x1000xf32>
// expected-remark @below {{no moments, or rows that stay whole in registers}}
func.func private @no_moments(%x: tensor<?x1000xf32>) -> tensor<?x1000xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>, fuse.schedule = {tile = array<i64: 1, 256>, persistence = "multi_pass", layout = #layout}} {
  return %x : tensor<?x1000xf32>
}

// -----

// Only kernels are rewritten.
// CHECK-LABEL: func.func @host
// CHECK: fuse.moments
func.func @host(%x: tensor<8x64xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0:2 = "fuse.moments"(%x) {dims = array<i64: 1>} : (tensor<8x64xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}
