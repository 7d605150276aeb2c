// RUN: mlirfuse-opt --fuse-mix-order-reduction --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
// Two kernels are faster: reading the shared data twice costs less than combining partials.
// CHECK-LABEL: func.func @few_long_rows(
// CHECK: call @f_0
// CHECK: call @f_1
func.func @few_long_rows(%x: tensor<8x65536xf16>) -> (tensor<8xf16>, tensor<65536xf16>) {
  %0 = call @f_0(%x) : (tensor<8x65536xf16>) -> tensor<8xf16>
  // expected-remark @below {{f_1 stays apart from f_0: one kernel is predicted to take}}
  %1 = call @f_1(%x) : (tensor<8x65536xf16>) -> tensor<65536xf16>
  return %0, %1 : tensor<8xf16>, tensor<65536xf16>
}
func.func private @f_0(%x: tensor<8x65536xf16>) -> tensor<8xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<8xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e : tensor<8xf16>) -> tensor<8xf16>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<8x65536xf16>) outs(%init : tensor<8xf16>) {
  ^bb0(%a: f16, %out: f16):
    %v = arith.addf %out, %a : f16
    linalg.yield %v : f16
  } -> tensor<8xf16>
  return %0 : tensor<8xf16>
}
func.func private @f_1(%x: tensor<8x65536xf16>) -> tensor<65536xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<65536xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e : tensor<65536xf16>) -> tensor<65536xf16>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<8x65536xf16>) outs(%init : tensor<65536xf16>) {
  ^bb0(%a: f16, %out: f16):
    %v = arith.addf %out, %a : f16
    linalg.yield %v : f16
  } -> tensor<65536xf16>
  return %0 : tensor<65536xf16>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#column = affine_map<(d0, d1, d2) -> (d0, d2)>
#image = affine_map<(d0, d1, d2) -> (d0)>
#row = affine_map<(d0, d1, d2) -> (d0, d1)>
// Sums over different axes share one loop, whose partials of two dimensions all blocks combine.
// CHECK-LABEL: func.func @three_sums(
// CHECK: %[[R:.*]]:4 = call @f_0(%arg0) : (tensor<32x512x1024xf32>) -> (tensor<32x1024xf32>, tensor<32x1024xf32>, tensor<32xf32>, tensor<32x512xf32>)
// CHECK-NOT: call
// CHECK: return %[[R]]#0, %[[R]]#1, %[[R]]#2, %[[R]]#3
func.func @three_sums(%x: tensor<32x512x1024xf32>) -> (tensor<32x1024xf32>, tensor<32x1024xf32>, tensor<32xf32>, tensor<32x512xf32>) {
  %0:2 = call @f_0(%x) : (tensor<32x512x1024xf32>) -> (tensor<32x1024xf32>, tensor<32x1024xf32>)
  // expected-remark @below {{f_1 joins f_0: 4 bytes an element saved}}
  %1 = call @f_1(%x) : (tensor<32x512x1024xf32>) -> tensor<32xf32>
  // expected-remark @below {{f_2 joins f_0: 4 bytes an element saved}}
  %2 = call @f_2(%x) : (tensor<32x512x1024xf32>) -> tensor<32x512xf32>
  return %0#0, %0#1, %1, %2 : tensor<32x1024xf32>, tensor<32x1024xf32>, tensor<32xf32>, tensor<32x512xf32>
}
func.func private @f_0(%x: tensor<32x512x1024xf32>) -> (tensor<32x1024xf32>, tensor<32x1024xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<32x1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<32x1024xf32>) -> tensor<32x1024xf32>
  %0 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["parallel", "reduction", "parallel"]}
       ins(%x : tensor<32x512x1024xf32>) outs(%init : tensor<32x1024xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<32x1024xf32>
  %low = linalg.fill ins(%lowest : f32) outs(%e : tensor<32x1024xf32>) -> tensor<32x1024xf32>
  %1 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["parallel", "reduction", "parallel"]}
       ins(%x : tensor<32x512x1024xf32>) outs(%low : tensor<32x1024xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.maximumf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<32x1024xf32>
  return %0, %1 : tensor<32x1024xf32>, tensor<32x1024xf32>
}
func.func private @f_1(%x: tensor<32x512x1024xf32>) -> tensor<32xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<32xf32>) -> tensor<32xf32>
  %0 = linalg.generic {indexing_maps = [#id, #image], iterator_types = ["parallel", "reduction", "reduction"]}
       ins(%x : tensor<32x512x1024xf32>) outs(%init : tensor<32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<32xf32>
  return %0 : tensor<32xf32>
}
func.func private @f_2(%x: tensor<32x512x1024xf32>) -> tensor<32x512xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<32x512xf32>) -> tensor<32x512xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x : tensor<32x512x1024xf32>) outs(%init : tensor<32x512xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<32x512xf32>
  return %0 : tensor<32x512xf32>
}
