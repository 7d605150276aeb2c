// RUN: mlirfuse-opt %s --fuse-collapse-contractions --split-input-file --show-remarks 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// The loops of an output pixel become one, and so do the taps and channels; the bias joins on the new loops.
// CHECK-LABEL: func.func @forward
// REMARK: fuse-collapse-contractions: applied: the loops of a sum of products were joined by their roles
// CHECK: %[[VIEW:.*]] = "fuse.gathered_view"(%arg0)
// CHECK-SAME: basis = array<i64: 2, 6, 3, 8>
// CHECK-SAME: ranks = array<i64: 2, 2>
// CHECK-SAME: tensor<12x24xf32>
// CHECK: %[[W:.*]] = tensor.collapse_shape %arg1 {{.*}} into tensor<4x24xf32>
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[VIEW]], %[[W]] : tensor<12x24xf32>, tensor<4x24xf32>)
// CHECK: %[[Z:.*]] = linalg.generic {{.*}} ins(%[[Y]], %arg2 : tensor<12x4xf32>, tensor<4xf32>)
// CHECK: %[[R:.*]] = tensor.expand_shape %[[Z]] {{.*}} into tensor<2x6x4xf32>
// CHECK: return %[[R]]
func.func @forward(%x: tensor<2x6x8xf32>, %w: tensor<4x3x8xf32>, %b: tensor<4xf32>) -> tensor<2x6x4xf32> {
  %zero = arith.constant 0.0 : f32
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 2, 6, 3, 8>, ranks = array<i64: 1, 1, 1, 1>,
      map = affine_map<(n, p, r, c) -> (n, p + r - 1, c)>} : (tensor<2x6x8xf32>) -> tensor<2x6x3x8xf32>
  %e = tensor.empty() : tensor<2x6x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, p, k, r, c) -> (n, p, r, c)>, affine_map<(n, p, k, r, c) -> (k, r, c)>,
                                        affine_map<(n, p, k, r, c) -> (n, p, k)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%v, %w : tensor<2x6x3x8xf32>, tensor<4x3x8xf32>) outs(%f : tensor<2x6x4xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x6x4xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(n, p, k) -> (n, p, k)>, affine_map<(n, p, k) -> (k)>, affine_map<(n, p, k) -> (n, p, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %b : tensor<2x6x4xf32>, tensor<4xf32>) outs(%e : tensor<2x6x4xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<2x6x4xf32>
  return %z : tensor<2x6x4xf32>
}

// -----

// An operand whose axes are in another order than the joined loops becomes a view, with its contiguous axis last.
// CHECK-DAG: #[[BACK:.*]] = affine_map<(d0, d1, d2) -> (d1, d0, d2)>
// CHECK-LABEL: func.func @other_order
// CHECK: "fuse.gathered_view"(%arg0) {basis = array<i64: 5, 3, 4>, {{.*}} ranks = array<i64: 1, 2>}
// CHECK: "fuse.gathered_view"(%arg1) {basis = array<i64: 3, 4, 8>, map = #[[BACK]], ranks = array<i64: 2, 1>}
// CHECK-SAME: tensor<4x3x8xf32>) -> tensor<12x8xf32>
func.func @other_order(%x: tensor<5x3x4xf32>, %w: tensor<4x3x8xf32>, %f: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 5, 3, 4>, ranks = array<i64: 1, 1, 1>,
      map = affine_map<(m, r, c) -> (m, r, c)>} : (tensor<5x3x4xf32>) -> tensor<5x3x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, r, c) -> (m, r, c)>, affine_map<(m, n, r, c) -> (c, r, n)>,
                                        affine_map<(m, n, r, c) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%v, %w : tensor<5x3x4xf32>, tensor<4x3x8xf32>) outs(%f : tensor<5x8xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// One whose neighbours in memory would be apart in the view is copied.
// CHECK-LABEL: func.func @copied
// CHECK: %[[COPY:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<8x4x3xf32>) outs(%{{.*}} : tensor<8x3x4xf32>)
// CHECK: tensor.collapse_shape %[[COPY]] {{.*}} into tensor<8x12xf32>
func.func @copied(%x: tensor<5x3x4xf32>, %w: tensor<8x4x3xf32>, %f: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 5, 3, 4>, ranks = array<i64: 1, 1, 1>,
      map = affine_map<(m, r, c) -> (m, r, c)>} : (tensor<5x3x4xf32>) -> tensor<5x3x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, r, c) -> (m, r, c)>, affine_map<(m, n, r, c) -> (n, c, r)>,
                                        affine_map<(m, n, r, c) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%v, %w : tensor<5x3x4xf32>, tensor<8x4x3xf32>) outs(%f : tensor<5x8xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// A matrix product, and a sum that has no product, stay.
// CHECK-LABEL: func.func @matmul
// CHECK-NOT: reshape
// CHECK-NOT: gathered
// CHECK: return
func.func @matmul(%x: tensor<5x3xf32>, %w: tensor<3x6xf32>, %f: tensor<5x6xf32>) -> tensor<5x6xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                        affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5x3xf32>, tensor<3x6xf32>) outs(%f : tensor<5x6xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<5x6xf32>
  return %y : tensor<5x6xf32>
}

