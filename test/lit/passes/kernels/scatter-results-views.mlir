// RUN: mlirfuse-opt --fuse-scatter-results --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#a = affine_map<(b, m, n, k) -> (b, m, k)>
#b = affine_map<(b, m, n, k) -> (b, k, n)>
#c = affine_map<(b, m, n, k) -> (b, m, n)>
#i = affine_map<(n, h, w, c) -> (n, h, w, c)>
// CHECK-LABEL: func.func @two_views(
// CHECK: call @f_0
// CHECK: call @f_1
func.func @two_views(%x: tensor<4x72x32xf16>, %w: tensor<4x32x16xf16>) -> (tensor<2x11x12x16xf16>, tensor<1x11x12x16xf16>) {
  %0 = call @f_0(%x, %w) : (tensor<4x72x32xf16>, tensor<4x32x16xf16>) -> tensor<4x72x16xf16>
  %1 = tensor.expand_shape %0 [[0, 1], [2, 3, 4], [5]] output_shape [2, 2, 2, 6, 6, 16] : tensor<4x72x16xf16> into tensor<2x2x2x6x6x16xf16>
  %2 = "fuse.gathered_view"(%1) {basis = array<i64: 2, 11, 12, 16>, ranks = array<i64: 1, 1, 1, 1>,
      map = affine_map<(n, h, w, c) -> (h mod 2, w mod 2, n, h floordiv 2, w floordiv 2, c)>} : (tensor<2x2x2x6x6x16xf16>) -> tensor<2x11x12x16xf16>
  %first = "fuse.gathered_view"(%1) {basis = array<i64: 1, 11, 12, 16>, ranks = array<i64: 1, 1, 1, 1>,
      map = affine_map<(n, h, w, c) -> (h mod 2, w mod 2, n, h floordiv 2, w floordiv 2, c)>} : (tensor<2x2x2x6x6x16xf16>) -> tensor<1x11x12x16xf16>
  // expected-remark @below {{f_0 stays apart from f_1: other views are read of the result}}
  %3 = call @f_1(%2) : (tensor<2x11x12x16xf16>) -> tensor<2x11x12x16xf16>
  // expected-remark @below {{f_0 stays apart from f_2: other views are read of the result}}
  %4 = call @f_2(%first) : (tensor<1x11x12x16xf16>) -> tensor<1x11x12x16xf16>
  return %3, %4 : tensor<2x11x12x16xf16>, tensor<1x11x12x16xf16>
}
func.func private @f_0(%x: tensor<4x72x32xf16>, %w: tensor<4x32x16xf16>) -> tensor<4x72x16xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<4x72x16xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e : tensor<4x72x16xf16>) -> tensor<4x72x16xf16>
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<4x72x32xf16>, tensor<4x32x16xf16>) outs(%init : tensor<4x72x16xf16>) {
  ^bb0(%l: f16, %r: f16, %out: f16):
    %p = arith.mulf %l, %r : f16
    %s = arith.addf %out, %p : f16
    linalg.yield %s : f16
  } -> tensor<4x72x16xf16>
  return %0 : tensor<4x72x16xf16>
}
func.func private @f_1(%v: tensor<2x11x12x16xf16> {fuse.gather = {basis = array<i64: 2, 11, 12, 16>, ranks = array<i64: 1, 1, 1, 1>, source = tensor<2x2x2x6x6x16xf16>,
    map = affine_map<(n, h, w, c) -> (h mod 2, w mod 2, n, h floordiv 2, w floordiv 2, c)>}, fuse.strides = [16, 16, 16, 1]}) -> tensor<2x11x12x16xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<2x11x12x16xf16>
  %0 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
       ins(%v : tensor<2x11x12x16xf16>) outs(%e : tensor<2x11x12x16xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<2x11x12x16xf16>
  return %0 : tensor<2x11x12x16xf16>
}
func.func private @f_2(%v: tensor<1x11x12x16xf16> {fuse.gather = {basis = array<i64: 1, 11, 12, 16>, ranks = array<i64: 1, 1, 1, 1>, source = tensor<2x2x2x6x6x16xf16>,
    map = affine_map<(n, h, w, c) -> (h mod 2, w mod 2, n, h floordiv 2, w floordiv 2, c)>}, fuse.strides = [16, 16, 16, 1]}) -> tensor<1x11x12x16xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<1x11x12x16xf16>
  %0 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
       ins(%v : tensor<1x11x12x16xf16>) outs(%e : tensor<1x11x12x16xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<1x11x12x16xf16>
  return %0 : tensor<1x11x12x16xf16>
}
