// RUN: mlirfuse-opt --fuse-tile-grid-reduction --canonicalize --cse --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
#second_stage = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A second kernel gets one partial a block: each period is added to a sum, with what the sum lost. Maxima lose
// nothing, and have no such sum.
// CHECK-LABEL: func.func private @sums_0_kernel(
// CHECK: scf.forall (%[[B:.*]]) in (24)
// CHECK: %[[WHOLE:.*]]:6 = scf.for
// CHECK: %[[LOOP:.*]]:5 = scf.for {{.*}} iter_args(%{{.*}} = %[[WHOLE]]#0, %{{.*}} = %[[WHOLE]]#1, %[[BEFORE_SUM:.*]] = %[[WHOLE]]#2, %[[LOST:.*]] = %[[WHOLE]]#3, %[[BEFORE:.*]] = %[[WHOLE]]#4)
// CHECK-DAG: %[[SUM:.*]] = arith.addf
// CHECK-DAG: %[[DONE:.*]] = arith.addi %[[BEFORE]], %c1
// CHECK: %[[REST:.*]] = arith.remui %[[DONE]], %c8
// CHECK: %[[DUE:.*]] = arith.cmpi eq, %[[REST]], %c0
// CHECK: scf.if %[[DUE]]
// CHECK: %[[TERM:.*]] = arith.subf %[[SUM]], %[[LOST]]
// CHECK: %[[MORE:.*]] = arith.addf %[[BEFORE_SUM]], %[[TERM]]
// CHECK: %[[ADDED:.*]] = arith.subf %[[MORE]], %[[BEFORE_SUM]]
// CHECK: %[[NEW:.*]] = arith.subf %[[ADDED]], %[[TERM]]
// CHECK: scf.yield %[[MORE]], %[[NEW]]
// CHECK: else
// CHECK: scf.yield %[[BEFORE_SUM]], %[[LOST]]
// CHECK: %[[LEFT:.*]] = arith.subf %[[LOOP]]#0, %[[LOOP]]#3
// CHECK: arith.addf %[[LOOP]]#2, %[[LEFT]]
// The loop leaves registers to two blocks of an SM, its second kernel to one.
// CHECK-LABEL: func.func private @sums_0_second_stage_kernel(
// CHECK-SAME: blocks_per_sm = 1
func.func private @sums_0(%x: tensor<?x256xf32>) -> (tensor<256xf32>, tensor<256xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64>,
                fuse.schedule = {tile = array<i64: 2, 256>, layout = #layout, blocks_per_sm = 2 : i64,
                  persistent_loop = {dims = array<i64: 0>, grid_reduction = "second_kernel", blocks = 24 : i64, second_stage_tile = array<i64: 8, 32>, second_stage_layout = #second_stage, period = 8 : i64}}} {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %start = linalg.fill ins(%lowest : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %sum = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<?x256xf32>) outs(%init : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  %max = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<?x256xf32>) outs(%start : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.maximumf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  return %sum, %max : tensor<256xf32>, tensor<256xf32>
}

func.func @sums(%x: tensor<?x256xf32>) -> (tensor<256xf32>, tensor<256xf32>) {
  %0:2 = call @sums_0(%x) : (tensor<?x256xf32>) -> (tensor<256xf32>, tensor<256xf32>)
  return %0#0, %0#1 : tensor<256xf32>, tensor<256xf32>
}