// -----

// A sum of an operand over the joined loops reads the operand's joined view.
// CHECK-LABEL: func.func @summed
// CHECK: %[[JOINED:.*]] = tensor.collapse_shape %arg1 {{.*}} : tensor<2x5x6xf32> into tensor<10x6xf32>
// CHECK: linalg.generic {{.*}}["reduction", "parallel"]} ins(%[[JOINED]] : tensor<10x6xf32>) outs(%arg3 : tensor<6xf32>)
// CHECK: linalg.generic {{.*}}["parallel", "parallel", "reduction"]} ins(%[[JOINED]], %{{.*}} : tensor<10x6xf32>, tensor<10x12xf32>)
func.func @summed(%x: tensor<2x7x4xf32>, %dy: tensor<2x5x6xf32>, %f: tensor<6x3x4xf32>, %g: tensor<6xf32>) -> (tensor<6xf32>, tensor<6x3x4xf32>) {
  %b = linalg.generic {indexing_maps = [affine_map<(n, p, k) -> (n, p, k)>, affine_map<(n, p, k) -> (k)>],
                       iterator_types = ["reduction", "reduction", "parallel"]}
      ins(%dy : tensor<2x5x6xf32>) outs(%g : tensor<6xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %s = arith.addf %sum, %a : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 2, 5, 3, 4>, ranks = array<i64: 1, 1, 1, 1>,
      map = affine_map<(n, p, r, c) -> (n, p + r, c)>} : (tensor<2x7x4xf32>) -> tensor<2x5x3x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(k, r, c, n, p) -> (n, p, k)>, affine_map<(k, r, c, n, p) -> (n, p, r, c)>,
                                        affine_map<(k, r, c, n, p) -> (k, r, c)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%dy, %v : tensor<2x5x6xf32>, tensor<2x5x3x4xf32>) outs(%f : tensor<6x3x4xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<6x3x4xf32>
  return %b, %y : tensor<6xf32>, tensor<6x3x4xf32>
}

// -----

// A sum that reads another one's result runs on the joined loops too.
// CHECK-LABEL: func.func @in_a_row
// CHECK: %[[FIRST:.*]] = linalg.generic {{.*}}["parallel", "parallel", "reduction"]}
// CHECK: %[[SECOND:.*]] = linalg.generic {{.*}}["parallel", "parallel", "reduction"]} ins(%[[FIRST]], %arg2
// CHECK: tensor.expand_shape %[[SECOND]] {{.*}} into tensor<2x5x3xf32>
func.func @in_a_row(%x: tensor<2x7x4xf32>, %w: tensor<6x3x4xf32>, %v: tensor<3x6xf32>, %f: tensor<2x5x6xf32>, %g: tensor<2x5x3xf32>)
    -> tensor<2x5x3xf32> {
  %windows = "fuse.gathered_view"(%x) {basis = array<i64: 2, 5, 3, 4>, ranks = array<i64: 1, 1, 1, 1>,
      map = affine_map<(n, p, r, c) -> (n, p + r, c)>} : (tensor<2x7x4xf32>) -> tensor<2x5x3x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, p, k, r, c) -> (n, p, r, c)>, affine_map<(n, p, k, r, c) -> (k, r, c)>,
                                        affine_map<(n, p, k, r, c) -> (n, p, k)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%windows, %w : tensor<2x5x3x4xf32>, tensor<6x3x4xf32>) outs(%f : tensor<2x5x6xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x5x6xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(n, p, j, k) -> (n, p, k)>, affine_map<(n, p, j, k) -> (j, k)>,
                                        affine_map<(n, p, j, k) -> (n, p, j)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%y, %v : tensor<2x5x6xf32>, tensor<3x6xf32>) outs(%g : tensor<2x5x3xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x5x3xf32>
  return %z : tensor<2x5x3xf32>
}

// -----

// A filters' gradient by the result of another sum joins its own loops, and has no reshape of its windows.
// CHECK-LABEL: func.func @gradient_of_result
// CHECK: %[[FIRST:.*]] = linalg.generic {{.*}}["parallel", "parallel", "reduction"]}
// CHECK-NOT: expand_shape
// CHECK: linalg.generic {{.*}}["parallel", "parallel", "reduction"]} ins(%[[FIRST]], %{{.*}} : tensor<10x6xf32>, tensor<10x12xf32>)
func.func @gradient_of_result(%x: tensor<2x7x4xf32>, %w: tensor<6x3x4xf32>, %f: tensor<6x3x4xf32>) -> tensor<6x3x4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x5x6xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %windows = "fuse.gathered_view"(%x) {basis = array<i64: 2, 5, 3, 4>, ranks = array<i64: 1, 1, 1, 1>,
      map = affine_map<(n, p, r, c) -> (n, p + r, c)>} : (tensor<2x7x4xf32>) -> tensor<2x5x3x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, p, k, r, c) -> (n, p, r, c)>, affine_map<(n, p, k, r, c) -> (k, r, c)>,
                                        affine_map<(n, p, k, r, c) -> (n, p, k)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%windows, %w : tensor<2x5x3x4xf32>, tensor<6x3x4xf32>) outs(%zeros : tensor<2x5x6xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x5x6xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(k, r, c, n, p) -> (n, p, k)>, affine_map<(k, r, c, n, p) -> (n, p, r, c)>,
                                        affine_map<(k, r, c, n, p) -> (k, r, c)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%y, %windows : tensor<2x5x6xf32>, tensor<2x5x3x4xf32>) outs(%f : tensor<6x3x4xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<6x3x4xf32>
  return %z : tensor<6x3x4xf32>
}

