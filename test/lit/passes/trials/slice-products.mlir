// RUN: mlirfuse-opt --fuse-slice-products --target=sm_90a --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(d0, d1) -> (d0, d1)>
// Gate and value of a packed projection, rounded in between.
// CHECK-LABEL: func.func @packed
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2048x1024xbf16>, %[[W:[a-z0-9]+]]: tensor<1024x4096xbf16>
// CHECK-DAG: %[[W0:.*]] = tensor.extract_slice %[[W]][0, 0] [1024, 2048] [1, 1]
// CHECK-DAG: %[[W1:.*]] = tensor.extract_slice %[[W]][0, 2048] [1024, 2048] [1, 1]
// CHECK-DAG: ins(%[[X]], %[[W0]] : tensor<2048x1024xbf16>, tensor<1024x2048xbf16>) outs({{.*}} : tensor<2048x2048xf32>)
// CHECK-DAG: ins(%[[X]], %[[W1]] : tensor<2048x1024xbf16>, tensor<1024x2048xbf16>) outs({{.*}} : tensor<2048x2048xf32>)
// CHECK-NOT: extract_slice
// CHECK: return
// REMARK: fuse-slice-products: applied: 2 slices of 1 product(s) are predicted to take {{.*}} us by themselves, {{.*}} us together
func.func @packed(%x: tensor<2048x1024xbf16>, %w: tensor<1024x4096xbf16>) -> tensor<2048x2048xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2048x4096xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2048x4096xf32>) -> tensor<2048x4096xf32>
  %p = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2048x1024xbf16>, tensor<1024x4096xbf16>) outs(%init : tensor<2048x4096xf32>) {
  ^bb0(%a: bf16, %b: bf16, %out: f32):
    %c = arith.extf %a : bf16 to f32
    %d = arith.extf %b : bf16 to f32
    %m = arith.mulf %c, %d fastmath<contract> : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<2048x4096xf32>
  %e1 = tensor.empty() : tensor<2048x4096xbf16>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<2048x4096xf32>) outs(%e1 : tensor<2048x4096xbf16>) {
  ^bb0(%a: f32, %out: bf16):
    %c = arith.truncf %a : f32 to bf16
    linalg.yield %c : bf16
  } -> tensor<2048x4096xbf16>
  %gate = tensor.extract_slice %h[0, 0] [2048, 2048] [1, 1] : tensor<2048x4096xbf16> to tensor<2048x2048xbf16>
  %up = tensor.extract_slice %h[0, 2048] [2048, 2048] [1, 1] : tensor<2048x4096xbf16> to tensor<2048x2048xbf16>
  %e2 = tensor.empty() : tensor<2048x2048xbf16>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%gate, %up : tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) outs(%e2 : tensor<2048x2048xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %out: bf16):
    %c = arith.mulf %a, %b : bf16
    linalg.yield %c : bf16
  } -> tensor<2048x2048xbf16>
  return %y : tensor<2048x2048xbf16>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
// Slices that are returned are views of one product, whose kernel has larger tiles than that of two.
// CHECK-LABEL: func.func @returned
// CHECK: linalg.generic
// CHECK: tensor.extract_slice
// CHECK: tensor.extract_slice
// REMARK: fuse-slice-products: declined: 2 slices of 1 product(s) are predicted to take {{.*}} us by themselves, {{.*}} us together
func.func @returned(%x: tensor<2048x1024xf16>, %w: tensor<1024x4096xf16>) -> (tensor<2048x2048xf32>, tensor<2048x2048xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2048x4096xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2048x4096xf32>) -> tensor<2048x4096xf32>
  %p = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2048x1024xf16>, tensor<1024x4096xf16>) outs(%init : tensor<2048x4096xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %c = arith.extf %a : f16 to f32
    %d = arith.extf %b : f16 to f32
    %m = arith.mulf %c, %d fastmath<contract> : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<2048x4096xf32>
  %gate = tensor.extract_slice %p[0, 0] [2048, 2048] [1, 1] : tensor<2048x4096xf32> to tensor<2048x2048xf32>
  %up = tensor.extract_slice %p[0, 2048] [2048, 2048] [1, 1] : tensor<2048x4096xf32> to tensor<2048x2048xf32>
  return %gate, %up : tensor<2048x2048xf32>, tensor<2048x2048xf32>
}

// -----

// REMARK: fuse-slice-products: declined: no product is read in slices that do not overlap
func.func @argument(%x: tensor<64x512xf32>) -> tensor<64x256xf32> {
  %left = tensor.extract_slice %x[0, 0] [64, 256] [1, 1] : tensor<64x512xf32> to tensor<64x256xf32>
  return %left : tensor<64x256xf32>
}
