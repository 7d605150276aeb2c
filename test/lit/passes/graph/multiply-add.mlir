// RUN: mlirfuse-opt --fuse-multiply-add --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#rows = affine_map<(d0, d1) -> (d0)>
// A product that two sums read, one of them through a reshape, and nothing else.
// CHECK-LABEL: func.func @summed(
// CHECK: arith.mulf %{{.*}} fastmath<contract> : f32
func.func @summed(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %r = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%r : tensor<4xf32>) -> tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %y : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #rows], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<4x8xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %2 = tensor.collapse_shape %0 [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  %3 = tensor.expand_shape %2 [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
  %4 = linalg.generic {indexing_maps = [#id, #rows], iterator_types = ["parallel", "reduction"]} ins(%3 : tensor<4x8xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %1, %4 : tensor<4xf32>, tensor<4xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#rows = affine_map<(d0, d1) -> (d0)>
// v = x * y is summed, and its distance from the mean is taken: it must be one number in both.
// CHECK-LABEL: func.func @centred(
// CHECK: arith.mulf %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : f32
// CHECK: arith.subf %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : f32
// expected-remark @below {{no product is read only by sums, or reaches one result once}}
func.func @centred(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %r = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%r : tensor<4xf32>) -> tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %y : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #rows], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<4x8xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %2 = linalg.generic {indexing_maps = [#id, #rows, #id], iterator_types = ["parallel", "parallel"]} ins(%0, %1 : tensor<4x8xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %d = arith.subf %a, %m : f32
    linalg.yield %d : f32
  } -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>
#all = affine_map<(d0) -> ()>
// Not marked: a product added to one of the same operands, a product that is cast before its sum, a maximum, half precision.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: fastmath
// expected-remark @below {{no product is read only by sums, or reaches one result once}}
func.func @others(%x: tensor<8xf32>, %h: tensor<8xf16>) -> (tensor<8xf32>, tensor<f64>, tensor<f32>, tensor<f16>) {
  %zero = arith.constant 0.0 : f32
  %wide = arith.constant 0.0 : f64
  %half = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<8xf32>
  %e16 = tensor.empty() : tensor<8xf16>
  %init = tensor.splat %zero : tensor<f32>
  %init64 = tensor.splat %wide : tensor<f64>
  %init16 = tensor.splat %half : tensor<f16>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.constant 0.7 : f32
    %p = arith.mulf %a, %c : f32
    %q = arith.mulf %c, %a : f32
    %s = arith.subf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction"]} ins(%x : tensor<8xf32>) outs(%init64 : tensor<f64>) {
  ^bb0(%a: f32, %o: f64):
    %p = arith.mulf %a, %a : f32
    %w = arith.extf %p : f32 to f64
    %s = arith.addf %o, %w : f64
    linalg.yield %s : f64
  } -> tensor<f64>
  %2 = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction"]} ins(%x : tensor<8xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %a : f32
    %s = arith.maximumf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %3 = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction"]} ins(%h : tensor<8xf16>) outs(%init16 : tensor<f16>) {
  ^bb0(%a: f16, %o: f16):
    %p = arith.mulf %a, %a : f16
    %s = arith.addf %o, %p : f16
    linalg.yield %s : f16
  } -> tensor<f16>
  return %0, %1, %2, %3 : tensor<8xf32>, tensor<f64>, tensor<f32>, tensor<f16>
}

// -----

#id = affine_map<(d0) -> (d0)>
// A product that is added to something, by an op of its own, in a value that goes into one result; and the same in a
// value that two results depend on.
// CHECK-LABEL: func.func @results(
// CHECK: arith.mulf %{{.*}} fastmath<contract> : f32
// CHECK: arith.addf
// CHECK: math.exp
// CHECK: arith.mulf %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : f32
// CHECK: arith.subf
func.func @results(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%0, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %b, %a : f32
    %x1 = math.exp %s : f32
    linalg.yield %x1 : f32
  } -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %a : f32
    %s = arith.subf %p, %b : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%2 : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.absf %a : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
