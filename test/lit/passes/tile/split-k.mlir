// RUN: mlirfuse-opt --fuse-split-k --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#tiles = affine_map<()[s0] -> ((s0 ceildiv 32) * 2)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}

// 5 steps over 2 slices: steps 0, 2, 4 and steps 1, 3. Workspaces follow the arguments; their extents follow M.
// CHECK-DAG: #[[BLOCKS:.*]] = affine_map<()[s0] -> ((s0 ceildiv 32) * 4)>
// CHECK-DAG: #[[FIRST:.*]] = affine_map<(d0) -> (d0 * 32)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0 * 2 + d1)>
// CHECK-LABEL: func.func private @last_0_kernel(
// CHECK-SAME: %[[PARTS:[a-z0-9]+]]: memref<?x32x32xf32> {fuse.workspace = "scratch", fuse.workspace_extents = #[[BLOCKS]], fuse.workspace_operands = array<i64: 0, 0>}
// CHECK-SAME: %[[SEM:[a-z0-9]+]]: memref<?xi32> {fuse.workspace = "semaphores", fuse.workspace_extents = affine_map<()[s0] -> ((s0 ceildiv 32) * 2 + 1)>, fuse.workspace_operands = array<i64: 0, 0>}
// CHECK: memref.dim
// CHECK-NEXT: affine.apply
// CHECK-NEXT: %[[TILES:.*]] = affine.apply
// CHECK: %[[COUNT:.*]] = affine.apply #[[BLOCKS]]()
// CHECK: scf.forall (%[[BLOCK:.*]]) in (%[[COUNT]])
// CHECK: %[[TILE:.*]] = arith.remui %[[BLOCK]], %[[TILES]]
// CHECK: %[[SLICE:.*]] = arith.divui %[[BLOCK]], %[[TILES]]
// CHECK: %[[LOWER:.*]] = affine.apply #[[FIRST]](%[[SLICE]])
// CHECK: %[[STRIDE:.*]] = arith.constant 64 : index
// CHECK: %[[PART:.*]] = scf.for %{{.*}} = %[[LOWER]] to %{{.*}} step %[[STRIDE]]
// CHECK: %[[OWN:.*]] = affine.apply #[[ROW]](%[[TILE]], %[[SLICE]])
// CHECK: vector.transfer_write %[[PART]], %[[PARTS]][%[[OWN]],
// CHECK: %[[OLD:.*]] = "fuse.semaphore_arrive"(%[[SEM]], %[[TILE]], %{{.*}})
// CHECK: arith.cmpi eq, %[[OLD]]
// CHECK: scf.if
// CHECK: vector.transfer_read %[[PARTS]]
// CHECK: %[[SUM:.*]] = scf.for
// CHECK: vector.transfer_read %[[PARTS]]
// CHECK: arith.addf
// CHECK: vector.transfer_write %[[SUM]]
func.func private @last_0_kernel(%x: memref<?x160xf16>, %w: memref<64x160xf16>, %y: memref<?x64xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout,
                contraction = {k = 32, instruction = "mma", split = 2, reduction = "last_block"}}} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %m = memref.dim %x, %c0 : memref<?x160xf16>
  %tiles = affine.apply #tiles()[%m]
  scf.forall (%block) in (%tiles) {
    %c32 = arith.constant 32 : index
    %c160 = arith.constant 160 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %i = arith.divui %block, %c2 : index
    %j = arith.remui %block, %c2 : index
    %row = arith.muli %i, %c32 : index
    %column = arith.muli %j, %c32 : index
    %acc = scf.for %k = %c0 to %c160 step %c32 iter_args(%sum = %zero) -> (vector<32x32xf32>) {
      %a = vector.transfer_read %x[%row, %k], %pad {in_bounds = [false, true]} : memref<?x160xf16>, vector<32x32xf16>
      %b = vector.transfer_read %w[%column, %k], %pad {in_bounds = [true, true]} : memref<64x160xf16>, vector<32x32xf16>
      %next = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %sum
          : vector<32x32xf16>, vector<32x32xf16> into vector<32x32xf32>
      scf.yield %next : vector<32x32xf32>
    }
    vector.transfer_write %acc, %y[%row, %column] {in_bounds = [false, true]} : vector<32x32xf32>, memref<?x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#n = affine_map<(d0) -> (0, d0)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#second_stage = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>,
           blocks = array<i64: 1, 1>}

