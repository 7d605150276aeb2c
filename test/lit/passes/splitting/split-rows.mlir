// RUN: mlirfuse-opt --fuse-split-rows --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#each = affine_map<(d0) -> (d0)>
// A row of a million numbers is split into 128 parts of 7816: the first kernel reduces parts as rows, with the ops before
// the sum and their scalar, the second one the 128 results of a row, with all ops after the sum.
// CHECK-LABEL: func.func @long
// CHECK: %[[COUNT:.*]] = tensor.dim %arg0, %c0
// CHECK: %[[APART:.*]] = tensor.expand_shape %arg0 {{\[\[}}0], [1, 2]] output_shape [%[[COUNT]], 128, 7816] : tensor<?x1000448xf32> into tensor<?x128x7816xf32>
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[APART]] {{\[\[}}0, 1], [2]] : tensor<?x128x7816xf32> into tensor<?x7816xf32>
// CHECK: %[[SUMS:.*]] = call @long_0_parts(%[[ROWS]], %arg1) : (tensor<?x7816xf32>, f64) -> tensor<?xf32>
// CHECK: %[[PARTS:.*]] = tensor.expand_shape %[[SUMS]] {{\[\[}}0, 1]] output_shape [%{{.*}}, 128] : tensor<?xf32> into tensor<?x128xf32>
// CHECK: call @long_0(%[[PARTS]], %arg2) : (tensor<?x128xf32>, tensor<?xf32>) -> tensor<?xf32>
// CHECK-LABEL: func.func private @long_0_parts(%arg0: tensor<?x7816xf32> {fuse.align = 16 : i64}, %arg1: f64) -> tensor<?xf32>
// CHECK-SAME: fuse.kernel, fuse.result_extents = array<i64: 0, 0>
// CHECK: linalg.generic {{.*}} ins(%arg0 : tensor<?x7816xf32>) outs(%{{.*}} : tensor<?x7816xf32>)
// CHECK: arith.truncf %arg1
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} {{.*}} outs(%{{.*}} : tensor<?xf32>)
// CHECK-NOT: linalg.generic
// CHECK-LABEL: func.func private @long_0(%arg0: tensor<?x128xf32>, %arg1: tensor<?xf32>) -> tensor<?xf32>
// CHECK-SAME: fuse.kernel, fuse.result_extents = array<i64: 0, 0>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<?x128xf32>)
// CHECK: arith.addf
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]} ins(%{{.*}}, %arg1 : tensor<?xf32>, tensor<?xf32>)
func.func @long(%x: tensor<?x1000448xf32>, %s: f64, %r: tensor<?xf32>) -> tensor<?xf32> {
  %0 = call @long_0(%x, %s, %r) : (tensor<?x1000448xf32>, f64, tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
// expected-remark @below {{rows of 1000448 elements are reduced in 128 parts each}}
func.func private @long_0(%x: tensor<?x1000448xf32> {fuse.align = 16 : i64}, %s: f64, %r: tensor<?xf32>) -> tensor<?xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x1000448xf32>
  %e = tensor.empty(%m) : tensor<?x1000448xf32>
  %scaled = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<?x1000448xf32>) outs(%e : tensor<?x1000448xf32>) {
  ^bb0(%a: f32, %out: f32):
    %f = arith.truncf %s : f64 to f32
    %v = arith.mulf %a, %f : f32
    linalg.yield %v : f32
  } -> tensor<?x1000448xf32>
  %e0 = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%scaled : tensor<?x1000448xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#each, #each, #each], iterator_types = ["parallel"]}
       ins(%sum, %r : tensor<?xf32>, tensor<?xf32>) outs(%e0 : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// Rows that fit a block stay whole, and so do rows of a static number, which the grid loops over.
// CHECK-LABEL: func.func @short
// CHECK-NEXT: call @short_0(%arg0)
// CHECK-NEXT: call @known_0(%arg1)
func.func @short(%x: tensor<?x4096xf32>, %y: tensor<2x1000448xf32>) -> (tensor<?xf32>, tensor<2xf32>) {
  %0 = call @short_0(%x) : (tensor<?x4096xf32>) -> tensor<?xf32>
  %1 = call @known_0(%y) : (tensor<2x1000448xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<?xf32>, tensor<2xf32>
}
// expected-remark @below {{no dynamic number of long rows}}
func.func private @short_0(%x: tensor<?x4096xf32>) -> tensor<?xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x4096xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x4096xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
// expected-remark @below {{no dynamic number of long rows}}
func.func private @known_0(%x: tensor<2x1000448xf32>) -> tensor<2xf32> attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<2x1000448xf32>) outs(%init : tensor<2xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
// Each part would add the initial value of 1; and a value a column is not read in rows.
// CHECK-LABEL: func.func @others
// CHECK-NEXT: call @one_0(%arg0)
// CHECK-NEXT: call @columns_0(%arg0, %arg1)
// CHECK-NEXT: call @strided_0(%arg0)
func.func @others(%x: tensor<?x1000448xf32>, %w: tensor<1000448xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %0 = call @one_0(%x) : (tensor<?x1000448xf32>) -> tensor<?xf32>
  %1 = call @columns_0(%x, %w) : (tensor<?x1000448xf32>, tensor<1000448xf32>) -> tensor<?xf32>
  %2 = call @strided_0(%x) : (tensor<?x1000448xf32>) -> tensor<?xf32>
  return %0, %1, %2 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
// expected-remark @below {{the reduction's initial value is not its neutral element}}
func.func private @one_0(%x: tensor<?x1000448xf32>) -> tensor<?xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x1000448xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%one : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x1000448xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
// expected-remark @below {{no dynamic number of long rows}}
func.func private @columns_0(%x: tensor<?x1000448xf32>, %w: tensor<1000448xf32>) -> tensor<?xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x1000448xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #column, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x, %w : tensor<?x1000448xf32>, tensor<1000448xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %v = arith.addf %out, %p : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
// expected-remark @below {{an array is not contiguous}}
func.func private @strided_0(%x: tensor<?x1000448xf32> {fuse.strides = ["?", 1]}) -> tensor<?xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x1000448xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x1000448xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
