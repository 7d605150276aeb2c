// RUN: mlirfuse-opt --fuse-scatter-results --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#a = affine_map<(b, m, n, k) -> (b, m, k)>
#b = affine_map<(b, m, n, k) -> (b, k, n)>
#c = affine_map<(b, m, n, k) -> (b, m, n)>
#i = affine_map<(n, h, w, c) -> (n, h, w, c)>
#n = affine_map<(n, h, w, c) -> (c)>
// Residue classes are stored in the order of pixels, of which there is an odd number of rows; a bias that all classes
// share is read as it is, and an array in the order of pixels through a view.
// CHECK: #[[POSITIONS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d2, d3 * 2 + d0, d4 * 2 + d1, d5)>
// CHECK-LABEL: func.func @classes(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x72x32xf16>, %[[W:[a-z0-9]+]]: tensor<4x32x16xf16>, %[[B:[a-z0-9]+]]: tensor<16xf16>, %[[R:[a-z0-9]+]]: tensor<2x11x12x16xf16>
// CHECK-NEXT: %[[V:.*]] = "fuse.gathered_view"(%[[R]]) {basis = array<i64: 2, 2, 2, 6, 6, 16>, map = #[[POSITIONS]], ranks = array<i64: 2, 3, 1>}
// CHECK-NEXT: %[[Y:.*]] = call @f_0(%[[X]], %[[W]], %[[B]], %[[V]]) : {{.*}} -> tensor<2x11x12x16xf16>
// CHECK-NEXT: return %[[Y]]
// CHECK-LABEL: func.func private @f_0(
// CHECK-SAME: %[[BIAS:[a-z0-9]+]]: tensor<16xf16>{{.*}}, %[[OLD:[a-z0-9]+]]: tensor<4x72x16xf16> {fuse.gather = {{.*}}source = tensor<2x11x12x16xf16>{{.*}}fuse.strides = [16, 16, 1]
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ["parallel", "parallel", "parallel", "reduction"]
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[BIAS]], %[[OLD]] : tensor<4x72x16xf16>, tensor<16xf16>, tensor<4x72x16xf16>)
// CHECK: %[[D:.*]] = "fuse.scatter"(%[[S]]) {basis = array<i64: 2, 2, 2, 6, 6, 16>, map = #[[POSITIONS]], ranks = array<i64: 2, 3, 1>, sources = array<i64>}
// CHECK-NEXT: return %[[D]]
// CHECK-NOT: func.func private @f_1
func.func @classes(%x: tensor<4x72x32xf16>, %w: tensor<4x32x16xf16>, %b: tensor<16xf16>, %r: tensor<2x11x12x16xf16>) -> tensor<2x11x12x16xf16> {
  %0 = call @f_0(%x, %w) : (tensor<4x72x32xf16>, tensor<4x32x16xf16>) -> tensor<4x72x16xf16>
  %1 = tensor.expand_shape %0 [[0, 1], [2, 3, 4], [5]] output_shape [2, 2, 2, 6, 6, 16] : tensor<4x72x16xf16> into tensor<2x2x2x6x6x16xf16>
  %2 = "fuse.gathered_view"(%1) {basis = array<i64: 2, 11, 12, 16>, ranks = array<i64: 1, 1, 1, 1>,
      map = affine_map<(n, h, w, c) -> (h mod 2, w mod 2, n, h floordiv 2, w floordiv 2, c)>} : (tensor<2x2x2x6x6x16xf16>) -> tensor<2x11x12x16xf16>
  // expected-remark @below {{f_0 stores its results in the order of f_1}}
  %3 = call @f_1(%2, %b, %r) : (tensor<2x11x12x16xf16>, tensor<16xf16>, tensor<2x11x12x16xf16>) -> tensor<2x11x12x16xf16>
  return %3 : tensor<2x11x12x16xf16>
}
func.func private @f_0(%x: tensor<4x72x32xf16>, %w: tensor<4x32x16xf16>) -> tensor<4x72x16xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<4x72x16xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e : tensor<4x72x16xf16>) -> tensor<4x72x16xf16>
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<4x72x32xf16>, tensor<4x32x16xf16>) outs(%init : tensor<4x72x16xf16>) {
  ^bb0(%l: f16, %r: f16, %out: f16):
    %p = arith.mulf %l, %r : f16
    %s = arith.addf %out, %p : f16
    linalg.yield %s : f16
  } -> tensor<4x72x16xf16>
  return %0 : tensor<4x72x16xf16>
}
func.func private @f_1(%v: tensor<2x11x12x16xf16> {fuse.gather = {basis = array<i64: 2, 11, 12, 16>, ranks = array<i64: 1, 1, 1, 1>, source = tensor<2x2x2x6x6x16xf16>,
    map = affine_map<(n, h, w, c) -> (h mod 2, w mod 2, n, h floordiv 2, w floordiv 2, c)>}, fuse.strides = [16, 16, 16, 1]}, %b: tensor<16xf16>, %r: tensor<2x11x12x16xf16>) -> tensor<2x11x12x16xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<2x11x12x16xf16>
  %0 = linalg.generic {indexing_maps = [#i, #n, #i, #i], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
       ins(%v, %b, %r : tensor<2x11x12x16xf16>, tensor<16xf16>, tensor<2x11x12x16xf16>) outs(%e : tensor<2x11x12x16xf16>) {
  ^bb0(%in: f16, %bias: f16, %old: f16, %out: f16):
    %s = arith.addf %in, %bias : f16
    %t = arith.addf %s, %old : f16
    linalg.yield %t : f16
  } -> tensor<2x11x12x16xf16>
  return %0 : tensor<2x11x12x16xf16>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#i = affine_map<(h, c) -> (h, c)>
// Every other row is zero, and stored by the same kernel: what the reading kernel makes of zero.
// CHECK: #[[ODD:.*]] = affine_map<(d0, d1, d2) -> (d0 * 2 + d1 + 1, d2)>
// CHECK: #[[ROWS:.*]] = affine_map<(d0, d1, d2, d3) -> (d0 * 2 + d1 + d3, d2)>
// CHECK-LABEL: func.func @zeros(
// CHECK: call @f_0({{.*}}) : {{.*}} -> tensor<71x16xf16>
// CHECK-LABEL: func.func private @f_0(
// CHECK-SAME: map = #[[ODD]], ranks = array<i64: 2, 1>, source = tensor<71x16xf16>
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ["parallel", "parallel", "reduction"]
// CHECK: %[[X:.*]] = linalg.generic {{.*}} ins(%[[P]],
// CHECK-NEXT: ^bb0(%[[E:.*]]: f16, %{{.*}}: f16, %{{.*}}: f16):
// CHECK-NEXT: arith.addf %[[E]], %{{.*}} : f16
// CHECK: %[[Z:.*]] = linalg.generic {{.*}} ins(%[[P]],
// CHECK-NEXT: ^bb0(
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f16
// CHECK-NEXT: arith.addf %[[ZERO]], %{{.*}} : f16
// CHECK: "fuse.scatter"(%[[X]], %[[Z]]) {basis = array<i64: 36, 1, 16>, map = #[[ROWS]], ranks = array<i64: 2, 1>, sources = array<i64: 2>}
func.func @zeros(%x: tensor<36x32xf16>, %w: tensor<32x16xf16>, %r: tensor<71x16xf16>) -> tensor<71x16xf16> {
  %0 = call @f_0(%x, %w) : (tensor<36x32xf16>, tensor<32x16xf16>) -> tensor<36x16xf16>
  %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [36, 1, 16] : tensor<36x16xf16> into tensor<36x1x16xf16>
  %2 = "fuse.gathered_view"(%1) {basis = array<i64: 71, 16>, ranks = array<i64: 1, 1>, map = affine_map<(h, c) -> (h floordiv 2, h mod 2, c)>}
      : (tensor<36x1x16xf16>) -> tensor<71x16xf16>
  // expected-remark @below {{f_0 stores its results in the order of f_1}}
  %3 = call @f_1(%2, %r) : (tensor<71x16xf16>, tensor<71x16xf16>) -> tensor<71x16xf16>
  return %3 : tensor<71x16xf16>
}
func.func private @f_0(%x: tensor<36x32xf16>, %w: tensor<32x16xf16>) -> tensor<36x16xf16> attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<36x16xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e : tensor<36x16xf16>) -> tensor<36x16xf16>
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<36x32xf16>, tensor<32x16xf16>) outs(%init : tensor<36x16xf16>) {
  ^bb0(%l: f16, %r: f16, %out: f16):
    %p = arith.mulf %l, %r : f16
    %s = arith.addf %out, %p : f16
    linalg.yield %s : f16
  } -> tensor<36x16xf16>
  return %0 : tensor<36x16xf16>
}
func.func private @f_1(%v: tensor<71x16xf16> {fuse.gather = {basis = array<i64: 71, 16>, ranks = array<i64: 1, 1>, source = tensor<36x1x16xf16>,
    map = affine_map<(h, c) -> (h floordiv 2, h mod 2, c)>}, fuse.strides = [16, 1]}, %r: tensor<71x16xf16>) -> tensor<71x16xf16>
    attributes {fuse.kernel} {
  %e = tensor.empty() : tensor<71x16xf16>
  %0 = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel", "parallel"]}
       ins(%v, %r : tensor<71x16xf16>, tensor<71x16xf16>) outs(%e : tensor<71x16xf16>) {
  ^bb0(%in: f16, %old: f16, %out: f16):
    %s = arith.addf %in, %old : f16
    linalg.yield %s : f16
  } -> tensor<71x16xf16>
  return %0 : tensor<71x16xf16>
}

