// RUN: mlirfuse-opt --fuse-factor-sums --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#jk = affine_map<(j, k) -> (j, k)>
#k = affine_map<(j, k) -> (k)>
#bi = affine_map<(b, i, k) -> (b, i)>
#last = affine_map<(b, i, k) -> (k)>
#bik = affine_map<(b, i, k) -> (b, i, k)>
// einsum("bi,jk->bik"): the sum over j of w meets x in one kernel.
// CHECK: #[[X:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
// CHECK: #[[W:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d2)>
// CHECK: #[[Y:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: func.func @outer(
// CHECK-NEXT: %[[R:.*]] = call @f_0(%{{.*}}, %{{.*}})
// CHECK-NEXT: return %[[R]]
// CHECK-LABEL: func.func private @f_0(
// CHECK-SAME: %[[VW:[a-z0-9]+]]: tensor<16x16xf32>
// CHECK-SAME: %[[VX:[a-z0-9]+]]: tensor<2x16xf32>
// CHECK: linalg.fill
// CHECK-NOT: linalg.fill
// CHECK: linalg.generic {indexing_maps = [#[[X]], #[[W]], #[[Y]]], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%[[VX]], %[[VW]]
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[ACC:.*]]: f32):
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A]], %[[B]]
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[ACC]], %[[P]]
// CHECK-NEXT: linalg.yield %[[S]]
// CHECK-NOT: func.func private @f_1
module attributes {fuse.target = {chip = "sm_90a", sms = 132 : i64}} {
func.func @outer(%x: tensor<2x16xf32>, %w: tensor<16x16xf32>) -> tensor<2x16x16xf32> {
  %0 = call @f_0(%w) : (tensor<16x16xf32>) -> tensor<16xf32>
  // expected-remark @below {{f_1 sums the factor that f_0 has summed}}
  %1 = call @f_1(%x, %0) : (tensor<2x16xf32>, tensor<16xf32>) -> tensor<2x16x16xf32>
  return %1 : tensor<2x16x16xf32>
}
func.func private @f_0(%w: tensor<16x16xf32> {fuse.align = 16 : i64}) -> tensor<16xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %0 = linalg.generic {indexing_maps = [#jk, #k], iterator_types = ["reduction", "parallel"]}
       ins(%w : tensor<16x16xf32>) outs(%init : tensor<16xf32>) attrs = {fuse.factor_sum} {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %out, %a : f32
    linalg.yield %s : f32
  } -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @f_1(%x: tensor<2x16xf32> {fuse.align = 16 : i64}, %s: tensor<16xf32> {fuse.align = 16 : i64}) -> tensor<2x16x16xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<2x16x16xf32>
  %0 = linalg.generic {indexing_maps = [#bi, #last, #bik], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x, %s : tensor<2x16xf32>, tensor<16xf32>) outs(%e : tensor<2x16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<2x16x16xf32>
  return %0 : tensor<2x16x16xf32>
}
}

// -----

#jk = affine_map<(j, k) -> (j, k)>
#k = affine_map<(j, k) -> (k)>
#bi = affine_map<(b, i, k) -> (b, i)>
#last = affine_map<(b, i, k) -> (k)>
#bik = affine_map<(b, i, k) -> (b, i, k)>
// A large factor would be read again for every row of the result.
// CHECK-LABEL: func.func @large(
// CHECK: call @f_0
// CHECK-NEXT: call @f_1
module attributes {fuse.target = {chip = "sm_90a", sms = 132 : i64}} {
func.func @large(%x: tensor<2x512xf32>, %w: tensor<512x512xf32>) -> tensor<2x512x512xf32> {
  %0 = call @f_0(%w) : (tensor<512x512xf32>) -> tensor<512xf32>
  // expected-remark @below {{f_0 sums a factor of f_1 by itself: one kernel is predicted to take}}
  %1 = call @f_1(%x, %0) : (tensor<2x512xf32>, tensor<512xf32>) -> tensor<2x512x512xf32>
  return %1 : tensor<2x512x512xf32>
}
func.func private @f_0(%w: tensor<512x512xf32> {fuse.align = 16 : i64}) -> tensor<512xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<512xf32>) -> tensor<512xf32>
  %0 = linalg.generic {indexing_maps = [#jk, #k], iterator_types = ["reduction", "parallel"]}
       ins(%w : tensor<512x512xf32>) outs(%init : tensor<512xf32>) attrs = {fuse.factor_sum} {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %out, %a : f32
    linalg.yield %s : f32
  } -> tensor<512xf32>
  return %0 : tensor<512xf32>
}
func.func private @f_1(%x: tensor<2x512xf32> {fuse.align = 16 : i64}, %s: tensor<512xf32> {fuse.align = 16 : i64}) -> tensor<2x512x512xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<2x512x512xf32>
  %0 = linalg.generic {indexing_maps = [#bi, #last, #bik], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x, %s : tensor<2x512xf32>, tensor<512xf32>) outs(%e : tensor<2x512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<2x512x512xf32>
  return %0 : tensor<2x512x512xf32>
}
}

// -----

#jk = affine_map<(j, k) -> (j, k)>
#k = affine_map<(j, k) -> (k)>
#bk = affine_map<(b, k) -> (b, k)>
#last = affine_map<(b, k) -> (k)>
// The sum is used otherwise than as a factor: it is added.
// CHECK-LABEL: func.func @added(
// CHECK: call @f_0
// CHECK-NEXT: call @f_1
module attributes {fuse.target = {chip = "sm_90a", sms = 132 : i64}} {
func.func @added(%x: tensor<2x16xf32>, %w: tensor<16x16xf32>) -> tensor<2x16xf32> {
  %0 = call @f_0(%w) : (tensor<16x16xf32>) -> tensor<16xf32>
  // expected-remark @below {{f_0 sums a factor of f_1 by itself: the sum is not multiplied as it is}}
  %1 = call @f_1(%x, %0) : (tensor<2x16xf32>, tensor<16xf32>) -> tensor<2x16xf32>
  return %1 : tensor<2x16xf32>
}
func.func private @f_0(%w: tensor<16x16xf32> {fuse.align = 16 : i64}) -> tensor<16xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %0 = linalg.generic {indexing_maps = [#jk, #k], iterator_types = ["reduction", "parallel"]}
       ins(%w : tensor<16x16xf32>) outs(%init : tensor<16xf32>) attrs = {fuse.factor_sum} {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %out, %a : f32
    linalg.yield %s : f32
  } -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @f_1(%x: tensor<2x16xf32> {fuse.align = 16 : i64}, %s: tensor<16xf32> {fuse.align = 16 : i64}) -> tensor<2x16xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<2x16xf32>
  %0 = linalg.generic {indexing_maps = [#bk, #last, #bk], iterator_types = ["parallel", "parallel"]}
       ins(%x, %s : tensor<2x16xf32>, tensor<16xf32>) outs(%e : tensor<2x16xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.addf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<2x16xf32>
  return %0 : tensor<2x16xf32>
}
}
