// RUN: mlirfuse-opt --fuse-collapse-dims --target=sm_90a --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#all = affine_map<(n, c, h, w) -> (n, c, h, w)>
#pixel = affine_map<(n, c, h, w) -> (n, h, w)>
#class = affine_map<(n, c, h, w) -> (c)>

// Each pixel's sum of classes, and each class's sum of pixels: a loop of the grid over images and rows has tiles of all
// classes of a row; over images alone, none that fit.
// CHECK-LABEL: func.func @classes(
// CHECK-NEXT: call @classes_0(%arg0) : (tensor<16x19x512x512xf32>) -> (tensor<19xf32>, tensor<19xf32>, tensor<19xf32>)
func.func @classes(%x: tensor<16x19x512x512xf32>) -> (tensor<19xf32>, tensor<19xf32>, tensor<19xf32>) {
  %0:3 = call @classes_0(%x) : (tensor<16x19x512x512xf32>) -> (tensor<19xf32>, tensor<19xf32>, tensor<19xf32>)
  return %0#0, %0#1, %0#2 : tensor<19xf32>, tensor<19xf32>, tensor<19xf32>
}
// expected-remark @below {{the merged dimensions leave no tiles for a loop of the grid}}
func.func private @classes_0(%x: tensor<16x19x512x512xf32> {fuse.align = 16 : i64}) -> (tensor<19xf32>, tensor<19xf32>, tensor<19xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<16x512x512xf32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<16x512x512xf32>) -> tensor<16x512x512xf32>
  %s = linalg.generic {indexing_maps = [#all, #pixel], iterator_types = ["parallel", "reduction", "parallel", "parallel"]}
       ins(%x : tensor<16x19x512x512xf32>) outs(%i0 : tensor<16x512x512xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %out, %a : f32
    linalg.yield %t : f32
  } -> tensor<16x512x512xf32>
  %e1 = tensor.empty() : tensor<16x19x512x512xf32>
  %p = linalg.generic {indexing_maps = [#all, #pixel, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
       ins(%x, %s : tensor<16x19x512x512xf32>, tensor<16x512x512xf32>) outs(%e1 : tensor<16x19x512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<16x19x512x512xf32>
  %e2 = tensor.empty() : tensor<19xf32>
  %i2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<19xf32>) -> tensor<19xf32>
  %r0 = linalg.generic {indexing_maps = [#all, #class], iterator_types = ["reduction", "parallel", "reduction", "reduction"]}
       ins(%p : tensor<16x19x512x512xf32>) outs(%i2 : tensor<19xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %out, %a : f32
    linalg.yield %t : f32
  } -> tensor<19xf32>
  %r1 = linalg.generic {indexing_maps = [#all, #class], iterator_types = ["reduction", "parallel", "reduction", "reduction"]}
       ins(%p : tensor<16x19x512x512xf32>) outs(%i2 : tensor<19xf32>) {
  ^bb0(%a: f32, %out: f32):
    %b = arith.mulf %a, %a : f32
    %t = arith.addf %out, %b : f32
    linalg.yield %t : f32
  } -> tensor<19xf32>
  %r2 = linalg.generic {indexing_maps = [#all, #class], iterator_types = ["reduction", "parallel", "reduction", "reduction"]}
       ins(%p : tensor<16x19x512x512xf32>) outs(%i2 : tensor<19xf32>) {
  ^bb0(%a: f32, %out: f32):
    %b = math.sqrt %a : f32
    %t = arith.addf %out, %b : f32
    linalg.yield %t : f32
  } -> tensor<19xf32>
  return %r0, %r1, %r2 : tensor<19xf32>, tensor<19xf32>, tensor<19xf32>
}
