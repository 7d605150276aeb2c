// RUN: mlirfuse-opt --fuse-segment --split-input-file %s | FileCheck %s

#plane = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#line = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
#of_plane = affine_map<(d0, d1) -> ()>

// What gradients are divided by is summed up first: the mask does not depend on x. The gradients are then in the kernel
// that has the rows, and the loss, which needs the rows' sums, comes last.
// CHECK-LABEL: func.func @gradients(
// CHECK-SAME:  %[[X:.*]]: tensor<64x512xf32>, %[[M:.*]]: tensor<64xf32>
// CHECK:       %[[N:.*]] = call @gradients_0(%[[M]])
// CHECK:       %[[ROWS:.*]]:2 = call @gradients_1(%[[X]], %[[M]], %[[N]])
// CHECK:       %[[LOSS:.*]] = call @gradients_2(%[[ROWS]]#0)
// CHECK:       return %[[ROWS]]#1, %[[LOSS]]
func.func @gradients(%x: tensor<64x512xf32>, %m: tensor<64xf32>) -> (tensor<64x512xf32>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<64xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64xf32>) -> tensor<64xf32>
  %e0 = tensor.empty() : tensor<f32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %e = tensor.empty() : tensor<64x512xf32>
  %y = linalg.generic {indexing_maps = [#plane, #plane], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x512xf32>) outs(%e : tensor<64x512xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<64x512xf32>
  %s = linalg.generic {indexing_maps = [#plane, #row], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<64x512xf32>) outs(%i1 : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %n = linalg.generic {indexing_maps = [#line, #none], iterator_types = ["reduction"]}
      ins(%m : tensor<64xf32>) outs(%i0 : tensor<f32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  %p = linalg.generic {indexing_maps = [#line, #line, #line], iterator_types = ["parallel"]}
      ins(%s, %m : tensor<64xf32>, tensor<64xf32>) outs(%e1 : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %loss = linalg.generic {indexing_maps = [#line, #none], iterator_types = ["reduction"]}
      ins(%p : tensor<64xf32>) outs(%i0 : tensor<f32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  %g = linalg.generic {indexing_maps = [#plane, #of_plane, #plane], iterator_types = ["parallel", "parallel"]}
      ins(%y, %n : tensor<64x512xf32>, tensor<f32>) outs(%e : tensor<64x512xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.divf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<64x512xf32>
  return %g, %loss : tensor<64x512xf32>, tensor<f32>
}

// -----

#plane = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#line = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
#of_plane = affine_map<(d0, d1) -> ()>

// The sum of all rows depends on these: what is divided by it waits.
// CHECK-LABEL: func.func @normalised(
// CHECK:       %[[S:.*]]:2 = call @normalised_0(%{{.*}})
// CHECK:       %[[N:.*]] = call @normalised_1(%[[S]]#1)
// CHECK:       call @normalised_2(%[[S]]#0, %[[N]])
func.func @normalised(%x: tensor<64x512xf32>) -> tensor<64x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<64xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64xf32>) -> tensor<64xf32>
  %e0 = tensor.empty() : tensor<f32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %e = tensor.empty() : tensor<64x512xf32>
  %y = linalg.generic {indexing_maps = [#plane, #plane], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x512xf32>) outs(%e : tensor<64x512xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<64x512xf32>
  %s = linalg.generic {indexing_maps = [#plane, #row], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<64x512xf32>) outs(%i1 : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %n = linalg.generic {indexing_maps = [#line, #none], iterator_types = ["reduction"]}
      ins(%s : tensor<64xf32>) outs(%i0 : tensor<f32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  %g = linalg.generic {indexing_maps = [#plane, #of_plane, #plane], iterator_types = ["parallel", "parallel"]}
      ins(%y, %n : tensor<64x512xf32>, tensor<f32>) outs(%e : tensor<64x512xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.divf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<64x512xf32>
  return %g : tensor<64x512xf32>
}
