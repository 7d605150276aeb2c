// RUN: mlirfuse-opt %s --fuse-compose-gathers --split-input-file --show-remarks 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// Rows of two residue classes in the order of pixels: the products are computed in that order, through composed views.
// CHECK: #[[X:.*]] = affine_map<(d0, d1) -> ((d0 + 1) floordiv 2 - 1, d1)>
// CHECK: #[[W:.*]] = affine_map<(d0, d1) -> ((d0 + 1) mod 2, d1)>
// CHECK-LABEL: func.func @classes
// REMARK: fuse-compose-gathers: applied: 1 views of elementwise results
// CHECK-DAG: %[[XV:.*]] = "fuse.gathered_view"(%arg0) {{.*}}map = #[[X]]{{.*}} : (tensor<4x8xf16>) -> tensor<8x8xf16>
// CHECK-DAG: %[[WV:.*]] = "fuse.gathered_view"(%arg1) {{.*}}map = #[[W]]{{.*}} : (tensor<2x8xf16>) -> tensor<8x8xf16>
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%[[XV]], %[[WV]] : {{.*}}) outs(%{{.*}} : tensor<8x8xf32>)
// CHECK: arith.mulf
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[P]] : tensor<8x8xf32>) outs(%{{.*}} : tensor<8x8xf16>)
// CHECK: arith.truncf
// CHECK-NOT: gathered_view
// CHECK: return %[[R]]
func.func @classes(%x: tensor<4x8xf16>, %w: tensor<2x8xf16>) -> tensor<8x8xf16> {
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 5, 8>, ranks = array<i64: 1, 1>,
      map = affine_map<(p, c) -> (p - 1, c)>} : (tensor<4x8xf16>) -> tensor<5x8xf16>
  %e = tensor.empty() : tensor<5x2x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(p, a, c) -> (p, c)>, affine_map<(p, a, c) -> (a, c)>,
                                        affine_map<(p, a, c) -> (p, a, c)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%v, %w : tensor<5x8xf16>, tensor<2x8xf16>) outs(%e : tensor<5x2x8xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    linalg.yield %p : f32
  } -> tensor<5x2x8xf32>
  %h = tensor.empty() : tensor<5x2x8xf16>
  %n = linalg.generic {indexing_maps = [affine_map<(p, a, c) -> (p, a, c)>, affine_map<(p, a, c) -> (p, a, c)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y : tensor<5x2x8xf32>) outs(%h : tensor<5x2x8xf16>) {
  ^bb0(%a: f32, %out: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<5x2x8xf16>
  %z = "fuse.gathered_view"(%n) {basis = array<i64: 8, 8>, ranks = array<i64: 1, 1>,
      map = affine_map<(h, c) -> ((h + 1) floordiv 2, (h + 1) mod 2, c)>} : (tensor<5x2x8xf16>) -> tensor<8x8xf16>
  return %z : tensor<8x8xf16>
}

// -----

// The view has zeros around the result.
// CHECK-LABEL: func.func @leaves
// REMARK: fuse-compose-gathers: declined: the view leaves the result, or has an element of it more than once
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK: "fuse.gathered_view"(%[[Y]])
func.func @leaves(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.mulf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %z = "fuse.gathered_view"(%y) {basis = array<i64: 8>, ranks = array<i64: 1>,
      map = affine_map<(h) -> (h - 1)>} : (tensor<8xf32>) -> tensor<8xf32>
  return %z : tensor<8xf32>
}

// -----

// A sum stays: its kernel stores results in the view's order (`fuse-scatter-results`), or another kernel does.
// CHECK-LABEL: func.func @sums
// REMARK: fuse-compose-gathers: declined: the result is not elementwise, or not read by the view alone
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK: "fuse.gathered_view"(%[[Y]])
func.func @sums(%x: tensor<8x4xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(p, k) -> (p, k)>, affine_map<(p, k) -> (p)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x4xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %out, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %z = "fuse.gathered_view"(%y) {basis = array<i64: 8>, ranks = array<i64: 1>,
      map = affine_map<(h) -> (7 - h)>} : (tensor<8xf32>) -> tensor<8xf32>
  return %z : tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @no_view
// REMARK: fuse-compose-gathers: declined: no view of an elementwise result
func.func @no_view(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// Joined halves, of which the first is negated: its elements are only selected where they are inside of the half, so the
// negation is computed of the view. The check that the negated half gave its shape is one of the argument.
// CHECK-LABEL: func.func @joined
// REMARK: fuse-compose-gathers: applied: 1 views of elementwise results
// CHECK: %[[X:.*]] = "fuse.gathered_view"(%arg0) {basis = array<i64: 8, 64>, map = #{{.*}} : (tensor<8x32xf32>) -> tensor<8x64xf32>
// CHECK: %[[N:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<8x64xf32>)
// CHECK: arith.negf
// CHECK: %[[C:.*]] = "fuse.gathered_view"(%arg0) {basis = array<i64: 8, 64>, inside, {{.*}} : (tensor<8x32xf32>) -> tensor<8x64xi1>
// CHECK: linalg.generic {{.*}} ins(%[[N]], %{{.*}}, %[[C]], %{{.*}} :
func.func @joined(%x: tensor<8x32xf32>, %y: tensor<8x32xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x32xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x32xf32>) outs(%e : tensor<8x32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.negf %a : f32
    linalg.yield %t : f32
  } -> tensor<8x32xf32>
  %v = "fuse.gathered_view"(%n) {basis = array<i64: 8, 64>, ranks = array<i64: 1, 1>, map = affine_map<(i, j) -> (i, j)>}
      : (tensor<8x32xf32>) -> tensor<8x64xf32>
  %w = "fuse.gathered_view"(%y) {basis = array<i64: 8, 64>, ranks = array<i64: 1, 1>, map = affine_map<(i, j) -> (i, j - 32)>}
      : (tensor<8x32xf32>) -> tensor<8x64xf32>
  %c = "fuse.gathered_view"(%n) {inside, basis = array<i64: 8, 64>, ranks = array<i64: 1, 1>, map = affine_map<(i, j) -> (i, j)>}
      : (tensor<8x32xf32>) -> tensor<8x64xi1>
  %d = "fuse.gathered_view"(%y) {inside, basis = array<i64: 8, 64>, ranks = array<i64: 1, 1>, map = affine_map<(i, j) -> (i, j - 32)>}
      : (tensor<8x32xf32>) -> tensor<8x64xi1>
  %f = tensor.empty() : tensor<8x64xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
                                        affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%v, %w, %c, %d : tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x64xi1>, tensor<8x64xi1>) outs(%f : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %p: i1, %q: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %s = arith.select %p, %a, %zero : f32
    %t = arith.select %q, %b, %s : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  return %z : tensor<8x64xf32>
}

// -----

// The same of exponentials, which are not computed past the end of a half.
// CHECK-LABEL: func.func @dear
// REMARK: fuse-compose-gathers: declined: the result takes long to compute, and would be computed past its end too
// CHECK: math.exp
// CHECK: "fuse.gathered_view"(%{{[0-9]+}}) {basis = array<i64: 8, 64>, map =
func.func @dear(%x: tensor<8x32xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x32xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x32xf32>) outs(%e : tensor<8x32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<8x32xf32>
  %v = "fuse.gathered_view"(%n) {basis = array<i64: 8, 64>, ranks = array<i64: 1, 1>, map = affine_map<(i, j) -> (i, j)>}
      : (tensor<8x32xf32>) -> tensor<8x64xf32>
  %c = "fuse.gathered_view"(%n) {inside, basis = array<i64: 8, 64>, ranks = array<i64: 1, 1>, map = affine_map<(i, j) -> (i, j)>}
      : (tensor<8x32xf32>) -> tensor<8x64xi1>
  %f = tensor.empty() : tensor<8x64xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%v, %c : tensor<8x64xf32>, tensor<8x64xi1>) outs(%f : tensor<8x64xf32>) {
  ^bb0(%a: f32, %p: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %s = arith.select %p, %a, %zero : f32
    linalg.yield %s : f32
  } -> tensor<8x64xf32>
  return %z : tensor<8x64xf32>
}
