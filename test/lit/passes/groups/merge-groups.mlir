// RUN: mlirfuse-opt %s --target=sm_90a --fuse-merge-groups --split-input-file --show-remarks 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// 32 groups of 4 channels become 2 of 64: full lines. The filters are copied to a block-diagonal array, whose elements
// off the diagonal are outside of their source; the result is only viewed otherwise.
// CHECK-DAG: #[[$WINDOWS:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 + d3 - 1, d2 * 64 + d4)>
// CHECK-DAG: #[[$BLOCKS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0 * 16 + d1 + (d1 - d4) * 32, d2, d3, d5)>
// CHECK-LABEL: func.func @forward
// REMARK: fuse-merge-groups: applied: 32 groups became 2: {{.*}} us as they are, {{.*}} us merged
// CHECK: %[[X:.*]] = "fuse.gathered_view"(%arg0) {basis = array<i64: 64, 1024, 2, 3, 64>, map = #[[$WINDOWS]]
// CHECK: %[[W:.*]] = "fuse.gathered_view"(%arg1) {basis = array<i64: 2, 16, 4, 3, 16, 4>, map = #[[$BLOCKS]], ranks = array<i64: 1, 2, 1, 2>}
// CHECK: %[[D:.*]] = linalg.generic {{.*}} ins(%[[W]] : tensor<2x64x3x64xf16>)
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[D]] : tensor<64x1024x2x3x64xf16>, tensor<2x64x3x64xf16>) outs(%{{.*}} : tensor<64x1024x2x64xf32>)
// CHECK: %[[CAST:.*]] = linalg.generic {{.*}} ins(%[[Y]] : tensor<64x1024x2x64xf32>)
// CHECK: tensor.collapse_shape %[[CAST]] {{\[\[}}0], [1], [2, 3]] : tensor<64x1024x2x64xf16> into tensor<64x1024x128xf16>
func.func @forward(%x: tensor<64x1024x128xf16> {fuse.align = 16 : i64}, %w: tensor<32x4x3x4xf16> {fuse.align = 16 : i64}) -> tensor<64x1024x128xf16> {
  %zero = arith.constant 0.0 : f32
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 64, 1024, 32, 3, 4>, ranks = array<i64: 1, 1, 1, 1, 1>,
      map = affine_map<(n, p, g, r, c) -> (n, p + r - 1, g * 4 + c)>} : (tensor<64x1024x128xf16>) -> tensor<64x1024x32x3x4xf16>
  %e = tensor.empty() : tensor<64x1024x32x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x1024x32x4xf32>) -> tensor<64x1024x32x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, p, g, k, r, c) -> (n, p, g, r, c)>,
                                        affine_map<(n, p, g, k, r, c) -> (g, k, r, c)>,
                                        affine_map<(n, p, g, k, r, c) -> (n, p, g, k)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%v, %w : tensor<64x1024x32x3x4xf16>, tensor<32x4x3x4xf16>) outs(%f : tensor<64x1024x32x4xf32>) {
  ^bb0(%a: f16, %b: f16, %sum: f32):
    %left = arith.extf %a : f16 to f32
    %right = arith.extf %b : f16 to f32
    %p = arith.mulf %left, %right : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x1024x32x4xf32>
  %h = tensor.empty() : tensor<64x1024x32x4xf16>
  %cast = linalg.generic {indexing_maps = [affine_map<(n, p, g, k) -> (n, p, g, k)>, affine_map<(n, p, g, k) -> (n, p, g, k)>],
                          iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y : tensor<64x1024x32x4xf32>) outs(%h : tensor<64x1024x32x4xf16>) {
  ^bb0(%a: f32, %out: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x1024x32x4xf16>
  %result = tensor.collapse_shape %cast [[0], [1], [2, 3]] : tensor<64x1024x32x4xf16> into tensor<64x1024x128xf16>
  return %result : tensor<64x1024x128xf16>
}

// -----

// A weight gradient: the blocks on the diagonal are copied from the merged result.
// CHECK-DAG: #[[$DIAGONAL:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 * 4 + d2, d3, d1 * 4 + d4)>
// CHECK-LABEL: func.func @wgrad
// REMARK: fuse-merge-groups: applied: 32 groups became 2
// CHECK: %[[DY:.*]] = tensor.expand_shape %arg1 {{\[\[}}0], [1], [2, 3]] {{.*}} into tensor<64x1024x2x64xf16>
// CHECK: %[[X:.*]] = "fuse.gathered_view"(%arg0) {basis = array<i64: 64, 1024, 2, 3, 64>
// CHECK: %[[ALL:.*]] = linalg.generic {{.*}} ins(%[[DY]], %[[X]] : {{.*}}) outs(%{{.*}} : tensor<2x64x3x64xf32>)
// CHECK: %[[BLOCKS:.*]] = "fuse.gathered_view"(%[[ALL]]) {basis = array<i64: 2, 16, 4, 3, 4>, map = #[[$DIAGONAL]], ranks = array<i64: 2, 1, 1, 1>}
// CHECK: %[[DW:.*]] = linalg.generic {{.*}} ins(%[[BLOCKS]] : tensor<32x4x3x4xf32>)
// CHECK: return %[[DW]] : tensor<32x4x3x4xf32>
func.func @wgrad(%x: tensor<64x1024x128xf16> {fuse.align = 16 : i64}, %dy: tensor<64x1024x128xf16> {fuse.align = 16 : i64}) -> tensor<32x4x3x4xf32> {
  %zero = arith.constant 0.0 : f32
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 64, 1024, 32, 3, 4>, ranks = array<i64: 1, 1, 1, 1, 1>,
      map = affine_map<(n, p, g, r, c) -> (n, p + r - 1, g * 4 + c)>} : (tensor<64x1024x128xf16>) -> tensor<64x1024x32x3x4xf16>
  %d = tensor.expand_shape %dy [[0], [1], [2, 3]] output_shape [64, 1024, 32, 4] : tensor<64x1024x128xf16> into tensor<64x1024x32x4xf16>
  %e = tensor.empty() : tensor<32x4x3x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<32x4x3x4xf32>) -> tensor<32x4x3x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(g, k, r, c, n, p) -> (n, p, g, k)>,
                                        affine_map<(g, k, r, c, n, p) -> (n, p, g, r, c)>,
                                        affine_map<(g, k, r, c, n, p) -> (g, k, r, c)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%d, %v : tensor<64x1024x32x4xf16>, tensor<64x1024x32x3x4xf16>) outs(%f : tensor<32x4x3x4xf32>) {
  ^bb0(%a: f16, %b: f16, %sum: f32):
    %left = arith.extf %a : f16 to f32
    %right = arith.extf %b : f16 to f32
    %p = arith.mulf %left, %right : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<32x4x3x4xf32>
  return %y : tensor<32x4x3x4xf32>
}

