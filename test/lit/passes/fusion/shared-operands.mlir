// RUN: mlirfuse-opt --fuse-shared-operands --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(d0, d1) -> (d0, d1)>
// The second kernel multiplies its product by the first one's: both are one op, and the rest is its epilogue.
// CHECK-DAG: #[[MK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[NK:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @gated(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<64x256xf16>, %[[G:[a-z0-9]+]]: tensor<512x256xf16>, %[[U:[a-z0-9]+]]: tensor<512x256xf16>
// CHECK-NEXT: %[[Y:.*]] = call @f_0(%[[X]], %[[G]], %[[U]])
// CHECK-NEXT: return %[[Y]]
// CHECK-LABEL: func.func private @f_0(
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<64x256xf16> {{.*}}, %[[B:[a-z0-9]+]]: tensor<512x256xf16> {{.*}}, %[[C:[a-z0-9]+]]: tensor<512x256xf16> {{.*}}) -> tensor<64x512xf32>
// CHECK: %[[SUMS:.*]]:2 = linalg.generic {indexing_maps = [#[[MK]], #[[NK]], #[[NK]], #[[MN]], #[[MN]]], iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK-SAME: ins(%[[A]], %[[B]], %[[C]] :
// CHECK: ^bb0(%{{.*}}: f16, %{{.*}}: f16, %{{.*}}: f16, %[[S:.*]]: f32, %[[T:.*]]: f32):
// CHECK: %[[S2:.*]] = arith.addf %[[S]]
// CHECK: %[[T2:.*]] = arith.addf %[[T]]
// CHECK: linalg.yield %[[S2]], %[[T2]] : f32, f32
// CHECK: linalg.generic {{.*}}["parallel", "parallel"]} ins(%[[SUMS]]#1, %[[SUMS]]#0 :
// CHECK-NOT: func.func private @f_1
func.func @gated(%x: tensor<64x256xf16>, %g: tensor<512x256xf16>, %u: tensor<512x256xf16>) -> tensor<64x512xf32> {
  %0 = call @f_0(%x, %g) : (tensor<64x256xf16>, tensor<512x256xf16>) -> tensor<64x512xf32>
  // expected-remark @below {{f_0 and f_1 share an operand, and a kernel}}
  %1 = call @f_1(%x, %u, %0) : (tensor<64x256xf16>, tensor<512x256xf16>, tensor<64x512xf32>) -> tensor<64x512xf32>
  return %1 : tensor<64x512xf32>
}
func.func private @f_0(%x: tensor<64x256xf16> {fuse.align = 16 : i64}, %w: tensor<512x256xf16> {fuse.align = 16 : i64}) -> tensor<64x512xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x512xf32>) -> tensor<64x512xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<64x256xf16>, tensor<512x256xf16>) outs(%init : tensor<64x512xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x512xf32>
  return %0 : tensor<64x512xf32>
}
func.func private @f_1(%x: tensor<64x256xf16> {fuse.align = 16 : i64}, %w: tensor<512x256xf16> {fuse.align = 16 : i64}, %g: tensor<64x512xf32> {fuse.align = 16 : i64}) -> tensor<64x512xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x512xf32>) -> tensor<64x512xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<64x256xf16>, tensor<512x256xf16>) outs(%init : tensor<64x512xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x512xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0, %g : tensor<64x512xf32>, tensor<64x512xf32>) outs(%e : tensor<64x512xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<64x512xf32>
  return %1 : tensor<64x512xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
// Each product has its own operands: there is nothing to share.
// CHECK-LABEL: func.func @apart(
// CHECK: call @f_0(
// CHECK: call @f_1(
func.func @apart(%x: tensor<64x64xf16>, %y: tensor<64x64xf16>, %v: tensor<64x64xf16>, %w: tensor<64x64xf16>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = call @f_0(%x, %v) : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf32>
  %1 = call @f_1(%y, %w) : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf32>
  return %0, %1 : tensor<64x64xf32>, tensor<64x64xf32>
}
func.func private @f_0(%x: tensor<64x64xf16> {fuse.align = 16 : i64}, %w: tensor<64x64xf16> {fuse.align = 16 : i64}) -> tensor<64x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<64x64xf16>, tensor<64x64xf16>) outs(%init : tensor<64x64xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
func.func private @f_1(%x: tensor<64x64xf16> {fuse.align = 16 : i64}, %w: tensor<64x64xf16> {fuse.align = 16 : i64}) -> tensor<64x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<64x64xf16>, tensor<64x64xf16>) outs(%init : tensor<64x64xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
// Results of other widths would need other tiles.
// CHECK-LABEL: func.func @widths(
// CHECK: call @f_0(
// CHECK: call @f_1(
func.func @widths(%x: tensor<64x64xf16>, %v: tensor<32x64xf16>, %w: tensor<96x64xf16>) -> (tensor<64x32xf32>, tensor<64x96xf32>) {
  %0 = call @f_0(%x, %v) : (tensor<64x64xf16>, tensor<32x64xf16>) -> tensor<64x32xf32>
  // expected-remark @below {{f_0 and f_1 share an operand, and are kernels of their own: their results have other extents}}
  %1 = call @f_1(%x, %w) : (tensor<64x64xf16>, tensor<96x64xf16>) -> tensor<64x96xf32>
  return %0, %1 : tensor<64x32xf32>, tensor<64x96xf32>
}
func.func private @f_0(%x: tensor<64x64xf16> {fuse.align = 16 : i64}, %w: tensor<32x64xf16> {fuse.align = 16 : i64}) -> tensor<64x32xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<64x64xf16>, tensor<32x64xf16>) outs(%init : tensor<64x32xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}
func.func private @f_1(%x: tensor<64x64xf16> {fuse.align = 16 : i64}, %w: tensor<96x64xf16> {fuse.align = 16 : i64}) -> tensor<64x96xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x96xf32>) -> tensor<64x96xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<64x64xf16>, tensor<96x64xf16>) outs(%init : tensor<64x96xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x96xf32>
  return %0 : tensor<64x96xf32>
}
