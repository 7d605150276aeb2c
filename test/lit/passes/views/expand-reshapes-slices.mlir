// RUN: mlirfuse-opt --fuse-expand-reshapes %s | FileCheck %s

#plane = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#blocks = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#sums = affine_map<(d0, d1, d2, d3) -> (d0, d2)>

// Slices of one array stay slices of one array: the array is divided, and each slice is one of what that becomes.
// CHECK-LABEL: func.func @colours(
// CHECK:       %[[X:.*]] = tensor.expand_shape %arg0 {{\[\[}}0, 1], [2, 3], [4]] output_shape [4, 8, 5, 8, 3]
// CHECK-DAG:   tensor.extract_slice %[[X]][0, 0, 0, 0, 0] [4, 8, 5, 8, 1] [1, 1, 1, 1, 1]
// CHECK-DAG:   tensor.extract_slice %[[X]][0, 0, 0, 0, 2] [4, 8, 5, 8, 1] [1, 1, 1, 1, 1]
// CHECK-NOT:   tensor.expand_shape %{{.*}} : tensor<32x40x1xf32>
// CHECK:       return
func.func @colours(%x: tensor<32x40x3xf32>) -> tensor<4x5xf32> {
  %r = tensor.extract_slice %x[0, 0, 0] [32, 40, 1] [1, 1, 1] : tensor<32x40x3xf32> to tensor<32x40x1xf32>
  %b = tensor.extract_slice %x[0, 0, 2] [32, 40, 1] [1, 1, 1] : tensor<32x40x3xf32> to tensor<32x40x1xf32>
  %e = tensor.empty() : tensor<32x40x1xf32>
  %y = linalg.generic {indexing_maps = [#plane, #plane, #plane], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%r, %b : tensor<32x40x1xf32>, tensor<32x40x1xf32>) outs(%e : tensor<32x40x1xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %v = arith.addf %p, %q : f32
    linalg.yield %v : f32
  } -> tensor<32x40x1xf32>
  %flat = tensor.collapse_shape %y [[0], [1, 2]] : tensor<32x40x1xf32> into tensor<32x40xf32>
  %d = tensor.expand_shape %flat [[0, 1], [2, 3]] output_shape [4, 8, 5, 8] : tensor<32x40xf32> into tensor<4x8x5x8xf32>
  %zero = arith.constant 0.0 : f32
  %o = tensor.empty() : tensor<4x5xf32>
  %i = linalg.fill ins(%zero : f32) outs(%o : tensor<4x5xf32>) -> tensor<4x5xf32>
  %s = linalg.generic {indexing_maps = [#blocks, #sums], iterator_types = ["parallel", "reduction", "parallel", "reduction"]}
      ins(%d : tensor<4x8x5x8xf32>) outs(%i : tensor<4x5xf32>) {
  ^bb0(%p: f32, %out: f32):
    %v = arith.addf %out, %p : f32
    linalg.yield %v : f32
  } -> tensor<4x5xf32>
  return %s : tensor<4x5xf32>
}
