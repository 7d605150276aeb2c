// RUN: mlirfuse-opt --target=sm_90a --sms=132 --fuse-flatten-rows --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#channel = affine_map<(d0, d1, d2) -> (d1)>
#one = affine_map<(d0) -> (d0)>
// Images of 49 pixels, each by a function of its channel's number, which is computed for each pixel then.
// CHECK-LABEL: func.func @f(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x2048x49xf16>, %[[S:[a-z0-9]+]]: tensor<2048xf16>
// CHECK-DAG: %[[ROWS:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0], [1, 2]] : tensor<?x2048x49xf16> into tensor<?x100352xf16>
// CHECK-DAG: %[[VIEW:.*]] = "fuse.gathered_view"(%[[S]]) {basis = array<i64: 2048, 49>, map = #{{[a-z0-9]+}}, ranks = array<i64: 2>} : (tensor<2048xf16>) -> tensor<100352xf16>
// CHECK: %[[Y:.*]] = call @f_0(%[[ROWS]], %[[VIEW]]) : (tensor<?x100352xf16>, tensor<100352xf16>) -> tensor<?x100352xf16>
// CHECK: tensor.expand_shape %[[Y]] {{\[\[}}0], [1, 2]]
// CHECK-LABEL: func.func private @f_0(
// CHECK-SAME: tensor<100352xf16> {{.*}}fuse.gather = {
// CHECK-SAME: fuse.result_extents = array<i64: 0, 0>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]} ins(%{{.*}} : tensor<100352xf16>)
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]}
func.func @f(%x: tensor<?x2048x49xf16>, %s: tensor<2048xf16>) -> tensor<?x2048x49xf16> {
  %0 = call @f_0(%x, %s) : (tensor<?x2048x49xf16>, tensor<2048xf16>) -> tensor<?x2048x49xf16>
  return %0 : tensor<?x2048x49xf16>
}
// expected-remark @below {{1 operands are views along one dimension}}
func.func private @f_0(%x: tensor<?x2048x49xf16>, %s: tensor<2048xf16>) -> tensor<?x2048x49xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x2048x49xf16>
  %e = tensor.empty() : tensor<2048xf16>
  %a = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%s : tensor<2048xf16>) outs(%e : tensor<2048xf16>) {
  ^bb0(%in: f16, %out: f16):
    %v = math.absf %in : f16
    linalg.yield %v : f16
  } -> tensor<2048xf16>
  %empty = tensor.empty(%n) : tensor<?x2048x49xf16>
  %y = linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %a : tensor<?x2048x49xf16>, tensor<2048xf16>) outs(%empty : tensor<?x2048x49xf16>) {
  ^bb0(%in: f16, %b: f16, %out: f16):
    %v = arith.mulf %in, %b : f16
    linalg.yield %v : f16
  } -> tensor<?x2048x49xf16>
  return %y : tensor<?x2048x49xf16>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#channel = affine_map<(d0, d1, d2) -> (d1)>
// Declined: rows of whole vectors.
// CHECK-LABEL: func.func @long(
// CHECK-NOT: gathered_view
func.func @long(%x: tensor<?x64x4096xf16>, %s: tensor<64xf16>) -> tensor<?x64x4096xf16> {
  %0 = call @long_0(%x, %s) : (tensor<?x64x4096xf16>, tensor<64xf16>) -> tensor<?x64x4096xf16>
  return %0 : tensor<?x64x4096xf16>
}
// expected-remark @below {{us as it is}}
func.func private @long_0(%x: tensor<?x64x4096xf16>, %s: tensor<64xf16>) -> tensor<?x64x4096xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64x4096xf16>
  %empty = tensor.empty(%n) : tensor<?x64x4096xf16>
  %y = linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %s : tensor<?x64x4096xf16>, tensor<64xf16>) outs(%empty : tensor<?x64x4096xf16>) {
  ^bb0(%in: f16, %b: f16, %out: f16):
    %v = arith.mulf %in, %b : f16
    linalg.yield %v : f16
  } -> tensor<?x64x4096xf16>
  return %y : tensor<?x64x4096xf16>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#gate = affine_map<(d0, d1, d2) -> (d0, d1)>
