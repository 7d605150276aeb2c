// RUN: mlirfuse-opt --fuse-scatter-parts --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// The second kernel joins the halves that the first one makes, and rounds what of them is positive: the first one does
// so, with the constant that this takes, and stores the halves where they belong.
// CHECK-DAG: #[[HALF:.*]] = affine_map<(d0, d1, d2) -> (d0, d1 + d2 * 32)>
// CHECK-LABEL: func.func @halves
// CHECK: %[[Y:.*]] = call @f_0(%{{.*}}) : (tensor<64x32xf32>) -> tensor<64x64xbf16>
// CHECK-NEXT: return %[[Y]]
// CHECK-LABEL: func.func private @f_0
// CHECK: %[[FIRST:.*]] = linalg.generic
// CHECK: arith.addf
// CHECK: %[[SECOND:.*]] = linalg.generic
// CHECK: arith.mulf
// CHECK: %[[LEAST:.*]] = arith.constant 0
// CHECK: %[[LEFT:.*]] = linalg.generic {{.*}} ins(%[[FIRST]]
// CHECK: arith.maximumf %{{.*}}, %[[LEAST]]
// CHECK: arith.truncf
// CHECK: %[[RIGHT:.*]] = linalg.generic {{.*}} ins(%[[SECOND]]
// CHECK: arith.truncf
// CHECK: %[[ALL:.*]] = "fuse.scatter"(%[[LEFT]], %[[RIGHT]]) {basis = array<i64: 64, 32>, map = #[[HALF]], ranks = array<i64: 1, 1>, sources = array<i64: 2>}
// CHECK: return %[[ALL]]
// CHECK-NOT: @f_1
// REMARK: fuse-scatter-parts: applied: f_0 stores its results where f_1 put them
#id = affine_map<(i, j) -> (i, j)>
#behind = affine_map<(i, j) -> (i, j - 32)>
func.func @halves(%x: tensor<64x32xf32>) -> tensor<64x64xbf16> {
  %0:2 = call @f_0(%x) : (tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>)
  %1 = "fuse.gathered_view"(%0#0) {basis = array<i64: 64, 64>, map = #id, ranks = array<i64: 1, 1>} : (tensor<64x32xf32>) -> tensor<64x64xf32>
  %2 = "fuse.gathered_view"(%0#1) {basis = array<i64: 64, 64>, map = #behind, ranks = array<i64: 1, 1>} : (tensor<64x32xf32>) -> tensor<64x64xf32>
  %3 = "fuse.gathered_view"(%0#0) {basis = array<i64: 64, 64>, inside = array<i64: 64, 32>, map = #id, ranks = array<i64: 1, 1>} : (tensor<64x32xf32>) -> tensor<64x64xi1>
  %4 = "fuse.gathered_view"(%0#1) {basis = array<i64: 64, 64>, inside = array<i64: 64, 32>, map = #behind, ranks = array<i64: 1, 1>} : (tensor<64x32xf32>) -> tensor<64x64xi1>
  %5 = call @f_1(%1, %2, %3, %4) : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xi1>, tensor<64x64xi1>) -> tensor<64x64xbf16>
  return %5 : tensor<64x64xbf16>
}
func.func private @f_0(%x: tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>) attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<64x32xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<64x32xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.mulf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<64x32xf32>
  return %0, %1 : tensor<64x32xf32>, tensor<64x32xf32>
}
func.func private @f_1(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %p: tensor<64x64xi1>, %q: tensor<64x64xi1>) -> tensor<64x64xbf16> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b, %p, %q : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xi1>, tensor<64x64xi1>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%l: f32, %r: f32, %lp: i1, %rp: i1, %out: f32):
    %0 = arith.select %lp, %l, %zero : f32
    %1 = arith.select %rp, %r, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<64x64xf32>
  %f = tensor.empty() : tensor<64x64xbf16>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<64x64xf32>) outs(%f : tensor<64x64xbf16>) {
  ^bb0(%v: f32, %out: bf16):
    %m = arith.maximumf %v, %zero : f32
    %t = arith.truncf %m : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<64x64xbf16>
  return %1 : tensor<64x64xbf16>
}

