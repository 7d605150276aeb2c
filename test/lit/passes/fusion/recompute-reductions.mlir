// RUN: mlirfuse-opt --fuse-recompute --canonicalize --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0)>
// The maxima of a product's rows, which its blocks would have to hand to each other, are computed by the kernel that
// reads these rows.
// CHECK-LABEL: func.func @f(
// CHECK: %[[Y:.*]] = call @f_0(%{{.*}}, %{{.*}}) : (tensor<65536x64xbf16>, tensor<1024x64xbf16>) -> tensor<65536x1024xbf16>
// CHECK: call @f_1(%[[Y]]) : (tensor<65536x1024xbf16>) -> tensor<65536x1024xbf16>
// CHECK-LABEL: func.func private @f_0(
// CHECK-NOT: arith.maximumf
// CHECK-LABEL: func.func private @f_1(
// CHECK: arith.mulf
// CHECK: arith.maximumf
// CHECK: math.exp
func.func @f(%arg0: tensor<65536x64xbf16> {fuse.align = 16 : i64}, %arg1: tensor<1024x64xbf16> {fuse.align = 16 : i64}) -> tensor<65536x1024xbf16> attributes {fuse.results = "single"} {
  %0:2 = call @f_0(%arg0, %arg1) : (tensor<65536x64xbf16>, tensor<1024x64xbf16>) -> (tensor<65536x1024xf32>, tensor<65536xf32>)
  // expected-remark @below {{f_1 computes 2 value(s) that it would have read from f_0}}
  %1 = call @f_1(%0#0, %0#1) : (tensor<65536x1024xf32>, tensor<65536xf32>) -> tensor<65536x1024xbf16>
  return %1 : tensor<65536x1024xbf16>
}
func.func private @f_0(%arg0: tensor<65536x64xbf16> {fuse.align = 16 : i64}, %arg1: tensor<1024x64xbf16> {fuse.align = 16 : i64}) -> (tensor<65536x1024xf32>, tensor<65536xf32>) attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<65536x1024xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<65536x1024xf32>) -> tensor<65536x1024xf32>
  %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<65536x64xbf16>, tensor<1024x64xbf16>) outs(%1 : tensor<65536x1024xf32>) {
  ^bb0(%in: bf16, %in_1: bf16, %out: f32):
    %10 = arith.extf %in : bf16 to f32
    %11 = arith.extf %in_1 : bf16 to f32
    %12 = arith.mulf %10, %11 fastmath<contract> : f32
    %13 = arith.addf %out, %12 : f32
    linalg.yield %13 : f32
  } -> tensor<65536x1024xf32>
  %3 = tensor.empty() : tensor<65536x1024xbf16>
  %4 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<65536x1024xf32>) outs(%3 : tensor<65536x1024xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %10 = arith.truncf %in : f32 to bf16
    linalg.yield %10 : bf16
  } -> tensor<65536x1024xbf16>
  %5 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<65536x1024xbf16>) outs(%0 : tensor<65536x1024xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %10 = arith.extf %in : bf16 to f32
    linalg.yield %10 : f32
  } -> tensor<65536x1024xf32>
  %6 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<65536x1024xf32>) outs(%0 : tensor<65536x1024xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_1 = arith.constant 1.250000e-01 : f32
    %10 = arith.mulf %in, %cst_1 : f32
    linalg.yield %10 : f32
  } -> tensor<65536x1024xf32>
  %cst_0 = arith.constant 0xFF800000 : f32
  %7 = tensor.empty() : tensor<65536xf32>
  %8 = linalg.fill ins(%cst_0 : f32) outs(%7 : tensor<65536xf32>) -> tensor<65536xf32>
  %9 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "reduction"]} ins(%6 : tensor<65536x1024xf32>) outs(%8 : tensor<65536xf32>) {
  ^bb0(%in: f32, %out: f32):
    %10 = arith.maximumf %out, %in : f32
    linalg.yield %10 : f32
  } -> tensor<65536xf32>
  return %6, %9 : tensor<65536x1024xf32>, tensor<65536xf32>
}
func.func private @f_1(%arg0: tensor<65536x1024xf32> {fuse.align = 16 : i64}, %arg1: tensor<65536xf32> {fuse.align = 16 : i64}) -> tensor<65536x1024xbf16> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %0 = tensor.empty() : tensor<65536x1024xf32>
  %1 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<65536x1024xf32>, tensor<65536xf32>) outs(%0 : tensor<65536x1024xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %5 = arith.subf %in, %in_0 : f32
    linalg.yield %5 : f32
  } -> tensor<65536x1024xf32>
  %2 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<65536x1024xf32>) outs(%0 : tensor<65536x1024xf32>) {
  ^bb0(%in: f32, %out: f32):
    %5 = math.exp %in : f32
    linalg.yield %5 : f32
  } -> tensor<65536x1024xf32>
  %3 = tensor.empty() : tensor<65536x1024xbf16>
  %4 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<65536x1024xf32>) outs(%3 : tensor<65536x1024xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %5 = arith.truncf %in : f32 to bf16
    linalg.yield %5 : bf16
  } -> tensor<65536x1024xbf16>
  return %4 : tensor<65536x1024xbf16>
}

