// RUN: mlirfuse-opt --fuse-recompute --canonicalize --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
// The sum of two arrays is one, which is returned besides: reading both again moves more bytes.
// CHECK-LABEL: func.func @more(
// CHECK: %[[A:.*]] = call @more_0(
// CHECK: call @more_1(%[[A]])
func.func @more(%x: tensor<65536x1024xf32>, %y: tensor<65536x1024xf32>) -> (tensor<65536x1024xf32>, tensor<1024xf32>) {
  %0 = call @more_0(%x, %y) : (tensor<65536x1024xf32>, tensor<65536x1024xf32>) -> tensor<65536x1024xf32>
  // expected-remark @below {{more_1 reads what more_0 computes element by element: recomputing is predicted to take}}
  %1 = call @more_1(%0) : (tensor<65536x1024xf32>) -> tensor<1024xf32>
  return %0, %1 : tensor<65536x1024xf32>, tensor<1024xf32>
}
func.func private @more_0(%x: tensor<65536x1024xf32>, %y: tensor<65536x1024xf32>) -> tensor<65536x1024xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<65536x1024xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %y : tensor<65536x1024xf32>, tensor<65536x1024xf32>) outs(%e : tensor<65536x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %w = arith.addf %a, %b : f32
    linalg.yield %w : f32
  } -> tensor<65536x1024xf32>
  return %0 : tensor<65536x1024xf32>
}
func.func private @more_1(%n: tensor<65536x1024xf32>) -> tensor<1024xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%n : tensor<65536x1024xf32>) outs(%init : tensor<1024xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
// A kernel whose schedule is given is left as the schedule found it.
// CHECK-LABEL: func.func @given(
// CHECK: %[[A:.*]] = call @given_0(
// CHECK: call @given_1(%[[A]])
func.func @given(%x: tensor<65536x1024xf32>, %y: tensor<65536x1024xf32>) -> tensor<1024xf32> {
  %0 = call @given_0(%x, %y) : (tensor<65536x1024xf32>, tensor<65536x1024xf32>) -> tensor<65536x1024xf32>
  // expected-remark @below {{given_1 reads what given_0 computes element by element: a schedule is given}}
  %1 = call @given_1(%0) : (tensor<65536x1024xf32>) -> tensor<1024xf32>
  return %1 : tensor<1024xf32>
}
func.func private @given_0(%x: tensor<65536x1024xf32>, %y: tensor<65536x1024xf32>) -> tensor<65536x1024xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<65536x1024xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %y : tensor<65536x1024xf32>, tensor<65536x1024xf32>) outs(%e : tensor<65536x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %w = arith.addf %a, %b : f32
    linalg.yield %w : f32
  } -> tensor<65536x1024xf32>
  return %0 : tensor<65536x1024xf32>
}
func.func private @given_1(%n: tensor<65536x1024xf32>) -> tensor<1024xf32>
    attributes {fuse.kernel, fuse.schedule = {}, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%n : tensor<65536x1024xf32>) outs(%init : tensor<1024xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
// A kernel that is launched twice is not changed for one of its calls.
// CHECK-LABEL: func.func @twice(
// CHECK: %[[A:.*]] = call @twice_0(
// CHECK: call @twice_1(%[[A]])
// CHECK: call @twice_0(%[[A]], %[[A]])
func.func @twice(%x: tensor<65536x1024xf32>) -> (tensor<65536x1024xf32>, tensor<1024xf32>) {
  %0 = call @twice_0(%x, %x) : (tensor<65536x1024xf32>, tensor<65536x1024xf32>) -> tensor<65536x1024xf32>
  %1 = call @twice_1(%0) : (tensor<65536x1024xf32>) -> tensor<1024xf32>
  %2 = call @twice_0(%0, %0) : (tensor<65536x1024xf32>, tensor<65536x1024xf32>) -> tensor<65536x1024xf32>
  return %2, %1 : tensor<65536x1024xf32>, tensor<1024xf32>
}
func.func private @twice_0(%x: tensor<65536x1024xf32>, %y: tensor<65536x1024xf32>) -> tensor<65536x1024xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<65536x1024xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %y : tensor<65536x1024xf32>, tensor<65536x1024xf32>) outs(%e : tensor<65536x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %w = arith.addf %a, %b : f32
    linalg.yield %w : f32
  } -> tensor<65536x1024xf32>
  return %0 : tensor<65536x1024xf32>
}
func.func private @twice_1(%n: tensor<65536x1024xf32>) -> tensor<1024xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%n : tensor<65536x1024xf32>) outs(%init : tensor<1024xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d1, d2)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
// What is elementwise, and a product's operand alone, is left to fuse-prologues.
// CHECK-LABEL: func.func @product(
// CHECK: %[[A:.*]] = call @product_0(
// CHECK: call @product_1(%[[A]],
func.func @product(%x: tensor<64x64xf16>, %y: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = call @product_0(%x) : (tensor<64x64xf16>) -> tensor<64x64xf32>
  // expected-remark @below {{product_1 reads what product_0 computes element by element: it is all that the kernel computes, and may be the contraction's prologue}}
  %1 = call @product_1(%0, %y) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}
func.func private @product_0(%x: tensor<64x64xf16>) -> tensor<64x64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<64x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<64x64xf16>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%v: f16, %out: f32):
    %w = arith.extf %v : f16 to f32
    linalg.yield %w : f32
  } -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
