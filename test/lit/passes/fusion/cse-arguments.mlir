// RUN: mlirfuse-opt --fuse-cse --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>

// The same array twice is one argument, and what is computed of both is computed once.
// CHECK-LABEL: func.func private @twice_0(%arg0: tensor<8x64xf32>) -> tensor<8x64xf32>
// CHECK: %[[E:.*]] = linalg.generic
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK: linalg.generic {{.*}} ins(%[[E]], %[[E]]
// CHECK-LABEL: func.func @twice
// CHECK: call @twice_0(%arg0) : (tensor<8x64xf32>) -> tensor<8x64xf32>
// expected-remark @below {{1 argument(s) are the same array as an earlier one}}
// expected-remark @below {{1 op(s) computed what an earlier one does}}
func.func private @twice_0(%x: tensor<8x64xf32>, %y: tensor<8x64xf32>) -> tensor<8x64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<8x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<8x64xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%y : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<8x64xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0, %1 : tensor<8x64xf32>, tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %w: f32, %out: f32):
    %r = arith.mulf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<8x64xf32>
  return %2 : tensor<8x64xf32>
}
// expected-remark @below {{no two ops compute the same}}
func.func @twice(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %0 = call @twice_0(%x, %x) : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// A kernel of two calls keeps its arguments.
// CHECK-LABEL: func.func private @called_twice_0(%arg0: tensor<8x64xf32>, %arg1: tensor<8x64xf32>)
// expected-remark @below {{no two ops compute the same}}
func.func private @called_twice_0(%x: tensor<8x64xf32>, %y: tensor<8x64xf32>) -> tensor<8x64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<8x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %y : tensor<8x64xf32>, tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %w: f32, %out: f32):
    %r = arith.mulf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}
// expected-remark @below {{no two ops compute the same}}
func.func @called_twice(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %0 = call @called_twice_0(%x, %x) : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %1 = call @called_twice_0(%x, %0) : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  return %1 : tensor<8x64xf32>
}