// A number for each channel of each image: the images are as many as run time has to say.
// CHECK-LABEL: func.func @gated(
// CHECK-NOT: gathered_view
func.func @gated(%x: tensor<?x2048x49xf16>, %s: tensor<?x2048xf16>) -> tensor<?x2048x49xf16> {
  %0 = call @gated_0(%x, %s) : (tensor<?x2048x49xf16>, tensor<?x2048xf16>) -> tensor<?x2048x49xf16>
  return %0 : tensor<?x2048x49xf16>
}
// expected-remark @below {{an operand varies along some of them, and along an extent of run time}}
func.func private @gated_0(%x: tensor<?x2048x49xf16>, %s: tensor<?x2048xf16>) -> tensor<?x2048x49xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x2048x49xf16>
  %empty = tensor.empty(%n) : tensor<?x2048x49xf16>
  %y = linalg.generic {indexing_maps = [#id, #gate, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %s : tensor<?x2048x49xf16>, tensor<?x2048xf16>) outs(%empty : tensor<?x2048x49xf16>) {
  ^bb0(%in: f16, %b: f16, %out: f16):
    %v = arith.mulf %in, %b : f16
    linalg.yield %v : f16
  } -> tensor<?x2048x49xf16>
  return %y : tensor<?x2048x49xf16>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @rows(
// CHECK-NOT: gathered_view
func.func @rows(%x: tensor<?x49xf16>, %s: tensor<49xf16>) -> tensor<?x49xf16> {
  %0 = call @rows_0(%x, %s) : (tensor<?x49xf16>, tensor<49xf16>) -> tensor<?x49xf16>
  return %0 : tensor<?x49xf16>
}
// expected-remark @below {{no two innermost dimensions have extents that are numbers}}
func.func private @rows_0(%x: tensor<?x49xf16>, %s: tensor<49xf16>) -> tensor<?x49xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x49xf16>
  %empty = tensor.empty(%n) : tensor<?x49xf16>
  %y = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x49xf16>, tensor<49xf16>) outs(%empty : tensor<?x49xf16>) {
  ^bb0(%in: f16, %b: f16, %out: f16):
    %v = arith.mulf %in, %b : f16
    linalg.yield %v : f16
  } -> tensor<?x49xf16>
  return %y : tensor<?x49xf16>
}

// -----

#pair = affine_map<(d0, d1) -> (d0, d1)>
#left = affine_map<(d0, d1) -> (d0)>
#right = affine_map<(d0, d1) -> (d1)>
#one = affine_map<(d0) -> (d0)>
// An op that reads no element of its operand, as of a power of 0, says nothing about its dimensions.
// CHECK-LABEL: func.func @unread(
// CHECK-NOT: gathered_view
func.func @unread(%x: tensor<2xf16>, %s: tensor<2xf16>) -> tensor<2x2xf16> {
  %0 = call @unread_0(%x, %s) : (tensor<2xf16>, tensor<2xf16>) -> tensor<2x2xf16>
  return %0 : tensor<2x2xf16>
}
// expected-remark @below {{an op reads none of an operand's elements}}
func.func private @unread_0(%x: tensor<2xf16>, %s: tensor<2xf16>) -> tensor<2x2xf16> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<2xf16>
  %ones = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%s : tensor<2xf16>) outs(%e : tensor<2xf16>) {
  ^bb0(%in: f16, %out: f16):
    %v = arith.constant 1.0 : f32
    %w = arith.truncf %v : f32 to f16
    linalg.yield %w : f16
  } -> tensor<2xf16>
  %empty = tensor.empty() : tensor<2x2xf16>
  %y = linalg.generic {indexing_maps = [#left, #right, #pair], iterator_types = ["parallel", "parallel"]}
      ins(%x, %ones : tensor<2xf16>, tensor<2xf16>) outs(%empty : tensor<2x2xf16>) {
  ^bb0(%a: f16, %b: f16, %out: f16):
    %v = arith.maximumf %a, %b : f16
    linalg.yield %v : f16
  } -> tensor<2x2xf16>
  return %y : tensor<2x2xf16>
}