// -----

#a = affine_map<(b, m, n, k) -> (b, m, k)>
#b = affine_map<(b, m, n, k) -> (b, k, n)>
#c = affine_map<(b, m, n, k) -> (b, m, n)>
#i = affine_map<(n, h, w, c) -> (n, h, w, c)>
// The product is returned too, in its own order.
// CHECK-LABEL: func.func @both(
// CHECK: %[[R:.*]]:2 = call @f_0(%{{.*}}) : {{.*}} -> (tensor<4x72x16xf16>, tensor<2x11x12x16xf16>)
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1
func.func @both(%x: tensor<4x72x32xf16>, %w: tensor<4x32x16xf16>) -> (tensor<4x72x16xf16>, tensor<2x11x12x16xf16>) {
  %0 = call @f_0(%x, %w) : (tensor<4x72x32xf16>, tensor<4x32x16xf16>) -> tensor<4x72x16xf16>
  %1 = tensor.expand_shape %0 [[0, 1], [2, 3, 4], [5]] output_shape [2, 2, 2, 6, 6, 16] : tensor<4x72x16xf16> into tensor<2x2x2x6x6x16xf16>
  %2 = "fuse.gathered_view"(%1) {basis = array<i64: 2, 11, 12, 16>, ranks = array<i64: 1, 1, 1, 1>,
      map = affine_map<(n, h, w, c) -> (h mod 2, w mod 2, n, h floordiv 2, w floordiv 2, c)>} : (tensor<2x2x2x6x6x16xf16>) -> tensor<2x11x12x16xf16>
  // expected-remark @below {{f_0 stores its results in the order of f_1}}
  %3 = call @f_1(%2) : (tensor<2x11x12x16xf16>) -> tensor<2x11x12x16xf16>
  return %0, %3 : tensor<4x72x16xf16>, tensor<2x11x12x16xf16>
}
func.func private @f_0(%x: tensor<4x72x32xf16>, %w: tensor<4x32x16xf16>) -> tensor<4x72x16xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<4x72x16xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e : tensor<4x72x16xf16>) -> tensor<4x72x16xf16>
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<4x72x32xf16>, tensor<4x32x16xf16>) outs(%init : tensor<4x72x16xf16>) {
  ^bb0(%l: f16, %r: f16, %out: f16):
    %p = arith.mulf %l, %r : f16
    %s = arith.addf %out, %p : f16
    linalg.yield %s : f16
  } -> tensor<4x72x16xf16>
  return %0 : tensor<4x72x16xf16>
}
func.func private @f_1(%v: tensor<2x11x12x16xf16> {fuse.gather = {basis = array<i64: 2, 11, 12, 16>, ranks = array<i64: 1, 1, 1, 1>, source = tensor<2x2x2x6x6x16xf16>,
    map = affine_map<(n, h, w, c) -> (h mod 2, w mod 2, n, h floordiv 2, w floordiv 2, c)>}, fuse.strides = [16, 16, 16, 1]}) -> tensor<2x11x12x16xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<2x11x12x16xf16>
  %0 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
       ins(%v : tensor<2x11x12x16xf16>) outs(%e : tensor<2x11x12x16xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<2x11x12x16xf16>
  return %0 : tensor<2x11x12x16xf16>
}