// -----

#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0)>
#row = affine_map<(d0) -> (d0)>
// What reads the maxima only does not read the rows for them.
// CHECK-LABEL: func.func @g(
// CHECK: %[[R:.*]]:2 = call @g_0
// CHECK: call @g_1(%[[R]]#1) : (tensor<65536xf32>) -> tensor<65536xf32>
func.func @g(%arg0: tensor<65536x64xbf16> {fuse.align = 16 : i64}, %arg1: tensor<1024x64xbf16> {fuse.align = 16 : i64}) -> (tensor<65536x1024xf32>, tensor<65536xf32>) {
  %0:2 = call @g_0(%arg0, %arg1) : (tensor<65536x64xbf16>, tensor<1024x64xbf16>) -> (tensor<65536x1024xf32>, tensor<65536xf32>)
  %1 = call @g_1(%0#1) : (tensor<65536xf32>) -> tensor<65536xf32>
  return %0#0, %1 : tensor<65536x1024xf32>, tensor<65536xf32>
}
func.func private @g_0(%arg0: tensor<65536x64xbf16> {fuse.align = 16 : i64}, %arg1: tensor<1024x64xbf16> {fuse.align = 16 : i64}) -> (tensor<65536x1024xf32>, tensor<65536xf32>) attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<65536x1024xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<65536x1024xf32>) -> tensor<65536x1024xf32>
  %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<65536x64xbf16>, tensor<1024x64xbf16>) outs(%1 : tensor<65536x1024xf32>) {
  ^bb0(%in: bf16, %in_1: bf16, %out: f32):
    %10 = arith.extf %in : bf16 to f32
    %11 = arith.extf %in_1 : bf16 to f32
    %12 = arith.mulf %10, %11 fastmath<contract> : f32
    %13 = arith.addf %out, %12 : f32
    linalg.yield %13 : f32
  } -> tensor<65536x1024xf32>
  %3 = tensor.empty() : tensor<65536x1024xbf16>
  %4 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<65536x1024xf32>) outs(%3 : tensor<65536x1024xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %10 = arith.truncf %in : f32 to bf16
    linalg.yield %10 : bf16
  } -> tensor<65536x1024xbf16>
  %5 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<65536x1024xbf16>) outs(%0 : tensor<65536x1024xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %10 = arith.extf %in : bf16 to f32
    linalg.yield %10 : f32
  } -> tensor<65536x1024xf32>
  %6 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<65536x1024xf32>) outs(%0 : tensor<65536x1024xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_1 = arith.constant 1.250000e-01 : f32
    %10 = arith.mulf %in, %cst_1 : f32
    linalg.yield %10 : f32
  } -> tensor<65536x1024xf32>
  %cst_0 = arith.constant 0xFF800000 : f32
  %7 = tensor.empty() : tensor<65536xf32>
  %8 = linalg.fill ins(%cst_0 : f32) outs(%7 : tensor<65536xf32>) -> tensor<65536xf32>
  %9 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "reduction"]} ins(%6 : tensor<65536x1024xf32>) outs(%8 : tensor<65536xf32>) {
  ^bb0(%in: f32, %out: f32):
    %10 = arith.maximumf %out, %in : f32
    linalg.yield %10 : f32
  } -> tensor<65536xf32>
  return %6, %9 : tensor<65536x1024xf32>, tensor<65536xf32>
}
func.func private @g_1(%arg0: tensor<65536xf32> {fuse.align = 16 : i64}) -> tensor<65536xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %0 = tensor.empty() : tensor<65536xf32>
  %1 = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]} ins(%arg0 : tensor<65536xf32>) outs(%0 : tensor<65536xf32>) {
  ^bb0(%in: f32, %out: f32):
    %2 = math.exp %in : f32
    linalg.yield %2 : f32
  } -> tensor<65536xf32>
  return %1 : tensor<65536xf32>
}
