// RUN: mlirfuse-opt --fuse-prologues --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
// Weights are read once, as bytes.
// CHECK-LABEL: func.func @dequantised(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<64x256xf16>, %[[Q:[a-z0-9]+]]: tensor<512x256xi8>, %[[S:[a-z0-9]+]]: tensor<512xf16>
// CHECK-NEXT: %[[Y:.*]] = call @f_0(%[[Q]], %[[S]], %[[X]])
// CHECK-NEXT: return %[[Y]]
// CHECK-LABEL: func.func private @f_0(
// CHECK-SAME: -> tensor<64x512xf32>
// CHECK: %[[W:.*]] = linalg.generic {{.*}}["parallel", "parallel"]
// CHECK: arith.sitofp
// CHECK: linalg.generic {{.*}}["parallel", "parallel", "reduction"]} ins(%{{.*}}, %[[W]] :
// CHECK-NOT: func.func private @f_1
func.func @dequantised(%x: tensor<64x256xf16>, %q: tensor<512x256xi8>, %scale: tensor<512xf16>) -> tensor<64x512xf32> {
  %0 = call @f_0(%q, %scale) : (tensor<512x256xi8>, tensor<512xf16>) -> tensor<512x256xf16>
  // expected-remark @below {{f_0 becomes a prologue of f_1}}
  %1 = call @f_1(%x, %0) : (tensor<64x256xf16>, tensor<512x256xf16>) -> tensor<64x512xf32>
  return %1 : tensor<64x512xf32>
}
func.func private @f_0(%q: tensor<512x256xi8> {fuse.align = 16 : i64}, %scale: tensor<512xf16> {fuse.align = 16 : i64}) -> tensor<512x256xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<512x256xf16>
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
       ins(%q, %scale : tensor<512x256xi8>, tensor<512xf16>) outs(%e : tensor<512x256xf16>) {
  ^bb0(%a: i8, %b: f16, %out: f16):
    %f = arith.sitofp %a : i8 to f16
    %v = arith.mulf %f, %b : f16
    linalg.yield %v : f16
  } -> tensor<512x256xf16>
  return %0 : tensor<512x256xf16>
}
func.func private @f_1(%x: tensor<64x256xf16> {fuse.align = 16 : i64}, %w: tensor<512x256xf16> {fuse.align = 16 : i64}) -> tensor<64x512xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x512xf32>) -> tensor<64x512xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<64x256xf16>, tensor<512x256xf16>) outs(%init : tensor<64x512xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x512xf32>
  return %0 : tensor<64x512xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
// Each of 64 columns of tiles would compute operand A again.
// CHECK-LABEL: func.func @many_tiles(
// CHECK: call @f_0
// CHECK: call @f_1
func.func @many_tiles(%x: tensor<8192x8192xf32>, %w: tensor<8192x8192xf16>) -> tensor<8192x8192xf32> {
  %0 = call @f_0(%x) : (tensor<8192x8192xf32>) -> tensor<8192x8192xf16>
  // expected-remark @below {{f_0 stays apart from f_1: one kernel is predicted to take}}
  %1 = call @f_1(%0, %w) : (tensor<8192x8192xf16>, tensor<8192x8192xf16>) -> tensor<8192x8192xf32>
  return %1 : tensor<8192x8192xf32>
}
func.func private @f_0(%x: tensor<8192x8192xf32> {fuse.align = 16 : i64}) -> tensor<8192x8192xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<8192x8192xf16>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<8192x8192xf32>) outs(%e : tensor<8192x8192xf16>) {
  ^bb0(%a: f32, %out: f16):
    %s = arith.mulf %a, %a : f32
    %v = arith.truncf %s : f32 to f16
    linalg.yield %v : f16
  } -> tensor<8192x8192xf16>
  return %0 : tensor<8192x8192xf16>
}
func.func private @f_1(%x: tensor<8192x8192xf16> {fuse.align = 16 : i64}, %w: tensor<8192x8192xf16> {fuse.align = 16 : i64}) -> tensor<8192x8192xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8192x8192xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<8192x8192xf16>, tensor<8192x8192xf16>) outs(%init : tensor<8192x8192xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<8192x8192xf32>
  return %0 : tensor<8192x8192xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @used_elsewhere(
// CHECK: call @f_0
// CHECK: call @f_1
func.func @used_elsewhere(%x: tensor<64x256xf32>, %w: tensor<512x256xf16>) -> (tensor<64x512xf32>, tensor<64x256xf16>) {
  %0 = call @f_0(%x) : (tensor<64x256xf32>) -> tensor<64x256xf16>
  // expected-remark @below {{f_0 stays apart from f_1: its results are used elsewhere as well}}
  %1 = call @f_1(%0, %w) : (tensor<64x256xf16>, tensor<512x256xf16>) -> tensor<64x512xf32>
  return %1, %0 : tensor<64x512xf32>, tensor<64x256xf16>
}
func.func private @f_0(%x: tensor<64x256xf32> {fuse.align = 16 : i64}) -> tensor<64x256xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<64x256xf16>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<64x256xf32>) outs(%e : tensor<64x256xf16>) {
  ^bb0(%a: f32, %out: f16):
    %s = arith.mulf %a, %a : f32
    %v = arith.truncf %s : f32 to f16
    linalg.yield %v : f16
  } -> tensor<64x256xf16>
  return %0 : tensor<64x256xf16>
}
func.func private @f_1(%x: tensor<64x256xf16> {fuse.align = 16 : i64}, %w: tensor<512x256xf16> {fuse.align = 16 : i64}) -> tensor<64x512xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x512xf32>) -> tensor<64x512xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<64x256xf16>, tensor<512x256xf16>) outs(%init : tensor<64x512xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x512xf32>
  return %0 : tensor<64x512xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
// One op would be computed on tiles of either operand.
// CHECK-LABEL: func.func @both_operands(
// CHECK: call @f_0
// CHECK: call @f_1
func.func @both_operands(%x: tensor<64x256xf32>) -> tensor<64x64xf32> {
  %0 = call @f_0(%x) : (tensor<64x256xf32>) -> tensor<64x256xf16>
  // expected-remark @below {{two of its loops are one dimension of its producers}}
  %1 = call @f_1(%0, %0) : (tensor<64x256xf16>, tensor<64x256xf16>) -> tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}
func.func private @f_0(%x: tensor<64x256xf32> {fuse.align = 16 : i64}) -> tensor<64x256xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<64x256xf16>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<64x256xf32>) outs(%e : tensor<64x256xf16>) {
  ^bb0(%a: f32, %out: f16):
    %s = arith.mulf %a, %a : f32
    %v = arith.truncf %s : f32 to f16
    linalg.yield %v : f16
  } -> tensor<64x256xf16>
  return %0 : tensor<64x256xf16>
}
func.func private @f_1(%x: tensor<64x256xf16> {fuse.align = 16 : i64}, %w: tensor<64x256xf16> {fuse.align = 16 : i64}) -> tensor<64x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<64x256xf16>, tensor<64x256xf16>) outs(%init : tensor<64x64xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

// The first kernel contains a reduction.
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @reduction(
// CHECK: call @f_0
// CHECK: call @f_1
func.func @reduction(%x: tensor<64x256x8xf16>, %w: tensor<512x256xf16>) -> tensor<64x512xf32> {
  %0 = call @f_0(%x) : (tensor<64x256x8xf16>) -> tensor<64x256xf16>
  // expected-remark @below {{f_0 stays apart from f_1: it contains a reduction}}
  %1 = call @f_1(%0, %w) : (tensor<64x256xf16>, tensor<512x256xf16>) -> tensor<64x512xf32>
  return %1 : tensor<64x512xf32>
}
func.func private @f_0(%x: tensor<64x256x8xf16>) -> tensor<64x256xf16> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<64x256xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e : tensor<64x256xf16>) -> tensor<64x256xf16>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x : tensor<64x256x8xf16>) outs(%init : tensor<64x256xf16>) {
  ^bb0(%a: f16, %out: f16):
    %s = arith.addf %out, %a : f16
    linalg.yield %s : f16
  } -> tensor<64x256xf16>
  return %0 : tensor<64x256xf16>
}
func.func private @f_1(%x: tensor<64x256xf16> {fuse.align = 16 : i64}, %w: tensor<512x256xf16> {fuse.align = 16 : i64}) -> tensor<64x512xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x512xf32>) -> tensor<64x512xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<64x256xf16>, tensor<512x256xf16>) outs(%init : tensor<64x512xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x512xf32>
  return %0 : tensor<64x512xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
// Where fusion is off, an operand that another call made comes from a kernel of its own.
// CHECK-LABEL: func.func @two_operations(
// CHECK: call @f_0(
// CHECK: call @f_1(
func.func @two_operations(%x: tensor<64x256xf16>, %q: tensor<512x256xi8>, %scale: tensor<512xf16>) -> tensor<64x512xf32> {
  %0 = call @f_0(%q, %scale) : (tensor<512x256xi8>, tensor<512xf16>) -> tensor<512x256xf16>
  // expected-remark @below {{f_0 stays apart from f_1: fusion is off}}
  %1 = call @f_1(%x, %0) : (tensor<64x256xf16>, tensor<512x256xf16>) -> tensor<64x512xf32>
  return %1 : tensor<64x512xf32>
}
func.func private @f_0(%q: tensor<512x256xi8> {fuse.align = 16 : i64}, %scale: tensor<512xf16> {fuse.align = 16 : i64}) -> tensor<512x256xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<512x256xf16>
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
       ins(%q, %scale : tensor<512x256xi8>, tensor<512xf16>) outs(%e : tensor<512x256xf16>) attrs = {fuse.operation = 0 : i64} {
  ^bb0(%a: i8, %b: f16, %out: f16):
    %f = arith.sitofp %a : i8 to f16
    %v = arith.mulf %f, %b : f16
    linalg.yield %v : f16
  } -> tensor<512x256xf16>
  return %0 : tensor<512x256xf16>
}
func.func private @f_1(%x: tensor<64x256xf16> {fuse.align = 16 : i64}, %w: tensor<512x256xf16> {fuse.align = 16 : i64}) -> tensor<64x512xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x512xf32>) -> tensor<64x512xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<64x256xf16>, tensor<512x256xf16>) outs(%init : tensor<64x512xf32>) attrs = {fuse.operation = 1 : i64} {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x512xf32>
  return %0 : tensor<64x512xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
// Casts and scales that belong to the call of the product are in its kernel all the same.
// CHECK-LABEL: func.func @one_operation(
// CHECK: call @f_0(
// CHECK-NOT: call @f_1(
// CHECK: return
func.func @one_operation(%x: tensor<64x256xf16>, %q: tensor<512x256xi8>, %scale: tensor<512xf16>) -> tensor<64x512xf32> {
  %0 = call @f_0(%q, %scale) : (tensor<512x256xi8>, tensor<512xf16>) -> tensor<512x256xf16>
  // expected-remark @below {{f_0 becomes a prologue of f_1}}
  %1 = call @f_1(%x, %0) : (tensor<64x256xf16>, tensor<512x256xf16>) -> tensor<64x512xf32>
  return %1 : tensor<64x512xf32>
}
func.func private @f_0(%q: tensor<512x256xi8> {fuse.align = 16 : i64}, %scale: tensor<512xf16> {fuse.align = 16 : i64}) -> tensor<512x256xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<512x256xf16>
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
       ins(%q, %scale : tensor<512x256xi8>, tensor<512xf16>) outs(%e : tensor<512x256xf16>) attrs = {fuse.operation = 0 : i64} {
  ^bb0(%a: i8, %b: f16, %out: f16):
    %f = arith.sitofp %a : i8 to f16
    %v = arith.mulf %f, %b : f16
    linalg.yield %v : f16
  } -> tensor<512x256xf16>
  return %0 : tensor<512x256xf16>
}
func.func private @f_1(%x: tensor<64x256xf16> {fuse.align = 16 : i64}, %w: tensor<512x256xf16> {fuse.align = 16 : i64}) -> tensor<64x512xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x512xf32>) -> tensor<64x512xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<64x256xf16>, tensor<512x256xf16>) outs(%init : tensor<64x512xf32>) attrs = {fuse.operation = 0 : i64} {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x512xf32>
  return %0 : tensor<64x512xf32>
}