// -----

#i = affine_map<(n, h, w, c) -> (n, h, w, c)>
// A view of an argument is no kernel's result.
// CHECK-LABEL: func.func @argument(
// CHECK: call @f_1
func.func @argument(%x: tensor<2x2x2x6x6x16xf16>) -> tensor<2x11x12x16xf16> {
  %2 = "fuse.gathered_view"(%x) {basis = array<i64: 2, 11, 12, 16>, ranks = array<i64: 1, 1, 1, 1>,
      map = affine_map<(n, h, w, c) -> (h mod 2, w mod 2, n, h floordiv 2, w floordiv 2, c)>} : (tensor<2x2x2x6x6x16xf16>) -> tensor<2x11x12x16xf16>
  %3 = call @f_1(%2) : (tensor<2x11x12x16xf16>) -> tensor<2x11x12x16xf16>
  return %3 : tensor<2x11x12x16xf16>
}
func.func private @f_1(%v: tensor<2x11x12x16xf16> {fuse.gather = {basis = array<i64: 2, 11, 12, 16>, ranks = array<i64: 1, 1, 1, 1>, source = tensor<2x2x2x6x6x16xf16>,
    map = affine_map<(n, h, w, c) -> (h mod 2, w mod 2, n, h floordiv 2, w floordiv 2, c)>}, fuse.strides = [16, 16, 16, 1]}) -> tensor<2x11x12x16xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<2x11x12x16xf16>
  %0 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
       ins(%v : tensor<2x11x12x16xf16>) outs(%e : tensor<2x11x12x16xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<2x11x12x16xf16>
  return %0 : tensor<2x11x12x16xf16>
}

