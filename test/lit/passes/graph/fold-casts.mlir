// RUN: mlirfuse-opt --fuse-fold-casts --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s
// RUN: mlirfuse-opt --fuse-fold-casts=through-rounding=true --split-input-file %s | FileCheck %s --check-prefix=FAST

#id = affine_map<(d0) -> (d0)>
// A widening and a narrowing cast in two ops fold to nothing, and the sum reads the argument.
// CHECK-LABEL: func.func @there_and_back(
// CHECK-SAME: %[[X:.*]]: tensor<8xf16>)
// CHECK-NOT: arith.extf
// CHECK: linalg.generic {{.*}} ins(%[[X]] : tensor<8xf16>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: f16, %{{.*}}: f16):
// CHECK-NEXT: arith.addf %[[A]], %[[A]] : f16
// CHECK-NOT: linalg.generic
func.func @there_and_back(%x: tensor<8xf16>) -> tensor<8xf16> {
  %e32 = tensor.empty() : tensor<8xf32>
  %e16 = tensor.empty() : tensor<8xf16>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf16>) outs(%e32 : tensor<8xf32>) {
  ^bb0(%a: f16, %out: f32):
    %w = arith.extf %a : f16 to f32
    linalg.yield %w : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%0 : tensor<8xf32>) outs(%e16 : tensor<8xf16>) {
  ^bb0(%a: f32, %out: f16):
    %n = arith.truncf %a : f32 to f16
    %s = arith.addf %n, %n : f16
    linalg.yield %s : f16
  } -> tensor<8xf16>
  return %1 : tensor<8xf16>
}

// -----

#rows = affine_map<(d0, d1) -> (d0)>
#swap = affine_map<(d0, d1) -> (d1, d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>
// A widening cast of another element order folds into the reader's map; the reduction widens once.
// CHECK-LABEL: func.func @transposed(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xbf16>)
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}], iterator_types = ["parallel", "reduction"]} ins(%[[X]] : tensor<4x8xbf16>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: bf16
// CHECK-NEXT: arith.extf %[[A]] : bf16 to f64
// CHECK-NEXT: arith.addf
func.func @transposed(%x: tensor<4x8xbf16>) -> tensor<8xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<8x4xf32>
  %r = tensor.empty() : tensor<8xf64>
  %init = linalg.fill ins(%zero : f64) outs(%r : tensor<8xf64>) -> tensor<8xf64>
  %0 = linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xbf16>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: bf16, %out: f32):
    %w = arith.extf %a : bf16 to f32
    linalg.yield %w : f32
  } -> tensor<8x4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #rows], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<8x4xf32>) outs(%init : tensor<8xf64>) {
  ^bb0(%a: f32, %out: f64):
    %w = arith.extf %a : f32 to f64
    %s = arith.addf %out, %w : f64
    linalg.yield %s : f64
  } -> tensor<8xf64>
  return %1 : tensor<8xf64>
}

// -----

#id = affine_map<(d0) -> (d0)>
// A narrowing cast rounds: it stays, unless rounding may be skipped. Then only the returned value is rounded.
// CHECK-LABEL: func.func @rounded(
// CHECK: arith.truncf
// CHECK: arith.extf
// FAST-LABEL: func.func @rounded(
// FAST: math.exp %{{.*}} : f32
// FAST-NOT: arith.truncf
// FAST-NOT: arith.extf
// FAST: math.log %{{.*}} : f32
// FAST: arith.truncf
// FAST: return
// expected-remark @below {{no pair of casts can be folded}}
func.func @rounded(%x: tensor<8xf32>) -> tensor<8xf16> {
  %e = tensor.empty() : tensor<8xf16>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf16>) {
  ^bb0(%a: f32, %out: f16):
    %v = math.exp %a : f32
    %n = arith.truncf %v : f32 to f16
    linalg.yield %n : f16
  } -> tensor<8xf16>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%0 : tensor<8xf16>) outs(%e : tensor<8xf16>) {
  ^bb0(%a: f16, %out: f16):
    %w = arith.extf %a : f16 to f32
    %v = math.log %w : f32
    %n = arith.truncf %v : f32 to f16
    linalg.yield %n : f16
  } -> tensor<8xf16>
  return %1 : tensor<8xf16>
}

