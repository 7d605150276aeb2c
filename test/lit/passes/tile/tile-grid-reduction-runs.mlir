// RUN: mlirfuse-opt --fuse-tile-grid-reduction --canonicalize --cse --split-input-file %s | FileCheck %s

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#col = affine_map<(d0, d1, d2) -> (d2)>
#layout = {vector = array<i64: 1, 1, 4>, lanes = array<i64: 2, 1, 16>, warps = array<i64: 2, 1, 1>, repeats = array<i64: 1, 6, 1>, blocks = array<i64: 1, 1, 1>}
#second_stage = {vector = array<i64: 1, 1, 4>, lanes = array<i64: 4, 1, 8>, warps = array<i64: 2, 1, 1>, repeats = array<i64: 1, 1, 1>, blocks = array<i64: 1, 1, 1>}
// A thread has six neighbours of a tile along the second dimension, which it adds up before its accumulators. Rows along
// the first dimension are of several threads, which are added up behind the loop.
// CHECK-LABEL: func.func private @runs_0_kernel(
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK: scf.forall (%[[B:.*]]) in (4)
// Of the eight tiles each block takes two that follow each other.
// CHECK: %[[MINE:.*]] = arith.minui %[[B]], %[[C4]]
// CHECK: %[[BEFORE:.*]] = arith.muli %[[MINE]], %[[C8]]
// CHECK: %[[FIRST:.*]] = arith.divui %[[BEFORE]], %[[C4]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[B]], %[[C1]]
// CHECK: %[[OTHERS:.*]] = arith.minui %[[NEXT]], %[[C4]]
// CHECK: %[[THEN:.*]] = arith.muli %[[OTHERS]], %[[C8]]
// CHECK: %[[END:.*]] = arith.divui %[[THEN]], %[[C4]]
// CHECK: %[[SUMS:.*]] = scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %[[C1]] iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<4x1x64xf32>)
// CHECK: %[[PART:.*]] = vector.multi_reduction <add>, %{{.*}}, %{{.*}} [1] : vector<4x6x64xf32> to vector<4x64xf32>
// CHECK: %[[ALONE:.*]] = vector.shape_cast %[[PART]] : vector<4x64xf32> to vector<4x1x64xf32>
// CHECK: arith.addf %[[ACC]], %[[ALONE]]
// CHECK: vector.multi_reduction <add>, %[[SUMS]], %{{.*}} [0, 1] : vector<4x1x64xf32> to vector<64xf32>
func.func @runs(%x: tensor<16x12x64xf32>) -> tensor<64xf32> {
  %0 = call @runs_0(%x) : (tensor<16x12x64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @runs_0(%x: tensor<16x12x64xf32>) -> tensor<64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>,
    fuse.schedule = {tile = array<i64: 4, 6, 64>, layout = #layout, persistent_loop = {dims = array<i64: 0, 1>, grid_reduction = "second_kernel", blocks = 4 : i64, consecutive = true, second_stage_tile = array<i64: 8, 1, 32>, second_stage_layout = #second_stage}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "reduction", "parallel"]}
       ins(%x : tensor<16x12x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#col = affine_map<(d0, d1, d2) -> (d2)>
#layout = {vector = array<i64: 1, 1, 4>, lanes = array<i64: 1, 2, 16>, warps = array<i64: 2, 1, 1>, repeats = array<i64: 2, 3, 1>, blocks = array<i64: 1, 1, 1>}
#second_stage = {vector = array<i64: 1, 1, 4>, lanes = array<i64: 4, 1, 8>, warps = array<i64: 2, 1, 1>, repeats = array<i64: 1, 1, 1>, blocks = array<i64: 1, 1, 1>}
// Neighbours that other threads are between are accumulated each by itself, of every so many-th tile.
// CHECK-LABEL: func.func private @shared_0_kernel(
// CHECK: scf.forall (%[[B:.*]]) in
// CHECK: scf.for %{{.*}} = %[[B]] to %{{.*}} iter_args(%{{.*}}) -> (vector<4x6x64xf32>)
// CHECK-NOT: vector.multi_reduction
// CHECK: scf.yield
func.func @shared(%x: tensor<16x12x64xf32>) -> tensor<64xf32> {
  %0 = call @shared_0(%x) : (tensor<16x12x64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @shared_0(%x: tensor<16x12x64xf32>) -> tensor<64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>,
    fuse.schedule = {tile = array<i64: 4, 6, 64>, layout = #layout, persistent_loop = {dims = array<i64: 0, 1>, grid_reduction = "second_kernel", blocks = 4 : i64, second_stage_tile = array<i64: 8, 1, 32>, second_stage_layout = #second_stage}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "reduction", "parallel"]}
       ins(%x : tensor<16x12x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#col = affine_map<(d0, d1, d2) -> (d2)>
#layout = {vector = array<i64: 1, 1, 4>, lanes = array<i64: 2, 1, 16>, warps = array<i64: 2, 1, 1>, repeats = array<i64: 1, 6, 1>, blocks = array<i64: 1, 1, 1>}
#second_stage = {vector = array<i64: 1, 1, 4>, lanes = array<i64: 4, 1, 8>, warps = array<i64: 2, 1, 1>, repeats = array<i64: 1, 1, 1>, blocks = array<i64: 1, 1, 1>}
// Products of a run are multiplied and added to the accumulators at once.
// CHECK-LABEL: func.func private @products_0_kernel(
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<4x1x64xf32>)
// CHECK: %[[PRODUCTS:.*]] = arith.mulf %{{.*}} fastmath<contract> : vector<4x6x64xf32>
// CHECK: %[[START:.*]] = vector.shape_cast %[[ACC]] : vector<4x1x64xf32> to vector<4x64xf32>
// CHECK: %[[SUM:.*]] = vector.multi_reduction <add>, %[[PRODUCTS]], %[[START]] [1] : vector<4x6x64xf32> to vector<4x64xf32>
// CHECK: %[[NEXT:.*]] = vector.shape_cast %[[SUM]] : vector<4x64xf32> to vector<4x1x64xf32>
// CHECK: scf.yield %[[NEXT]]
func.func @products(%x: tensor<16x12x64xf32>) -> tensor<64xf32> {
  %0 = call @products_0(%x) : (tensor<16x12x64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @products_0(%x: tensor<16x12x64xf32>) -> tensor<64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>,
    fuse.schedule = {tile = array<i64: 4, 6, 64>, layout = #layout, persistent_loop = {dims = array<i64: 0, 1>, grid_reduction = "second_kernel", blocks = 4 : i64, consecutive = true, second_stage_tile = array<i64: 8, 1, 32>, second_stage_layout = #second_stage}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "reduction", "parallel"]}
       ins(%x : tensor<16x12x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %p = arith.mulf %a, %a fastmath<contract> : f32
    %v = arith.addf %out, %p : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#col = affine_map<(d0, d1, d2) -> (d2)>
#layout = {vector = array<i64: 1, 1, 4>, lanes = array<i64: 2, 1, 16>, warps = array<i64: 2, 1, 1>, repeats = array<i64: 1, 6, 1>, blocks = array<i64: 1, 1, 1>}
#second_stage = {vector = array<i64: 1, 1, 4>, lanes = array<i64: 4, 1, 8>, warps = array<i64: 2, 1, 1>, repeats = array<i64: 1, 1, 1>, blocks = array<i64: 1, 1, 1>}
// With periods, which keep sums short, a run has a sum of its own.
// CHECK-LABEL: func.func private @short_sums_0_kernel(
// CHECK: %[[PRODUCTS:.*]] = arith.mulf %{{.*}} fastmath<contract> : vector<4x6x64xf32>
// CHECK: vector.multi_reduction <add>, %[[PRODUCTS]], %{{cst.*}} [1] : vector<4x6x64xf32> to vector<4x64xf32>
func.func @short_sums(%x: tensor<16x12x64xf32>) -> tensor<64xf32> {
  %0 = call @short_sums_0(%x) : (tensor<16x12x64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @short_sums_0(%x: tensor<16x12x64xf32>) -> tensor<64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>,
    fuse.schedule = {tile = array<i64: 4, 6, 64>, layout = #layout, persistent_loop = {dims = array<i64: 0, 1>, grid_reduction = "second_kernel", blocks = 4 : i64, period = 32 : i64, second_stage_tile = array<i64: 8, 1, 32>, second_stage_layout = #second_stage}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "reduction", "parallel"]}
       ins(%x : tensor<16x12x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %p = arith.mulf %a, %a fastmath<contract> : f32
    %v = arith.addf %out, %p : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

#left = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
#right = affine_map<(d0, d1, d2, d3) -> (d3, d1, d2)>
#out = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
#layout = {vector = array<i64: 1, 1, 4, 1>, lanes = array<i64: 8, 1, 4, 1>, warps = array<i64: 2, 1, 1, 1>, repeats = array<i64: 1, 3, 1, 2>, blocks = array<i64: 1, 1, 1, 1>, run = array<i64: 2, 1, 1, 1>}
#second_stage = {vector = array<i64: 1, 1, 1, 1>, lanes = array<i64: 32, 1, 1, 1>, warps = array<i64: 2, 1, 1, 1>, repeats = array<i64: 1, 1, 1, 1>, blocks = array<i64: 1, 1, 1, 1>}
// Where threads have neighbours along a dimension and other threads lie along it too, each keeps one sum of its own:
// of 32 by 16 elements there are 16 by 4 threads.
// CHECK-LABEL: func.func private @threads_0_kernel(
// CHECK: %[[SUMS:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<16x3x4x2xf32>)
// CHECK: %[[PRODUCTS:.*]] = arith.mulf %{{.*}} fastmath<contract> : vector<32x3x16x2xf32>
// CHECK: %[[NEXT:.*]] = "fuse.thread_reduce"(%[[PRODUCTS]], %[[ACC]]) {dims = array<i64: 0, 2>, kind = #vector.kind<add>, neighbours = array<i64: 2, 4>} : (vector<32x3x16x2xf32>, vector<16x3x4x2xf32>) -> vector<16x3x4x2xf32>
// CHECK: scf.yield %[[NEXT]]
// CHECK: vector.multi_reduction <add>, %[[SUMS]], %{{.*}} [0, 2] : vector<16x3x4x2xf32> to vector<3x2xf32>
func.func @threads(%x: tensor<2x64x64xf32>, %y: tensor<64x3x64xf32>) -> tensor<2x3xf32> {
  %0 = call @threads_0(%x, %y) : (tensor<2x64x64xf32>, tensor<64x3x64xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
func.func private @threads_0(%x: tensor<2x64x64xf32>, %y: tensor<64x3x64xf32>) -> tensor<2x3xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>,
    fuse.schedule = {tile = array<i64: 32, 3, 16, 2>, layout = #layout, persistent_loop = {dims = array<i64: 0, 2>, grid_reduction = "second_kernel", blocks = 4 : i64, consecutive = true, second_stage_tile = array<i64: 64, 1, 1, 1>, second_stage_layout = #second_stage}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
       ins(%x, %y : tensor<2x64x64xf32>, tensor<64x3x64xf32>) outs(%init : tensor<2x3xf32>) attrs = {fuse.by_rows} {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b fastmath<contract> : f32
    %v = arith.addf %out, %p : f32
    linalg.yield %v : f32
  } -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
