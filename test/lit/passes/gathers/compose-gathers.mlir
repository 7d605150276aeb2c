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

// The view has zeros around the result, where the square of what the view of the argument has there is not taken.
// CHECK: #[[SHIFTED:.*]] = affine_map<(d0) -> (d0 - 1)>
// CHECK-LABEL: func.func @leaves
// REMARK: fuse-compose-gathers: applied: 1 views of elementwise results
// CHECK: %[[X:.*]] = "fuse.gathered_view"(%arg0) {basis = array<i64: 9>, map = #[[SHIFTED]]{{.*}} -> tensor<9xf32>
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<9xf32>)
// CHECK: math.exp
// CHECK: %[[C:.*]] = "fuse.gathered_view"(%arg0) {basis = array<i64: 9>, inside = array<i64: 8>, map = #[[SHIFTED]]{{.*}} -> tensor<9xi1>
// CHECK: %[[Z:.*]] = linalg.generic {{.*}} ins(%[[Y]], %[[C]] : tensor<9xf32>, tensor<9xi1>)
// CHECK: arith.select %in_{{[0-9]+}}, %in, %{{.*}} : f32
// CHECK: linalg.generic {{.*}} ins(%[[Z]] : tensor<9xf32>)
func.func @leaves(%x: tensor<8xf32>) -> tensor<9xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %z = "fuse.gathered_view"(%y) {basis = array<i64: 9>, ranks = array<i64: 1>,
      map = affine_map<(h) -> (h - 1)>} : (tensor<8xf32>) -> tensor<9xf32>
  %f = tensor.empty() : tensor<9xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%z : tensor<9xf32>) outs(%f : tensor<9xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.negf %a : f32
    linalg.yield %t : f32
  } -> tensor<9xf32>
  return %r : tensor<9xf32>
}

// -----

// The result is returned, and so in memory anyway.
// CHECK-LABEL: func.func @returned
// REMARK: fuse-compose-gathers: declined: the result is in memory anyway
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK: "fuse.gathered_view"(%[[Y]])
func.func @returned(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.mulf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %z = "fuse.gathered_view"(%y) {basis = array<i64: 8>, ranks = array<i64: 1>,
      map = affine_map<(h) -> (7 - h)>} : (tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%z : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.negf %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %y, %r : tensor<8xf32>, tensor<8xf32>
}

// -----

// Past the end of the operands are zeros, by which integers may not be divided.
// CHECK-LABEL: func.func @divided
// REMARK: fuse-compose-gathers: declined: integers are divided, and may be zeros past the end
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK: arith.divsi
// CHECK: "fuse.gathered_view"(%[[Y]])
func.func @divided(%x: tensor<8xi32>) -> tensor<9xi32> {
  %e = tensor.empty() : tensor<8xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xi32>) outs(%e : tensor<8xi32>) {
  ^bb0(%a: i32, %out: i32):
    %c = arith.constant 100 : i32
    %t = arith.divsi %c, %a : i32
    linalg.yield %t : i32
  } -> tensor<8xi32>
  %z = "fuse.gathered_view"(%y) {basis = array<i64: 9>, ranks = array<i64: 1>,
      map = affine_map<(h) -> (h - 1)>} : (tensor<8xi32>) -> tensor<9xi32>
  %f = tensor.empty() : tensor<9xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%z : tensor<9xi32>) outs(%f : tensor<9xi32>) {
  ^bb0(%a: i32, %out: i32):
    %t = arith.addi %a, %a : i32
    linalg.yield %t : i32
  } -> tensor<9xi32>
  return %r : tensor<9xi32>
}

// -----

// A sum stays: its kernel stores results in the view's order (`fuse-scatter-results`), or another kernel does.
// CHECK-LABEL: func.func @sums
// REMARK: fuse-compose-gathers: declined: no view of an elementwise result
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

// A slice may have elements in the opposite order.
// CHECK: #[[BACKWARDS:.*]] = affine_map<(d0) -> (-(d0 + 1) + 7)>
// CHECK-LABEL: func.func @flipped
// REMARK: fuse-compose-gathers: applied: 1 views of elementwise results
// CHECK-NOT: extract_slice
// CHECK: "fuse.gathered_view"(%arg0) {basis = array<i64: 6>, map = #[[BACKWARDS]]{{.*}} : (tensor<8xf32>) -> tensor<6xf32>
func.func @flipped(%x: tensor<8xf32>) -> tensor<6xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %s = tensor.extract_slice %y[7] [8] [-1] : tensor<8xf32> to tensor<8xf32>
  %v = "fuse.gathered_view"(%s) {basis = array<i64: 6>, ranks = array<i64: 1>, map = affine_map<(i) -> (i + 1)>}
      : (tensor<8xf32>) -> tensor<6xf32>
  %f = tensor.empty() : tensor<6xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%v : tensor<6xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<6xf32>
  return %z : tensor<6xf32>
}

// -----

