// RUN: mlirfuse-opt %s --fuse-unroll-sums --split-input-file --show-remarks 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// The taps of a depthwise convolution become terms of two views each.
// CHECK-LABEL: func.func @depthwise
// REMARK: fuse-unroll-sums: applied: 1 sums over taps
// CHECK: %[[X0:.*]] = "fuse.gathered_view"(%arg0) {{.*}} (tensor<2x6x8xf32>) -> tensor<2x6x8xf32>
// CHECK: %[[W0:.*]] = "fuse.gathered_view"(%arg1) {{.*}} (tensor<8x2xf32>) -> tensor<8xf32>
// CHECK: %[[X1:.*]] = "fuse.gathered_view"(%arg0)
// CHECK: %[[W1:.*]] = "fuse.gathered_view"(%arg1)
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel"]
// CHECK-SAME: ins(%[[X0]], %[[W0]], %[[X1]], %[[W1]]
// CHECK-COUNT-2: arith.mulf
// CHECK-NOT: arith.mulf
// CHECK: return
func.func @depthwise(%x: tensor<2x6x8xf32>, %w: tensor<8x2xf32>) -> tensor<2x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 2, 6, 8, 2>, ranks = array<i64: 1, 1, 1, 1>,
      map = affine_map<(n, p, g, r) -> (n, p + r - 1, g)>} : (tensor<2x6x8xf32>) -> tensor<2x6x8x2xf32>
  %e = tensor.empty() : tensor<2x6x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x6x8xf32>) -> tensor<2x6x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, p, g, r) -> (n, p, g, r)>, affine_map<(n, p, g, r) -> (g, r)>,
                                        affine_map<(n, p, g, r) -> (n, p, g)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%v, %w : tensor<2x6x8x2xf32>, tensor<8x2xf32>) outs(%f : tensor<2x6x8xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x6x8xf32>
  return %y : tensor<2x6x8xf32>
}

// -----

// Neighbours in memory are along the sum: that is a reduction of rows.
// CHECK-LABEL: func.func @one_filter
// REMARK: fuse-unroll-sums: declined: neighbours in memory are not neighbours in the result
// CHECK: iterator_types = ["parallel", "parallel", "reduction"]
func.func @one_filter(%x: tensor<2x6x8xf32>, %w: tensor<8xf32>) -> tensor<2x6xf32> {
  %zero = arith.constant 0.0 : f32
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 2, 6, 8>, ranks = array<i64: 1, 1, 1>,
      map = affine_map<(n, p, c) -> (n, p - 1, c)>} : (tensor<2x6x8xf32>) -> tensor<2x6x8xf32>
  %e = tensor.empty() : tensor<2x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x6xf32>) -> tensor<2x6xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, p, c) -> (n, p, c)>, affine_map<(n, p, c) -> (c)>,
                                        affine_map<(n, p, c) -> (n, p)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%v, %w : tensor<2x6x8xf32>, tensor<8xf32>) outs(%f : tensor<2x6xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x6xf32>
  return %y : tensor<2x6xf32>
}

// -----

// The filters have a loop of their own, of residue classes of a pixel, of which a view reads one at each pixel.
// CHECK-LABEL: func.func @classes
// REMARK: fuse-unroll-sums: applied: 1 sums over taps
// CHECK: %[[W:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<8x2x2xf32>) outs(%{{.*}} : tensor<2x2x8xf32>)
// CHECK: "fuse.gathered_view"(%[[W]]) {{.*}} (tensor<2x2x8xf32>) -> tensor<2x8xf32>
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel"]
// CHECK-COUNT-2: arith.mulf
// CHECK-NOT: arith.mulf
// CHECK: "fuse.gathered_view"(%[[Y]])
func.func @classes(%x: tensor<4x8xf32>, %w: tensor<8x2x2xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 5, 8, 2>, ranks = array<i64: 1, 1, 1>,
      map = affine_map<(p, g, j) -> (p - j, g)>} : (tensor<4x8xf32>) -> tensor<5x8x2xf32>
  %e = tensor.empty() : tensor<5x8x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x8x2xf32>) -> tensor<5x8x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(p, g, a, j) -> (p, g, j)>, affine_map<(p, g, a, j) -> (g, a, j)>,
                                        affine_map<(p, g, a, j) -> (p, g, a)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%v, %w : tensor<5x8x2xf32>, tensor<8x2x2xf32>) outs(%f : tensor<5x8x2xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<5x8x2xf32>
  %z = "fuse.gathered_view"(%y) {basis = array<i64: 8, 8>, ranks = array<i64: 1, 1>,
      map = affine_map<(h, g) -> ((h + 1) floordiv 2, g, (h + 1) mod 2)>} : (tensor<5x8x2xf32>) -> tensor<8x8xf32>
  return %z : tensor<8x8xf32>
}

// -----

// Several filters of a channel, all of which are results at each place: those are a product's columns.
// CHECK-LABEL: func.func @several_filters
// REMARK: fuse-unroll-sums: declined: no short sum over a gathered view
// CHECK: iterator_types = ["parallel", "parallel", "parallel", "reduction"]
func.func @several_filters(%x: tensor<4x8xf32>, %w: tensor<8x2x2xf32>) -> tensor<5x8x2xf32> {
  %zero = arith.constant 0.0 : f32
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 5, 8, 2>, ranks = array<i64: 1, 1, 1>,
      map = affine_map<(p, g, j) -> (p - j, g)>} : (tensor<4x8xf32>) -> tensor<5x8x2xf32>
  %e = tensor.empty() : tensor<5x8x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x8x2xf32>) -> tensor<5x8x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(p, g, a, j) -> (p, g, j)>, affine_map<(p, g, a, j) -> (g, a, j)>,
                                        affine_map<(p, g, a, j) -> (p, g, a)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%v, %w : tensor<5x8x2xf32>, tensor<8x2x2xf32>) outs(%f : tensor<5x8x2xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<5x8x2xf32>
  return %y : tensor<5x8x2xf32>
}
