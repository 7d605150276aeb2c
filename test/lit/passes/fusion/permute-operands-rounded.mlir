// RUN: mlirfuse-opt --target=sm_90a --sms=132 --fuse-permute-operands --verify-diagnostics=only-expected %s | FileCheck %s

#a = affine_map<(i, j, c, d, s) -> (s, i, c)>
#b = affine_map<(i, j, c, d, s) -> (s, j, d)>
#product = affine_map<(i, j, c, d, s) -> (i, j, c, d)>
#all = affine_map<(i, j, c, d) -> (i, j, c, d)>

// The product is computed in float32 and rounded: both have c beside i and d beside j, and a kernel copies the result to
// the order that was asked for.
// CHECK: #[[SWAPPED:map[0-9]*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>
// CHECK: #[[PRODUCT:map[0-9]*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3)>
// CHECK-LABEL: func.func @rounded(
// CHECK: %[[P:.*]] = call @rounded_0({{.*}}) -> tensor<128x32x128x32xbf16>
// CHECK: call @rounded_0_result(%[[P]]) : (tensor<128x32x128x32xbf16>) -> tensor<128x128x32x32xbf16>
func.func @rounded(%a: tensor<128x128x32xbf16>, %b: tensor<128x128x32xbf16>) -> tensor<128x128x32x32xbf16> {
  // expected-remark-re @below {{the result of rounded_0 is copied from another order: {{.*}} us as it is, {{.*}} us permuted}}
  %0 = call @rounded_0(%a, %b) : (tensor<128x128x32xbf16>, tensor<128x128x32xbf16>) -> tensor<128x128x32x32xbf16>
  return %0 : tensor<128x128x32x32xbf16>
}
// CHECK: func.func private @rounded_0(
// CHECK-NOT: tensor.empty() : tensor<128x128x32x32x
// CHECK: linalg.generic {indexing_maps = [{{.*}}, {{.*}}, #[[PRODUCT]]]
// CHECK: -> tensor<128x32x128x32xf32>
// CHECK: linalg.generic {indexing_maps = [#[[SWAPPED]], #[[SWAPPED]]]
// CHECK: -> tensor<128x32x128x32xbf16>
func.func private @rounded_0(%a: tensor<128x128x32xbf16> {fuse.align = 16 : i64}, %b: tensor<128x128x32xbf16> {fuse.align = 16 : i64}) -> tensor<128x128x32x32xbf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<128x128x32x32xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<128x128x32x32xf32>) -> tensor<128x128x32x32xf32>
  %2 = linalg.generic {indexing_maps = [#a, #b, #product], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%a, %b : tensor<128x128x32xbf16>, tensor<128x128x32xbf16>) outs(%1 : tensor<128x128x32x32xf32>) {
  ^bb0(%x: bf16, %y: bf16, %out: f32):
    %4 = arith.extf %x : bf16 to f32
    %5 = arith.extf %y : bf16 to f32
    %6 = arith.mulf %4, %5 fastmath<contract> : f32
    %7 = arith.addf %out, %6 : f32
    linalg.yield %7 : f32
  } -> tensor<128x128x32x32xf32>
  %3 = tensor.empty() : tensor<128x128x32x32xbf16>
  %8 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<128x128x32x32xf32>) outs(%3 : tensor<128x128x32x32xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %4 = arith.truncf %in : f32 to bf16
    linalg.yield %4 : bf16
  } -> tensor<128x128x32x32xbf16>
  return %8 : tensor<128x128x32x32xbf16>
}
