// RUN: mlirfuse-opt --fuse-expand-reshapes --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

#id3 = affine_map<(a, b, c) -> (a, b, c)>
#row3 = affine_map<(a, b, c) -> (a, b)>
#id4 = affine_map<(a, b, c, d) -> (a, b, c, d)>
// Groups of channels: the cast and the sum run over 32 groups of 8 channels.
// CHECK-LABEL: func.func @groups
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x256x56xbf16>
// CHECK: %[[SPLIT:.*]] = tensor.expand_shape %[[X]] {{\[}}[0], [1, 2], [3]] output_shape [%{{.*}}, 32, 8, 56]
// CHECK: %[[H:.*]] = linalg.generic {{.*}} ins(%[[SPLIT]] : tensor<?x32x8x56xbf16>)
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction", "reduction"]{{.*}} ins(%[[H]] : tensor<?x32x8x56xf32>)
// CHECK: return %[[SUM]]
// REMARK: fuse-expand-reshapes: applied: 2 ops run over the factors that 1 reshapes divide
func.func @groups(%x: tensor<?x256x56xbf16>) -> tensor<?x32xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x256x56xbf16>
  %e = tensor.empty(%n) : tensor<?x256x56xf32>
  %h = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<?x256x56xbf16>) outs(%e : tensor<?x256x56xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %w = arith.extf %in : bf16 to f32
    linalg.yield %w : f32
  } -> tensor<?x256x56xf32>
  %flat = tensor.collapse_shape %h [[0], [1, 2]] : tensor<?x256x56xf32> into tensor<?x14336xf32>
  %grouped = tensor.expand_shape %flat [[0], [1, 2]] output_shape [%n, 32, 448] : tensor<?x14336xf32> into tensor<?x32x448xf32>
  %es = tensor.empty(%n) : tensor<?x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%es : tensor<?x32xf32>) -> tensor<?x32xf32>
  %sum = linalg.generic {indexing_maps = [#id3, #row3], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%grouped : tensor<?x32x448xf32>) outs(%init : tensor<?x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %out, %in : f32
    linalg.yield %s : f32
  } -> tensor<?x32xf32>
  return %sum : tensor<?x32xf32>
}

// -----

#id2 = affine_map<(a, b) -> (a, b)>
// A result that is reshaped last is a view.
// CHECK-LABEL: func.func @last
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<4x6xf32>)
// CHECK: tensor.collapse_shape
// REMARK: fuse-expand-reshapes: declined: no computed value is reshaped for an op that computes
func.func @last(%x: tensor<4x6xf32>) -> tensor<24xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %h = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %w = arith.mulf %in, %in : f32
    linalg.yield %w : f32
  } -> tensor<4x6xf32>
  %0 = tensor.collapse_shape %h [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  return %0 : tensor<24xf32>
}

// -----

#id2 = affine_map<(a, b) -> (a, b)>
// 4 x 6 and 6 x 4 have no factors in common.
// CHECK-LABEL: func.func @apart
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<4x6xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<6x4xf32>)
// REMARK: fuse-expand-reshapes: declined: the dimensions on both sides have no factors in common
func.func @apart(%x: tensor<4x6xf32>) -> tensor<6x4xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %h = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %w = arith.mulf %in, %in : f32
    linalg.yield %w : f32
  } -> tensor<4x6xf32>
  %0 = tensor.collapse_shape %h [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  %1 = tensor.expand_shape %0 [[0, 1]] output_shape [6, 4] : tensor<24xf32> into tensor<6x4xf32>
  %f = tensor.empty() : tensor<6x4xf32>
  %y = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<6x4xf32>) outs(%f : tensor<6x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %w = arith.addf %in, %in : f32
    linalg.yield %w : f32
  } -> tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}

// -----

#id3 = affine_map<(a, b, c) -> (a, b, c)>
// Through a transpose: tokens of 64 channels become images of 8 x 8 pixels.
// CHECK-LABEL: func.func @tokens
// CHECK: tensor.expand_shape %{{.*}} output_shape [4, 8, 8, 64] : tensor<4x64x64xf32> into tensor<4x8x8x64xf32>
// CHECK: linalg.transpose {{.*}} permutation = [0, 3, 1, 2]
// CHECK-NOT: tensor.expand_shape
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<4x64x8x8xbf16>)
func.func @tokens(%x: tensor<4x64x64xf32>) -> tensor<4x64x8x8xbf16> {
  %e = tensor.empty() : tensor<4x64x64xf32>
  %h = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x64x64xf32>) outs(%e : tensor<4x64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %w = arith.mulf %in, %in : f32
    linalg.yield %w : f32
  } -> tensor<4x64x64xf32>
  %t = linalg.transpose ins(%h : tensor<4x64x64xf32>) outs(%e : tensor<4x64x64xf32>) permutation = [0, 2, 1]
  %images = tensor.expand_shape %t [[0], [1], [2, 3]] output_shape [4, 64, 8, 8] : tensor<4x64x64xf32> into tensor<4x64x8x8xf32>
  %f = tensor.empty() : tensor<4x64x8x8xbf16>
  %y = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%images : tensor<4x64x8x8xf32>) outs(%f : tensor<4x64x8x8xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %w = arith.truncf %in : f32 to bf16
    linalg.yield %w : bf16
  } -> tensor<4x64x8x8xbf16>
  return %y : tensor<4x64x8x8xbf16>
}

// -----