// -----

#a = affine_map<(b, m, n, k) -> (b, m, k)>
#b = affine_map<(b, m, n, k) -> (b, k, n)>
#c = affine_map<(b, m, n, k) -> (b, m, n)>
#i = affine_map<(n, h, w, c) -> (n, h, w, c)>
// CHECK-LABEL: func.func @two_readers(
// CHECK: call @f_0
// CHECK: call @f_1
func.func @two_readers(%x: tensor<4x72x32xf16>, %w: tensor<4x32x16xf16>) -> (tensor<2x11x12x16xf16>, tensor<2x11x12x16xf16>) {
  %0 = call @f_0(%x, %w) : (tensor<4x72x32xf16>, tensor<4x32x16xf16>) -> tensor<4x72x16xf16>
  %1 = tensor.expand_shape %0 [[0, 1], [2, 3, 4], [5]] output_shape [2, 2, 2, 6, 6, 16] : tensor<4x72x16xf16> into tensor<2x2x2x6x6x16xf16>
  %2 = "fuse.gathered_view"(%1) {basis = array<i64: 2, 11, 12, 16>, ranks = array<i64: 1, 1, 1, 1>,
      map = affine_map<(n, h, w, c) -> (h mod 2, w mod 2, n, h floordiv 2, w floordiv 2, c)>} : (tensor<2x2x2x6x6x16xf16>) -> tensor<2x11x12x16xf16>
  // expected-remark @below {{f_0 stays apart from f_1: the view is read elsewhere as well}}
  %3 = call @f_1(%2) : (tensor<2x11x12x16xf16>) -> tensor<2x11x12x16xf16>
  // expected-remark @below {{f_0 stays apart from f_2: the view is read elsewhere as well}}
  %4 = call @f_2(%2) : (tensor<2x11x12x16xf16>) -> tensor<2x11x12x16xf16>
  return %3, %4 : tensor<2x11x12x16xf16>, tensor<2x11x12x16xf16>
}
func.func private @f_0(%x: tensor<4x72x32xf16>, %w: tensor<4x32x16xf16>) -> tensor<4x72x16xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<4x72x16xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e : tensor<4x72x16xf16>) -> tensor<4x72x16xf16>
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<4x72x32xf16>, tensor<4x32x16xf16>) outs(%init : tensor<4x72x16xf16>) {
  ^bb0(%l: f16, %r: f16, %out: f16):
    %p = arith.mulf %l, %r : f16
    %s = arith.addf %out, %p : f16
    linalg.yield %s : f16
  } -> tensor<4x72x16xf16>
  return %0 : tensor<4x72x16xf16>
}
func.func private @f_1(%v: tensor<2x11x12x16xf16> {fuse.gather = {basis = array<i64: 2, 11, 12, 16>, ranks = array<i64: 1, 1, 1, 1>, source = tensor<2x2x2x6x6x16xf16>,
    map = affine_map<(n, h, w, c) -> (h mod 2, w mod 2, n, h floordiv 2, w floordiv 2, c)>}, fuse.strides = [16, 16, 16, 1]}) -> tensor<2x11x12x16xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<2x11x12x16xf16>
  %0 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
       ins(%v : tensor<2x11x12x16xf16>) outs(%e : tensor<2x11x12x16xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<2x11x12x16xf16>
  return %0 : tensor<2x11x12x16xf16>
}
func.func private @f_2(%v: tensor<2x11x12x16xf16> {fuse.gather = {basis = array<i64: 2, 11, 12, 16>, ranks = array<i64: 1, 1, 1, 1>, source = tensor<2x2x2x6x6x16xf16>,
    map = affine_map<(n, h, w, c) -> (h mod 2, w mod 2, n, h floordiv 2, w floordiv 2, c)>}, fuse.strides = [16, 16, 16, 1]}) -> tensor<2x11x12x16xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<2x11x12x16xf16>
  %0 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
       ins(%v : tensor<2x11x12x16xf16>) outs(%e : tensor<2x11x12x16xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<2x11x12x16xf16>
  return %0 : tensor<2x11x12x16xf16>
}

