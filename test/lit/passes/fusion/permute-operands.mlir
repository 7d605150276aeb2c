// RUN: mlirfuse-opt --fuse-permute-operands --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#a = affine_map<(b, l, i, j, k) -> (b, i, j, k)>
#b = affine_map<(b, l, i, j, k) -> (b, k, l, j)>
#r = affine_map<(b, l, i, j, k) -> (b, l, i)>

// Memory of %y is contiguous along j, of which tiles have one element: the product reads a copy with j and k in the order
// of %x.
// CHECK-LABEL: func.func @large(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8x512x512xbf16>, %[[Y:[a-z0-9]+]]: tensor<4x512x8x512xbf16>
// CHECK-NEXT: %[[C:.*]] = call @large_0_operand1(%[[Y]]) : (tensor<4x512x8x512xbf16>) -> tensor<4x8x512x512xbf16>
// CHECK-NEXT: call @large_0(%[[X]], %[[C]])
func.func @large(%x: tensor<4x8x512x512xbf16>, %y: tensor<4x512x8x512xbf16>) -> tensor<4x8x8xf32> {
  // expected-remark-re @below {{operand 1 of large_0 is copied to another order: {{.*}} us as it is, {{.*}} us as a reduction over rows, {{.*}} us from a copy}}
  %0 = call @large_0(%x, %y) : (tensor<4x8x512x512xbf16>, tensor<4x512x8x512xbf16>) -> tensor<4x8x8xf32>
  return %0 : tensor<4x8x8xf32>
}
func.func private @large_0(%x: tensor<4x8x512x512xbf16> {fuse.align = 16 : i64}, %y: tensor<4x512x8x512xbf16> {fuse.align = 16 : i64}) -> tensor<4x8x8xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
  %0 = linalg.generic {indexing_maps = [#a, #b, #r], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
       ins(%x, %y : tensor<4x8x512x512xbf16>, tensor<4x512x8x512xbf16>) outs(%init : tensor<4x8x8xf32>) {
  ^bb0(%p: bf16, %q: bf16, %out: f32):
    %f = arith.extf %p : bf16 to f32
    %g = arith.extf %q : bf16 to f32
    %m = arith.mulf %f, %g : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x8x8xf32>
  return %0 : tensor<4x8x8xf32>
}

// -----

#a = affine_map<(b, l, i, j, k) -> (b, i, j, k)>
#b = affine_map<(b, l, i, j, k) -> (b, k, l, j)>
#r = affine_map<(b, l, i, j, k) -> (b, l, i)>

// A small one is a reduction over rows, in one kernel.
// CHECK-LABEL: func.func @small(
// CHECK-NEXT: call @small_0(%arg0, %arg1)
// CHECK-NOT: operand1
// CHECK: linalg.generic {{.*}} attrs = {fuse.by_rows}
func.func @small(%x: tensor<2x8x16x16xf32>, %y: tensor<2x16x8x16xf32>) -> tensor<2x8x8xf32> {
  // expected-remark-re @below {{operand 1 of small_0 is read in its own order}}
  %0 = call @small_0(%x, %y) : (tensor<2x8x16x16xf32>, tensor<2x16x8x16xf32>) -> tensor<2x8x8xf32>
  return %0 : tensor<2x8x8xf32>
}
func.func private @small_0(%x: tensor<2x8x16x16xf32> {fuse.align = 16 : i64}, %y: tensor<2x16x8x16xf32> {fuse.align = 16 : i64}) -> tensor<2x8x8xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x8x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %0 = linalg.generic {indexing_maps = [#a, #b, #r], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
       ins(%x, %y : tensor<2x8x16x16xf32>, tensor<2x16x8x16xf32>) outs(%init : tensor<2x8x8xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x8x8xf32>
  return %0 : tensor<2x8x8xf32>
}
