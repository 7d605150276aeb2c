// RUN: mlirfuse-opt --target=sm_90a --sms=132 --fuse-recompute --verify-diagnostics=only-expected %s | FileCheck %s

#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1)>
#map2 = affine_map<(d0, d1, d2) -> ()>
// A kernel of statistics of the whole array, which is to be split, reads the array itself: what it takes is predicted
// with its statistics in kernels of their own, as no schedule fits it whole.
// CHECK-LABEL: func.func @f(
// CHECK: %[[SUMS:.*]] = call @f_0(%[[X:.*]]) : (tensor<732x16x2048xf32>) -> tensor<16xf32>
// CHECK: call @f_1(%[[X]], %[[SUMS]]) : (tensor<732x16x2048xf32>, tensor<16xf32>)
// CHECK-LABEL: func.func private @f_0(
// CHECK-NOT: ["parallel", "parallel", "parallel"]
// CHECK-LABEL: func.func private @f_1(
func.func @f(%arg0: tensor<732x16x2048xf32>) -> tensor<732x16x2048xf32> attributes {fuse.results = "single"} {
  %0 = call @f_0(%arg0) : (tensor<732x16x2048xf32>) -> tensor<732x16x2048xf32>
  // expected-remark @below {{f_1 computes 1 value(s) that it would have read from f_0}}
  %1 = call @f_1(%0) : (tensor<732x16x2048xf32>) -> tensor<732x16x2048xf32>
  return %1 : tensor<732x16x2048xf32>
}
func.func private @f_0(%arg0: tensor<732x16x2048xf32>) -> tensor<732x16x2048xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<16xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<16xf32>) -> tensor<16xf32>
  %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "parallel", "reduction"]} ins(%arg0 : tensor<732x16x2048xf32>) outs(%1 : tensor<16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %5 = arith.addf %out, %in : f32
    linalg.yield %5 : f32
  } -> tensor<16xf32>
  %3 = tensor.empty() : tensor<732x16x2048xf32>
  %4 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %2 : tensor<732x16x2048xf32>, tensor<16xf32>) outs(%3 : tensor<732x16x2048xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %5 = arith.addf %in, %in_0 : f32
    linalg.yield %5 : f32
  } -> tensor<732x16x2048xf32>
  return %4 : tensor<732x16x2048xf32>
}
func.func private @f_1(%arg0: tensor<732x16x2048xf32>) -> tensor<732x16x2048xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<f32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<f32>) -> tensor<f32>
  %2 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["reduction", "reduction", "reduction"]} ins(%arg0 : tensor<732x16x2048xf32>) outs(%1 : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %8 = arith.addf %out, %in : f32
    linalg.yield %8 : f32
  } -> tensor<f32>
  %3 = tensor.empty() : tensor<732x16x2048xf32>
  %4 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %2 : tensor<732x16x2048xf32>, tensor<f32>) outs(%3 : tensor<732x16x2048xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %8 = arith.subf %in, %in_0 : f32
    linalg.yield %8 : f32
  } -> tensor<732x16x2048xf32>
  %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : tensor<732x16x2048xf32>) outs(%3 : tensor<732x16x2048xf32>) {
  ^bb0(%in: f32, %out: f32):
    %8 = math.absf %in : f32
    linalg.yield %8 : f32
  } -> tensor<732x16x2048xf32>
  %6 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["reduction", "reduction", "reduction"]} ins(%5 : tensor<732x16x2048xf32>) outs(%1 : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %8 = arith.addf %out, %in : f32
    linalg.yield %8 : f32
  } -> tensor<f32>
  %7 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %6 : tensor<732x16x2048xf32>, tensor<f32>) outs(%3 : tensor<732x16x2048xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %8 = arith.mulf %in, %in_0 : f32
    linalg.yield %8 : f32
  } -> tensor<732x16x2048xf32>
  return %7 : tensor<732x16x2048xf32>
}
