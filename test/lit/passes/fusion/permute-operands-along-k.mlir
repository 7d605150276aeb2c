// RUN: mlirfuse-opt --fuse-permute-operands --target=sm_90a --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#r = affine_map<(m, n, k) -> (m, n)>

// wgmma multiplies bytes that are contiguous along k in both operands: a copy of the weights is.
// CHECK-LABEL: func.func @bytes(
// CHECK-NEXT: %[[C:.*]] = call @bytes_0_operand1(%arg1) : (tensor<4096x4096xi8>) -> tensor<4096x4096xi8>
// CHECK-NEXT: call @bytes_0(%arg0, %[[C]])
func.func @bytes(%x: tensor<2048x4096xi8>, %y: tensor<4096x4096xi8>) -> tensor<2048x4096xi32> {
  // expected-remark-re @below {{operand 1 of bytes_0 is copied to another order: {{.*}} us as it is, {{.*}} us permuted}}
  %0 = call @bytes_0(%x, %y) : (tensor<2048x4096xi8>, tensor<4096x4096xi8>) -> tensor<2048x4096xi32>
  return %0 : tensor<2048x4096xi32>
}
func.func private @bytes_0(%x: tensor<2048x4096xi8> {fuse.align = 16 : i64}, %y: tensor<4096x4096xi8> {fuse.align = 16 : i64}) -> tensor<2048x4096xi32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<2048x4096xi32>
  %init = linalg.fill ins(%zero : i32) outs(%e : tensor<2048x4096xi32>) -> tensor<2048x4096xi32>
  %0 = linalg.generic {indexing_maps = [#a, #b, #r], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %y : tensor<2048x4096xi8>, tensor<4096x4096xi8>) outs(%init : tensor<2048x4096xi32>) {
  ^bb0(%p: i8, %q: i8, %out: i32):
    %f = arith.extsi %p : i8 to i32
    %g = arith.extsi %q : i8 to i32
    %t = arith.muli %f, %g : i32
    %s = arith.addi %out, %t : i32
    linalg.yield %s : i32
  } -> tensor<2048x4096xi32>
  return %0 : tensor<2048x4096xi32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#r = affine_map<(m, n, k) -> (m, n)>

// Extents that vary from call to call have a hint; the weights have none of these.
// CHECK-LABEL: func.func @batches(
// CHECK-NEXT: %[[C:.*]] = call @batches_0_operand1(%arg1) : (tensor<4096x4096xf8E4M3FN>) -> tensor<4096x4096xf8E4M3FN>
// CHECK-NEXT: call @batches_0(%arg0, %[[C]])
func.func @batches(%x: tensor<?x4096xf8E4M3FN>, %y: tensor<4096x4096xf8E4M3FN>) -> tensor<?x4096xf32> {
  // expected-remark-re @below {{operand 1 of batches_0 is copied to another order: {{.*}} us as it is, {{.*}} us permuted}}
  %0 = call @batches_0(%x, %y) : (tensor<?x4096xf8E4M3FN>, tensor<4096x4096xf8E4M3FN>) -> tensor<?x4096xf32>
  return %0 : tensor<?x4096xf32>
}
func.func private @batches_0(%x: tensor<?x4096xf8E4M3FN> {fuse.align = 16 : i64, fuse.extent_hints = array<i64: 2048, 0>}, %y: tensor<4096x4096xf8E4M3FN> {fuse.align = 16 : i64}) -> tensor<?x4096xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?x4096xf8E4M3FN>
  %e = tensor.empty(%d) : tensor<?x4096xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  %0 = linalg.generic {indexing_maps = [#a, #b, #r], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %y : tensor<?x4096xf8E4M3FN>, tensor<4096x4096xf8E4M3FN>) outs(%init : tensor<?x4096xf32>) {
  ^bb0(%p: f8E4M3FN, %q: f8E4M3FN, %out: f32):
    %f = arith.extf %p : f8E4M3FN to f32
    %g = arith.extf %q : f8E4M3FN to f32
    %t = arith.mulf %f, %g : f32
    %s = arith.addf %out, %t : f32
    linalg.yield %s : f32
  } -> tensor<?x4096xf32>
  return %0 : tensor<?x4096xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#r = affine_map<(m, n, k) -> (m, n)>

// A copy of the weights would take longer than reading them as they are.
// CHECK-LABEL: func.func @few_rows(
// CHECK-NEXT: call @few_rows_0(%arg0, %arg1)
func.func @few_rows(%x: tensor<16x4096xi8>, %y: tensor<4096x4096xi8>) -> tensor<16x4096xi32> {
  // expected-remark-re @below {{few_rows_0 reads arrays in their own orders: {{.*}} us as it is, {{.*}} us permuted}}
  %0 = call @few_rows_0(%x, %y) : (tensor<16x4096xi8>, tensor<4096x4096xi8>) -> tensor<16x4096xi32>
  return %0 : tensor<16x4096xi32>
}
func.func private @few_rows_0(%x: tensor<16x4096xi8> {fuse.align = 16 : i64}, %y: tensor<4096x4096xi8> {fuse.align = 16 : i64}) -> tensor<16x4096xi32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<16x4096xi32>
  %init = linalg.fill ins(%zero : i32) outs(%e : tensor<16x4096xi32>) -> tensor<16x4096xi32>
  %0 = linalg.generic {indexing_maps = [#a, #b, #r], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %y : tensor<16x4096xi8>, tensor<4096x4096xi8>) outs(%init : tensor<16x4096xi32>) {
  ^bb0(%p: i8, %q: i8, %out: i32):
    %f = arith.extsi %p : i8 to i32
    %g = arith.extsi %q : i8 to i32
    %t = arith.muli %f, %g : i32
    %s = arith.addi %out, %t : i32
    linalg.yield %s : i32
  } -> tensor<16x4096xi32>
  return %0 : tensor<16x4096xi32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#r = affine_map<(m, n, k) -> (m, n)>

// Both operands are contiguous along k already.
// CHECK-LABEL: func.func @along_k(
// CHECK-NEXT: call @along_k_0(%arg0, %arg1)
func.func @along_k(%x: tensor<2048x4096xi8>, %y: tensor<4096x4096xi8>) -> tensor<2048x4096xi32> {
  %0 = call @along_k_0(%x, %y) : (tensor<2048x4096xi8>, tensor<4096x4096xi8>) -> tensor<2048x4096xi32>
  return %0 : tensor<2048x4096xi32>
}
func.func private @along_k_0(%x: tensor<2048x4096xi8> {fuse.align = 16 : i64}, %y: tensor<4096x4096xi8> {fuse.align = 16 : i64}) -> tensor<2048x4096xi32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<2048x4096xi32>
  %init = linalg.fill ins(%zero : i32) outs(%e : tensor<2048x4096xi32>) -> tensor<2048x4096xi32>
  %0 = linalg.generic {indexing_maps = [#a, #b, #r], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %y : tensor<2048x4096xi8>, tensor<4096x4096xi8>) outs(%init : tensor<2048x4096xi32>) {
  ^bb0(%p: i8, %q: i8, %out: i32):
    %f = arith.extsi %p : i8 to i32
    %g = arith.extsi %q : i8 to i32
    %t = arith.muli %f, %g : i32
    %s = arith.addi %out, %t : i32
    linalg.yield %s : i32
  } -> tensor<2048x4096xi32>
  return %0 : tensor<2048x4096xi32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#r = affine_map<(m, n, k) -> (m, n)>

// wgmma multiplies halves in any order.
// CHECK-LABEL: func.func @halves(
// CHECK-NEXT: call @halves_0(%arg0, %arg1)
func.func @halves(%x: tensor<2048x4096xbf16>, %y: tensor<4096x4096xbf16>) -> tensor<2048x4096xf32> {
  %0 = call @halves_0(%x, %y) : (tensor<2048x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<2048x4096xf32>
  return %0 : tensor<2048x4096xf32>
}
func.func private @halves_0(%x: tensor<2048x4096xbf16> {fuse.align = 16 : i64}, %y: tensor<4096x4096xbf16> {fuse.align = 16 : i64}) -> tensor<2048x4096xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2048x4096xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2048x4096xf32>) -> tensor<2048x4096xf32>
  %0 = linalg.generic {indexing_maps = [#a, #b, #r], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %y : tensor<2048x4096xbf16>, tensor<4096x4096xbf16>) outs(%init : tensor<2048x4096xf32>) {
  ^bb0(%p: bf16, %q: bf16, %out: f32):
    %f = arith.extf %p : bf16 to f32
    %g = arith.extf %q : bf16 to f32
    %t = arith.mulf %f, %g : f32
    %s = arith.addf %out, %t : f32
    linalg.yield %s : f32
  } -> tensor<2048x4096xf32>
  return %0 : tensor<2048x4096xf32>
}