// -----

// Groups of 48 channels have lines of 64: 16 of the next group, which meet zeros. Filters past their end are zeros.
// CHECK-DAG: #[[$OVERLAPPING:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 + d3 - 1, d2 * 48 + d4)>
// CHECK-LABEL: func.func @lines
// REMARK: fuse-merge-groups: applied: 4 groups stay apart, with an operand copied, in runs of 64 elements
// CHECK: "fuse.gathered_view"(%arg0) {basis = array<i64: 64, 1024, 4, 3, 64>, map = #[[$OVERLAPPING]]
// CHECK: "fuse.gathered_view"(%arg1) {basis = array<i64: 4, 48, 3, 64>, {{.*}} : (tensor<4x48x3x48xf16>) -> tensor<4x48x3x64xf16>
// CHECK: return %{{.*}} : tensor<64x1024x4x48xf32>
func.func @lines(%x: tensor<64x1024x192xf16> {fuse.align = 16 : i64}, %w: tensor<4x48x3x48xf16> {fuse.align = 16 : i64}) -> tensor<64x1024x4x48xf32> {
  %zero = arith.constant 0.0 : f32
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 64, 1024, 4, 3, 48>, ranks = array<i64: 1, 1, 1, 1, 1>,
      map = affine_map<(n, p, g, r, c) -> (n, p + r - 1, g * 48 + c)>} : (tensor<64x1024x192xf16>) -> tensor<64x1024x4x3x48xf16>
  %e = tensor.empty() : tensor<64x1024x4x48xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x1024x4x48xf32>) -> tensor<64x1024x4x48xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, p, g, k, r, c) -> (n, p, g, r, c)>,
                                        affine_map<(n, p, g, k, r, c) -> (g, k, r, c)>,
                                        affine_map<(n, p, g, k, r, c) -> (n, p, g, k)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%v, %w : tensor<64x1024x4x3x48xf16>, tensor<4x48x3x48xf16>) outs(%f : tensor<64x1024x4x48xf32>) {
  ^bb0(%a: f16, %b: f16, %sum: f32):
    %left = arith.extf %a : f16 to f32
    %right = arith.extf %b : f16 to f32
    %p = arith.mulf %left, %right : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x1024x4x48xf32>
  return %y : tensor<64x1024x4x48xf32>
}

// -----

