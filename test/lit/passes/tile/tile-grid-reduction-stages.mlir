// RUN: mlirfuse-opt --fuse-tile-grid-reduction --canonicalize --cse --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
#second_stage = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// The last block combines all slices, and no block waits: such a grid need not be resident. Rows are a multiple
// of the tile's, so that none is masked, and a maximum starts from its own neutral element.
// CHECK-LABEL: func.func private @last_0_kernel(
// CHECK-NOT: fuse.cooperative
// CHECK-DAG: %[[LOWEST:.*]] = arith.constant dense<0xFF800000> : vector<2x256xf32>
// CHECK: scf.forall
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[LOWEST]])
// CHECK-NOT: vector.create_mask
// CHECK: arith.maximumf
// CHECK: vector.multi_reduction <maximumf>
// CHECK: vector.transfer_write
// CHECK-NOT: fuse.semaphore_wait
// CHECK: %[[OLD:.*]] = "fuse.semaphore_arrive"(%{{.*}}, %{{.*}}, %[[LAST:.*]]) :
// CHECK: %[[IS_LAST:.*]] = arith.cmpi eq, %[[OLD]], %[[LAST]]
// CHECK: scf.if %[[IS_LAST]]
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c8{{.*}} step %c1
// CHECK: } {fuse.second_stage}
// CHECK-NOT: fuse.semaphore_arrive
// CHECK: return
func.func private @last_0(%x: tensor<4096x256xf32>) -> tensor<256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>,
                fuse.schedule = {tile = array<i64: 2, 256>, layout = #layout,
                  persistent_loop = {dims = array<i64: 0>, grid_reduction = "last_block", second_stage_tile = array<i64: 8, 32>, second_stage_layout = #second_stage}}} {
  %lowest = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%lowest : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<4096x256xf32>) outs(%init : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.maximumf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  return %0 : tensor<256xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
#second_stage = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A partial every 8 tiles: as many periods as every block has in full, and one for the rest; all of them are combined.
// CHECK-DAG: #[[TILES:.*]] = affine_map<()[s0] -> (s0 ceildiv 2)>
// CHECK-LABEL: func.func private @rounds_0_kernel(
// CHECK-SAME: %[[PARTS:[a-z0-9]+]]: memref<?x256xf32> {fuse.workspace = "scratch", fuse.workspace_extents = affine_map<()[s0, s1] -> ((s0 ceildiv 2) floordiv 8 + s1)>, fuse.workspace_operands = array<i64: 0, 0, -1, 2>}
// CHECK-DAG: %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : vector<2x256xf32>
// CHECK: %[[COUNT:.*]] = affine.apply #[[TILES]]()
// CHECK: %[[BLOCKS:.*]] = affine.min
// CHECK: scf.forall (%[[B:.*]]) in (%[[BLOCKS]])
// CHECK: %[[LEAST:.*]] = arith.divui %[[COUNT]], %[[BLOCKS]]
// CHECK: %[[ROUNDS:.*]] = arith.divui %[[LEAST]], %c8
// CHECK: %[[WHOLE:.*]]:3 = scf.for {{.*}} iter_args(%{{.*}} = %[[ZEROS]], %{{.*}} = %c0, %{{.*}} = %[[B]])
// CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %[[WHOLE]]#0, %[[BEFORE:.*]] = %[[WHOLE]]#1)
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK: %[[DONE:.*]] = arith.addi %[[BEFORE]], %c1
// CHECK: %[[NUMBER:.*]] = arith.divui %[[DONE]], %c8
// CHECK: %[[REST:.*]] = arith.remui %[[DONE]], %c8
// CHECK: arith.cmpi eq, %[[REST]], %c0
// CHECK: arith.cmpi ule, %[[NUMBER]], %[[ROUNDS]]
// CHECK: %[[DUE:.*]] = arith.andi
// CHECK: %[[NEXT:.*]] = arith.select %[[DUE]], %[[ZEROS]], %[[SUM]]
// CHECK: scf.if %[[DUE]]
// CHECK: vector.multi_reduction <add>, %[[SUM]]
// CHECK: vector.transfer_write %{{.*}}, %[[PARTS]]
// CHECK: scf.yield %[[NEXT]], %[[DONE]]
// CHECK: scf.if
// CHECK: %[[LAST:.*]] = arith.muli %[[ROUNDS]], %[[BLOCKS]]
// CHECK: %[[ROW:.*]] = arith.addi %[[LAST]], %[[B]]
// CHECK: vector.multi_reduction <add>, %[[LOOP]]#0
// CHECK: vector.transfer_write %{{.*}}, %[[PARTS]][%[[ROW]], %c0]
// CHECK: %[[OF_LAST:.*]] = arith.minui %[[BLOCKS]], %{{.*}}
// CHECK: %[[BEHIND:.*]] = arith.muli %[[ROUNDS]], %[[BLOCKS]]
// CHECK: %[[ALL:.*]] = arith.addi %[[BEHIND]], %[[OF_LAST]]
// CHECK: memref.subview %[[PARTS]][0, 0] [%[[ALL]], 256]
// Sums of at most eight steps, whose reductions are added up.
// CHECK: scf.for %[[FIRST:.*]] = %c0 to %[[ALL]] step %c64
// CHECK: %[[END:.*]] = arith.minui %{{.*}}, %[[ALL]]
// CHECK: %[[GROUP:.*]] = scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %c8 iter_args(%{{.*}} = %{{.*}}) -> (vector<8x32xf32>)
// CHECK: arith.addf %{{.*}}, %[[GROUP]]
func.func private @rounds_0(%x: tensor<?x256xf32>) -> tensor<256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>,
                fuse.schedule = {tile = array<i64: 2, 256>, layout = #layout, blocks_per_sm = 2 : i64,
                  persistent_loop = {dims = array<i64: 0>, grid_reduction = "grid_sync", second_stage_tile = array<i64: 8, 32>, second_stage_layout = #second_stage, period = 8 : i64}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %sum = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<?x256xf32>) outs(%init : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  return %sum : tensor<256xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#vec = affine_map<(d0) -> (d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
#second_stage = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Two kernels: 24 blocks run the persistent loop, and return a row of partials each beside the results of their tiles; then
// a block for each slice of 32 columns combines the rows of partials, and runs the ops behind the reduction.
// CHECK-LABEL: func.func @apart(
// CHECK-SAME: %[[X:.*]]: tensor<?x256xf32>
// CHECK: %[[W:.*]]:2 = call @apart_0(%[[X]]) : (tensor<?x256xf32>) -> (tensor<?x256xf32>, tensor<24x256xf32>)
// CHECK: %[[F:.*]] = call @apart_0_second_stage(%[[X]], %[[W]]#1) : (tensor<?x256xf32>, tensor<24x256xf32>) -> tensor<256xf32>
// CHECK: return %[[F]], %[[W]]#0
// CHECK-LABEL: func.func private @apart_0_kernel(
// CHECK-SAME: %{{[a-z0-9]+}}: memref<?x256xf32>, %[[Y:[a-z0-9]+]]: memref<?x256xf32>, %[[PARTS:[a-z0-9]+]]: memref<24x256xf32>)
// CHECK-NOT: fuse.cooperative
// CHECK: scf.forall (%[[B:.*]]) in (24)
// CHECK: scf.for
// CHECK: vector.transfer_write %{{.*}}, %[[Y]]
// CHECK-NOT: scf.if
// CHECK: vector.transfer_write %{{.*}}, %[[PARTS]][%[[B]], %c0]
// CHECK-NOT: fuse.semaphore
// CHECK-LABEL: func.func private @apart_0_second_stage_kernel(
// CHECK-SAME: %{{[a-z0-9]+}}: memref<?x256xf32>, %[[PARTS:[a-z0-9]+]]: memref<24x256xf32> {fuse.align = 16 : i64}, %[[SUM:[a-z0-9]+]]: memref<256xf32>)
// CHECK: scf.forall (%[[S:.*]]) in (8)
// CHECK: scf.for %{{.*}} = %c0 to %c24 step %c8
// CHECK: vector.transfer_read
// CHECK: math.sqrt
// CHECK: vector.transfer_write %{{.*}}, %[[SUM]]
// CHECK-NEXT: } {fuse.second_stage}
// CHECK-NEXT: } {fuse.second_stage, mapping = [#gpu.block<x>]}
// CHECK: func.func private @apart_0(tensor<?x256xf32>) -> (tensor<?x256xf32>, tensor<24x256xf32>) attributes {fuse.launch = @apart_0_kernel, fuse.result_extents = array<i64: 0, 0>}
// CHECK: func.func private @apart_0_second_stage(tensor<?x256xf32>, tensor<24x256xf32>) -> tensor<256xf32> attributes {fuse.launch = @apart_0_second_stage_kernel, fuse.result_extents = array<i64>}
func.func @apart(%x: tensor<?x256xf32>) -> (tensor<256xf32>, tensor<?x256xf32>) {
  %0:2 = call @apart_0(%x) : (tensor<?x256xf32>) -> (tensor<256xf32>, tensor<?x256xf32>)
  return %0#0, %0#1 : tensor<256xf32>, tensor<?x256xf32>
}
func.func private @apart_0(%x: tensor<?x256xf32>) -> (tensor<256xf32>, tensor<?x256xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>,
                fuse.schedule = {tile = array<i64: 2, 256>, layout = #layout,
                  persistent_loop = {dims = array<i64: 0>, grid_reduction = "second_kernel", blocks = 24 : i64, second_stage_tile = array<i64: 8, 32>, second_stage_layout = #second_stage}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x256xf32>
  %ex = tensor.empty(%m) : tensor<?x256xf32>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<?x256xf32>) outs(%ex : tensor<?x256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<?x256xf32>
  %e = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %sum = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%h : tensor<?x256xf32>) outs(%init : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  %root = linalg.generic {indexing_maps = [#vec, #vec], iterator_types = ["parallel"]}
       ins(%sum : tensor<256xf32>) outs(%e : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.sqrt %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  return %root, %h : tensor<256xf32>, tensor<?x256xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
#second_stage = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Blocks add their partials atomically to some rows of sums, which are zero between launches; the last block adds up these
// rows, and leaves them zero.
// CHECK-DAG: #[[MODULO:.*]] = affine_map<(d0) -> (d0 mod 8)>
// CHECK-DAG: #[[FLOOR:.*]] = affine_map<()[s0] -> (s0 floordiv 2)>
// CHECK-LABEL: func.func private @added_0_kernel(
// CHECK-SAME: %[[SUMS:[a-z0-9]+]]: memref<8x256xf32> {fuse.workspace = "semaphores"}, %[[SEM:[a-z0-9]+]]: memref<1xi32> {fuse.workspace = "semaphores"}
// CHECK-NOT: fuse.cooperative
// CHECK: scf.forall (%[[BLOCK:.*]]) in (%[[BLOCKS:.*]]) {
// Tiles that are whole have a loop of their own; only the block that is next behind them masks one.
// CHECK: %[[WHOLE_TILES:.*]] = affine.apply #[[FLOOR]]()
// CHECK: %[[STOP:.*]] = arith.minui %[[WHOLE_TILES]], %[[TILES:.*]] : index
// CHECK: %[[WHOLE:.*]]:2 = scf.for %[[TILE:.*]] = %[[BLOCK]] to %[[STOP]] step %[[BLOCKS]] iter_args(%{{.*}}, %{{.*}} = %[[BLOCK]])
// CHECK: vector.transfer_read {{.*}} {fuse.streaming, in_bounds = [true, true]}
// CHECK-NOT: vector.create_mask
// CHECK: %[[FOLLOWING:.*]] = arith.addi %[[TILE]], %[[BLOCKS]]
// CHECK: scf.yield %{{.*}}, %[[FOLLOWING]]
// CHECK: %[[PARTIAL:.*]] = scf.for %{{.*}} = %[[WHOLE]]#1 to %[[TILES]] step %[[BLOCKS]] iter_args(%{{.*}} = %[[WHOLE]]#0)
// CHECK: vector.transfer_read {{.*}} {fuse.streaming, in_bounds = [false, true]}
// CHECK: vector.create_mask
// CHECK: scf.if
// CHECK: %[[ROW:.*]] = affine.apply #[[MODULO]](%[[BLOCK]])
// CHECK: %[[PART:.*]] = vector.multi_reduction <add>, %[[PARTIAL]]
// CHECK: "fuse.accumulate"(%[[PART]], %[[SUMS]], %[[ROW]], %c0) : (vector<256xf32>, memref<8x256xf32>, index, index) -> ()
// CHECK: %[[OLD:.*]] = "fuse.semaphore_arrive"(%[[SEM]], %c0, %[[LAST:.*]]) :
// CHECK: %[[IS_LAST:.*]] = arith.cmpi eq, %[[OLD]], %[[LAST]]
// CHECK: scf.if %[[IS_LAST]] {
// CHECK: scf.for %[[SLICE:.*]] = %c0 to %c2 step %c1
// CHECK-COUNT-8: vector.transfer_read %[[SUMS]][%c{{[0-7]}}, %{{.*}}], %{{.*}} : memref<8x256xf32>, vector<1x128xf32>
// CHECK-NOT: vector.create_mask
// CHECK-NOT: scf.for
// CHECK: math.sqrt
// CHECK: vector.transfer_write
// CHECK: } {fuse.second_stage}
// CHECK: linalg.fill ins(%{{.*}} : f32) outs(%[[SUMS]] : memref<8x256xf32>)
// CHECK: } {fuse.second_stage}
func.func private @added_0(%x: tensor<?x256xf32>) -> tensor<256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>,
                fuse.schedule = {tile = array<i64: 2, 256>, layout = #layout, blocks_per_sm = 2 : i64,
                  persistent_loop = {dims = array<i64: 0>, grid_reduction = "atomics", second_stage_tile = array<i64: 1, 128>, second_stage_layout = #second_stage,
                          second_stage_reads = 8 : i64}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %sum = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<?x256xf32>) outs(%init : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  %root = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
       ins(%sum : tensor<256xf32>) outs(%e : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.sqrt %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  return %root : tensor<256xf32>
}
