// RUN: mlirfuse-opt %s --target=sm_90a --fuse-pad-channels --split-input-file --show-remarks 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// 48 channels become lines of 64: the windows are zero past the image's channels, and the filters' copy is too.
// CHECK-DAG: #[[$WINDOWS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d3 - 1, d2 + d4 - 1, d5)>
// CHECK-LABEL: func.func @forward
// REMARK: fuse-pad-channels: applied: 48 channels became 64: {{.*}} us as they are, {{.*}} us padded
// CHECK: %[[X:.*]] = "fuse.gathered_view"(%arg0) {basis = array<i64: 32, 96, 96, 3, 3, 64>, map = #[[$WINDOWS]]
// CHECK: %[[WIDE:.*]] = "fuse.gathered_view"(%arg1) {basis = array<i64: 192, 3, 3, 64>, {{.*}} : (tensor<192x3x3x48xf16>) -> tensor<192x3x3x64xf16>
// CHECK: %[[W:.*]] = linalg.generic {{.*}} ins(%[[WIDE]] : tensor<192x3x3x64xf16>)
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[W]] : tensor<32x96x96x3x3x64xf16>, tensor<192x3x3x64xf16>) outs(%{{.*}} : tensor<32x96x96x192xf32>)
// CHECK: return %[[Y]] : tensor<32x96x96x192xf32>
func.func @forward(%x: tensor<32x96x96x48xf16> {fuse.align = 16 : i64}, %w: tensor<192x3x3x48xf16> {fuse.align = 16 : i64}) -> tensor<32x96x96x192xf32> {
  %zero = arith.constant 0.0 : f32
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 32, 96, 96, 3, 3, 48>, ranks = array<i64: 1, 1, 1, 1, 1, 1>,
      map = affine_map<(n, p, q, r, s, c) -> (n, p + r - 1, q + s - 1, c)>} : (tensor<32x96x96x48xf16>) -> tensor<32x96x96x3x3x48xf16>
  %e = tensor.empty() : tensor<32x96x96x192xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<32x96x96x192xf32>) -> tensor<32x96x96x192xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, p, q, k, r, s, c) -> (n, p, q, r, s, c)>,
                                        affine_map<(n, p, q, k, r, s, c) -> (k, r, s, c)>,
                                        affine_map<(n, p, q, k, r, s, c) -> (n, p, q, k)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%v, %w : tensor<32x96x96x3x3x48xf16>, tensor<192x3x3x48xf16>) outs(%f : tensor<32x96x96x192xf32>) {
  ^bb0(%a: f16, %b: f16, %sum: f32):
    %left = arith.extf %a : f16 to f32
    %right = arith.extf %b : f16 to f32
    %p = arith.mulf %left, %right : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<32x96x96x192xf32>
  return %y : tensor<32x96x96x192xf32>
}

// -----

// A weight gradient has columns for the channels that there are not; the others are copied.
// CHECK-LABEL: func.func @wgrad
// REMARK: fuse-pad-channels: applied: 48 channels became 64
// CHECK: %[[X:.*]] = "fuse.gathered_view"(%arg0) {basis = array<i64: 32, 96, 96, 3, 3, 64>
// CHECK: %[[ALL:.*]] = linalg.generic {{.*}} ins(%arg1, %[[X]] : {{.*}}) outs(%{{.*}} : tensor<192x3x3x64xf32>)
// CHECK: %[[KEPT:.*]] = "fuse.gathered_view"(%[[ALL]]) {basis = array<i64: 192, 3, 3, 48>
// CHECK: %[[DW:.*]] = linalg.generic {{.*}} ins(%[[KEPT]] : tensor<192x3x3x48xf32>)
// CHECK: return %[[DW]] : tensor<192x3x3x48xf32>
func.func @wgrad(%x: tensor<32x96x96x48xf16> {fuse.align = 16 : i64}, %dy: tensor<32x96x96x192xf16> {fuse.align = 16 : i64}) -> tensor<192x3x3x48xf32> {
  %zero = arith.constant 0.0 : f32
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 32, 96, 96, 3, 3, 48>, ranks = array<i64: 1, 1, 1, 1, 1, 1>,
      map = affine_map<(n, p, q, r, s, c) -> (n, p + r - 1, q + s - 1, c)>} : (tensor<32x96x96x48xf16>) -> tensor<32x96x96x3x3x48xf16>
  %e = tensor.empty() : tensor<192x3x3x48xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<192x3x3x48xf32>) -> tensor<192x3x3x48xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(k, r, s, c, n, p, q) -> (n, p, q, k)>,
                                        affine_map<(k, r, s, c, n, p, q) -> (n, p, q, r, s, c)>,
                                        affine_map<(k, r, s, c, n, p, q) -> (k, r, s, c)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%dy, %v : tensor<32x96x96x192xf16>, tensor<32x96x96x3x3x48xf16>) outs(%f : tensor<192x3x3x48xf32>) {
  ^bb0(%a: f16, %b: f16, %sum: f32):
    %left = arith.extf %a : f16 to f32
    %right = arith.extf %b : f16 to f32
    %p = arith.mulf %left, %right : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<192x3x3x48xf32>
  return %y : tensor<192x3x3x48xf32>
}