// -----

#id = affine_map<(d0) -> (d0)>
// bf16 holds no f16: what was widened from one and narrowed to the other stays two casts, in one body too.
// CHECK-LABEL: func.func @other_half(
// CHECK: arith.extf
// CHECK: arith.truncf
// An integer that was extended with zeros and is read as signed was never negative.
// CHECK-LABEL: func.func @integers(
// CHECK: ^bb0(%[[A:.*]]: i8,
// CHECK-NEXT: %[[F:.*]] = arith.uitofp %[[A]] : i8 to f32
// CHECK-NEXT: linalg.yield %[[F]]
// expected-remark @below {{no pair of casts can be folded}}
func.func @other_half(%x: tensor<8xf16>) -> tensor<8xbf16> {
  %e = tensor.empty() : tensor<8xbf16>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf16>) outs(%e : tensor<8xbf16>) {
  ^bb0(%a: f16, %out: bf16):
    %w = arith.extf %a : f16 to f32
    %n = arith.truncf %w : f32 to bf16
    linalg.yield %n : bf16
  } -> tensor<8xbf16>
  return %0 : tensor<8xbf16>
}
func.func @integers(%x: tensor<8xi8>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xi8>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: i8, %out: f32):
    %w = arith.extui %a : i8 to i32
    %f = arith.sitofp %w : i32 to f32
    linalg.yield %f : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>
// A remaining cast keeps its rounding mode.
// CHECK-LABEL: func.func @rounding_mode(
// CHECK: ^bb0(%[[A:.*]]: f32,
// CHECK-NEXT: arith.truncf %[[A]] toward_zero : f32 to f16
func.func @rounding_mode(%x: tensor<8xf32>) -> tensor<8xf16> {
  %e = tensor.empty() : tensor<8xf16>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf16>) {
  ^bb0(%a: f32, %out: f16):
    %w = arith.extf %a : f32 to f64
    %n = arith.truncf %w toward_zero : f64 to f16
    linalg.yield %n : f16
  } -> tensor<8xf16>
  return %0 : tensor<8xf16>
}

// -----

#id = affine_map<(d0) -> (d0)>
// A rounding to single precision always stays.
// CHECK-LABEL: func.func @single_precision(
// FAST-LABEL: func.func @single_precision(
// FAST: arith.mulf %{{.*}} : f64
// FAST: arith.truncf %{{.*}} : f64 to f32
// FAST: arith.extf %{{.*}} : f32 to f64
func.func @single_precision(%x: tensor<8xf64>) -> tensor<8xf64> {
  %e32 = tensor.empty() : tensor<8xf32>
  %e64 = tensor.empty() : tensor<8xf64>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf64>) outs(%e32 : tensor<8xf32>) {
  ^bb0(%a: f64, %out: f32):
    %m = arith.mulf %a, %a : f64
    %n = arith.truncf %m : f64 to f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%0 : tensor<8xf32>) outs(%e64 : tensor<8xf64>) {
  ^bb0(%a: f32, %out: f64):
    %w = arith.extf %a : f32 to f64
    linalg.yield %w : f64
  } -> tensor<8xf64>
  return %1 : tensor<8xf64>
}

// -----

