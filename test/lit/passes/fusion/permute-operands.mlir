// RUN: mlirfuse-opt --fuse-permute-operands --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#a = affine_map<(b, l, i, j, k) -> (b, i, j, k)>
#b = affine_map<(b, l, i, j, k) -> (b, k, l, j)>
#r = affine_map<(b, l, i, j, k) -> (b, l, i)>

// Memory of %y is contiguous along j, of which tiles have one element: the product reads a copy with j and k in the order
// of %x.
// CHECK-LABEL: func.func @large(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x64x256x256xbf16>, %[[Y:[a-z0-9]+]]: tensor<4x256x64x256xbf16>
// CHECK-NEXT: %[[C:.*]] = call @large_0_operand1(%[[Y]]) : (tensor<4x256x64x256xbf16>) -> tensor<4x64x256x256xbf16>
// CHECK-NEXT: call @large_0(%[[X]], %[[C]])
func.func @large(%x: tensor<4x64x256x256xbf16>, %y: tensor<4x256x64x256xbf16>) -> tensor<4x64x64xf32> {
  // expected-remark-re @below {{operand 1 of large_0 is copied to another order: {{.*}} us as it is, {{.*}} us as a reduction over rows, {{.*}} us permuted}}
  %0 = call @large_0(%x, %y) : (tensor<4x64x256x256xbf16>, tensor<4x256x64x256xbf16>) -> tensor<4x64x64xf32>
  return %0 : tensor<4x64x64xf32>
}
func.func private @large_0(%x: tensor<4x64x256x256xbf16> {fuse.align = 16 : i64}, %y: tensor<4x256x64x256xbf16> {fuse.align = 16 : i64}) -> tensor<4x64x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  %0 = linalg.generic {indexing_maps = [#a, #b, #r], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
       ins(%x, %y : tensor<4x64x256x256xbf16>, tensor<4x256x64x256xbf16>) outs(%init : tensor<4x64x64xf32>) {
  ^bb0(%p: bf16, %q: bf16, %out: f32):
    %f = arith.extf %p : bf16 to f32
    %g = arith.extf %q : bf16 to f32
    %m = arith.mulf %f, %g : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x64x64xf32>
  return %0 : tensor<4x64x64xf32>
}

// -----

#a = affine_map<(b, l, i, j, k) -> (b, i, j, k)>
#b = affine_map<(b, l, i, j, k) -> (b, k, l, j)>
#r = affine_map<(b, l, i, j, k) -> (b, l, i)>

// A small one is a reduction over rows, in one kernel.
// CHECK-LABEL: func.func @small(
// CHECK-NEXT: call @small_0(%arg0, %arg1)
// CHECK-NOT: operand1
// CHECK: linalg.generic {{.*}} attrs = {fuse.by_rows}
func.func @small(%x: tensor<2x8x16x16xf32>, %y: tensor<2x16x8x16xf32>) -> tensor<2x8x8xf32> {
  // expected-remark-re @below {{small_0 reads arrays in their own orders: {{.*}} us as it is}}
  %0 = call @small_0(%x, %y) : (tensor<2x8x16x16xf32>, tensor<2x16x8x16xf32>) -> tensor<2x8x8xf32>
  return %0 : tensor<2x8x8xf32>
}
func.func private @small_0(%x: tensor<2x8x16x16xf32> {fuse.align = 16 : i64}, %y: tensor<2x16x8x16xf32> {fuse.align = 16 : i64}) -> tensor<2x8x8xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x8x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %0 = linalg.generic {indexing_maps = [#a, #b, #r], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
       ins(%x, %y : tensor<2x8x16x16xf32>, tensor<2x16x8x16xf32>) outs(%init : tensor<2x8x8xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x8x8xf32>
  return %0 : tensor<2x8x8xf32>
}

// -----

#a = affine_map<(x, i, y, j, a, b) -> (x, a, i, b)>
#b = affine_map<(x, i, y, j, a, b) -> (y, a, j, b)>
#r = affine_map<(x, i, y, j, a, b) -> (x, i, y, j)>

// Dimensions of m, of n and of k lie apart: copies make each of them one.
// CHECK-LABEL: func.func @apart(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<64x16x32x16xbf16>, %[[Y:[a-z0-9]+]]: tensor<64x16x32x16xbf16>
// CHECK-DAG: %[[A:.*]] = call @apart_0_operand0(%[[X]]) : (tensor<64x16x32x16xbf16>) -> tensor<64x32x16x16xbf16>
// CHECK-DAG: %[[B:.*]] = call @apart_0_operand1(%[[Y]]) : (tensor<64x16x32x16xbf16>) -> tensor<64x32x16x16xbf16>
// CHECK: call @apart_0(%[[A]], %[[B]])
func.func @apart(%x: tensor<64x16x32x16xbf16>, %y: tensor<64x16x32x16xbf16>) -> tensor<64x32x64x32xbf16> {
  // expected-remark-re @below {{operand 0 of apart_0 is copied to another order, operand 1 of apart_0 is copied to another order}}
  %0 = call @apart_0(%x, %y) : (tensor<64x16x32x16xbf16>, tensor<64x16x32x16xbf16>) -> tensor<64x32x64x32xbf16>
  return %0 : tensor<64x32x64x32xbf16>
}
func.func private @apart_0(%x: tensor<64x16x32x16xbf16> {fuse.align = 16 : i64}, %y: tensor<64x16x32x16xbf16> {fuse.align = 16 : i64}) -> tensor<64x32x64x32xbf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32x64x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32x64x32xf32>) -> tensor<64x32x64x32xf32>
  %0 = linalg.generic {indexing_maps = [#a, #b, #r], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
       ins(%x, %y : tensor<64x16x32x16xbf16>, tensor<64x16x32x16xbf16>) outs(%init : tensor<64x32x64x32xf32>) {
  ^bb0(%p: bf16, %q: bf16, %out: f32):
    %f = arith.extf %p : bf16 to f32
    %g = arith.extf %q : bf16 to f32
    %m = arith.mulf %f, %g : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x32x64x32xf32>
  %t = tensor.empty() : tensor<64x32x64x32xbf16>
  %1 = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
       ins(%0 : tensor<64x32x64x32xf32>) outs(%t : tensor<64x32x64x32xbf16>) {
  ^bb0(%p: f32, %out: bf16):
    %c = arith.truncf %p : f32 to bf16
    linalg.yield %c : bf16
  } -> tensor<64x32x64x32xbf16>
  return %1 : tensor<64x32x64x32xbf16>
}

// -----

#a = affine_map<(b, l, i, j, k) -> (b, i, j, k)>
#b = affine_map<(b, l, i, j, k) -> (b, k, l, j)>
#r = affine_map<(b, l, i, j, k) -> (b, l, i)>
#id = affine_map<(a, b, c, d) -> (a, b, c, d)>

// What computes an operand for the product alone writes it in the other order: no copy.
// CHECK-LABEL: func.func @computed(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x64x256x256xbf16>, %[[Y:[a-z0-9]+]]: tensor<4x256x64x256xbf16>
// CHECK-NEXT: %[[C:.*]] = call @negate(%[[Y]]) : (tensor<4x256x64x256xbf16>) -> tensor<4x64x256x256xbf16>
// CHECK-NEXT: call @computed_0(%[[X]], %[[C]])
// CHECK-NOT: operand1
func.func @computed(%x: tensor<4x64x256x256xbf16>, %y: tensor<4x256x64x256xbf16>) -> tensor<4x64x64xf32> {
  %n = call @negate(%y) : (tensor<4x256x64x256xbf16>) -> tensor<4x256x64x256xbf16>
  // expected-remark-re @below {{operand 1 of computed_0 is computed in another order by negate}}
  %0 = call @computed_0(%x, %n) : (tensor<4x64x256x256xbf16>, tensor<4x256x64x256xbf16>) -> tensor<4x64x64xf32>
  return %0 : tensor<4x64x64xf32>
}
func.func private @negate(%y: tensor<4x256x64x256xbf16> {fuse.align = 16 : i64}) -> tensor<4x256x64x256xbf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<4x256x64x256xbf16>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
       ins(%y : tensor<4x256x64x256xbf16>) outs(%e : tensor<4x256x64x256xbf16>) {
  ^bb0(%p: bf16, %out: bf16):
    %n = arith.negf %p : bf16
    linalg.yield %n : bf16
  } -> tensor<4x256x64x256xbf16>
  return %0 : tensor<4x256x64x256xbf16>
}
func.func private @computed_0(%x: tensor<4x64x256x256xbf16> {fuse.align = 16 : i64}, %y: tensor<4x256x64x256xbf16> {fuse.align = 16 : i64}) -> tensor<4x64x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  %0 = linalg.generic {indexing_maps = [#a, #b, #r], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
       ins(%x, %y : tensor<4x64x256x256xbf16>, tensor<4x256x64x256xbf16>) outs(%init : tensor<4x64x64xf32>) {
  ^bb0(%p: bf16, %q: bf16, %out: f32):
    %f = arith.extf %p : bf16 to f32
    %g = arith.extf %q : bf16 to f32
    %m = arith.mulf %f, %g : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x64x64xf32>
  return %0 : tensor<4x64x64xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#r = affine_map<(m, n, k) -> (m, n)>

// A product of matrices has one dimension of each role: it stays, without a remark.
// CHECK-LABEL: func.func @matrices(
// CHECK-NEXT: call @matrices_0(%arg0, %arg1)
func.func @matrices(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = call @matrices_0(%x, %y) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
func.func private @matrices_0(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %0 = linalg.generic {indexing_maps = [#a, #b, #r], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %y : tensor<64x64xf32>, tensor<64x64xf32>) outs(%init : tensor<64x64xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

#a = affine_map<(x, i, j, a) -> (x, a, i)>
#b = affine_map<(x, i, j, a) -> (a, j)>
#r = affine_map<(x, i, j, a) -> (x, i, j)>

// CHECK-LABEL: func.func @dynamic(
// CHECK-NEXT: call @dynamic_0(%arg0, %arg1)
func.func @dynamic(%x: tensor<?x64x32xf32>, %y: tensor<64x64xf32>) -> tensor<?x32x64xf32> {
  // expected-remark @below {{dynamic_0 reads arrays in their own orders: nobody says what a dynamic extent will be}}
  %0 = call @dynamic_0(%x, %y) : (tensor<?x64x32xf32>, tensor<64x64xf32>) -> tensor<?x32x64xf32>
  return %0 : tensor<?x32x64xf32>
}
func.func private @dynamic_0(%x: tensor<?x64x32xf32>, %y: tensor<64x64xf32>) -> tensor<?x32x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?x64x32xf32>
  %e = tensor.empty(%d) : tensor<?x32x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32x64xf32>) -> tensor<?x32x64xf32>
  %0 = linalg.generic {indexing_maps = [#a, #b, #r], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
       ins(%x, %y : tensor<?x64x32xf32>, tensor<64x64xf32>) outs(%init : tensor<?x32x64xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x32x64xf32>
  return %0 : tensor<?x32x64xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Colours of pixels by a small matrix: tiles of a product would be padding for the most part.
// CHECK-LABEL: func.func @colours(
// CHECK: linalg.generic {{.*}} attrs = {fuse.by_rows}
func.func @colours(%x: tensor<1048576x3xf32>, %y: tensor<3x3xf32>) -> tensor<1048576x3xf32> {
  %0 = call @colours_0(%x, %y) : (tensor<1048576x3xf32>, tensor<3x3xf32>) -> tensor<1048576x3xf32>
  return %0 : tensor<1048576x3xf32>
}
// expected-remark-re @below {{colours_0 is no product: {{.*}} us as a product, {{.*}} us as a reduction over rows}}
func.func private @colours_0(%x: tensor<1048576x3xf32>, %y: tensor<3x3xf32>) -> tensor<1048576x3xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1048576x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1048576x3xf32>) -> tensor<1048576x3xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %y : tensor<1048576x3xf32>, tensor<3x3xf32>) outs(%init : tensor<1048576x3xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<1048576x3xf32>
  return %0 : tensor<1048576x3xf32>
}

// -----

#id = affine_map<(i, k, c) -> (i, k, c)>
#ikc = affine_map<(i, j, c, k) -> (i, k, c)>
#jkc = affine_map<(i, j, c, k) -> (j, k, c)>
#ijc = affine_map<(i, j, c, k) -> (i, j, c)>

// One kernel computes both operands for the product alone, and writes both in the other order.
// CHECK-LABEL: func.func @both(
// CHECK-NEXT: %[[AB:.*]]:2 = call @gated(%arg0, %arg1) : (tensor<384x384x128xbf16>, tensor<384x384x128xbf16>) -> (tensor<128x384x384xbf16>, tensor<128x384x384xbf16>)
// CHECK-NEXT: call @both_0(%[[AB]]#0, %[[AB]]#1)
func.func @both(%x: tensor<384x384x128xbf16>, %gate: tensor<384x384x128xbf16>) -> tensor<384x384x128xf32> {
  %a, %b = call @gated(%x, %gate) : (tensor<384x384x128xbf16>, tensor<384x384x128xbf16>) -> (tensor<384x384x128xbf16>, tensor<384x384x128xbf16>)
  // expected-remark @below {{operand 0 of both_0 is computed in another order by gated, operand 1 of both_0 is computed in another order by gated}}
  %0 = call @both_0(%a, %b) : (tensor<384x384x128xbf16>, tensor<384x384x128xbf16>) -> tensor<384x384x128xf32>
  return %0 : tensor<384x384x128xf32>
}
func.func private @gated(%x: tensor<384x384x128xbf16> {fuse.align = 16 : i64}, %gate: tensor<384x384x128xbf16> {fuse.align = 16 : i64}) -> (tensor<384x384x128xbf16>, tensor<384x384x128xbf16>)
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<384x384x128xbf16>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x, %gate : tensor<384x384x128xbf16>, tensor<384x384x128xbf16>) outs(%e : tensor<384x384x128xbf16>) {
  ^bb0(%p: bf16, %q: bf16, %out: bf16):
    %m = arith.mulf %p, %q : bf16
    linalg.yield %m : bf16
  } -> tensor<384x384x128xbf16>
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x, %gate : tensor<384x384x128xbf16>, tensor<384x384x128xbf16>) outs(%e : tensor<384x384x128xbf16>) {
  ^bb0(%p: bf16, %q: bf16, %out: bf16):
    %m = arith.addf %p, %q : bf16
    linalg.yield %m : bf16
  } -> tensor<384x384x128xbf16>
  return %0, %1 : tensor<384x384x128xbf16>, tensor<384x384x128xbf16>
}
func.func private @both_0(%x: tensor<384x384x128xbf16> {fuse.align = 16 : i64}, %y: tensor<384x384x128xbf16> {fuse.align = 16 : i64}) -> tensor<384x384x128xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<384x384x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<384x384x128xf32>) -> tensor<384x384x128xf32>
  %0 = linalg.generic {indexing_maps = [#ikc, #jkc, #ijc], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
       ins(%x, %y : tensor<384x384x128xbf16>, tensor<384x384x128xbf16>) outs(%init : tensor<384x384x128xf32>) {
  ^bb0(%p: bf16, %q: bf16, %out: f32):
    %f = arith.extf %p : bf16 to f32
    %g = arith.extf %q : bf16 to f32
    %m = arith.mulf %f, %g : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<384x384x128xf32>
  return %0 : tensor<384x384x128xf32>
}

// -----

#id = affine_map<(i, k, c) -> (i, k, c)>
#ikc = affine_map<(i, j, c, k) -> (i, k, c)>
#jkc = affine_map<(i, j, c, k) -> (j, k, c)>
#ijc = affine_map<(i, j, c, k) -> (i, j, c)>

// One array is both operands: it is copied once.
// CHECK-LABEL: func.func @squared(
// CHECK-NEXT: %[[C:.*]] = call @squared_0_operand0(%arg0) : (tensor<384x384x128xbf16>) -> tensor<128x384x384xbf16>
// CHECK-NEXT: call @squared_0(%[[C]]) : (tensor<128x384x384xbf16>)
func.func @squared(%x: tensor<384x384x128xbf16>) -> tensor<384x384x128xf32> {
  // expected-remark @below {{operand 0 of squared_0 is copied to another order}}
  %0 = call @squared_0(%x) : (tensor<384x384x128xbf16>) -> tensor<384x384x128xf32>
  return %0 : tensor<384x384x128xf32>
}
func.func private @squared_0(%x: tensor<384x384x128xbf16> {fuse.align = 16 : i64}) -> tensor<384x384x128xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<384x384x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<384x384x128xf32>) -> tensor<384x384x128xf32>
  %0 = linalg.generic {indexing_maps = [#ikc, #jkc, #ijc], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
       ins(%x, %x : tensor<384x384x128xbf16>, tensor<384x384x128xbf16>) outs(%init : tensor<384x384x128xf32>) {
  ^bb0(%p: bf16, %q: bf16, %out: f32):
    %f = arith.extf %p : bf16 to f32
    %g = arith.extf %q : bf16 to f32
    %m = arith.mulf %f, %g : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<384x384x128xf32>
  return %0 : tensor<384x384x128xf32>
}

// -----

#id = affine_map<(i, j, c) -> (i, j, c)>
#cik = affine_map<(i, j, c, k) -> (c, i, k)>
#cjk = affine_map<(i, j, c, k) -> (c, j, k)>
#ijc = affine_map<(i, j, c, k) -> (i, j, c)>

// Operands lie well, and no tensor map stores tiles of the result: it is copied from an order in which one does.
// CHECK-LABEL: func.func @result(
// CHECK-NEXT: %[[R:.*]] = call @result_0(%arg0, %arg1) : (tensor<128x384x384xbf16>, tensor<128x384x384xbf16>) -> tensor<128x384x384xbf16>
// CHECK-NEXT: call @result_0_result(%[[R]]) : (tensor<128x384x384xbf16>) -> tensor<384x384x128xbf16>
func.func @result(%x: tensor<128x384x384xbf16>, %y: tensor<128x384x384xbf16>) -> tensor<384x384x128xbf16> {
  // expected-remark @below {{the result of result_0 is copied from another order}}
  %0 = call @result_0(%x, %y) : (tensor<128x384x384xbf16>, tensor<128x384x384xbf16>) -> tensor<384x384x128xbf16>
  return %0 : tensor<384x384x128xbf16>
}
func.func private @result_0(%x: tensor<128x384x384xbf16> {fuse.align = 16 : i64}, %y: tensor<128x384x384xbf16> {fuse.align = 16 : i64}) -> tensor<384x384x128xbf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<384x384x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<384x384x128xf32>) -> tensor<384x384x128xf32>
  %0 = linalg.generic {indexing_maps = [#cik, #cjk, #ijc], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
       ins(%x, %y : tensor<128x384x384xbf16>, tensor<128x384x384xbf16>) outs(%init : tensor<384x384x128xf32>) {
  ^bb0(%p: bf16, %q: bf16, %out: f32):
    %f = arith.extf %p : bf16 to f32
    %g = arith.extf %q : bf16 to f32
    %m = arith.mulf %f, %g : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<384x384x128xf32>
  %r = tensor.empty() : tensor<384x384x128xbf16>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%0 : tensor<384x384x128xf32>) outs(%r : tensor<384x384x128xbf16>) {
  ^bb0(%p: f32, %out: bf16):
    %t = arith.truncf %p : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<384x384x128xbf16>
  return %1 : tensor<384x384x128xbf16>
}