// -----

#a = affine_map<(b, m, n, k) -> (b, m, k)>
#b = affine_map<(b, m, n, k) -> (b, k, n)>
#c = affine_map<(b, m, n, k) -> (b, m, n)>
#i = affine_map<(n, h, w, c) -> (n, h, w, c)>
// CHECK-LABEL: func.func @fusion_is_off(
// CHECK: call @f_1
func.func @fusion_is_off(%x: tensor<4x72x32xf16>, %w: tensor<4x32x16xf16>) -> tensor<2x11x12x16xf16> {
  %0 = call @f_0(%x, %w) : (tensor<4x72x32xf16>, tensor<4x32x16xf16>) -> tensor<4x72x16xf16>
  %1 = tensor.expand_shape %0 [[0, 1], [2, 3, 4], [5]] output_shape [2, 2, 2, 6, 6, 16] : tensor<4x72x16xf16> into tensor<2x2x2x6x6x16xf16>
  %2 = "fuse.gathered_view"(%1) {basis = array<i64: 2, 11, 12, 16>, ranks = array<i64: 1, 1, 1, 1>,
      map = affine_map<(n, h, w, c) -> (h mod 2, w mod 2, n, h floordiv 2, w floordiv 2, c)>} : (tensor<2x2x2x6x6x16xf16>) -> tensor<2x11x12x16xf16>
  // expected-remark @below {{f_0 stays apart from f_1: fusion is off}}
  %3 = call @f_1(%2) : (tensor<2x11x12x16xf16>) -> tensor<2x11x12x16xf16>
  return %3 : tensor<2x11x12x16xf16>
}
func.func private @f_0(%x: tensor<4x72x32xf16>, %w: tensor<4x32x16xf16>) -> tensor<4x72x16xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<4x72x16xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e : tensor<4x72x16xf16>) -> tensor<4x72x16xf16>
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<4x72x32xf16>, tensor<4x32x16xf16>) outs(%init : tensor<4x72x16xf16>) attrs =  {fuse.operation = 1 : i64} {
  ^bb0(%l: f16, %r: f16, %out: f16):
    %p = arith.mulf %l, %r : f16
    %s = arith.addf %out, %p : f16
    linalg.yield %s : f16
  } -> tensor<4x72x16xf16>
  return %0 : tensor<4x72x16xf16>
}
func.func private @f_1(%v: tensor<2x11x12x16xf16> {fuse.gather = {basis = array<i64: 2, 11, 12, 16>, ranks = array<i64: 1, 1, 1, 1>, source = tensor<2x2x2x6x6x16xf16>,
    map = affine_map<(n, h, w, c) -> (h mod 2, w mod 2, n, h floordiv 2, w floordiv 2, c)>}, fuse.strides = [16, 16, 16, 1]}) -> tensor<2x11x12x16xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<2x11x12x16xf16>
  %0 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
       ins(%v : tensor<2x11x12x16xf16>) outs(%e : tensor<2x11x12x16xf16>) attrs =  {fuse.operation = 2 : i64} {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<2x11x12x16xf16>
  return %0 : tensor<2x11x12x16xf16>
}