#id = affine_map<(d0) -> (d0)>
// Where fusion is off, each of the user's calls casts by itself, and every rounding stays.
// CHECK-LABEL: func.func @casts_of_two_calls(
// CHECK: arith.mulf
// CHECK: arith.truncf
// CHECK: linalg.generic
// CHECK: arith.extf
// CHECK: linalg.generic
// CHECK: arith.truncf
// FAST-LABEL: func.func @casts_of_two_calls(
// FAST: arith.mulf
// FAST: arith.truncf
// FAST: linalg.generic
// FAST: arith.extf
// FAST: linalg.generic
// FAST: arith.truncf
func.func @casts_of_two_calls(%x: tensor<8xf32>) -> tensor<8xf16> {
  %e32 = tensor.empty() : tensor<8xf32>
  %e16 = tensor.empty() : tensor<8xf16>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e16 : tensor<8xf16>) attrs = {fuse.operation = 0 : i64} {
  ^bb0(%a: f32, %out: f16):
    %p = arith.mulf %a, %a : f32
    %n = arith.truncf %p : f32 to f16
    linalg.yield %n : f16
  } -> tensor<8xf16>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%0 : tensor<8xf16>) outs(%e32 : tensor<8xf32>) attrs = {fuse.operation = 1 : i64} {
  ^bb0(%a: f16, %out: f32):
    %w = arith.extf %a : f16 to f32
    linalg.yield %w : f32
  } -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%1 : tensor<8xf32>) outs(%e16 : tensor<8xf16>) attrs = {fuse.operation = 2 : i64} {
  ^bb0(%a: f32, %out: f16):
    %n = arith.truncf %a : f32 to f16
    linalg.yield %n : f16
  } -> tensor<8xf16>
  return %2 : tensor<8xf16>
}

// -----

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d1, d2)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
#id = affine_map<(d0, d1) -> (d0, d1)>
// A product of integers that are both widened by sign reads the narrow ones.
// CHECK-LABEL: func.func @product(
// CHECK-SAME: %[[X:.*]]: tensor<4x32xi8>, %[[W:.*]]: tensor<8x32xi8>, %[[U:.*]]: tensor<8x32xi16>
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[W]] : tensor<4x32xi8>, tensor<8x32xi8>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: i8, %[[B:.*]]: i8, %[[SUM:.*]]: i32):
// CHECK-DAG: %[[AW:.*]] = arith.extsi %[[A]] : i8 to i32
// CHECK-DAG: %[[BW:.*]] = arith.extsi %[[B]] : i8 to i32
// CHECK: %[[P:.*]] = arith.muli %[[AW]], %[[BW]] : i32
// CHECK-NEXT: arith.addi %[[SUM]], %[[P]] : i32
// Operands of two types stay wide.
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<4x32xi32>, tensor<8x32xi32>)
func.func @product(%x: tensor<4x32xi8>, %w: tensor<8x32xi8>, %u: tensor<8x32xi16>) -> (tensor<4x8xi32>, tensor<4x8xi32>) {
  %zero = arith.constant 0 : i32
  %ex = tensor.empty() : tensor<4x32xi32>
  %ew = tensor.empty() : tensor<8x32xi32>
  %ey = tensor.empty() : tensor<4x8xi32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x32xi8>) outs(%ex : tensor<4x32xi32>) {
  ^bb0(%a: i8, %out: i32):
    %n = arith.extsi %a : i8 to i32
    linalg.yield %n : i32
  } -> tensor<4x32xi32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<8x32xi8>) outs(%ew : tensor<8x32xi32>) {
  ^bb0(%a: i8, %out: i32):
    %n = arith.extsi %a : i8 to i32
    linalg.yield %n : i32
  } -> tensor<8x32xi32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%u : tensor<8x32xi16>) outs(%ew : tensor<8x32xi32>) {
  ^bb0(%a: i16, %out: i32):
    %n = arith.extsi %a : i16 to i32
    linalg.yield %n : i32
  } -> tensor<8x32xi32>
  %3 = linalg.fill ins(%zero : i32) outs(%ey : tensor<4x8xi32>) -> tensor<4x8xi32>
  %4 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%0, %1 : tensor<4x32xi32>, tensor<8x32xi32>) outs(%3 : tensor<4x8xi32>) {
  ^bb0(%l: i32, %r: i32, %sum: i32):
    %p = arith.muli %l, %r : i32
    %s = arith.addi %sum, %p : i32
    linalg.yield %s : i32
  } -> tensor<4x8xi32>
  %5 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%0, %2 : tensor<4x32xi32>, tensor<8x32xi32>) outs(%3 : tensor<4x8xi32>) {
  ^bb0(%l: i32, %r: i32, %sum: i32):
    %p = arith.muli %l, %r : i32
    %s = arith.addi %sum, %p : i32
    linalg.yield %s : i32
  } -> tensor<4x8xi32>
  return %4, %5 : tensor<4x8xi32>, tensor<4x8xi32>
}