// A transposition that is returned is a view, like a reshape.
// CHECK-LABEL: func.func @returned
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<24x5xf32>)
// CHECK: tensor.expand_shape
// CHECK: linalg.transpose
// REMARK: fuse-expand-reshapes: declined: no computed value is reshaped for an op that computes
func.func @returned(%x: tensor<24x5xf32>) -> tensor<5x4x6xf32> {
  %e = tensor.empty() : tensor<24x5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<24x5xf32>) outs(%e : tensor<24x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %n = arith.negf %in : f32
    linalg.yield %n : f32
  } -> tensor<24x5xf32>
  %s = tensor.expand_shape %y [[0, 1], [2]] output_shape [4, 6, 5] : tensor<24x5xf32> into tensor<4x6x5xf32>
  %f = tensor.empty() : tensor<5x4x6xf32>
  %t = linalg.transpose ins(%s : tensor<4x6x5xf32>) outs(%f : tensor<5x4x6xf32>) permutation = [2, 0, 1]
  return %t : tensor<5x4x6xf32>
}

// -----

// The cast of a product stays with it, and what reads the reshaped result does not.
// CHECK-LABEL: func.func @heads
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ["parallel", "parallel", "reduction"]
// CHECK: %[[CAST:.*]] = linalg.generic {{.*}} ins(%[[SUM]] : tensor<32x64xf32>)
// CHECK: %[[HEADS:.*]] = tensor.expand_shape %[[CAST]]
// CHECK: linalg.generic {{.*}} ins(%[[HEADS]] : tensor<32x4x16xf16>)
// REMARK: fuse-expand-reshapes: declined: no computed value is reshaped for an op that computes
func.func @heads(%x: tensor<32x8xf16>, %w: tensor<8x64xf16>, %init: tensor<32x64xf32>) -> tensor<32x4x16xf16> {
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                          affine_map<(m, n, k) -> (m, n)>],
                         iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<32x8xf16>, tensor<8x64xf16>) outs(%init : tensor<32x64xf32>) {
  ^bb0(%a: f16, %b: f16, %s: f32):
    %a1 = arith.extf %a : f16 to f32
    %b1 = arith.extf %b : f16 to f32
    %p = arith.mulf %a1, %b1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<32x64xf32>
  %e = tensor.empty() : tensor<32x64xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<32x64xf32>) outs(%e : tensor<32x64xf16>) {
  ^bb0(%in: f32, %out: f16):
    %c = arith.truncf %in : f32 to f16
    linalg.yield %c : f16
  } -> tensor<32x64xf16>
  %h = tensor.expand_shape %y [[0], [1, 2]] output_shape [32, 4, 16] : tensor<32x64xf16> into tensor<32x4x16xf16>
  %f = tensor.empty() : tensor<32x4x16xf16>
  %z = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%h : tensor<32x4x16xf16>) outs(%f : tensor<32x4x16xf16>) {
  ^bb0(%in: f16, %out: f16):
    %n = arith.negf %in : f16
    linalg.yield %n : f16
  } -> tensor<32x4x16xf16>
  return %z : tensor<32x4x16xf16>
}

// -----

#plane = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// What windows are copied of is computed over the windows, as a copy follows of what is transposed.
// CHECK-LABEL: func.func @windows(
// CHECK:       %[[X:.*]] = tensor.expand_shape %arg0 {{\[\[}}0, 1], [2, 3], [4]] output_shape [2, 4, 3, 4, 16]
// CHECK:       linalg.generic {{.*}} ins(%[[X]] : tensor<2x4x3x4x16xf32>)
func.func @windows(%x: tensor<8x12x16xf32>) -> tensor<6x16x16xf32> {
  %e = tensor.empty() : tensor<8x12x16xf32>
  %y = linalg.generic {indexing_maps = [#plane, #plane], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<8x12x16xf32>) outs(%e : tensor<8x12x16xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<8x12x16xf32>
  %s = tensor.expand_shape %y [[0, 1], [2, 3], [4]] output_shape [2, 4, 3, 4, 16] : tensor<8x12x16xf32> into tensor<2x4x3x4x16xf32>
  %o = tensor.empty() : tensor<2x3x4x4x16xf32>
  %t = linalg.transpose ins(%s : tensor<2x4x3x4x16xf32>) outs(%o : tensor<2x3x4x4x16xf32>) permutation = [0, 2, 1, 3, 4]
  %w = tensor.collapse_shape %t [[0, 1], [2, 3], [4]] : tensor<2x3x4x4x16xf32> into tensor<6x16x16xf32>
  return %w : tensor<6x16x16xf32>
}

// -----

#plane = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// Heads are views of the result that is computed.
// CHECK-LABEL: func.func @heads(
// CHECK:       linalg.generic {{.*}} ins(%arg0 : tensor<8x12x16xf32>)
func.func @heads(%x: tensor<8x12x16xf32>) -> tensor<12x8x4x4xf32> {
  %e = tensor.empty() : tensor<8x12x16xf32>
  %y = linalg.generic {indexing_maps = [#plane, #plane], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<8x12x16xf32>) outs(%e : tensor<8x12x16xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<8x12x16xf32>
  %s = tensor.expand_shape %y [[0], [1], [2, 3]] output_shape [8, 12, 4, 4] : tensor<8x12x16xf32> into tensor<8x12x4x4xf32>
  %o = tensor.empty() : tensor<12x8x4x4xf32>
  %t = linalg.transpose ins(%s : tensor<8x12x4x4xf32>) outs(%o : tensor<12x8x4x4xf32>) permutation = [1, 0, 2, 3]
  return %t : tensor<12x8x4x4xf32>
}
