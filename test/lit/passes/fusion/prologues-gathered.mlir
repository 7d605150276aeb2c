// RUN: mlirfuse-opt --fuse-prologues --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

// A convolution's input is computed from views of what it is computed of; where the windows leave the image it is zero.
#id = affine_map<(n, h, c) -> (n, h, c)>
#channel = affine_map<(n, h, c) -> (c)>
#windows = affine_map<(n, p, r, c) -> (n, p + r - 1, c)>
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @gathered(
// CHECK-DAG: %[[X:.*]] = "fuse.gathered_view"(%arg0) {basis = array<i64: 2, 8, 3, 16>, map = #[[WINDOWS:.*]], ranks = array<i64: 2, 2>} : {{.*}} -> tensor<16x48xf16>
// CHECK-DAG: %[[SHIFT:.*]] = "fuse.gathered_view"(%arg1) {basis = array<i64: 3, 16>, map = #{{.*}}, ranks = array<i64: 2>} : (tensor<16xf16>) -> tensor<48xf16>
// CHECK-DAG: %[[INSIDE:.*]] = "fuse.gathered_view"(%arg0) {basis = array<i64: 2, 8, 3, 16>, inside = array<i64: 2, 8, 16>, map = #[[WINDOWS]], ranks = array<i64: 2, 2>} : {{.*}} -> tensor<16x48xi1>
// CHECK: call @f_0_viewed(%[[X]], %[[SHIFT]], %[[INSIDE]], %arg2) : {{.*}} -> tensor<16x32xf32>
// CHECK-LABEL: func.func private @f_0_viewed(
// CHECK: arith.addf
// CHECK: arith.select
// CHECK: iterator_types = ["parallel", "parallel", "reduction"]
func.func @gathered(%x: tensor<2x8x16xf16>, %shift: tensor<16xf16>, %w: tensor<32x48xf16>) -> tensor<16x32xf32> {
  %0 = call @f_0(%x, %shift) : (tensor<2x8x16xf16>, tensor<16xf16>) -> tensor<2x8x16xf16>
  %1 = "fuse.gathered_view"(%0) {basis = array<i64: 2, 8, 3, 16>, map = #windows, ranks = array<i64: 2, 2>}
      : (tensor<2x8x16xf16>) -> tensor<16x48xf16>
  // expected-remark @below {{f_0 becomes a prologue of f_1}}
  %2 = call @f_1(%1, %w) : (tensor<16x48xf16>, tensor<32x48xf16>) -> tensor<16x32xf32>
  return %2 : tensor<16x32xf32>
}
func.func private @f_0(%x: tensor<2x8x16xf16> {fuse.align = 16 : i64}, %shift: tensor<16xf16> {fuse.align = 16 : i64}) -> tensor<2x8x16xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<2x8x16xf16>
  %0 = linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x, %shift : tensor<2x8x16xf16>, tensor<16xf16>) outs(%e : tensor<2x8x16xf16>) {
  ^bb0(%a: f16, %b: f16, %out: f16):
    %s = arith.addf %a, %b : f16
    linalg.yield %s : f16
  } -> tensor<2x8x16xf16>
  return %0 : tensor<2x8x16xf16>
}
func.func private @f_1(%x: tensor<16x48xf16> {fuse.align = 16 : i64, fuse.strides = [16, 1], fuse.gather = {basis = array<i64: 2, 8, 3, 16>, map = #windows, ranks = array<i64: 2, 2>, source = tensor<2x8x16xf16>}},
                       %w: tensor<32x48xf16> {fuse.align = 16 : i64}) -> tensor<16x32xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<16x48xf16>, tensor<32x48xf16>) outs(%init : tensor<16x32xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}

// -----

// An element that depends on its index is another one in a view.
#id = affine_map<(n, h, c) -> (n, h, c)>
#windows = affine_map<(n, p, r, c) -> (n, p + r - 1, c)>
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @gathered_reduction(
// CHECK: call @f_0(
// CHECK: "fuse.gathered_view"
// CHECK: call @f_1(
func.func @gathered_reduction(%x: tensor<2x8x16xf16>, %w: tensor<32x48xf16>) -> tensor<16x32xf32> {
  %0 = call @f_0(%x) : (tensor<2x8x16xf16>) -> tensor<2x8x16xf16>
  %1 = "fuse.gathered_view"(%0) {basis = array<i64: 2, 8, 3, 16>, map = #windows, ranks = array<i64: 2, 2>}
      : (tensor<2x8x16xf16>) -> tensor<16x48xf16>
  // expected-remark @below {{f_0 stays apart from f_1: its elements depend on their indices, which a view changes}}
  %2 = call @f_1(%1, %w) : (tensor<16x48xf16>, tensor<32x48xf16>) -> tensor<16x32xf32>
  return %2 : tensor<16x32xf32>
}
func.func private @f_0(%x: tensor<2x8x16xf16> {fuse.align = 16 : i64}) -> tensor<2x8x16xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<2x8x16xf16>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x : tensor<2x8x16xf16>) outs(%e : tensor<2x8x16xf16>) {
  ^bb0(%a: f16, %out: f16):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i32
    %f = arith.sitofp %j : i32 to f16
    %s = arith.addf %a, %f : f16
    linalg.yield %s : f16
  } -> tensor<2x8x16xf16>
  return %0 : tensor<2x8x16xf16>
}
func.func private @f_1(%x: tensor<16x48xf16> {fuse.align = 16 : i64, fuse.strides = [16, 1], fuse.gather = {basis = array<i64: 2, 8, 3, 16>, map = #windows, ranks = array<i64: 2, 2>, source = tensor<2x8x16xf16>}},
                       %w: tensor<32x48xf16> {fuse.align = 16 : i64}) -> tensor<16x32xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<16x48xf16>, tensor<32x48xf16>) outs(%init : tensor<16x32xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}
