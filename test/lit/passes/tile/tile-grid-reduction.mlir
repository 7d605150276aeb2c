// RUN: mlirfuse-opt --fuse-tile-grid-reduction --canonicalize --cse --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
#vec = affine_map<(d0) -> (d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
#second_stage = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Both orders in one persistent loop: blocks take every so many-th tile, carry a tile of partial sums, and write rows as they go.
// CHECK-DAG: #[[TILES:.*]] = affine_map<()[s0] -> (s0 ceildiv 2)>
// CHECK-DAG: #[[WANTED:.*]] = affine_map<()[s0] -> (s0 ceildiv 2, 8)>
// CHECK-DAG: #[[GRID:.*]] = affine_map<()[s0, s1] -> (s1, s0)>
// CHECK-LABEL: func.func private @both_0_kernel(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x256xf32>, %[[W:[a-z0-9]+]]: memref<256xf32>, %[[ROWS:[a-z0-9]+]]: memref<?xf32>, %[[SUM:[a-z0-9]+]]: memref<256xf32>
// A row of partial results for every block that can be resident.
// CHECK-SAME: %[[PARTS:[a-z0-9]+]]: memref<?x256xf32> {fuse.workspace = "scratch", fuse.workspace_extents = affine_map<()[s0] -> (s0)>, fuse.workspace_operands = array<i64: -1, 2>}
// CHECK-SAME: %[[SEM:[a-z0-9]+]]: memref<1xi32> {fuse.workspace = "semaphores"}) attributes {fuse.cooperative
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : vector<2x256xf32>
// CHECK: %[[M:.*]] = memref.dim %[[X]]
// CHECK: %[[COUNT:.*]] = affine.apply #[[TILES]]()[%[[M]]]
// There are blocks for all eight slices of the reductions.
// CHECK: %[[MOST:.*]] = affine.max #[[WANTED]]()[%[[M]]]
// CHECK: %[[RESIDENT:.*]] = "fuse.resident_blocks"() {per_sm = 2 : i64}
// CHECK: %[[BLOCKS:.*]] = affine.min #[[GRID]]()[%[[MOST]], %[[RESIDENT]]]
// CHECK: scf.forall (%[[B:.*]]) in (%[[BLOCKS]])
// Loop-invariant tiles are read once.
// CHECK: vector.transfer_read %[[W]]
// CHECK: %[[PARTIAL:.*]] = scf.for %[[T:.*]] = %[[B]] to %[[COUNT]] step %[[BLOCKS]] iter_args(%[[ACC:.*]] = %[[ZEROS]]) -> (vector<2x256xf32>)
// CHECK: %[[TILE:.*]] = vector.transfer_read %[[X]]{{.*}}fuse.streaming
// CHECK-NOT: vector.transfer_read
// CHECK: %[[INSIDE:.*]] = vector.create_mask %{{.*}}, %[[C1]] : vector<2x1xi1>
// Rows past the end are masked.
// CHECK: %[[MASK:.*]] = vector.broadcast %[[INSIDE]] : vector<2x1xi1> to vector<2x256xi1>
// CHECK: %[[ELEMENT:.*]] = arith.select %[[MASK]], %{{.*}}, %[[ZEROS]]
// CHECK: %[[NEXT:.*]] = arith.addf %[[ACC]], %[[ELEMENT]]
// CHECK: vector.transfer_write %{{.*}}, %[[ROWS]]
// CHECK: scf.yield %[[NEXT]]
// A block without a tile stores no partial; the second stage reads at least one.
// CHECK: %[[SOME:.*]] = arith.maxui %[[COUNT]], %[[C1]]
// CHECK: %[[HAS:.*]] = arith.cmpi ult, %[[B]], %[[SOME]]
// CHECK: scf.if %[[HAS]] {
// CHECK: %[[PART:.*]] = vector.multi_reduction <add>, %[[PARTIAL]], %{{.*}} [0] : vector<2x256xf32> to vector<256xf32>
// CHECK: vector.transfer_write %[[PART]], %[[PARTS]][%[[B]], %[[C0]]]
// CHECK: %[[STORED:.*]] = arith.minui %[[BLOCKS]], %[[SOME]]
// All blocks arrive and wait for all others (grid sync); then each combines slices of 32 columns.
// CHECK: "fuse.semaphore_arrive"(%[[SEM]], %[[C0]], %[[LIMIT:.*]]) :
// CHECK: "fuse.semaphore_wait"(%[[SEM]], %[[C0]], %{{.*}})
// CHECK-NOT: "fuse.semaphore_arrive"
// CHECK: %[[WRITTEN:.*]] = memref.subview %[[PARTS]][0, 0] [%[[STORED]], 256] [1, 1]
// CHECK: scf.for %{{.*}} = %[[B]] to %c8 step %[[BLOCKS]]
// Two tiles of partials are read before either is added; rows past the last partial are masked.
// CHECK: scf.for %[[P:.*]] = %[[C0]] to %[[STORED]] step %c16 iter_args
// CHECK: %[[Q:.*]] = affine.apply #{{.*}}(%[[P]])
// CHECK: %[[FIRST:.*]] = vector.transfer_read %[[WRITTEN]][%[[P]], %{{.*}} {in_bounds = [false, true]}
// CHECK: %[[SECOND:.*]] = vector.transfer_read %[[WRITTEN]][%[[Q]], %{{.*}} {in_bounds = [false, true]}
// CHECK: vector.create_mask
// CHECK: %[[END:.*]] = arith.minui %[[Q]], %[[STORED]]
// CHECK: %[[LEFT:.*]] = affine.apply #{{.*}}(%[[END]])[%[[STORED]]]
// CHECK: vector.create_mask %[[LEFT]], %[[C1]] : vector<8x1xi1>
// CHECK: %[[A:.*]] = arith.select %{{.*}}, %[[FIRST]]
// CHECK: %[[B2:.*]] = arith.select %{{.*}}, %[[SECOND]]
// CHECK: %[[BOTH:.*]] = arith.addf %[[A]], %[[B2]]
// CHECK: arith.addf %{{.*}}, %[[BOTH]]
// CHECK: vector.multi_reduction <add>, %{{.*}} [0] : vector<8x32xf32> to vector<32xf32>
// The ops that depend on the reduction's result.
// CHECK: math.sqrt
// CHECK: vector.transfer_write %{{.*}}, %[[SUM]]
// CHECK: } {fuse.second_stage}
// At the end every block arrives once more, which wraps the counter back to zero.
// CHECK: "fuse.semaphore_arrive"(%[[SEM]], %[[C0]], %[[LIMIT]]) {relaxed}
// CHECK: func.func private @both_0(tensor<?x256xf32>, tensor<256xf32>) -> (tensor<?xf32>, tensor<256xf32>) attributes {fuse.launch = @both_0_kernel
func.func private @both_0(%x: tensor<?x256xf32>, %w: tensor<256xf32>) -> (tensor<?xf32>, tensor<256xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>,
                fuse.schedule = {tile = array<i64: 2, 256>, layout = #layout, blocks_per_sm = 2 : i64,
                  persistent_loop = {dims = array<i64: 0>, grid_reduction = "grid_sync", second_stage_tile = array<i64: 8, 32>, second_stage_layout = #second_stage,
                          second_stage_reads = 2 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x256xf32>
  %e = tensor.empty(%m) : tensor<?x256xf32>
  %h = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %w : tensor<?x256xf32>, tensor<256xf32>) outs(%e : tensor<?x256xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<?x256xf32>
  %er = tensor.empty(%m) : tensor<?xf32>
  %ir = linalg.fill ins(%zero : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
  %rows = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%h : tensor<?x256xf32>) outs(%ir : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  %ec = tensor.empty() : tensor<256xf32>
  %ic = linalg.fill ins(%zero : f32) outs(%ec : tensor<256xf32>) -> tensor<256xf32>
  %sum = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%h : tensor<?x256xf32>) outs(%ic : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  %root = linalg.generic {indexing_maps = [#vec, #vec], iterator_types = ["parallel"]}
       ins(%sum : tensor<256xf32>) outs(%ec : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.sqrt %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  return %rows, %root : tensor<?xf32>, tensor<256xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}
#second_stage = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Threads are unrolled over two rows: they add both at once, and carry partial sums of one. A tile has at least one row.
// CHECK-LABEL: func.func private @turns_0_kernel(
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[ONE_ROW:.*]] = arith.constant dense<0.000000e+00> : vector<1x256xf32>
// CHECK: %[[PARTIAL:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[ONE_ROW]]) -> (vector<1x256xf32>)
// CHECK: %[[LEFT:.*]] = arith.maxui %{{.*}}, %[[C1]] : index
// CHECK: %[[INSIDE:.*]] = vector.create_mask %[[LEFT]], %[[C1]] : vector<2x1xi1>
// CHECK: %[[MASK:.*]] = vector.broadcast %[[INSIDE]]
// CHECK: %[[ELEMENTS:.*]] = arith.select %[[MASK]]
// CHECK: %[[BOTH:.*]] = vector.multi_reduction <add>, %[[ELEMENTS]], %{{.*}} [0] : vector<2x256xf32> to vector<256xf32>
// CHECK: %[[ROW:.*]] = vector.shape_cast %[[BOTH]] : vector<256xf32> to vector<1x256xf32>
// CHECK: arith.addf %[[ACC]], %[[ROW]] : vector<1x256xf32>
// CHECK: %[[PART:.*]] = vector.shape_cast %[[PARTIAL]] : vector<1x256xf32> to vector<256xf32>
// CHECK-NEXT: vector.transfer_write %[[PART]]
func.func private @turns_0(%x: tensor<?x256xf32>, %w: tensor<256xf32>) -> (tensor<?xf32>, tensor<256xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>,
                fuse.schedule = {tile = array<i64: 2, 256>, layout = #layout,
                  persistent_loop = {dims = array<i64: 0>, grid_reduction = "grid_sync", second_stage_tile = array<i64: 8, 32>, second_stage_layout = #second_stage}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x256xf32>
  %e = tensor.empty(%m) : tensor<?x256xf32>
  %h = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %w : tensor<?x256xf32>, tensor<256xf32>) outs(%e : tensor<?x256xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<?x256xf32>
  %er = tensor.empty(%m) : tensor<?xf32>
  %ir = linalg.fill ins(%zero : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
  %rows = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%h : tensor<?x256xf32>) outs(%ir : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  %ec = tensor.empty() : tensor<256xf32>
  %ic = linalg.fill ins(%zero : f32) outs(%ec : tensor<256xf32>) -> tensor<256xf32>
  %sum = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%h : tensor<?x256xf32>) outs(%ic : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  return %rows, %sum : tensor<?xf32>, tensor<256xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// One block a tile: other passes tile it.
// CHECK-LABEL: func.func private @no_loop_0(%{{.*}}: tensor<?x256xf32>)
// expected-remark @below {{scheduled without a persistent loop}}
func.func private @no_loop_0(%x: tensor<?x256xf32>) -> tensor<?xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x256xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x256xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A persistent loop of rows in a kernel whose reduction runs inside of them.
// expected-error @below {{the schedule loops over dimensions (0,), the reductions are over (1,)}}
func.func private @other_loop_0(%x: tensor<8x256xf32>) -> tensor<8xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>,
                fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout,
                  persistent_loop = {dims = array<i64: 0>, grid_reduction = "grid_sync", second_stage_tile = array<i64: 1, 256>, second_stage_layout = #layout}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<8x256xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @second_pass_0(%x: tensor<?x256xf32>) -> tensor<?x256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>,
                fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout,
                  persistent_loop = {dims = array<i64: 0>, grid_reduction = "grid_sync", second_stage_tile = array<i64: 1, 256>, second_stage_layout = #layout}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x256xf32>
  %ec = tensor.empty() : tensor<256xf32>
  %ic = linalg.fill ins(%zero : f32) outs(%ec : tensor<256xf32>) -> tensor<256xf32>
  %sum = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<?x256xf32>) outs(%ic : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  %e = tensor.empty(%m) : tensor<?x256xf32>
  // expected-error @below {{a persistent loop cannot compute this kernel: it uses a reduction over the grid in every tile, which takes a second pass}}
  %y = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %sum : tensor<?x256xf32>, tensor<256xf32>) outs(%e : tensor<?x256xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<?x256xf32>
  return %y : tensor<?x256xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @highest_0(%x: tensor<?x256xf32>) -> tensor<256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>,
                fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout,
                  persistent_loop = {dims = array<i64: 0>, grid_reduction = "atomics", second_stage_tile = array<i64: 1, 256>, second_stage_layout = #layout}}} {
  %lowest = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%lowest : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  // expected-error @below {{a reduction that combines f32 by arith.maximumf cannot be combined by atomics, which are sums of f32}}
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<?x256xf32>) outs(%init : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.maximumf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  return %0 : tensor<256xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0, d1) -> ()>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#second_stage = {vector = array<i64: 1, 1>, lanes = array<i64: 32, 1>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A schedule may loop over both dimensions of a reduction over both: tiles hold pieces of rows, and their ends are masked.
// CHECK-DAG: #[[TILES:.*]] = affine_map<()[s0] -> (s0 * 4)>
// CHECK-LABEL: func.func private @all_0_kernel(
// CHECK: %[[M:.*]] = memref.dim %arg0
// CHECK: %[[COUNT:.*]] = affine.apply #[[TILES]]()[%[[M]]]
// CHECK: scf.for %{{.*}} to %[[COUNT]] step %{{.*}} iter_args(%{{.*}}) -> (vector<1x256xf32>)
// CHECK: vector.transfer_read %arg0{{.*}} {fuse.streaming, in_bounds = [true, false]} : memref<?x1000xf32>, vector<1x256xf32>
// CHECK: vector.create_mask {{.*}} : vector<1x256xi1>
// CHECK: vector.multi_reduction <add>, %{{.*}} [0, 1] : vector<1x256xf32> to f32
func.func private @all_0(%x: tensor<?x1000xf32>) -> tensor<f32> attributes {fuse.kernel, fuse.result_extents = array<i64>,
    fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout, persistent_loop = {dims = array<i64: 0, 1>, grid_reduction = "grid_sync", second_stage_tile = array<i64: 64, 1>, second_stage_layout = #second_stage}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %0 = linalg.generic {indexing_maps = [#id, #one], iterator_types = ["reduction", "reduction"]}
       ins(%x : tensor<?x1000xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}