func.func private @product_1(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %y : tensor<64x64xf32>, tensor<64x64xf32>) outs(%init : tensor<64x64xf32>) {
  ^bb0(%v: f32, %w: f32, %out: f32):
    %p = arith.mulf %v, %w : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#row = affine_map<(d0, d1) -> (d0)>
#none = affine_map<(d0, d1) -> ()>
#one = affine_map<(d0) -> (d0)>
#all = affine_map<(d0) -> ()>
// The sum of a vector shares the columns of a matrix only through the op that reads both. Without that op, reductions of
// unrelated data would remain.
// CHECK-LABEL: func.func @left(
// CHECK: %[[A:.*]]:2 = call @left_0(
// CHECK: call @left_1(%[[A]]#0)
func.func @left(%x: tensor<65536x1024xf32>, %y: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<65536xf32>) {
  %0:2 = call @left_0(%x, %y) : (tensor<65536x1024xf32>, tensor<1024xf32>) -> (tensor<65536x1024xf32>, tensor<65536xf32>)
  // expected-remark @below {{the remaining ops of left_0 cannot share a kernel: no op's loops span both iteration spaces}}
  %1 = call @left_1(%0#0) : (tensor<65536x1024xf32>) -> tensor<1024xf32>
  return %1, %0#1 : tensor<1024xf32>, tensor<65536xf32>
}
func.func private @left_0(%x: tensor<65536x1024xf32>, %y: tensor<1024xf32>) -> (tensor<65536x1024xf32>, tensor<65536xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<f32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [#one, #all], iterator_types = ["reduction"]}
       ins(%y : tensor<1024xf32>) outs(%i0 : tensor<f32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  %e1 = tensor.empty() : tensor<65536xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<65536xf32>) -> tensor<65536xf32>
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<65536x1024xf32>) outs(%i1 : tensor<65536xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<65536xf32>
  %e2 = tensor.empty() : tensor<65536x1024xf32>
  %n = linalg.generic {indexing_maps = [#id, #col, #none, #row, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %y, %s, %r : tensor<65536x1024xf32>, tensor<1024xf32>, tensor<f32>, tensor<65536xf32>) outs(%e2 : tensor<65536x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %out: f32):
    %v = arith.mulf %a, %b : f32
    %w = arith.mulf %v, %c : f32
    %z = arith.mulf %w, %d : f32
    linalg.yield %z : f32
  } -> tensor<65536x1024xf32>
  return %n, %r : tensor<65536x1024xf32>, tensor<65536xf32>
}
func.func private @left_1(%n: tensor<65536x1024xf32>) -> tensor<1024xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%n : tensor<65536x1024xf32>) outs(%init : tensor<1024xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
// Where fusion is off, a kernel reads what another call computes.
// CHECK-LABEL: func.func @two_operations(
// CHECK: %[[R:.*]]:2 = call @f_0(
// CHECK: call @f_1(%[[R]]#1, 
func.func @two_operations(%x: tensor<?x64xf16>, %y: tensor<?x64xf16>) -> (tensor<?x64xf16>, tensor<1024xf32>) {
  %0:2 = call @f_0(%x) : (tensor<?x64xf16>) -> (tensor<?x64xf16>, tensor<?x64xf32>)
  // expected-remark @below {{f_1 reads what f_0 computes element by element: fusion is off}}
  %1 = call @f_1(%0#1, %y) : (tensor<?x64xf32>, tensor<?x64xf16>) -> tensor<1024xf32>
  return %0#0, %1 : tensor<?x64xf16>, tensor<1024xf32>
}
func.func private @f_0(%x: tensor<?x64xf16> {fuse.name = "x"}) -> (tensor<?x64xf16>, tensor<?x64xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0, 0, 0>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x64xf16>
  %er = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x64xf16>) outs(%init : tensor<?xf32>) attrs = {fuse.operation = 0 : i64} {
  ^bb0(%a: f16, %out: f32):
    %w = arith.extf %a : f16 to f32
    %v = arith.addf %out, %w : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %n = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %sum : tensor<?x64xf16>, tensor<?xf32>) outs(%e : tensor<?x64xf32>) attrs = {fuse.operation = 0 : i64} {
  ^bb0(%a: f16, %s: f32, %out: f32):
    %w = arith.extf %a : f16 to f32
    %v = arith.mulf %w, %s : f32
    linalg.yield %v : f32
  } -> tensor<?x64xf32>
  %eh = tensor.empty(%m) : tensor<?x64xf16>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%n : tensor<?x64xf32>) outs(%eh : tensor<?x64xf16>) attrs = {fuse.operation = 0 : i64} {
  ^bb0(%a: f32, %out: f16):
    %w = arith.truncf %a : f32 to f16
    linalg.yield %w : f16
  } -> tensor<?x64xf16>
  return %h, %n : tensor<?x64xf16>, tensor<?x64xf32>
}
func.func private @f_1(%n: tensor<?x64xf32>, %y: tensor<?x64xf16> {fuse.name = "y"}) -> tensor<1024xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%n, %y : tensor<?x64xf32>, tensor<?x64xf16>) outs(%init : tensor<1024xf32>) attrs = {fuse.operation = 3 : i64} {
  ^bb0(%a: f32, %b: f16, %out: f32):
    %w = arith.extf %b : f16 to f32
    %p = arith.mulf %a, %w : f32
    %v = arith.addf %out, %p : f32
    linalg.yield %v : f32
  } -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}