// -----

#a = affine_map<(b, m, n, k) -> (b, m, k)>
#b = affine_map<(b, m, n, k) -> (b, k, n)>
#c = affine_map<(b, m, n, k) -> (b, m, n)>
#i = affine_map<(n, h, w, c) -> (n, h, w, c)>
#r = affine_map<(n, h, w, c) -> (n, h, w)>
// CHECK-LABEL: func.func @reduced(
// CHECK: call @f_1
func.func @reduced(%x: tensor<4x72x32xf16>, %w: tensor<4x32x16xf16>) -> tensor<2x11x12xf16> {
  %0 = call @f_0(%x, %w) : (tensor<4x72x32xf16>, tensor<4x32x16xf16>) -> tensor<4x72x16xf16>
  %1 = tensor.expand_shape %0 [[0, 1], [2, 3, 4], [5]] output_shape [2, 2, 2, 6, 6, 16] : tensor<4x72x16xf16> into tensor<2x2x2x6x6x16xf16>
  %2 = "fuse.gathered_view"(%1) {basis = array<i64: 2, 11, 12, 16>, ranks = array<i64: 1, 1, 1, 1>,
      map = affine_map<(n, h, w, c) -> (h mod 2, w mod 2, n, h floordiv 2, w floordiv 2, c)>} : (tensor<2x2x2x6x6x16xf16>) -> tensor<2x11x12x16xf16>
  // expected-remark @below {{f_0 stays apart from f_1: linalg.generic of the reading kernel is not elementwise}}
  %3 = call @f_1(%2) : (tensor<2x11x12x16xf16>) -> tensor<2x11x12xf16>
  return %3 : tensor<2x11x12xf16>
}
func.func private @f_0(%x: tensor<4x72x32xf16>, %w: tensor<4x32x16xf16>) -> tensor<4x72x16xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<4x72x16xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e : tensor<4x72x16xf16>) -> tensor<4x72x16xf16>
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<4x72x32xf16>, tensor<4x32x16xf16>) outs(%init : tensor<4x72x16xf16>) {
  ^bb0(%l: f16, %r: f16, %out: f16):
    %p = arith.mulf %l, %r : f16
    %s = arith.addf %out, %p : f16
    linalg.yield %s : f16
  } -> tensor<4x72x16xf16>
  return %0 : tensor<4x72x16xf16>
}
func.func private @f_1(%v: tensor<2x11x12x16xf16> {fuse.gather = {basis = array<i64: 2, 11, 12, 16>, ranks = array<i64: 1, 1, 1, 1>, source = tensor<2x2x2x6x6x16xf16>,
    map = affine_map<(n, h, w, c) -> (h mod 2, w mod 2, n, h floordiv 2, w floordiv 2, c)>}, fuse.strides = [16, 16, 16, 1]}) -> tensor<2x11x12xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f16
  %i = tensor.empty() : tensor<2x11x12xf16>
  %e = linalg.fill ins(%zero : f16) outs(%i : tensor<2x11x12xf16>) -> tensor<2x11x12xf16>
  %0 = linalg.generic {indexing_maps = [#i, #r], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
       ins(%v : tensor<2x11x12x16xf16>) outs(%e : tensor<2x11x12xf16>) {
  ^bb0(%in: f16, %out: f16):
    %s = arith.addf %out, %in : f16
    linalg.yield %s : f16
  } -> tensor<2x11x12xf16>
  return %0 : tensor<2x11x12xf16>
}

// -----

#a = affine_map<(b, m, n, k) -> (b, m, k)>
#b = affine_map<(b, m, n, k) -> (b, k, n)>
#c = affine_map<(b, m, n, k) -> (b, m, n)>
#j = affine_map<(b, m, c) -> (b, m, c)>
// Three of four channels are copied: their rows are no whole accesses.
// CHECK-LABEL: func.func @few_channels(
// CHECK: call @f_1
func.func @few_channels(%x: tensor<4x72x32xf16>, %w: tensor<4x32x4xf16>) -> tensor<4x72x3xf16> {
  %0 = call @f_0(%x, %w) : (tensor<4x72x32xf16>, tensor<4x32x4xf16>) -> tensor<4x72x4xf16>
  %1 = "fuse.gathered_view"(%0) {basis = array<i64: 4, 72, 3>, ranks = array<i64: 1, 1, 1>, map = affine_map<(b, m, c) -> (b, m, c)>}
      : (tensor<4x72x4xf16>) -> tensor<4x72x3xf16>
  // expected-remark @below {{f_0 stays apart from f_1: its rows lie apart in runs of 2 bytes, less than an access of 16}}
  %2 = call @f_1(%1) : (tensor<4x72x3xf16>) -> tensor<4x72x3xf16>
  return %2 : tensor<4x72x3xf16>
}
func.func private @f_0(%x: tensor<4x72x32xf16>, %w: tensor<4x32x4xf16>) -> tensor<4x72x4xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<4x72x4xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e : tensor<4x72x4xf16>) -> tensor<4x72x4xf16>
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<4x72x32xf16>, tensor<4x32x4xf16>) outs(%init : tensor<4x72x4xf16>) {
  ^bb0(%l: f16, %r: f16, %out: f16):
    %p = arith.mulf %l, %r : f16
    %s = arith.addf %out, %p : f16
    linalg.yield %s : f16
  } -> tensor<4x72x4xf16>
  return %0 : tensor<4x72x4xf16>
}
func.func private @f_1(%v: tensor<4x72x3xf16> {fuse.gather = {basis = array<i64: 4, 72, 3>, ranks = array<i64: 1, 1, 1>,
    source = tensor<4x72x4xf16>, map = affine_map<(b, m, c) -> (b, m, c)>}, fuse.strides = [3, 3, 1]}) -> tensor<4x72x3xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<4x72x3xf16>
  %0 = linalg.generic {indexing_maps = [#j, #j], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%v : tensor<4x72x3xf16>) outs(%e : tensor<4x72x3xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<4x72x3xf16>
  return %0 : tensor<4x72x3xf16>
}
