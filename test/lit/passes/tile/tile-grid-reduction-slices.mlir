// RUN: mlirfuse-opt --fuse-tile-grid-reduction --canonicalize --cse --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Blocks 0, 2, 4 have the first slice of 32 columns, and take the tiles of 8 rows in turn; a partial is of both slices.
// CHECK-LABEL: func.func private @slices_0_kernel(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<64x64xf32>, %[[PARTIALS:[a-z0-9]+]]: memref<3x64xf32>
// CHECK: scf.forall (%[[B:.*]]) in (6)
// CHECK: %[[SLICE:.*]] = arith.remui %[[B]], %c2
// CHECK: %[[START:.*]] = arith.muli %[[SLICE]], %c32
// CHECK: %[[NUMBER:.*]] = arith.divui %[[B]], %c2
// CHECK: scf.for %{{.*}} = %[[NUMBER]] to %c8 step %c3
// CHECK: vector.transfer_read %[[X]][%{{.*}}, %[[START]]], %{{.*}} {{{.*}}in_bounds = [true, true]} : memref<64x64xf32>, vector<8x32xf32>
// CHECK: vector.transfer_write %{{.*}}, %[[PARTIALS]][%[[NUMBER]], %[[START]]] {fuse.dims = array<i64: 1>, in_bounds = [true]} : vector<32xf32>, memref<3x64xf32>
// CHECK-LABEL: func.func private @slices_0_second_stage_kernel(
// CHECK-SAME: memref<3x64xf32>
func.func @slices(%x: tensor<64x64xf32>) -> tensor<64xf32> {
  %0 = call @slices_0(%x) : (tensor<64x64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @slices_0(%x: tensor<64x64xf32>) -> tensor<64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>,
    fuse.schedule = {tile = array<i64: 8, 32>, layout = #layout, persistent_loop = {dims = array<i64: 0>, grid_reduction = "second_kernel", blocks = 6 : i64, slices = 2 : i64, second_stage_tile = array<i64: 8, 32>, second_stage_layout = #layout}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<64x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// The last slice of 52 columns has 20: reads are clamped there, stores are clipped, and nothing is masked.
// CHECK-LABEL: func.func private @ragged_0_kernel(
// CHECK: vector.transfer_read {{.*}}in_bounds = [true, false]} : memref<64x52xf32>, vector<8x32xf32>
// CHECK-NOT: arith.select
// CHECK: vector.transfer_write {{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] {fuse.dims = array<i64: 1>} : vector<32xf32>, memref<3x52xf32>
func.func @ragged(%x: tensor<64x52xf32>) -> tensor<52xf32> {
  %0 = call @ragged_0(%x) : (tensor<64x52xf32>) -> tensor<52xf32>
  return %0 : tensor<52xf32>
}
func.func private @ragged_0(%x: tensor<64x52xf32>) -> tensor<52xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>,
    fuse.schedule = {tile = array<i64: 8, 32>, layout = #layout, persistent_loop = {dims = array<i64: 0>, grid_reduction = "second_kernel", blocks = 6 : i64, slices = 2 : i64, second_stage_tile = array<i64: 8, 32>, second_stage_layout = #layout}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<52xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<52xf32>) -> tensor<52xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<64x52xf32>) outs(%init : tensor<52xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<52xf32>
  return %0 : tensor<52xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func @written(%x: tensor<64x64xf32>) -> (tensor<64xf32>, tensor<64x64xf32>) {
  %0:2 = call @written_0(%x) : (tensor<64x64xf32>) -> (tensor<64xf32>, tensor<64x64xf32>)
  return %0#0, %0#1 : tensor<64xf32>, tensor<64x64xf32>
}
// expected-error @below {{blocks have slices in kernels that only sum over all tiles}}
func.func private @written_0(%x: tensor<64x64xf32>) -> (tensor<64xf32>, tensor<64x64xf32>) attributes {fuse.kernel, fuse.result_extents = array<i64>,
    fuse.schedule = {tile = array<i64: 8, 32>, layout = #layout, persistent_loop = {dims = array<i64: 0>, grid_reduction = "second_kernel", blocks = 6 : i64, slices = 2 : i64, second_stage_tile = array<i64: 8, 32>, second_stage_layout = #layout}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %s = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %square = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<64x64xf32>) outs(%s : tensor<64x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.mulf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<64x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%square : tensor<64x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %0, %square : tensor<64xf32>, tensor<64x64xf32>
}