// Slices of 8 rows: all blocks wait for each other, and the epilogue works on their own rows.
// CHECK-LABEL: func.func private @slices_0_kernel(
// CHECK-SAME: %[[PARTS:[a-z0-9]+]]: memref<4x32x32xf32> {fuse.workspace = "scratch"}, %[[SEM:[a-z0-9]+]]: memref<2xi32> {fuse.workspace = "semaphores"}
// CHECK-SAME: fuse.cooperative
// CHECK: vector.transfer_write %{{.*}}, %[[PARTS]]
// CHECK: "fuse.semaphore_arrive"(%[[SEM]], %{{.*}}, %[[LIMIT:.*]])
// CHECK: "fuse.semaphore_wait"(%[[SEM]]
// CHECK: "fuse.semaphore_arrive"(%[[SEM]]
// CHECK: scf.if
// CHECK: %[[START:.*]] = arith.muli
// CHECK-COUNT-4: vector.transfer_read %[[PARTS]][%{{.*}}, %[[START]], %{{.*}}], {{.*}} vector<8x32xf32>
// CHECK-COUNT-3: arith.addf %{{.*}} : vector<8x32xf32>
// CHECK: vector.transfer_read %{{.*}} : memref<32xf32>, vector<1x32xf32>
// CHECK: vector.broadcast %{{.*}} : vector<1x32xf32> to vector<8x32xf32>
// CHECK: %[[ROW:.*]] = arith.addi %{{.*}}, %[[START]]
// CHECK: vector.transfer_write %{{.*}}[%[[ROW]], %{{.*}}] {{.*}} : vector<8x32xf32>, memref<30x32xf32>
// CHECK: } {fuse.second_stage}
func.func private @slices_0_kernel(%x: memref<30x128xf16>, %w: memref<32x128xf16>, %bias: memref<32xf32>, %y: memref<30x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout,
                contraction = {k = 32, instruction = "mma", split = 4, reduction = "grid_sync", second_stage_layout = #second_stage}}} {
  %c1 = arith.constant 1 : index
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c128 = arith.constant 128 : index
    %pad = arith.constant 0.0 : f16
    %none = arith.constant 0.0 : f32
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %acc = scf.for %k = %c0 to %c128 step %c32 iter_args(%sum = %zero) -> (vector<32x32xf32>) {
      %a = vector.transfer_read %x[%c0, %k], %pad {in_bounds = [false, true]} : memref<30x128xf16>, vector<32x32xf16>
      %b = vector.transfer_read %w[%c0, %k], %pad {in_bounds = [true, true]} : memref<32x128xf16>, vector<32x32xf16>
      %next = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %sum
          : vector<32x32xf16>, vector<32x32xf16> into vector<32x32xf32>
      scf.yield %next : vector<32x32xf32>
    }
    %b = vector.transfer_read %bias[%c0], %none {in_bounds = [true, true], permutation_map = #n} : memref<32xf32>, vector<1x32xf32>
    %wide = vector.broadcast %b : vector<1x32xf32> to vector<32x32xf32>
    %biased = arith.addf %acc, %wide : vector<32x32xf32>
    vector.transfer_write %biased, %y[%c0, %c0] {in_bounds = [false, true]} : vector<32x32xf32>, memref<30x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#n = affine_map<(d0) -> (0, d0)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#second_stage = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>,
           blocks = array<i64: 1, 1>}

// The same by flag-in-data exchange: blocks wait for the data alone.
// CHECK-LABEL: func.func private @flagged_0_kernel(
// CHECK-SAME: %[[MAIL:[a-z0-9]+]]: memref<4x32x32xf32> {fuse.workspace = "semaphores"})
// CHECK-SAME: fuse.cooperative
// Slices of equally many steps have a constant length.
// CHECK: %[[LOWER:.*]] = affine.apply #{{[a-z0-9]+}}(%{{[0-9]+}})
// CHECK: %[[STRIDE:.*]] = arith.constant 128 : index
// CHECK: %[[LENGTH:.*]] = arith.constant 128 : index
// CHECK: %[[UPPER:.*]] = arith.addi %[[LOWER]], %[[LENGTH]] : index
// CHECK: %[[PART:.*]] = scf.for %{{.*}} = %[[LOWER]] to %[[UPPER]] step %[[STRIDE]]
// CHECK-NOT: vector.transfer_write
// CHECK: "fuse.flagged_store"(%[[PART]], %[[MAIL]], %{{.*}}) : (vector<32x32xf32>, memref<4x32x32xf32>, index, index, index) -> ()
// CHECK-NOT: semaphore
// CHECK: scf.if
// CHECK: %[[START:.*]] = arith.muli
// CHECK: %{{.*}}:4 = "fuse.flagged_load"(%[[MAIL]], %{{.*}}, %[[START]], %{{.*}}) {partials = 4 : i64}
// CHECK-COUNT-3: arith.addf %{{.*}} : vector<8x32xf32>
// CHECK: vector.transfer_write %{{.*}} : vector<8x32xf32>, memref<30x32xf32>
// CHECK: } {fuse.second_stage}
func.func private @flagged_0_kernel(%x: memref<30x128xf16>, %w: memref<32x128xf16>, %bias: memref<32xf32>, %y: memref<30x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout,
                contraction = {k = 32, instruction = "mma", split = 4, reduction = "flagged", second_stage_layout = #second_stage}}} {
  %c1 = arith.constant 1 : index
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c128 = arith.constant 128 : index
    %pad = arith.constant 0.0 : f16
    %none = arith.constant 0.0 : f32
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %acc = scf.for %k = %c0 to %c128 step %c32 iter_args(%sum = %zero) -> (vector<32x32xf32>) {
      %a = vector.transfer_read %x[%c0, %k], %pad {in_bounds = [false, true]} : memref<30x128xf16>, vector<32x32xf16>
      %b = vector.transfer_read %w[%c0, %k], %pad {in_bounds = [true, true]} : memref<32x128xf16>, vector<32x32xf16>
      %next = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %sum
          : vector<32x32xf16>, vector<32x32xf16> into vector<32x32xf32>
      scf.yield %next : vector<32x32xf32>
    }
    %b = vector.transfer_read %bias[%c0], %none {in_bounds = [true, true], permutation_map = #n} : memref<32xf32>, vector<1x32xf32>
    %wide = vector.broadcast %b : vector<1x32xf32> to vector<32x32xf32>
    %biased = arith.addf %acc, %wide : vector<32x32xf32>
    vector.transfer_write %biased, %y[%c0, %c0] {in_bounds = [false, true]} : vector<32x32xf32>, memref<30x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
// expected-remark @below {{the schedule has no split}}
func.func private @whole_0_kernel(%y: memref<32x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout, contraction = {k = 32, instruction = "mma"}}} {
  scf.forall (%block) in (1) {
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
func.func private @nothing_0_kernel(%y: memref<32x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout, contraction = {k = 32, instruction = "mma", split = 2}}} {
  // expected-error @below {{the schedule splits k, and no loop runs along it}}
  scf.forall (%block) in (1) {
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
func.func private @dynamic_0_kernel(%x: memref<32x?xf16>, %w: memref<32x?xf16>, %y: memref<32x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout,
                contraction = {k = 32, instruction = "mma", split = 2}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    // expected-error @below {{the bounds of the loop along k are not constant}}
    %k = memref.dim %x, %c1 : memref<32x?xf16>
    %acc = scf.for %i = %c0 to %k step %c32 iter_args(%sum = %zero) -> (vector<32x32xf32>) {
      %a = vector.transfer_read %x[%c0, %i], %pad {in_bounds = [true, true]} : memref<32x?xf16>, vector<32x32xf16>
      %b = vector.transfer_read %w[%c0, %i], %pad {in_bounds = [true, true]} : memref<32x?xf16>, vector<32x32xf16>
      %next = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %sum
          : vector<32x32xf16>, vector<32x32xf16> into vector<32x32xf32>
      scf.yield %next : vector<32x32xf32>
    }
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#slices = {vector = array<i64: 1, 4>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#schedule = {tile = array<i64: 128, 16>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", split = 2 : i64, reduction = "grid_sync", second_stage_layout = #slices, stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// Partial sums of an operand have scratch of their own, and the product's semaphores; their slices are added up first.
// CHECK-LABEL: func.func @summed
// CHECK-SAME: %[[P:[a-z0-9]+]]: memref<2x128x16xf32> {fuse.workspace = "scratch"}, %[[Q:[a-z0-9]+]]: memref<2x128x8xf32> {fuse.workspace = "scratch"}, %{{.*}}: memref<2xi32> {fuse.workspace = "semaphores"}
// CHECK: %[[LOOP:.*]]:2 = scf.for
// CHECK: vector.transfer_write %[[LOOP]]#0, %[[P]]
// CHECK: vector.transfer_write %[[LOOP]]#1, %[[Q]]
// CHECK: "fuse.semaphore_wait"
// CHECK-COUNT-2: vector.transfer_read %[[Q]]{{.*}} vector<64x8xf32>
// CHECK: vector.multi_reduction <add>, %{{.*}}, %{{.*}} [1] : vector<64x8xf32> to vector<64xf32>
// CHECK: vector.transfer_write %{{.*}}, %arg3
// CHECK-COUNT-2: vector.transfer_read %[[P]]{{.*}} vector<64x16xf32>
// CHECK: vector.transfer_write %{{.*}}, %arg2
// expected-remark @below {{2 slices of k, combined by grid_sync}}
func.func @summed(%A: memref<128x512xbf16> {fuse.align = 16 : i64}, %B: memref<16x512xbf16> {fuse.align = 16 : i64}, %C: memref<128x16xf32>, %D: memref<128xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<128x16xf32>
  %zeros = arith.constant dense<0.0> : vector<128x8xf32>
  %flat = arith.constant dense<0.0> : vector<128xf32>
  scf.forall (%block) in (1) {
    %acc:2 = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero, %part = %zeros) -> (vector<128x16xf32>, vector<128x8xf32>) {
      %x = vector.transfer_read %A[%c0, %k], %pad {in_bounds = [true, true]} : memref<128x512xbf16>, vector<128x64xbf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<16x512xbf16>, vector<16x64xbf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xbf16>, vector<16x64xbf16> into vector<128x16xf32>
      %t = "fuse.operand_tile"(%x) {first = 16 : i64} : (vector<128x64xbf16>) -> vector<128x16xbf16>
      %e = arith.extf %t : vector<128x16xbf16> to vector<128x16xf32>
      %left = vector.extract_strided_slice %e {offsets = [0, 0], sizes = [128, 8], strides = [1, 1]} : vector<128x16xf32> to vector<128x8xf32>
      %right = vector.extract_strided_slice %e {offsets = [0, 8], sizes = [128, 8], strides = [1, 1]} : vector<128x16xf32> to vector<128x8xf32>
      %one = arith.addf %part, %left : vector<128x8xf32>
      %two = arith.addf %one, %right : vector<128x8xf32>
      scf.yield %next, %two : vector<128x16xf32>, vector<128x8xf32>
    }
    %s = vector.multi_reduction <add>, %acc#1, %flat [1] : vector<128x8xf32> to vector<128xf32>
    vector.transfer_write %s, %D[%c0] {in_bounds = [true], fuse.dims = array<i64: 0>} : vector<128xf32>, memref<128xf32>
    vector.transfer_write %acc#0, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x16xf32>, memref<128x16xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}

// Of six tiles the last two are shared by two blocks each: four blocks have a tile of their own. The workspace is that of
// shared tiles. Blocks that have all of a tile's sums run the epilogue.
// CHECK-DAG: #[[BLOCKS:.*]] = affine_map<() -> (8)>
// CHECK-LABEL: func.func private @tail_0_kernel(
// CHECK-SAME: %[[PARTS:[a-z0-9]+]]: memref<4x32x32xf32> {fuse.workspace = "scratch"}
// CHECK-SAME: %[[SEM:[a-z0-9]+]]: memref<3xi32> {fuse.workspace = "semaphores"}
// CHECK: %[[COUNT:.*]] = affine.apply #[[BLOCKS]]()
// CHECK: scf.forall (%[[BLOCK:.*]]) in (%[[COUNT]])
// CHECK: %[[SHARED:.*]] = arith.cmpi uge, %[[BLOCK]], %c4
// CHECK: %[[WHICH:.*]] = arith.remui %{{.*}}, %c2
// CHECK: %[[MEMBER:.*]] = arith.divui %{{.*}}, %c2
// CHECK: arith.select %[[SHARED]], %{{.*}}, %[[BLOCK]]
// CHECK: %[[LOWER:.*]] = arith.select %[[SHARED]]
// CHECK: %[[STEP:.*]] = arith.select %[[SHARED]], %c64{{.*}}, %c32
// CHECK: %[[OWN:.*]] = scf.for %{{.*}} = %[[LOWER]] to %{{.*}} step %[[STEP]]
// CHECK: %[[SUMS:.*]]:2 = scf.if %[[SHARED]] -> (vector<32x32xf32>, i1)
// CHECK: vector.transfer_write %[[OWN]], %[[PARTS]]
// CHECK: "fuse.semaphore_arrive"(%[[SEM]], %[[WHICH]], %{{.*}})
// CHECK: scf.if
// CHECK: vector.transfer_read %[[PARTS]]
// CHECK: } else {
// CHECK: scf.yield %[[OWN]], %true
// CHECK: scf.if %[[SUMS]]#1
// CHECK-NEXT: vector.transfer_write %[[SUMS]]#0
// expected-remark @below {{2 slices of k in each of the last 2 tiles, combined by last_block}}
func.func private @tail_0_kernel(%x: memref<96x160xf16>, %w: memref<64x160xf16>, %y: memref<96x64xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout,
                contraction = {k = 32, instruction = "mma", split = 2, tail = 2, reduction = "last_block"}}} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  scf.forall (%block) in (6) {
    %c32 = arith.constant 32 : index
    %c160 = arith.constant 160 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %i = arith.divui %block, %c2 : index
    %j = arith.remui %block, %c2 : index
    %row = arith.muli %i, %c32 : index
    %column = arith.muli %j, %c32 : index
    %acc = scf.for %k = %c0 to %c160 step %c32 iter_args(%sum = %zero) -> (vector<32x32xf32>) {
      %a = vector.transfer_read %x[%row, %k], %pad {in_bounds = [true, true]} : memref<96x160xf16>, vector<32x32xf16>
      %b = vector.transfer_read %w[%column, %k], %pad {in_bounds = [true, true]} : memref<64x160xf16>, vector<32x32xf16>
      %next = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %sum
          : vector<32x32xf16>, vector<32x32xf16> into vector<32x32xf32>
      scf.yield %next : vector<32x32xf32>
    }
    vector.transfer_write %acc, %y[%row, %column] {in_bounds = [true, true]} : vector<32x32xf32>, memref<96x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
func.func private @only_tail_0_kernel(%x: memref<96x160xf16>, %w: memref<64x160xf16>, %y: memref<96x64xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout,
                contraction = {k = 32, instruction = "mma", split = 2, tail = 6, reduction = "last_block"}}} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  // expected-error @below {{the last 6 tiles are to be split, and the number of tiles is not known, or no larger}}
  scf.forall (%block) in (6) {
    %c32 = arith.constant 32 : index
    %c160 = arith.constant 160 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %i = arith.divui %block, %c2 : index
    %j = arith.remui %block, %c2 : index
    %row = arith.muli %i, %c32 : index
    %column = arith.muli %j, %c32 : index
    %acc = scf.for %k = %c0 to %c160 step %c32 iter_args(%sum = %zero) -> (vector<32x32xf32>) {
      %a = vector.transfer_read %x[%row, %k], %pad {in_bounds = [true, true]} : memref<96x160xf16>, vector<32x32xf16>
      %b = vector.transfer_read %w[%column, %k], %pad {in_bounds = [true, true]} : memref<64x160xf16>, vector<32x32xf16>
      %next = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %sum
          : vector<32x32xf16>, vector<32x32xf16> into vector<32x32xf32>
      scf.yield %next : vector<32x32xf32>
    }
    vector.transfer_write %acc, %y[%row, %column] {in_bounds = [true, true]} : vector<32x32xf32>, memref<96x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
