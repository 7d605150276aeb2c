// RUN: mlirfuse-opt --fuse-tile-grid-reduction --canonicalize --cse --split-input-file %s | FileCheck %s

#x = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#kept = affine_map<(d0, d1, d2) -> (d1, d2)>
#layout = {vector = array<i64: 1, 4, 1>, lanes = array<i64: 2, 16, 1>, warps = array<i64: 2, 1, 1>, repeats = array<i64: 1, 1, 3>, blocks = array<i64: 1, 1, 1>}
#second_stage = {vector = array<i64: 1, 4, 1>, lanes = array<i64: 4, 8, 1>, warps = array<i64: 2, 1, 1>, repeats = array<i64: 1, 1, 1>, blocks = array<i64: 1, 1, 1>}
// Rows of partials have the dimension of vectors innermost, whatever the order of the results.
// CHECK-DAG: #[[MAP:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[READ:.*]] = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
// CHECK-LABEL: func.func private @pairs_0_kernel(
// CHECK-SAME: %[[PARTIALS:[a-z0-9]+]]: memref<4x3x64xf32>
// CHECK: vector.transfer_write %{{.*}}, %[[PARTIALS]][%{{.*}}, %c0, %c0] {fuse.dims = array<i64: 1, 2>, in_bounds = [true, true], permutation_map = #[[MAP]]} : vector<64x3xf32>, memref<4x3x64xf32>
// CHECK-LABEL: func.func private @pairs_0_second_stage_kernel(
// CHECK-SAME: %[[READS:[a-z0-9]+]]: memref<4x3x64xf32> {{.*}}, %[[RESULT:[a-z0-9]+]]: memref<64x3xf32>
// CHECK: vector.transfer_read %{{.*}}[%{{.*}}, %[[TAP:.*]], %[[COLUMN:.*]]], %{{.*}} {in_bounds = {{.*}}, permutation_map = #[[READ]]} : memref<4x3x64xf32{{.*}}>, vector<8x32x1xf32>
// CHECK: vector.transfer_write %{{.*}}, %[[RESULT]][%[[COLUMN]], %[[TAP]]]
func.func @pairs(%x: tensor<32x64x3xf32>) -> tensor<64x3xf32> {
  %0 = call @pairs_0(%x) : (tensor<32x64x3xf32>) -> tensor<64x3xf32>
  return %0 : tensor<64x3xf32>
}
func.func private @pairs_0(%x: tensor<32x64x3xf32>) -> tensor<64x3xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>,
    fuse.schedule = {tile = array<i64: 4, 64, 3>, layout = #layout, persistent_loop = {dims = array<i64: 0>, grid_reduction = "second_kernel", blocks = 4 : i64, second_stage_tile = array<i64: 8, 32, 1>, second_stage_layout = #second_stage}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x3xf32>) -> tensor<64x3xf32>
  %0 = linalg.generic {indexing_maps = [#x, #kept], iterator_types = ["reduction", "parallel", "parallel"]}
       ins(%x : tensor<32x64x3xf32>) outs(%init : tensor<64x3xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64x3xf32>
  return %0 : tensor<64x3xf32>
}

// -----

#x = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#kept = affine_map<(d0, d1, d2) -> (d1, d2)>
#layout = {vector = array<i64: 1, 4, 1>, lanes = array<i64: 2, 16, 1>, warps = array<i64: 2, 1, 1>, repeats = array<i64: 1, 1, 3>, blocks = array<i64: 1, 1, 1>}
#second_stage = {vector = array<i64: 1, 1, 1>, lanes = array<i64: 1, 32, 1>, warps = array<i64: 1, 2, 1>, repeats = array<i64: 1, 1, 3>, blocks = array<i64: 1, 1, 1>}
// Rows that blocks add to atomically have the order of the dimensions.
// CHECK-LABEL: func.func private @atomics_0_kernel(
// CHECK-SAME: memref<8x64x3xf32>
// CHECK: "fuse.accumulate"
func.func @atomics(%x: tensor<32x64x3xf32>) -> tensor<64x3xf32> {
  %0 = call @atomics_0(%x) : (tensor<32x64x3xf32>) -> tensor<64x3xf32>
  return %0 : tensor<64x3xf32>
}
func.func private @atomics_0(%x: tensor<32x64x3xf32>) -> tensor<64x3xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>,
    fuse.schedule = {tile = array<i64: 4, 64, 3>, layout = #layout, persistent_loop = {dims = array<i64: 0>, grid_reduction = "atomics", second_stage_tile = array<i64: 1, 64, 3>, second_stage_reads = 8 : i64, second_stage_layout = #second_stage}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x3xf32>) -> tensor<64x3xf32>
  %0 = linalg.generic {indexing_maps = [#x, #kept], iterator_types = ["reduction", "parallel", "parallel"]}
       ins(%x : tensor<32x64x3xf32>) outs(%init : tensor<64x3xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64x3xf32>
  return %0 : tensor<64x3xf32>
}
