// RUN: mlirfuse-opt --fuse-segment --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

// Casts of two arguments start segments apart; the sum that reads both, and what follows it, makes them one.
// CHECK-LABEL: func.func @residual(
// CHECK: call @residual_0(
// CHECK-NOT: call
// CHECK: return
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @residual(%x: tensor<?x64xf16>, %r: tensor<?x64xf16>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xf16>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<?x64xf16>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%a: f16, %out: f32):
    %w = arith.extf %a : f16 to f32
    linalg.yield %w : f32
  } -> tensor<?x64xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%r : tensor<?x64xf16>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%a: f16, %out: f32):
    %w = arith.extf %a : f16 to f32
    linalg.yield %w : f32
  } -> tensor<?x64xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0, %1 : tensor<?x64xf32>, tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x64xf32>
  %zero = arith.constant 0.0 : f32
  %t = tensor.empty(%m) : tensor<?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%t : tensor<?xf32>) -> tensor<?xf32>
  %3 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%2 : tensor<?x64xf32>) outs(%z : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %3 : tensor<?xf32>
}

// -----

// Either result starts from an argument of its own; in the end both read all of %x, which one kernel reads once.
// CHECK-LABEL: func.func @shared(
// CHECK: %[[BOTH:.*]]:2 = call @shared_0(
// CHECK-NOT: call
// CHECK: return %[[BOTH]]#0, %[[BOTH]]#1
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @shared(%a: tensor<32x64xf32>, %b: tensor<32x64xf32>, %x: tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<32x64xf32>) {
  %e = tensor.empty() : tensor<32x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%a : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %out: f32):
    %s = math.exp %v0 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0, %x : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %v1: f32, %out: f32):
    %s = arith.addf %v0, %v1 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%b : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %out: f32):
    %s = math.exp %v0 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%2, %x : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %v1: f32, %out: f32):
    %s = arith.addf %v0, %v1 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %1, %3 : tensor<32x64xf32>, tensor<32x64xf32>
}

// -----

// A shared vector is no reason to share a kernel, as reading it twice is cheap.
// CHECK-LABEL: func.func @vector(
// CHECK: call @vector_0(
// CHECK: call @vector_1(
#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
func.func @vector(%a: tensor<32x64xf32>, %b: tensor<32x64xf32>, %w: tensor<64xf32>) -> (tensor<32x64xf32>, tensor<32x64xf32>) {
  %e = tensor.empty() : tensor<32x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%a : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %out: f32):
    %s = math.exp %v0 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %1 = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0, %w : tensor<32x64xf32>, tensor<64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %v1: f32, %out: f32):
    %s = arith.addf %v0, %v1 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%b : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %out: f32):
    %s = math.exp %v0 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %3 = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
       ins(%2, %w : tensor<32x64xf32>, tensor<64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %v1: f32, %out: f32):
    %s = arith.addf %v0, %v1 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %1, %3 : tensor<32x64xf32>, tensor<32x64xf32>
}

// -----

// Where one of them reduces, they stay apart.
// CHECK-LABEL: func.func @reduced(
// CHECK: call @reduced_0(
// CHECK: call @reduced_1(
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @reduced(%a: tensor<32x64xf32>, %b: tensor<32x64xf32>, %x: tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<32xf32>) {
  %e = tensor.empty() : tensor<32x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%a : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %out: f32):
    %s = math.exp %v0 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0, %x : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %v1: f32, %out: f32):
    %s = arith.addf %v0, %v1 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%b : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %out: f32):
    %s = math.exp %v0 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%2, %x : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %v1: f32, %out: f32):
    %s = arith.addf %v0, %v1 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %zero = arith.constant 0.0 : f32
  %t = tensor.empty() : tensor<32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%t : tensor<32xf32>) -> tensor<32xf32>
  %4 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%3 : tensor<32x64xf32>) outs(%z : tensor<32xf32>) {
  ^bb0(%v0: f32, %out: f32):
    %s = arith.addf %out, %v0 : f32
    linalg.yield %s : f32
  } -> tensor<32xf32>
  return %1, %4 : tensor<32x64xf32>, tensor<32xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
// Only views of an operand join the contraction. The transpose is in another kernel, and an unused op in none.
// CHECK-LABEL: func.func @beside
// CHECK-COUNT-2: call @beside_
// CHECK-NOT: call
// CHECK-LABEL: func.func private @beside_0
// CHECK-NOT: math.exp
// CHECK-LABEL: func.func private @beside_1
// CHECK-NOT: math.exp
func.func @beside(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %t = linalg.transpose ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) permutation = [1, 0]
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %x : tensor<64x64xf32>, tensor<64x64xf32>) outs(%init : tensor<64x64xf32>) {
  ^bb0(%v: f32, %w: f32, %out: f32):
    %m = arith.mulf %v, %w : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  %u = linalg.transpose ins(%t : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) permutation = [1, 0]
  %dead = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%p : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %w = math.exp %v : f32
    linalg.yield %w : f32
  } -> tensor<64x64xf32>
  %log = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
         ins(%u : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %w = math.log %v : f32
    linalg.yield %w : f32
  } -> tensor<64x64xf32>
  return %p, %log : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// An op that reads three kernels joins the last of them, and so does what it alone shares with it; the sum has no loops in
// common with that, and stays.
// CHECK-LABEL: func.func @reads_a_later_kernel_too(
// CHECK-COUNT-2: call @reads_a_later_kernel_too_
// CHECK-NOT: call
// CHECK-LABEL: func.func private @reads_a_later_kernel_too_0(
// CHECK-NOT: math.exp
// CHECK: math.log
// CHECK-LABEL: func.func private @reads_a_later_kernel_too_1(
// CHECK: math.exp
#id = affine_map<(d0, d1) -> (d0, d1)>
#all = affine_map<(d0, d1) -> ()>
func.func @reads_a_later_kernel_too(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%n) : tensor<?x64xf32>
  %exp = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
         ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<?x64xf32>
  %log = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
         ins(%y : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.log %v : f32
    linalg.yield %r : f32
  } -> tensor<?x64xf32>
  %t = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%t : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction", "reduction"]}
         ins(%log : tensor<?x64xf32>) outs(%init : tensor<f32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  %scaled = linalg.generic {indexing_maps = [#id, #all, #id], iterator_types = ["parallel", "parallel"]}
            ins(%log, %sum : tensor<?x64xf32>, tensor<f32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%v: f32, %w: f32, %out: f32):
    %r = arith.mulf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<?x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%scaled, %log, %exp : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32, %out: f32):
    %r = math.fma %u, %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

// Of three kernels that an op reads all become its own, whatever kernel is between them.
// CHECK-LABEL: func.func @three_with_another_between(
// CHECK-COUNT-2: call @three_with_another_between_
// CHECK-NOT: call
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @three_with_another_between(%a: tensor<32x64xf32>, %b: tensor<32x64xf32>, %other: tensor<5x7xf32>,
                                      %c: tensor<32x64xf32>) -> (tensor<5x7xf32>, tensor<32x64xf32>) {
  %e = tensor.empty() : tensor<32x64xf32>
  %f = tensor.empty() : tensor<5x7xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%a : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<32x64xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%b : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<32x64xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%other : tensor<5x7xf32>) outs(%f : tensor<5x7xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<5x7xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%c : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<32x64xf32>
  %4 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0, %1, %3 : tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32, %out: f32):
    %r = math.fma %u, %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<32x64xf32>
  return %2, %4 : tensor<5x7xf32>, tensor<32x64xf32>
}