// A batch of products is no convolution: with zeros between them an infinite element made NaN in the next product.
// CHECK-LABEL: func.func @batch
// REMARK: fuse-merge-groups: declined: no operand has windows
// CHECK: ins(%arg0, %arg1 : tensor<65536x32x4xf16>, tensor<32x4x4xf16>)
func.func @batch(%x: tensor<65536x32x4xf16> {fuse.align = 16 : i64}, %w: tensor<32x4x4xf16> {fuse.align = 16 : i64}) -> tensor<65536x32x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<65536x32x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<65536x32x4xf32>) -> tensor<65536x32x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(p, g, k, c) -> (p, g, c)>, affine_map<(p, g, k, c) -> (g, k, c)>,
                                        affine_map<(p, g, k, c) -> (p, g, k)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<65536x32x4xf16>, tensor<32x4x4xf16>) outs(%f : tensor<65536x32x4xf32>) {
  ^bb0(%a: f16, %b: f16, %sum: f32):
    %left = arith.extf %a : f16 to f32
    %right = arith.extf %b : f16 to f32
    %p = arith.mulf %left, %right : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<65536x32x4xf32>
  return %y : tensor<65536x32x4xf32>
}

// -----

// Small images: an array of zeros costs more than it saves.
// CHECK-LABEL: func.func @small
// REMARK: fuse-merge-groups: declined: 2 groups stay as they are
// CHECK: ins(%{{.*}}, %arg1 : tensor<1x8x2x3x4xf16>, tensor<2x4x3x4xf16>)
func.func @small(%x: tensor<1x8x8xf16>, %w: tensor<2x4x3x4xf16>) -> tensor<1x8x2x4xf32> {
  %zero = arith.constant 0.0 : f32
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 1, 8, 2, 3, 4>, ranks = array<i64: 1, 1, 1, 1, 1>,
      map = affine_map<(n, p, g, r, c) -> (n, p + r - 1, g * 4 + c)>} : (tensor<1x8x8xf16>) -> tensor<1x8x2x3x4xf16>
  %e = tensor.empty() : tensor<1x8x2x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x2x4xf32>) -> tensor<1x8x2x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, p, g, k, r, c) -> (n, p, g, r, c)>,
                                        affine_map<(n, p, g, k, r, c) -> (g, k, r, c)>,
                                        affine_map<(n, p, g, k, r, c) -> (n, p, g, k)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%v, %w : tensor<1x8x2x3x4xf16>, tensor<2x4x3x4xf16>) outs(%f : tensor<1x8x2x4xf32>) {
  ^bb0(%a: f16, %b: f16, %sum: f32):
    %left = arith.extf %a : f16 to f32
    %right = arith.extf %b : f16 to f32
    %p = arith.mulf %left, %right : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x8x2x4xf32>
  return %y : tensor<1x8x2x4xf32>
}

// -----

// Heads are the outer dimension of both operands: neighbouring products share no lines.
// CHECK-LABEL: func.func @heads
// REMARK: fuse-merge-groups: declined: neighbouring products are no neighbours in memory
// CHECK: ins(%arg0, %arg1 : tensor<8x64x32xf16>, tensor<8x64x32xf16>)
func.func @heads(%q: tensor<8x64x32xf16>, %k: tensor<8x64x32xf16>) -> tensor<8x64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(h, s, t, d) -> (h, s, d)>, affine_map<(h, s, t, d) -> (h, t, d)>,
                                        affine_map<(h, s, t, d) -> (h, s, t)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<8x64x32xf16>, tensor<8x64x32xf16>) outs(%f : tensor<8x64x64xf32>) {
  ^bb0(%a: f16, %b: f16, %sum: f32):
    %left = arith.extf %a : f16 to f32
    %right = arith.extf %b : f16 to f32
    %p = arith.mulf %left, %right : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x64x64xf32>
  return %y : tensor<8x64x64xf32>
}

// -----

// A product without a batch is no sum over groups.
// CHECK-LABEL: func.func @plain
// REMARK: fuse-merge-groups: declined: no sum of products over groups
// CHECK: ins(%arg0, %arg1 : tensor<64x32xf16>, tensor<64x32xf16>)
func.func @plain(%q: tensor<64x32xf16>, %k: tensor<64x32xf16>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(s, t, d) -> (s, d)>, affine_map<(s, t, d) -> (t, d)>,
                                        affine_map<(s, t, d) -> (s, t)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<64x32xf16>, tensor<64x32xf16>) outs(%f : tensor<64x64xf32>) {
  ^bb0(%a: f16, %b: f16, %sum: f32):
    %left = arith.extf %a : f16 to f32
    %right = arith.extf %b : f16 to f32
    %p = arith.mulf %left, %right : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}