// -----

// One row of an image: zeros cost more than they save.
// CHECK-LABEL: func.func @small
// REMARK: fuse-pad-channels: declined: 48 channels stay as they are: {{.*}} us
// CHECK: ins(%{{.*}}, %arg1 : tensor<1x8x3x48xf16>, tensor<16x3x48xf16>)
func.func @small(%x: tensor<1x8x48xf16> {fuse.align = 16 : i64}, %w: tensor<16x3x48xf16> {fuse.align = 16 : i64}) -> tensor<1x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 1, 8, 3, 48>, ranks = array<i64: 1, 1, 1, 1>,
      map = affine_map<(n, p, r, c) -> (n, p + r - 1, c)>} : (tensor<1x8x48xf16>) -> tensor<1x8x3x48xf16>
  %e = tensor.empty() : tensor<1x8x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x16xf32>) -> tensor<1x8x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, p, k, r, c) -> (n, p, r, c)>,
                                        affine_map<(n, p, k, r, c) -> (k, r, c)>,
                                        affine_map<(n, p, k, r, c) -> (n, p, k)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%v, %w : tensor<1x8x3x48xf16>, tensor<16x3x48xf16>) outs(%f : tensor<1x8x16xf32>) {
  ^bb0(%a: f16, %b: f16, %sum: f32):
    %left = arith.extf %a : f16 to f32
    %right = arith.extf %b : f16 to f32
    %p = arith.mulf %left, %right : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x8x16xf32>
  return %y : tensor<1x8x16xf32>
}

// -----

// Channels that fill lines need no zeros.
// CHECK-LABEL: func.func @lines
// REMARK: fuse-pad-channels: declined: no product of a gathered view whose channels end inside of a line
// CHECK: ins(%{{.*}}, %arg1 : tensor<8x56x3x64xf16>, tensor<96x3x64xf16>)
func.func @lines(%x: tensor<8x56x64xf16>, %w: tensor<96x3x64xf16>) -> tensor<8x56x96xf32> {
  %zero = arith.constant 0.0 : f32
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 8, 56, 3, 64>, ranks = array<i64: 1, 1, 1, 1>,
      map = affine_map<(n, p, r, c) -> (n, p + r - 1, c)>} : (tensor<8x56x64xf16>) -> tensor<8x56x3x64xf16>
  %e = tensor.empty() : tensor<8x56x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x56x96xf32>) -> tensor<8x56x96xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, p, k, r, c) -> (n, p, r, c)>,
                                        affine_map<(n, p, k, r, c) -> (k, r, c)>,
                                        affine_map<(n, p, k, r, c) -> (n, p, k)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%v, %w : tensor<8x56x3x64xf16>, tensor<96x3x64xf16>) outs(%f : tensor<8x56x96xf32>) {
  ^bb0(%a: f16, %b: f16, %sum: f32):
    %left = arith.extf %a : f16 to f32
    %right = arith.extf %b : f16 to f32
    %p = arith.mulf %left, %right : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x56x96xf32>
  return %y : tensor<8x56x96xf32>
}