// -----

// Elements of the parts are neighbours: the kernel stores rows of both, which the host divides.
// CHECK-DAG: #[[PAIRS:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1 * 2 + d2 + d3)>
// CHECK-LABEL: func.func @interleaved
// CHECK: %[[ROWS:.*]] = call @g_0(%{{.*}}) : (tensor<64x32xf32>) -> tensor<64x64xf32>
// CHECK: %[[Y:.*]] = tensor.expand_shape %[[ROWS]] {{\[\[}}0], [1, 2]]
// CHECK: return %[[Y]]
// CHECK-LABEL: func.func private @g_0
// CHECK: "fuse.scatter"(%{{.*}}, %{{.*}}) {basis = array<i64: 64, 32, 1>, map = #[[PAIRS]], ranks = array<i64: 1, 2>, sources = array<i64: 2>}
// REMARK: fuse-scatter-parts: applied: g_0 stores its results where g_1 put them
#id = affine_map<(i, j) -> (i, j)>
#three = affine_map<(i, j, k) -> (i, j, k)>
#behind = affine_map<(i, j, k) -> (i, j, k - 1)>
func.func @interleaved(%x: tensor<64x32xf32>) -> tensor<64x32x2xf32> {
  %0:2 = call @g_0(%x) : (tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>)
  %l = tensor.expand_shape %0#0 [[0], [1, 2]] output_shape [64, 32, 1] : tensor<64x32xf32> into tensor<64x32x1xf32>
  %r = tensor.expand_shape %0#1 [[0], [1, 2]] output_shape [64, 32, 1] : tensor<64x32xf32> into tensor<64x32x1xf32>
  %1 = "fuse.gathered_view"(%l) {basis = array<i64: 64, 32, 2>, map = #three, ranks = array<i64: 1, 1, 1>} : (tensor<64x32x1xf32>) -> tensor<64x32x2xf32>
  %2 = "fuse.gathered_view"(%r) {basis = array<i64: 64, 32, 2>, map = #behind, ranks = array<i64: 1, 1, 1>} : (tensor<64x32x1xf32>) -> tensor<64x32x2xf32>
  %3 = "fuse.gathered_view"(%l) {basis = array<i64: 64, 32, 2>, inside = array<i64: 64, 32, 1>, map = #three, ranks = array<i64: 1, 1, 1>} : (tensor<64x32x1xf32>) -> tensor<64x32x2xi1>
  %4 = "fuse.gathered_view"(%r) {basis = array<i64: 64, 32, 2>, inside = array<i64: 64, 32, 1>, map = #behind, ranks = array<i64: 1, 1, 1>} : (tensor<64x32x1xf32>) -> tensor<64x32x2xi1>
  %5 = call @g_1(%1, %2, %3, %4) : (tensor<64x32x2xf32>, tensor<64x32x2xf32>, tensor<64x32x2xi1>, tensor<64x32x2xi1>) -> tensor<64x32x2xf32>
  return %5 : tensor<64x32x2xf32>
}
func.func private @g_0(%x: tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>) attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<64x32xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<64x32xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.mulf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<64x32xf32>
  return %0, %1 : tensor<64x32xf32>, tensor<64x32xf32>
}
func.func private @g_1(%a: tensor<64x32x2xf32>, %b: tensor<64x32x2xf32>, %p: tensor<64x32x2xi1>, %q: tensor<64x32x2xi1>) -> tensor<64x32x2xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<64x32x2xf32>
  %0 = linalg.generic {indexing_maps = [#three, #three, #three, #three, #three], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %b, %p, %q : tensor<64x32x2xf32>, tensor<64x32x2xf32>, tensor<64x32x2xi1>, tensor<64x32x2xi1>) outs(%e : tensor<64x32x2xf32>) {
  ^bb0(%l: f32, %r: f32, %lp: i1, %rp: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %0 = arith.select %lp, %l, %zero : f32
    %1 = arith.select %rp, %r, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<64x32x2xf32>
  return %0 : tensor<64x32x2xf32>
}

// -----

// So are parts of rows that are shorter than an access.
// CHECK-LABEL: func.func @short
// CHECK: %[[Y:.*]] = call @s_0(%{{.*}}) : (tensor<64x2xf32>) -> tensor<64x4xbf16>
// CHECK-NEXT: return %[[Y]]
// REMARK: fuse-scatter-parts: applied: s_0 stores its results where s_1 put them
#id = affine_map<(i, j) -> (i, j)>
#behind = affine_map<(i, j) -> (i, j - 2)>
func.func @short(%x: tensor<64x2xf32>) -> tensor<64x4xbf16> {
  %0:2 = call @s_0(%x) : (tensor<64x2xf32>) -> (tensor<64x2xf32>, tensor<64x2xf32>)
  %1 = "fuse.gathered_view"(%0#0) {basis = array<i64: 64, 4>, map = #id, ranks = array<i64: 1, 1>} : (tensor<64x2xf32>) -> tensor<64x4xf32>
  %2 = "fuse.gathered_view"(%0#1) {basis = array<i64: 64, 4>, map = #behind, ranks = array<i64: 1, 1>} : (tensor<64x2xf32>) -> tensor<64x4xf32>
  %3 = "fuse.gathered_view"(%0#0) {basis = array<i64: 64, 4>, inside = array<i64: 64, 2>, map = #id, ranks = array<i64: 1, 1>} : (tensor<64x2xf32>) -> tensor<64x4xi1>
  %4 = "fuse.gathered_view"(%0#1) {basis = array<i64: 64, 4>, inside = array<i64: 64, 2>, map = #behind, ranks = array<i64: 1, 1>} : (tensor<64x2xf32>) -> tensor<64x4xi1>
  %5 = call @s_1(%1, %2, %3, %4) : (tensor<64x4xf32>, tensor<64x4xf32>, tensor<64x4xi1>, tensor<64x4xi1>) -> tensor<64x4xbf16>
  return %5 : tensor<64x4xbf16>
}
func.func private @s_0(%x: tensor<64x2xf32>) -> (tensor<64x2xf32>, tensor<64x2xf32>) attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<64x2xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x2xf32>) outs(%e : tensor<64x2xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<64x2xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x2xf32>) outs(%e : tensor<64x2xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.mulf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<64x2xf32>
  return %0, %1 : tensor<64x2xf32>, tensor<64x2xf32>
}
func.func private @s_1(%a: tensor<64x4xf32>, %b: tensor<64x4xf32>, %p: tensor<64x4xi1>, %q: tensor<64x4xi1>) -> tensor<64x4xbf16> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b, %p, %q : tensor<64x4xf32>, tensor<64x4xf32>, tensor<64x4xi1>, tensor<64x4xi1>) outs(%e : tensor<64x4xf32>) {
  ^bb0(%l: f32, %r: f32, %lp: i1, %rp: i1, %out: f32):
    %0 = arith.select %lp, %l, %zero : f32
    %1 = arith.select %rp, %r, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<64x4xf32>
  %f = tensor.empty() : tensor<64x4xbf16>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<64x4xf32>) outs(%f : tensor<64x4xbf16>) {
  ^bb0(%v: f32, %out: bf16):
    %t = arith.truncf %v : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<64x4xbf16>
  return %1 : tensor<64x4xbf16>
}

// -----

// No kernel reads views of another one's results.
// CHECK-LABEL: func.func @alone
// CHECK: call @h_0
#id = affine_map<(i, j) -> (i, j)>
func.func @alone(%x: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %0 = call @h_0(%x) : (tensor<64x32xf32>) -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}
func.func private @h_0(%x: tensor<64x32xf32>) -> tensor<64x32xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<64x32xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}

// -----

// The second kernel puts the joined halves in another order of dimensions.
// CHECK-DAG: #[[MOVED:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d0, d2 + d3 * 16)>
// CHECK-LABEL: func.func @permuted
// CHECK: %[[Y:.*]] = call @p_0(%{{.*}}) : (tensor<4x8x16xf32>) -> tensor<8x4x32xf32>
// CHECK: "fuse.scatter"(%{{.*}}, %{{.*}}) {basis = array<i64: 4, 8, 16>, map = #[[MOVED]], ranks = array<i64: 1, 1, 1>, sources = array<i64: 2>}
// CHECK-NOT: @p_1
// REMARK: fuse-scatter-parts: applied: p_0 stores its results where p_1 put them
#id3 = affine_map<(i, j, k) -> (i, j, k)>
#swapped = affine_map<(i, j, k) -> (j, i, k)>
#behind3 = affine_map<(i, j, k) -> (i, j, k - 16)>
func.func @permuted(%x: tensor<4x8x16xf32>) -> tensor<8x4x32xf32> {
  %0:2 = call @p_0(%x) : (tensor<4x8x16xf32>) -> (tensor<4x8x16xf32>, tensor<4x8x16xf32>)
  %1 = "fuse.gathered_view"(%0#0) {basis = array<i64: 4, 8, 32>, map = #id3, ranks = array<i64: 1, 1, 1>} : (tensor<4x8x16xf32>) -> tensor<4x8x32xf32>
  %2 = "fuse.gathered_view"(%0#1) {basis = array<i64: 4, 8, 32>, map = #behind3, ranks = array<i64: 1, 1, 1>} : (tensor<4x8x16xf32>) -> tensor<4x8x32xf32>
  %3 = "fuse.gathered_view"(%0#0) {basis = array<i64: 4, 8, 32>, inside = array<i64: 4, 8, 16>, map = #id3, ranks = array<i64: 1, 1, 1>} : (tensor<4x8x16xf32>) -> tensor<4x8x32xi1>
  %4 = "fuse.gathered_view"(%0#1) {basis = array<i64: 4, 8, 32>, inside = array<i64: 4, 8, 16>, map = #behind3, ranks = array<i64: 1, 1, 1>} : (tensor<4x8x16xf32>) -> tensor<4x8x32xi1>
  %5 = call @p_1(%1, %2, %3, %4) : (tensor<4x8x32xf32>, tensor<4x8x32xf32>, tensor<4x8x32xi1>, tensor<4x8x32xi1>) -> tensor<8x4x32xf32>
  return %5 : tensor<8x4x32xf32>
}
func.func private @p_0(%x: tensor<4x8x16xf32>) -> (tensor<4x8x16xf32>, tensor<4x8x16xf32>) attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<4x8x16xf32>
  %0 = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<4x8x16xf32>) outs(%e : tensor<4x8x16xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<4x8x16xf32>
  %1 = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<4x8x16xf32>) outs(%e : tensor<4x8x16xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.mulf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<4x8x16xf32>
  return %0, %1 : tensor<4x8x16xf32>, tensor<4x8x16xf32>
}
func.func private @p_1(%a: tensor<4x8x32xf32>, %b: tensor<4x8x32xf32>, %p: tensor<4x8x32xi1>, %q: tensor<4x8x32xi1>) -> tensor<8x4x32xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8x32xf32>
  %0 = linalg.generic {indexing_maps = [#id3, #id3, #id3, #id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %b, %p, %q : tensor<4x8x32xf32>, tensor<4x8x32xf32>, tensor<4x8x32xi1>, tensor<4x8x32xi1>) outs(%e : tensor<4x8x32xf32>) {
  ^bb0(%l: f32, %r: f32, %lp: i1, %rp: i1, %out: f32):
    %0 = arith.select %lp, %l, %zero : f32
    %1 = arith.select %rp, %r, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4x8x32xf32>
  %f = tensor.empty() : tensor<8x4x32xf32>
  %1 = linalg.generic {indexing_maps = [#swapped, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<4x8x32xf32>) outs(%f : tensor<8x4x32xf32>) {
  ^bb0(%v: f32, %out: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<8x4x32xf32>
  return %1 : tensor<8x4x32xf32>
}