// A slice that begins at a place known at run time is no view of the value through a map: it is viewed itself.
// CHECK-LABEL: func.func @anywhere
// REMARK: fuse-compose-gathers: declined: no view of an elementwise result
// CHECK: %[[S:.*]] = tensor.extract_slice %{{.*}}[%arg1] [7] [1]
// CHECK: "fuse.gathered_view"(%[[S]])
func.func @anywhere(%x: tensor<8xf32>, %n: index) -> tensor<6xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %s = tensor.extract_slice %y[%n] [7] [1] : tensor<8xf32> to tensor<7xf32>
  %v = "fuse.gathered_view"(%s) {basis = array<i64: 6>, ranks = array<i64: 1>, map = affine_map<(i) -> (i + 1)>}
      : (tensor<7xf32>) -> tensor<6xf32>
  %f = tensor.empty() : tensor<6xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%v : tensor<6xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<6xf32>
  return %z : tensor<6xf32>
}

// -----

// A view of a slice that it leaves has zeros beside the slice, and not what the argument has there.
// CHECK: #[[BOTH:.*]] = affine_map<(d0) -> (d0 - 2)>
// CHECK-LABEL: func.func @zeros_around
// REMARK: fuse-compose-gathers: applied: 1 views of elementwise results
// CHECK: %[[S:.*]] = tensor.extract_slice %arg0[2] [4] [1]
// CHECK: "fuse.gathered_view"(%[[S]]) {basis = array<i64: 8>, map = #[[BOTH]]{{.*}} : (tensor<4xf32>) -> tensor<8xf32>
func.func @zeros_around(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = tensor.extract_slice %x[2] [4] [1] : tensor<8xf32> to tensor<4xf32>
  %u = "fuse.gathered_view"(%s) {basis = array<i64: 6>, ranks = array<i64: 1>, map = affine_map<(i) -> (i - 1)>}
      : (tensor<4xf32>) -> tensor<6xf32>
  %e = tensor.empty() : tensor<6xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%u : tensor<6xf32>) outs(%e : tensor<6xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<6xf32>
  %v = "fuse.gathered_view"(%y) {basis = array<i64: 8>, ranks = array<i64: 1>, map = affine_map<(i) -> (i - 1)>}
      : (tensor<6xf32>) -> tensor<8xf32>
  %f = tensor.empty() : tensor<8xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%v : tensor<8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %z : tensor<8xf32>
}

// -----

// What a value is computed of twice is computed once at the places of a view.
// CHECK-LABEL: func.func @shared
// REMARK: fuse-compose-gathers: applied: 1 views of elementwise results
// CHECK-COUNT-1: gathered_view
// CHECK-NOT: gathered_view
// CHECK-COUNT-1: math.exp
// CHECK-NOT: math.exp
// CHECK: return
func.func @shared(%x: tensor<8xf32>) -> tensor<7xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%y : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %u = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>, affine_map<(p) -> (p)>],
                       iterator_types = ["parallel"]}
      ins(%y, %t : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<8xf32>
  %v = "fuse.gathered_view"(%u) {basis = array<i64: 7>, ranks = array<i64: 1>, map = affine_map<(i) -> (i + 1)>}
      : (tensor<8xf32>) -> tensor<7xf32>
  %f = tensor.empty() : tensor<7xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%v : tensor<7xf32>) outs(%f : tensor<7xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t2 = arith.addf %a, %a : f32
    linalg.yield %t2 : f32
  } -> tensor<7xf32>
  return %z : tensor<7xf32>
}

// -----

// Cosines that have a kernel of their own are read from memory, wherever they are read.
// CHECK-LABEL: func.func @stored
// CHECK: %[[C:.*]] = linalg.generic {{.*}} attrs = {fuse.stored}
// CHECK: math.cos
// CHECK: %[[V:.*]] = "fuse.gathered_view"(%[[C]])
// CHECK: linalg.generic {{.*}} ins(%arg1, %[[V]] :
// REMARK: fuse-compose-gathers: declined: no view of an elementwise result
func.func @stored(%a: tensor<64xf32>, %x: tensor<512x64xf32>) -> tensor<512x64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(c) -> (c)>, affine_map<(c) -> (c)>], iterator_types = ["parallel"]}
      ins(%a : tensor<64xf32>) outs(%e : tensor<64xf32>) attrs = {fuse.stored} {
  ^bb0(%in: f32, %out: f32):
    %t = math.cos %in : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  %v = "fuse.gathered_view"(%c) {basis = array<i64: 64>, ranks = array<i64: 1>,
      map = affine_map<(c) -> (63 - c)>} : (tensor<64xf32>) -> tensor<64xf32>
  %r = tensor.empty() : tensor<512x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, c) -> (i, c)>, affine_map<(i, c) -> (c)>, affine_map<(i, c) -> (i, c)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %v : tensor<512x64xf32>, tensor<64xf32>) outs(%r : tensor<512x64xf32>) {
  ^bb0(%u: f32, %w: f32, %out: f32):
    %m = arith.mulf %u, %w : f32
    linalg.yield %m : f32
  } -> tensor<512x64xf32>
  return %y : tensor<512x64xf32>
}
