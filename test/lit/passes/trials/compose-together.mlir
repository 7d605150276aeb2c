// RUN: mlirfuse-opt --fuse-compose-together --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#right = affine_map<(i, j) -> (i, j + 1)>

// To compute two values for a difference takes less time than to store and to read one, though as many instructions more.
// CHECK-LABEL: func.func @differences
// CHECK:       %[[R:.*]] = "fuse.gathered_view"(%arg0)
// CHECK:       linalg.generic {{.*}} ins(%[[R]]
// CHECK-NOT:   "fuse.gathered_view"(%{{[0-9]+}})
// CHECK:       arith.subf
// CHECK-NEXT:  linalg.yield
func.func @differences(%p: tensor<4096x4096xf32>, %q: tensor<4096x4096xf32>) -> tensor<4096x4095xf32> {
  %e = tensor.empty() : tensor<4096x4096xf32>
  // expected-remark @below {{views of 1 result(s): }}
  %h = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %q : tensor<4096x4096xf32>, tensor<4096x4096xf32>) outs(%e : tensor<4096x4096xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.divf %a, %b : f32
    %1 = math.sqrt %0 : f32
    %2 = arith.mulf %a, %1 : f32
    %3 = math.tanh %2 : f32
    linalg.yield %3 : f32
  } -> tensor<4096x4096xf32>
  %r = "fuse.gathered_view"(%h) {basis = array<i64: 4096, 4095>, map = #right, ranks = array<i64: 1, 1>} : (tensor<4096x4096xf32>) -> tensor<4096x4095xf32>
  %l = "fuse.gathered_view"(%h) {basis = array<i64: 4096, 4095>, map = #id, ranks = array<i64: 1, 1>} : (tensor<4096x4096xf32>) -> tensor<4096x4095xf32>
  %o = tensor.empty() : tensor<4096x4095xf32>
  %d = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%r, %l : tensor<4096x4095xf32>, tensor<4096x4095xf32>) outs(%o : tensor<4096x4095xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<4096x4095xf32>
  return %d : tensor<4096x4095xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#right = affine_map<(i, j) -> (i, j + 1)>

// Twelve functions of each element take longer than that.
// CHECK-LABEL: func.func @functions
// CHECK:       %[[H:.*]] = linalg.generic
// CHECK:       "fuse.gathered_view"(%[[H]])
func.func @functions(%p: tensor<4096x4096xf32>) -> tensor<4096x4095xf32> {
  %e = tensor.empty() : tensor<4096x4096xf32>
  // expected-remark @below {{views of 1 result(s) are predicted to take}}
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<4096x4096xf32>) outs(%e : tensor<4096x4096xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = math.sin %a : f32
    %1 = math.erf %0 : f32
    %2 = math.sin %1 : f32
    %3 = math.erf %2 : f32
    %4 = math.sin %3 : f32
    %5 = math.erf %4 : f32
    %6 = math.sin %5 : f32
    %7 = math.erf %6 : f32
    %8 = math.sin %7 : f32
    %9 = math.erf %8 : f32
    %10 = math.sin %9 : f32
    %11 = math.erf %10 : f32
    linalg.yield %11 : f32
  } -> tensor<4096x4096xf32>
  %r = "fuse.gathered_view"(%h) {basis = array<i64: 4096, 4095>, map = #right, ranks = array<i64: 1, 1>} : (tensor<4096x4096xf32>) -> tensor<4096x4095xf32>
  %l = "fuse.gathered_view"(%h) {basis = array<i64: 4096, 4095>, map = #id, ranks = array<i64: 1, 1>} : (tensor<4096x4096xf32>) -> tensor<4096x4095xf32>
  %o = tensor.empty() : tensor<4096x4095xf32>
  %d = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%r, %l : tensor<4096x4095xf32>, tensor<4096x4095xf32>) outs(%o : tensor<4096x4095xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<4096x4095xf32>
  return %d : tensor<4096x4095xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @whole
// expected-remark @below {{no view of an elementwise result is in memory for its costs alone}}
func.func @whole(%p: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<64x64xf32>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = math.sin %a : f32
    linalg.yield %0 : f32
  } -> tensor<64x64xf32>
  return %h : tensor<64x64xf32>
}
