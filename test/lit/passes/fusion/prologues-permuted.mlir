// RUN: mlirfuse-opt --fuse-prologues --fuse-permute-operands --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(i, k, c) -> (i, k, c)>
#ikc = affine_map<(i, j, c, k) -> (i, k, c)>
#jkc = affine_map<(i, j, c, k) -> (j, k, c)>
#ijc = affine_map<(i, j, c, k) -> (i, j, c)>
// Elements along k lie apart. The kernel of operand A stores the operand so that tensor maps take tiles of it, in place of
// becoming a prologue of a kernel that loads element by element.
// CHECK-LABEL: func.func @large(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<384x384x128xbf16>, %[[Y:[a-z0-9]+]]: tensor<384x384x128xbf16>
// CHECK: %[[A:.*]] = call @f_0(%[[X]]) : (tensor<384x384x128xbf16>) -> tensor<128x384x384xbf16>
// CHECK: %[[B:.*]] = call @f_1_operand1(%[[Y]]) : (tensor<384x384x128xbf16>) -> tensor<128x384x384xbf16>
// CHECK: call @f_1(%[[A]], %[[B]])
func.func @large(%x: tensor<384x384x128xbf16>, %y: tensor<384x384x128xbf16>) -> tensor<384x384x128xf32> {
  %0 = call @f_0(%x) : (tensor<384x384x128xbf16>) -> tensor<384x384x128xbf16>
  // expected-remark-re @below {{f_0 stays apart from f_1: one kernel is predicted to take {{.*}} us, two {{.*}} us}}
  // expected-remark @below {{operand 0 of f_1 is computed in another order by f_0, operand 1 of f_1 is copied to another order}}
  %1 = call @f_1(%0, %y) : (tensor<384x384x128xbf16>, tensor<384x384x128xbf16>) -> tensor<384x384x128xf32>
  return %1 : tensor<384x384x128xf32>
}
func.func private @f_0(%x: tensor<384x384x128xbf16> {fuse.align = 16 : i64}) -> tensor<384x384x128xbf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<384x384x128xbf16>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x : tensor<384x384x128xbf16>) outs(%e : tensor<384x384x128xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %w = arith.extf %in : bf16 to f32
    %s = arith.mulf %w, %w : f32
    %v = arith.truncf %s : f32 to bf16
    linalg.yield %v : bf16
  } -> tensor<384x384x128xbf16>
  return %0 : tensor<384x384x128xbf16>
}
func.func private @f_1(%x: tensor<384x384x128xbf16> {fuse.align = 16 : i64}, %y: tensor<384x384x128xbf16> {fuse.align = 16 : i64}) -> tensor<384x384x128xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<384x384x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<384x384x128xf32>) -> tensor<384x384x128xf32>
  %0 = linalg.generic {indexing_maps = [#ikc, #jkc, #ijc], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
       ins(%x, %y : tensor<384x384x128xbf16>, tensor<384x384x128xbf16>) outs(%init : tensor<384x384x128xf32>) {
  ^bb0(%p: bf16, %q: bf16, %out: f32):
    %l = arith.extf %p : bf16 to f32
    %r = arith.extf %q : bf16 to f32
    %m = arith.mulf %l, %r : f32
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
// A second kernel waits longer for the first than the one takes.
// CHECK-LABEL: func.func @small(
// CHECK-NEXT: call @f_0(
// CHECK-NEXT: return
func.func @small(%x: tensor<32x32x16xbf16>, %y: tensor<32x32x16xbf16>) -> tensor<32x32x16xf32> {
  %0 = call @f_0(%x) : (tensor<32x32x16xbf16>) -> tensor<32x32x16xbf16>
  // expected-remark @below {{f_0 becomes a prologue of f_1}}
  %1 = call @f_1(%0, %y) : (tensor<32x32x16xbf16>, tensor<32x32x16xbf16>) -> tensor<32x32x16xf32>
  return %1 : tensor<32x32x16xf32>
}
func.func private @f_0(%x: tensor<32x32x16xbf16> {fuse.align = 16 : i64}) -> tensor<32x32x16xbf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<32x32x16xbf16>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x : tensor<32x32x16xbf16>) outs(%e : tensor<32x32x16xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %w = arith.extf %in : bf16 to f32
    %s = arith.mulf %w, %w : f32
    %v = arith.truncf %s : f32 to bf16
    linalg.yield %v : bf16
  } -> tensor<32x32x16xbf16>
  return %0 : tensor<32x32x16xbf16>
}
func.func private @f_1(%x: tensor<32x32x16xbf16> {fuse.align = 16 : i64}, %y: tensor<32x32x16xbf16> {fuse.align = 16 : i64}) -> tensor<32x32x16xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x32x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<32x32x16xf32>) -> tensor<32x32x16xf32>
  %0 = linalg.generic {indexing_maps = [#ikc, #jkc, #ijc], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
       ins(%x, %y : tensor<32x32x16xbf16>, tensor<32x32x16xbf16>) outs(%init : tensor<32x32x16xf32>) {
  ^bb0(%p: bf16, %q: bf16, %out: f32):
    %l = arith.extf %p : bf16 to f32
    %r = arith.extf %q : bf16 to f32
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<32x32x16xf32>
  return %0 : tensor<32x32x16xf32>
}

// -----

#id = affine_map<(i, k, c) -> (i, k, c)>
#ikc = affine_map<(i, j, c, k) -> (i, k, c)>
#jkc = affine_map<(i, j, c, k) -> (j, k, c)>
#ijc = affine_map<(i, j, c, k) -> (i, j, c)>
// Of an unknown number of products no other order is tried.
// CHECK-LABEL: func.func @dynamic(
// CHECK-NEXT: call @f_0({{.*}} -> tensor<384x384x?xbf16>
// CHECK-NEXT: call @f_1({{.*}} : (tensor<384x384x?xbf16>, tensor<384x384x?xbf16>)
func.func @dynamic(%x: tensor<384x384x?xbf16>, %y: tensor<384x384x?xbf16>) -> tensor<384x384x?xf32> {
  %0 = call @f_0(%x) : (tensor<384x384x?xbf16>) -> tensor<384x384x?xbf16>
  // expected-remark @below {{f_0 stays apart from f_1: one kernel is predicted to take}}
  // expected-remark @below {{f_1 reads arrays in their own orders: nobody says what a dynamic extent will be}}
  %1 = call @f_1(%0, %y) : (tensor<384x384x?xbf16>, tensor<384x384x?xbf16>) -> tensor<384x384x?xf32>
  return %1 : tensor<384x384x?xf32>
}
func.func private @f_0(%x: tensor<384x384x?xbf16> {fuse.align = 16 : i64}) -> tensor<384x384x?xbf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 2>} {
  %two = arith.constant 2 : index
  %c = tensor.dim %x, %two : tensor<384x384x?xbf16>
  %e = tensor.empty(%c) : tensor<384x384x?xbf16>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x : tensor<384x384x?xbf16>) outs(%e : tensor<384x384x?xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %w = arith.extf %in : bf16 to f32
    %s = arith.mulf %w, %w : f32
    %v = arith.truncf %s : f32 to bf16
    linalg.yield %v : bf16
  } -> tensor<384x384x?xbf16>
  return %0 : tensor<384x384x?xbf16>
}
func.func private @f_1(%x: tensor<384x384x?xbf16> {fuse.align = 16 : i64}, %y: tensor<384x384x?xbf16> {fuse.align = 16 : i64}) -> tensor<384x384x?xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 1, 2>} {
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2 : index
  %c = tensor.dim %y, %two : tensor<384x384x?xbf16>
  %e = tensor.empty(%c) : tensor<384x384x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<384x384x?xf32>) -> tensor<384x384x?xf32>
  %0 = linalg.generic {indexing_maps = [#ikc, #jkc, #ijc], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
       ins(%x, %y : tensor<384x384x?xbf16>, tensor<384x384x?xbf16>) outs(%init : tensor<384x384x?xf32>) {
  ^bb0(%p: bf16, %q: bf16, %out: f32):
    %l = arith.extf %p : bf16 to f32
    %r = arith.extf %q : bf16 to f32
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<384x384x?xf32>
  return %0 : tensor<384x384x?xf32>
}
