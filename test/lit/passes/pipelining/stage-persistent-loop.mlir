// RUN: mlirfuse-opt --fuse-stage-persistent-loop --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}
#persistent_loop = {dims = array<i64: 0>, grid_reduction = "grid_sync", second_stage_tile = array<i64: 1, 256>, second_stage_layout = #layout, stages = 3 : i64}
// Three stages: two tiles are under way before the loop, a group each; a step starts the one two steps ahead.
// CHECK-LABEL: func.func private @ring_0_kernel(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x250xbf16>, %[[R:[a-z0-9]+]]: memref<?xf32>, %[[W:[a-z0-9]+]]: memref<250xf32>
// CHECK: %[[LOADED:.*]] = vector.transfer_read %[[W]]
// CHECK: scf.forall (%[[B:.*]]) in (%[[BLOCKS:.*]])
// The ring is as large as the layout, padding included.
// CHECK: %[[RING:.*]] = memref.alloc() : memref<3x2x256xbf16, #gpu.address_space<workgroup>>
// CHECK: %[[FIRST:.*]] = arith.cmpi ult, %[[B]], %[[TILES:.*]] : index
// CHECK: scf.if %[[FIRST]]
// CHECK: %[[ROW:.*]] = affine.apply #{{.*}}(%[[B]])
// CHECK: %[[SLOT0:.*]] = memref.subview %[[RING]][%c0{{.*}}, 0, 0] [1, 2, 256] [1, 1, 1]
// CHECK: "fuse.copy_fragments"(%[[X]], %[[SLOT0]], %[[ROW]], %c0{{.*}}) {fuse.streaming, in_bounds = [false, true], permutation_map = #{{.*}}, tile = array<i64: 2, 250>}
// CHECK: nvvm.cp.async.commit.group
// CHECK: %[[SECOND:.*]] = arith.addi %[[B]], %[[BLOCKS]]
// CHECK: arith.cmpi ult, %[[SECOND]], %[[TILES]]
// CHECK: "fuse.copy_fragments"
// CHECK: nvvm.cp.async.commit.group
// CHECK: %[[THIRD:.*]] = arith.addi %[[SECOND]], %[[BLOCKS]]
// CHECK: %[[DISTANCE:.*]] = arith.subi %[[THIRD]], %[[B]]
// Row values are loaded into registers one step ahead, and not read where there is no tile. Those of the first step, and
// loop-invariant tiles, have arrived before the loop begins.
// CHECK: %[[SMALL:.*]] = scf.if
// CHECK: %[[FIRST_SMALL:.*]] = vector.transfer_read %[[R]]
// CHECK: %[[OPAQUE:.*]] = "fuse.optimization_barrier"(%[[FIRST_SMALL]], %[[FIRST_SMALL]])
// CHECK: scf.yield %[[OPAQUE]]
// CHECK: } else {
// CHECK-NOT: transfer_read
// CHECK: %[[WEIGHTS:.*]] = "fuse.optimization_barrier"(%[[LOADED]], %[[LOADED]])
// CHECK: scf.for %[[T:.*]] = %[[B]] to %[[TILES]] step %[[BLOCKS]] iter_args(%{{.*}} = %{{.*}}, %[[NOW:.*]] = %[[SMALL]], %[[SLOT:.*]] = %c0{{.*}})
// The slot that the step before has read is free.
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %[[SLOT]], %c0
// CHECK: %[[BEFORE:.*]] = arith.subi %[[SLOT]], %c1
// CHECK: %[[FREE:.*]] = arith.select %[[IS_FIRST]], %c2{{.*}}, %[[BEFORE]]
// CHECK: %[[FOLLOWING:.*]] = arith.select
// CHECK: %[[AHEAD:.*]] = arith.addi %[[T]], %[[DISTANCE]]
// CHECK: %[[MORE:.*]] = arith.cmpi ult, %[[AHEAD]], %[[TILES]]
// CHECK: scf.if %[[MORE]]
// CHECK: memref.subview %[[RING]][%[[FREE]], 0, 0]
// CHECK: "fuse.copy_fragments"
// A group even where nothing was copied, so that groups can be counted; the first of the three under way is waited for.
// CHECK: nvvm.cp.async.commit.group
// CHECK: %[[LATER:.*]] = vector.transfer_read %[[R]]
// CHECK: nvvm.cp.async.wait.group 2
// Each thread reads back what it copied: no barrier.
// CHECK-NOT: gpu.barrier
// CHECK: %[[OWN:.*]] = memref.subview %[[RING]][%[[SLOT]], 0, 0]
// CHECK: vector.transfer_read %[[OWN]]{{.*}} : memref<2x256xbf16, strided<[256, 1], offset: ?>, #gpu.address_space<workgroup>>, vector<2x250xbf16>
// CHECK-NOT: vector.transfer_read
// CHECK: vector.broadcast %[[NOW]]
// CHECK: vector.broadcast %[[WEIGHTS]]
// CHECK: arith.addf
// CHECK: scf.yield %{{.*}}, %[[LATER]], %[[FOLLOWING]] : vector<2x250xf32>, vector<2x1xf32>, index
func.func private @ring_0_kernel(%x: memref<?x250xbf16>, %r: memref<?xf32>, %w: memref<250xf32>, %y: memref<1x250xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 250>, layout = #layout, persistent_loop =#persistent_loop}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : bf16
  %none = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<2x250xf32>
  %zeros = arith.constant dense<0.0> : vector<250xf32>
  %m = memref.dim %x, %c0 : memref<?x250xbf16>
  %tiles = affine.apply affine_map<()[s0] -> (s0 ceildiv 2)>()[%m]
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 64)>()[%m]
  %weights = vector.transfer_read %w[%c0], %none {in_bounds = [true]} : memref<250xf32>, vector<250xf32>
  scf.forall (%block) in (%blocks) {
    %sum = scf.for %t = %block to %tiles step %blocks iter_args(%acc = %zero) -> (vector<2x250xf32>) {
      %row = affine.apply affine_map<(d0) -> (d0 * 2)>(%t)
      %a = vector.transfer_read %x[%row, %c0], %pad {fuse.streaming, in_bounds = [false, true]} : memref<?x250xbf16>, vector<2x250xbf16>
      %wide = arith.extf %a : vector<2x250xbf16> to vector<2x250xf32>
      %s = vector.transfer_read %r[%row], %none {in_bounds = [false, true], permutation_map = affine_map<(d0) -> (d0, 0)>} : memref<?xf32>, vector<2x1xf32>
      %sb = vector.broadcast %s : vector<2x1xf32> to vector<2x250xf32>
      %p = arith.mulf %wide, %sb : vector<2x250xf32>
      %wb = vector.broadcast %weights : vector<250xf32> to vector<2x250xf32>
      %pw = arith.mulf %p, %wb : vector<2x250xf32>
      %next = arith.addf %acc, %pw : vector<2x250xf32>
      scf.yield %next : vector<2x250xf32>
    }
    %total = vector.multi_reduction <add>, %sum, %zeros [0] : vector<2x250xf32> to vector<250xf32>
    %one = vector.shape_cast %total : vector<250xf32> to vector<1x250xf32>
    vector.transfer_write %one, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1x250xf32>, memref<1x250xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#persistent_loop = {dims = array<i64: 0>, grid_reduction = "grid_sync", second_stage_tile = array<i64: 1, 256>, second_stage_layout = #layout, stages = 4 : i64, few_tiles = 6 : i64}
// Blocks of six tiles and fewer load one ahead: the first before the loop, the next of each into the slot behind its own.
// CHECK-LABEL: func.func private @few_0_kernel(
// CHECK: scf.forall (%[[B:.*]]) in (%[[BLOCKS:.*]])
// CHECK: %[[MOST:.*]] = arith.muli %[[BLOCKS]], %c6
// CHECK: %[[FEW:.*]] = arith.cmpi ule, %[[TILES:.*]], %[[MOST]] : index
// CHECK: arith.cmpi ult, %[[B]], %[[TILES]]
// CHECK: nvvm.cp.async.commit.group
// CHECK: %[[END:.*]] = arith.select %[[FEW]], %c0{{.*}}, %[[TILES]]
// CHECK: arith.cmpi ult, %{{.*}}, %[[END]]
// CHECK: nvvm.cp.async.commit.group
// CHECK: %[[END:.*]] = arith.select %[[FEW]], %c0{{.*}}, %[[TILES]]
// CHECK: arith.cmpi ult, %{{.*}}, %[[END]]
// CHECK: nvvm.cp.async.commit.group
// CHECK: %[[THREE:.*]] = arith.subi
// CHECK: %[[DISTANCE:.*]] = arith.select %[[FEW]], %[[BLOCKS]], %[[THREE]]
// CHECK: scf.for %[[T:.*]] = %[[B]] to %[[TILES]] step %[[BLOCKS]] iter_args(%{{.*}}, %[[SLOT:.*]] = %c0{{.*}})
// CHECK: %[[BEFORE:.*]] = arith.select %{{.*}}, %c3
// CHECK: %[[NEXT:.*]] = arith.select
// CHECK: %[[FREE:.*]] = arith.select %[[FEW]], %[[NEXT]], %[[BEFORE]]
// CHECK: arith.addi %[[T]], %[[DISTANCE]]
// CHECK: memref.subview %{{.*}}[%[[FREE]], 0, 0]
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.if %[[FEW]] {
// CHECK-NEXT: nvvm.cp.async.wait.group 1
// CHECK-NEXT: } else {
// CHECK-NEXT: nvvm.cp.async.wait.group 3
// CHECK-NEXT: }
// CHECK: memref.subview %{{.*}}[%[[SLOT]], 0, 0]
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
func.func private @few_0_kernel(%x: memref<?x256xbf16>, %y: memref<1x256xbf16>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout, persistent_loop =#persistent_loop}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<1x256xbf16>
  %m = memref.dim %x, %c0 : memref<?x256xbf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 64)>()[%m]
  scf.forall (%block) in (%blocks) {
    %sum = scf.for %t = %block to %m step %blocks iter_args(%acc = %zero) -> (vector<1x256xbf16>) {
      %a = vector.transfer_read %x[%t, %c0], %pad {fuse.streaming, in_bounds = [true, true]} : memref<?x256xbf16>, vector<1x256xbf16>
      %next = arith.addf %acc, %a : vector<1x256xbf16>
      scf.yield %next : vector<1x256xbf16>
    }
    vector.transfer_write %sum, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1x256xbf16>, memref<1x256xbf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#persistent_loop = {dims = array<i64: 0>, grid_reduction = "grid_sync", second_stage_tile = array<i64: 1, 256>, second_stage_layout = #layout, stages = 2 : i64, columns = "shared"}
// Loop-invariant tiles are copied to shared memory in the first group of copies, and read from there in each step.
// CHECK-LABEL: func.func private @columns_0_kernel(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x256xbf16>, %[[W:[a-z0-9]+]]: memref<256xbf16>
// CHECK-DAG: %[[KEPT:.*]] = memref.alloc() : memref<1x1x256xbf16, #gpu.address_space<workgroup>>
// CHECK-DAG: %[[RING:.*]] = memref.alloc() : memref<2x1x256xbf16, #gpu.address_space<workgroup>>
// CHECK: %[[PLACE:.*]] = memref.subview %[[KEPT]][%c0
// All blocks read them: they are not marked as streaming.
// CHECK: "fuse.copy_fragments"(%[[W]], %[[PLACE]], %{{.*}}) {in_bounds = [true, true], {{.*}}tile = array<i64: 1, 256>
// CHECK: "fuse.copy_fragments"(%[[X]], {{.*}}) {fuse.streaming,
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 1
// CHECK: memref.subview %[[RING]]
// CHECK: vector.transfer_read
// CHECK: %[[OWN:.*]] = memref.subview %[[KEPT]][%c0
// CHECK: %[[COLUMN:.*]] = vector.transfer_read %[[OWN]]
// CHECK: arith.mulf %{{.*}}, %[[COLUMN]]
func.func private @columns_0_kernel(%x: memref<?x256xbf16>, %w: memref<256xbf16>, %y: memref<1x256xbf16>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout, persistent_loop =#persistent_loop}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<1x256xbf16>
  %m = memref.dim %x, %c0 : memref<?x256xbf16>
  scf.forall (%block) in (8) {
    %column = vector.transfer_read %w[%c0], %pad {in_bounds = [true, true], permutation_map = affine_map<(d0) -> (0, d0)>} : memref<256xbf16>, vector<1x256xbf16>
    %sum = scf.for %t = %block to %m step %c1 iter_args(%acc = %zero) -> (vector<1x256xbf16>) {
      %a = vector.transfer_read %x[%t, %c0], %pad {fuse.streaming, in_bounds = [true, true]} : memref<?x256xbf16>, vector<1x256xbf16>
      %p = arith.mulf %a, %column : vector<1x256xbf16>
      %next = arith.addf %acc, %p : vector<1x256xbf16>
      scf.yield %next : vector<1x256xbf16>
    }
    vector.transfer_write %sum, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1x256xbf16>, memref<1x256xbf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 2, 16>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
#persistent_loop = {dims = array<i64: 0>, grid_reduction = "grid_sync", second_stage_tile = array<i64: 1, 256>, second_stage_layout = #layout, stages = 2 : i64, row_values = "shared", streamed = true}
// Row values are copied with their tile, each by the 16 threads that hold some of the row; those of two bytes, which no
// asynchronous copy moves, stay in registers. The tile may leave the L2 first.
// CHECK-LABEL: func.func private @row_values_0_kernel(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x256xbf16>, %[[R:[a-z0-9]+]]: memref<?xf32>, %[[H:[a-z0-9]+]]: memref<?xbf16>
// CHECK-DAG: memref.alloc() : memref<2x2x256xbf16, #gpu.address_space<workgroup>>
// CHECK-DAG: %[[OWN:.*]] = memref.alloc() : memref<2x2x16xf32, #gpu.address_space<workgroup>>
// CHECK: scf.if
// CHECK: "fuse.copy_fragments"(%[[X]],{{.*}} {fuse.evict_first, fuse.streaming,
// CHECK: %[[SLOT:.*]] = memref.subview %[[OWN]][%c0{{.*}}, 0, 0] [1, 2, 16]
// CHECK: "fuse.copy_fragments"(%[[R]], %[[SLOT]], %{{.*}}) {in_bounds = [false, true], permutation_map = #{{.*}}, tile = array<i64: 2, 1>}
// CHECK: nvvm.cp.async.commit.group
// CHECK: %[[SMALL:.*]] = scf.if
// CHECK: vector.transfer_read %[[H]]
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[NOW:.*]] = %[[SMALL]], %[[TURN:.*]] = %c0{{.*}})
// CHECK: "fuse.copy_fragments"(%[[X]],
// CHECK: "fuse.copy_fragments"(%[[R]],
// CHECK: nvvm.cp.async.commit.group
// CHECK: %[[LATER:.*]] = vector.transfer_read %[[H]]
// CHECK: nvvm.cp.async.wait.group 1
// CHECK: %[[MINE:.*]] = memref.subview %[[OWN]][%[[TURN]], 0, 0] [1, 2, 16]
// CHECK: %[[VALUE:.*]] = vector.transfer_read %[[MINE]]{{.*}} {fuse.own, in_bounds = [true, true]} : {{.*}}, vector<2x1xf32>
// CHECK: vector.broadcast %[[VALUE]]
// CHECK: arith.extf %[[NOW]]
// CHECK: scf.yield %{{.*}}, %[[LATER]], %{{.*}} : vector<2x256xf32>, vector<2x1xbf16>, index
func.func private @row_values_0_kernel(%x: memref<?x256xbf16>, %r: memref<?xf32>, %h: memref<?xbf16>, %y: memref<1x256xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 256>, layout = #layout, persistent_loop =#persistent_loop}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : bf16
  %none = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<2x256xf32>
  %zeros = arith.constant dense<0.0> : vector<256xf32>
  %m = memref.dim %x, %c0 : memref<?x256xbf16>
  %tiles = affine.apply affine_map<()[s0] -> (s0 ceildiv 2)>()[%m]
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 64)>()[%m]
  scf.forall (%block) in (%blocks) {
    %sum = scf.for %t = %block to %tiles step %blocks iter_args(%acc = %zero) -> (vector<2x256xf32>) {
      %row = affine.apply affine_map<(d0) -> (d0 * 2)>(%t)
      %a = vector.transfer_read %x[%row, %c0], %pad {fuse.streaming, in_bounds = [false, true]} : memref<?x256xbf16>, vector<2x256xbf16>
      %wide = arith.extf %a : vector<2x256xbf16> to vector<2x256xf32>
      %s = vector.transfer_read %r[%row], %none {in_bounds = [false, true], permutation_map = affine_map<(d0) -> (d0, 0)>} : memref<?xf32>, vector<2x1xf32>
      %sb = vector.broadcast %s : vector<2x1xf32> to vector<2x256xf32>
      %p = arith.mulf %wide, %sb : vector<2x256xf32>
      %u = vector.transfer_read %h[%row], %pad {in_bounds = [false, true], permutation_map = affine_map<(d0) -> (d0, 0)>} : memref<?xbf16>, vector<2x1xbf16>
      %uw = arith.extf %u : vector<2x1xbf16> to vector<2x1xf32>
      %ub = vector.broadcast %uw : vector<2x1xf32> to vector<2x256xf32>
      %pu = arith.mulf %p, %ub : vector<2x256xf32>
      %next = arith.addf %acc, %pu : vector<2x256xf32>
      scf.yield %next : vector<2x256xf32>
    }
    %total = vector.multi_reduction <add>, %sum, %zeros [0] : vector<2x256xf32> to vector<256xf32>
    %one = vector.shape_cast %total : vector<256xf32> to vector<1x256xf32>
    vector.transfer_write %one, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1x256xf32>, memref<1x256xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#persistent_loop = {dims = array<i64: 0>, grid_reduction = "grid_sync", second_stage_tile = array<i64: 1, 256>, second_stage_layout = #layout, stages = 2 : i64}
// A step may read data that the previous step has written.
// CHECK-LABEL: func.func private @in_place_0_kernel(
// CHECK-NOT: fuse.copy_fragments
// expected-remark @below {{no loop reads whole tiles of buffers it only reads, at indices that follow from its variable}}
func.func private @in_place_0_kernel(%x: memref<?x256xbf16>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout, persistent_loop =#persistent_loop}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : bf16
  scf.forall (%block) in (%c8) {
    scf.for %t = %c0 to %c8 step %c1 {
      %next = arith.addi %t, %c1 : index
      %a = vector.transfer_read %x[%t, %c0], %pad {fuse.streaming, in_bounds = [true, true]} : memref<?x256xbf16>, vector<1x256xbf16>
      vector.transfer_write %a, %x[%next, %c0] {in_bounds = [true, true]} : vector<1x256xbf16>, memref<?x256xbf16>
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#persistent_loop = {dims = array<i64: 0>, grid_reduction = "grid_sync", second_stage_tile = array<i64: 1, 256>, second_stage_layout = #layout, stages = 2 : i64}
// The position of a tile depends on data of the previous tile: it cannot be copied ahead.
// CHECK-LABEL: func.func private @pointers_0_kernel(
// CHECK-NOT: fuse.copy_fragments
// expected-remark @below {{no loop reads whole tiles of buffers it only reads, at indices that follow from its variable}}
func.func private @pointers_0_kernel(%x: memref<?x256xbf16>, %y: memref<1x256xbf16>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout, persistent_loop =#persistent_loop}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<1x256xbf16>
  scf.forall (%block) in (%c8) {
    %sum:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%acc = %zero, %at = %block) -> (vector<1x256xbf16>, index) {
      %a = vector.transfer_read %x[%at, %c0], %pad {fuse.streaming, in_bounds = [true, true]} : memref<?x256xbf16>, vector<1x256xbf16>
      %next = arith.addf %acc, %a : vector<1x256xbf16>
      %after = arith.addi %at, %c8 : index
      scf.yield %next, %after : vector<1x256xbf16>, index
    }
    vector.transfer_write %sum#0, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1x256xbf16>, memref<1x256xbf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#persistent_loop = {dims = array<i64: 0>, grid_reduction = "grid_sync", second_stage_tile = array<i64: 1, 256>, second_stage_layout = #layout, stages = 1 : i64}
// expected-remark @below {{scheduled with one stage}}
func.func private @one_stage_0_kernel(%x: memref<?x256xbf16>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout, persistent_loop =#persistent_loop}} {
  scf.forall (%block) in (8) {
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A kernel without a persistent loop gets no remark.
// CHECK-LABEL: func.func private @no_loop_0_kernel(
func.func private @no_loop_0_kernel(%x: memref<?x256xbf16>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  scf.forall (%block) in (8) {
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// expected-error @below {{kernel has no fuse.schedule}}
func.func private @unscheduled_0_kernel(%x: memref<?x256xbf16>) attributes {fuse.kernel} {
  scf.forall (%block) in (8) {
  } {mapping = [#gpu.block<x>]}
  return
}