// -----

// What reads a diagonal of the result reads the expanded value.
// CHECK-LABEL: func.func @diagonal_of_result
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}}["parallel", "parallel", "reduction"]}
// CHECK: %[[Y:.*]] = tensor.expand_shape %[[SUM]]
// CHECK: linalg.generic {{.*}} ins(%[[Y]] : tensor<2x5x5xf32>)
func.func @diagonal_of_result(%x: tensor<2x7x4xf32>, %w: tensor<5x3x4xf32>, %f: tensor<2x5x5xf32>, %g: tensor<2x5xf32>) -> tensor<2x5xf32> {
  %windows = "fuse.gathered_view"(%x) {basis = array<i64: 2, 5, 3, 4>, ranks = array<i64: 1, 1, 1, 1>,
      map = affine_map<(n, p, r, c) -> (n, p + r, c)>} : (tensor<2x7x4xf32>) -> tensor<2x5x3x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, p, k, r, c) -> (n, p, r, c)>, affine_map<(n, p, k, r, c) -> (k, r, c)>,
                                        affine_map<(n, p, k, r, c) -> (n, p, k)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%windows, %w : tensor<2x5x3x4xf32>, tensor<5x3x4xf32>) outs(%f : tensor<2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x5x5xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(n, p) -> (n, p, p)>, affine_map<(n, p) -> (n, p)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<2x5x5xf32>) outs(%g : tensor<2x5xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<2x5xf32>
  return %z : tensor<2x5xf32>
}

// -----

// An elementwise op that writes the channels first is computed with the channels last, on the joined loops, and
// transposed. One that reads another array with the channels first stays.
// CHECK-LABEL: func.func @channels_first
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}}["parallel", "parallel", "reduction"]}
// CHECK: %[[BIASED:.*]] = linalg.generic {{.*}} ins(%[[SUM]], %{{.*}} : tensor<12x6xf32>, tensor<6xf32>)
// CHECK: %[[LAST:.*]] = tensor.expand_shape %[[BIASED]] {{\[}}[0, 1], [2]] output_shape [2, 6, 6]
// CHECK: %[[FIRST:.*]] = linalg.transpose ins(%[[LAST]] : tensor<2x6x6xf32>) {{.*}} permutation = [0, 2, 1]
// CHECK: %[[ADDED:.*]] = linalg.generic {{.*}} ins(%[[LAST]], %{{.*}} : tensor<2x6x6xf32>, tensor<2x6x6xf32>)
// CHECK: return %[[FIRST]], %[[ADDED]]
func.func @channels_first(%x: tensor<2x8x4xf32>, %w: tensor<6x3x4xf32>, %f: tensor<2x6x6xf32>, %b: tensor<6xf32>,
                          %r: tensor<2x6x6xf32>) -> (tensor<2x6x6xf32>, tensor<2x6x6xf32>) {
  %windows = "fuse.gathered_view"(%x) {basis = array<i64: 2, 6, 3, 4>, ranks = array<i64: 1, 1, 1, 1>,
      map = affine_map<(n, p, r, c) -> (n, p + r, c)>} : (tensor<2x8x4xf32>) -> tensor<2x6x3x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, p, k, r, c) -> (n, p, r, c)>, affine_map<(n, p, k, r, c) -> (k, r, c)>,
                                        affine_map<(n, p, k, r, c) -> (n, p, k)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%windows, %w : tensor<2x6x3x4xf32>, tensor<6x3x4xf32>) outs(%f : tensor<2x6x6xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x6x6xf32>
  %e = tensor.empty() : tensor<2x6x6xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(n, k, p) -> (n, p, k)>, affine_map<(n, k, p) -> (k)>,
                                        affine_map<(n, k, p) -> (n, k, p)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %b : tensor<2x6x6xf32>, tensor<6xf32>) outs(%e : tensor<2x6x6xf32>) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<2x6x6xf32>
  %u = linalg.generic {indexing_maps = [affine_map<(n, k, p) -> (n, k, p)>, affine_map<(n, k, p) -> (n, k, p)>,
                                        affine_map<(n, k, p) -> (n, k, p)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%z, %r : tensor<2x6x6xf32>, tensor<2x6x6xf32>) outs(%e : tensor<2x6x6xf32>) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<2x6x6xf32>
  return %z, %u : tensor<2x6x6xf32>, tensor<2x6x6xf32>
}
