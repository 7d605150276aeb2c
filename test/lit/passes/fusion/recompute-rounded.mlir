// RUN: mlirfuse-opt --fuse-recompute --canonicalize --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// A product is rounded to 2 bytes and scaled in 4: the second kernel scales what has 2 bytes. Where the product is not
// rounded, the first kernel would write as much without the scaling as with it.
// CHECK-LABEL: func.func @rounded(
// CHECK: %[[R:.*]] = call @rounded_0(%{{.*}}, %{{.*}}) : (tensor<65536x64xbf16>, tensor<1024x64xbf16>) -> tensor<65536x1024xbf16>
// CHECK: call @rounded_1(%[[R]]) : (tensor<65536x1024xbf16>) -> tensor<65536xf32>
// CHECK-LABEL: func.func private @rounded_0(
// CHECK: arith.truncf
// CHECK-NOT: arith.extf {{.*}} tensor
// CHECK: return
// CHECK-LABEL: func.func private @rounded_1(
// CHECK: arith.extf
// CHECK: arith.mulf
// CHECK: arith.maximumf
func.func @rounded(%x: tensor<65536x64xbf16>, %w: tensor<1024x64xbf16>) -> tensor<65536xf32> {
  %0 = call @rounded_0(%x, %w) : (tensor<65536x64xbf16>, tensor<1024x64xbf16>) -> tensor<65536x1024xf32>
  // expected-remark @below {{rounded_1 computes 1 value(s) that it would have read from rounded_0}}
  %1 = call @rounded_1(%0) : (tensor<65536x1024xf32>) -> tensor<65536xf32>
  return %1 : tensor<65536xf32>
}
func.func private @rounded_0(%x: tensor<65536x64xbf16> {fuse.align = 16 : i64}, %w: tensor<1024x64xbf16> {fuse.align = 16 : i64})
    -> tensor<65536x1024xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<65536x1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<65536x1024xf32>) -> tensor<65536x1024xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<65536x64xbf16>, tensor<1024x64xbf16>) outs(%init : tensor<65536x1024xf32>) {
  ^bb0(%p: bf16, %q: bf16, %out: f32):
    %pw = arith.extf %p : bf16 to f32
    %qw = arith.extf %q : bf16 to f32
    %pq = arith.mulf %pw, %qw : f32
    %v = arith.addf %out, %pq : f32
    linalg.yield %v : f32
  } -> tensor<65536x1024xf32>
  %eh = tensor.empty() : tensor<65536x1024xbf16>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%y : tensor<65536x1024xf32>) outs(%eh : tensor<65536x1024xbf16>) {
  ^bb0(%p: f32, %out: bf16):
    %v = arith.truncf %p : f32 to bf16
    linalg.yield %v : bf16
  } -> tensor<65536x1024xbf16>
  %scaled = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%h : tensor<65536x1024xbf16>) outs(%e : tensor<65536x1024xf32>) {
  ^bb0(%p: bf16, %out: f32):
    %scale = arith.constant 0.125 : f32
    %w32 = arith.extf %p : bf16 to f32
    %v = arith.mulf %w32, %scale : f32
    linalg.yield %v : f32
  } -> tensor<65536x1024xf32>
  return %scaled : tensor<65536x1024xf32>
}
func.func private @rounded_1(%h: tensor<65536x1024xf32> {fuse.align = 16 : i64}) -> tensor<65536xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<65536xf32>
  %init = linalg.fill ins(%low : f32) outs(%e : tensor<65536xf32>) -> tensor<65536xf32>
  %most = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%h : tensor<65536x1024xf32>) outs(%init : tensor<65536xf32>) {
  ^bb0(%p: f32, %out: f32):
    %v = arith.maximumf %out, %p : f32
    linalg.yield %v : f32
  } -> tensor<65536xf32>
  return %most : tensor<65536xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// Stored as rounded: there is nothing to recompute.
// CHECK-LABEL: func.func @stored(
// CHECK: call @stored_1(%{{.*}}) : (tensor<65536x1024xbf16>) -> tensor<65536xf32>
// CHECK-LABEL: func.func private @stored_1(
// CHECK-NOT: arith.truncf
func.func @stored(%x: tensor<65536x64xbf16>, %w: tensor<1024x64xbf16>) -> tensor<65536xf32> {
  %0 = call @stored_0(%x, %w) : (tensor<65536x64xbf16>, tensor<1024x64xbf16>) -> tensor<65536x1024xbf16>
  %1 = call @stored_1(%0) : (tensor<65536x1024xbf16>) -> tensor<65536xf32>
  return %1 : tensor<65536xf32>
}
func.func private @stored_0(%x: tensor<65536x64xbf16> {fuse.align = 16 : i64}, %w: tensor<1024x64xbf16> {fuse.align = 16 : i64})
    -> tensor<65536x1024xbf16> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<65536x1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<65536x1024xf32>) -> tensor<65536x1024xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<65536x64xbf16>, tensor<1024x64xbf16>) outs(%init : tensor<65536x1024xf32>) {
  ^bb0(%p: bf16, %q: bf16, %out: f32):
    %pw = arith.extf %p : bf16 to f32
    %qw = arith.extf %q : bf16 to f32
    %pq = arith.mulf %pw, %qw : f32
    %v = arith.addf %out, %pq : f32
    linalg.yield %v : f32
  } -> tensor<65536x1024xf32>
  %eh = tensor.empty() : tensor<65536x1024xbf16>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%y : tensor<65536x1024xf32>) outs(%eh : tensor<65536x1024xbf16>) {
  ^bb0(%p: f32, %out: bf16):
    %v = arith.truncf %p : f32 to bf16
    linalg.yield %v : bf16
  } -> tensor<65536x1024xbf16>
  return %h : tensor<65536x1024xbf16>
}
func.func private @stored_1(%h: tensor<65536x1024xbf16> {fuse.align = 16 : i64}) -> tensor<65536xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<65536xf32>
  %init = linalg.fill ins(%low : f32) outs(%e : tensor<65536xf32>) -> tensor<65536xf32>
  %most = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%h : tensor<65536x1024xbf16>) outs(%init : tensor<65536xf32>) {
  ^bb0(%p: bf16, %out: f32):
    %w = arith.extf %p : bf16 to f32
    %v = arith.maximumf %out, %w : f32
    linalg.yield %v : f32
  } -> tensor<65536xf32>
  return %most : tensor<65536xf32>
}
