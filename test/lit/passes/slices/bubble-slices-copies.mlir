// RUN: mlirfuse-opt %s --fuse-bubble-slices | FileCheck %s

#plane = affine_map<(i, j) -> (i, j)>
#rolled = affine_map<(i, j) -> ((i + 3) mod 4096, j)>

// A copy of rolled rows, which are computed, is sliced: each slice is read of the rows where they lie.
// CHECK-LABEL: func.func @components
// CHECK: %[[H:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<4096x4xf32>)
// CHECK: %[[LEFT:.*]] = "fuse.gathered_view"(%[[H]]) {basis = array<i64: 4096, 1>
// CHECK-NOT: tensor.extract_slice
// CHECK: return
func.func @components(%x: tensor<4096x4xf32>) -> tensor<4096x1xf32> {
  %e = tensor.empty() : tensor<4096x4xf32>
  %h = linalg.generic {indexing_maps = [#plane, #plane], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4096x4xf32>) outs(%e : tensor<4096x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<4096x4xf32>
  %view = "fuse.gathered_view"(%h) {basis = array<i64: 4096, 4>, map = #rolled, ranks = array<i64: 1, 1>} : (tensor<4096x4xf32>) -> tensor<4096x4xf32>
  %copy = linalg.generic {indexing_maps = [#plane, #plane], iterator_types = ["parallel", "parallel"]}
      ins(%view : tensor<4096x4xf32>) outs(%e : tensor<4096x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<4096x4xf32>
  %left = tensor.extract_slice %copy[0, 0] [4096, 1] [1, 1] : tensor<4096x4xf32> to tensor<4096x1xf32>
  %right = tensor.extract_slice %copy[0, 1] [4096, 1] [1, 1] : tensor<4096x4xf32> to tensor<4096x1xf32>
  %third = tensor.extract_slice %copy[0, 2] [4096, 1] [1, 1] : tensor<4096x4xf32> to tensor<4096x1xf32>
  %last = tensor.extract_slice %copy[0, 3] [4096, 1] [1, 1] : tensor<4096x4xf32> to tensor<4096x1xf32>
  %o = tensor.empty() : tensor<4096x1xf32>
  %z = linalg.generic {indexing_maps = [#plane, #plane, #plane, #plane, #plane], iterator_types = ["parallel", "parallel"]}
      ins(%left, %right, %third, %last : tensor<4096x1xf32>, tensor<4096x1xf32>, tensor<4096x1xf32>, tensor<4096x1xf32>) outs(%o : tensor<4096x1xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %out: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.mulf %c, %d : f32
    %2 = arith.addf %0, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<4096x1xf32>
  return %z : tensor<4096x1xf32>
}
