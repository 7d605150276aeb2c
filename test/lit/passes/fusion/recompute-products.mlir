// RUN: mlirfuse-opt --fuse-recompute --verify-diagnostics=only-expected %s | FileCheck %s

// Weights in bytes are widened for a product, and summed up: the product widens them itself, and nothing stores them.
// CHECK-LABEL: func.func @weighted(
// CHECK:       call @weighted_0(%arg0) : (tensor<4096x8192xi8>) -> tensor<4096xf32>
// CHECK:       call @weighted_1(%arg1, %arg0) : (tensor<8192x64xbf16>, tensor<4096x8192xi8>) -> tensor<4096x64xbf16>
// CHECK:       func.func private @weighted_1
// CHECK:       arith.sitofp
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d2)>
#map3 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d1)>
module attributes {fuse.target = {chip = "sm_90a", device = "NVIDIA H200", sms = 132 : i64}} {
  func.func @weighted(%arg0: tensor<4096x8192xi8> {fuse.align = 16 : i64, fuse.name = "q"}, %arg1: tensor<8192x64xbf16> {fuse.align = 16 : i64, fuse.name = "x"}) -> (tensor<4096x64xbf16>, tensor<4096xf32>) attributes {fuse.results = "tuple"} {
    %0:2 = call @weighted_0(%arg0) : (tensor<4096x8192xi8>) -> (tensor<4096x8192xbf16>, tensor<4096xf32>)
    // expected-remark @below {{weighted_1 computes 1 value(s) that it would have read from weighted_0}}
    %1 = call @weighted_1(%0#0, %arg1) : (tensor<4096x8192xbf16>, tensor<8192x64xbf16>) -> tensor<4096x64xbf16>
    return %1, %0#1 : tensor<4096x64xbf16>, tensor<4096xf32>
  }
  func.func private @weighted_0(%arg0: tensor<4096x8192xi8> {fuse.align = 16 : i64, fuse.name = "q"}) -> (tensor<4096x8192xbf16>, tensor<4096xf32>) attributes {fuse.kernel, fuse.result_extents = array<i64>} {
    %0 = tensor.empty() : tensor<4096x8192xbf16>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<4096x8192xi8>) outs(%0 : tensor<4096x8192xbf16>) {
    ^bb0(%in: i8, %out: bf16):
      %7 = arith.sitofp %in : i8 to bf16
      linalg.yield %7 : bf16
    } -> tensor<4096x8192xbf16>
    %2 = tensor.empty() : tensor<4096x8192xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<4096x8192xbf16>) outs(%2 : tensor<4096x8192xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %7 = arith.extf %in : bf16 to f32
      linalg.yield %7 : f32
    } -> tensor<4096x8192xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %4 = tensor.empty() : tensor<4096xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<4096xf32>) -> tensor<4096xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%3 : tensor<4096x8192xf32>) outs(%5 : tensor<4096xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = arith.addf %out, %in : f32
      linalg.yield %7 : f32
    } -> tensor<4096xf32>
    return %1, %6 : tensor<4096x8192xbf16>, tensor<4096xf32>
  }
  func.func private @weighted_1(%arg0: tensor<4096x8192xbf16> {fuse.align = 16 : i64}, %arg1: tensor<8192x64xbf16> {fuse.align = 16 : i64, fuse.name = "x"}) -> tensor<4096x64xbf16> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<4096x64xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<4096x64xf32>) -> tensor<4096x64xf32>
    %2 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<4096x8192xbf16>, tensor<8192x64xbf16>) outs(%1 : tensor<4096x64xf32>) {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %5 = arith.extf %in : bf16 to f32
      %6 = arith.extf %in_0 : bf16 to f32
      %7 = arith.mulf %5, %6 fastmath<contract> : f32
      %8 = arith.addf %out, %7 : f32
      linalg.yield %8 : f32
    } -> tensor<4096x64xf32>
    %3 = tensor.empty() : tensor<4096x64xbf16>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<4096x64xf32>) outs(%3 : tensor<4096x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %5 = arith.truncf %in : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<4096x64xbf16>
    return %4 : tensor<4096x64xbf16>
  }
}
