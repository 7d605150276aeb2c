// RUN: mlirfuse-opt --fuse-pipeline-contraction --canonicalize --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 8>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @product
// CHECK-SAME: (%[[A:[a-z0-9]+]]: {{.*}}, %[[B:[a-z0-9]+]]: memref<8x512xbf16> {{.*}}, %[[C:[a-z0-9]+]]: memref<?x8xf32>)
// CHECK: scf.forall (%[[BLOCK:.*]]) in
// CHECK: %[[ROW:.*]] = affine.apply
// CHECK-DAG: %[[RA:.*]] = memref.alloc() {alignment = 1024 : i64, fuse.phase = 0 : i64} : memref<3x128x64xbf16, #gpu.address_space<workgroup>>
// CHECK-DAG: %[[RB:.*]] = memref.alloc() {alignment = 1024 : i64, fuse.phase = 0 : i64} : memref<3x8x64xbf16, #gpu.address_space<workgroup>>
// CHECK: "fuse.mbarrier_init"(%[[FULL:.*]]) {arrivals = 1 : i64}
// CHECK: "fuse.mbarrier_init"(%[[EMPTY:.*]]) {arrivals = 2 : i64}
// CHECK: gpu.barrier
// CHECK: "fuse.warp_roles"() ({
// CHECK: %[[SUM:.*]]:3 = scf.for %[[I:.*]] = %c0 to %c8 step %c1 iter_args(%[[ACC:.*]] = %{{.*}}, %[[STAGE:.*]] = %c0, %[[PARITY:.*]] = %c0_i32)
// CHECK: "fuse.mbarrier_wait"(%[[FULL]], %[[STAGE]], %[[PARITY]])
// CHECK: %[[R:.*]] = "fuse.warpgroup_mma"(%[[RA]], %[[RB]], %[[STAGE]], %[[ACC]]) {a_major = "k", b_major = "k"}
// CHECK: %[[W:.*]] = "fuse.warpgroup_wait"(%[[R]]) {pending = 1 : i64}
// CHECK: scf.if
// CHECK: "fuse.mbarrier_arrive"(%[[EMPTY]], %{{.*}}) {warpgroups = 2 : i64}
// CHECK: scf.yield %[[W]]
// CHECK: %[[DONE:.*]] = "fuse.warpgroup_wait"(%[[SUM]]#0) {pending = 0 : i64}
// CHECK: vector.transfer_write %[[DONE]], %[[C]]
// CHECK: vector.yield
// CHECK: }, {
// CHECK: scf.for %[[I:.*]] = %c0 to %c8 step %c1 iter_args(%[[STAGE:.*]] = %c0, %[[PARITY:.*]] = %c0_i32)
// CHECK: %[[K:.*]] = arith.muli %[[I]], %c64
// CHECK: %[[OTHER:.*]] = arith.xori %[[PARITY]], %c1_i32
// CHECK: "fuse.mbarrier_wait"(%[[EMPTY]], %[[STAGE]], %[[OTHER]])
// CHECK: "fuse.mbarrier_expect"(%[[FULL]], %[[STAGE]]) {bytes = 17408 : i64}
// CHECK: "fuse.async_load"(%[[A]], %[[RA]], %[[STAGE]], %[[FULL]], %[[ROW]], %[[K]]) {dims = array<i64: 0, 1>}
// CHECK: "fuse.async_load"(%[[B]], %[[RB]], %[[STAGE]], %[[FULL]], %c0, %[[K]]) {dims = array<i64: 0, 1>}
// CHECK: vector.yield
// CHECK: {registers = array<i64: 232, 40>, warpgroups = array<i64: 2, 1>}

// expected-remark @below {{3 stages, 2 warpgroups of consumers}}
func.func @product(%A: memref<?x512xbf16> {fuse.align = 16 : i64}, %B: memref<8x512xbf16> {fuse.align = 16 : i64}, %C: memref<?x8xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<128x8xf32>
  %m = memref.dim %A, %c0 : memref<?x512xbf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 128)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 128)>(%block)
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x8xf32>) {
      %x = vector.transfer_read %A[%row, %k], %pad {in_bounds = [false, true]} : memref<?x512xbf16>, vector<128x64xbf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<8x512xbf16>, vector<8x64xbf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xbf16>, vector<8x64xbf16> into vector<128x8xf32>
      scf.yield %next : vector<128x8xf32>
    }
    vector.transfer_write %acc, %C[%row, %c0] {in_bounds = [false, true]} : vector<128x8xf32>, memref<?x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 8>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64, persistent = true}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// A grid of as many blocks as the device holds loops over the tiles; both roles carry their place in the ring from tile to tile.
// CHECK-LABEL: func.func @persistent
// CHECK: %[[TILES:.*]] = affine.apply
// CHECK: %[[RESIDENT:.*]] = "fuse.resident_blocks"() {per_sm = 1 : i64}
// CHECK: %[[GRID:.*]] = affine.min #{{.*}}()[%{{.*}}, %[[RESIDENT]]]
// CHECK: scf.forall (%[[BLOCK:.*]]) in (%[[GRID]])
// CHECK: "fuse.warp_roles"() ({
// CHECK: scf.for %[[TILE:.*]] = %[[BLOCK]] to %[[TILES]] step %[[GRID]] iter_args(%[[S:.*]] = %c0, %[[P:.*]] = %c0_i32)
// CHECK: affine.apply #{{.*}}(%[[TILE]])
// CHECK: %[[SUM:.*]]:3 = scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[S]], %{{.*}} = %[[P]])
// CHECK: "fuse.warpgroup_wait"(%[[SUM]]#0) {pending = 0 : i64}
// The last stage of a tile is released too, for the next tile.
// CHECK: "fuse.mbarrier_arrive"
// CHECK: vector.transfer_write
// CHECK: scf.yield %[[SUM]]#1, %[[SUM]]#2
// CHECK: }, {
// CHECK: scf.for %{{.*}} = %[[BLOCK]] to %[[TILES]] step %[[GRID]]
// CHECK: "fuse.async_load"
// expected-remark @below {{3 stages, 2 warpgroups of consumers, persistent}}
func.func @persistent(%A: memref<?x512xbf16> {fuse.align = 16 : i64}, %B: memref<8x512xbf16> {fuse.align = 16 : i64}, %C: memref<?x8xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<128x8xf32>
  %m = memref.dim %A, %c0 : memref<?x512xbf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 128)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 128)>(%block)
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x8xf32>) {
      %x = vector.transfer_read %A[%row, %k], %pad {in_bounds = [false, true]} : memref<?x512xbf16>, vector<128x64xbf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<8x512xbf16>, vector<8x64xbf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xbf16>, vector<8x64xbf16> into vector<128x8xf32>
      scf.yield %next : vector<128x8xf32>
    }
    vector.transfer_write %acc, %C[%row, %c0] {in_bounds = [false, true]} : vector<128x8xf32>, memref<?x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 4, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 8>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64, persistent = true, consumer_groups = 2 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// Two consumer groups of one warpgroup take every other tile of the block. A consumer group waits at the order barrier, passes it on when its last
// products have been started, and goes past the stages of the other consumer group's tile: eight, of a ring of three.
// CHECK-LABEL: func.func @consumer_groups
// CHECK-DAG: %[[EIGHT:.*]] = arith.constant 8 : index
// CHECK: scf.forall (%[[BLOCK:.*]]) in (%[[GRID:.*]])
// CHECK: %[[TURNS:.*]] = memref.alloc() {alignment = 16 : i64} : memref<2xi64, #gpu.address_space<workgroup>>
// CHECK: "fuse.mbarrier_init"(%[[TURNS]]) {arrivals = 1 : i64}
// CHECK: "fuse.mbarrier_init"(%{{.*}}) {arrivals = 1 : i64}
// CHECK: "fuse.mbarrier_init"(%[[EMPTY:.*]]) {arrivals = 1 : i64}
// CHECK: "fuse.warp_roles"() ({
// CHECK-NEXT: ^bb0(%[[GROUP:.*]]: index):
// CHECK: %[[SKIPPED:.*]] = arith.muli %[[GROUP]], %[[EIGHT]]
// CHECK: %[[STAGE:.*]] = arith.remui %[[SKIPPED]], %c3
// CHECK: %[[LATER:.*]] = arith.muli %[[GROUP]], %[[GRID]]
// CHECK: %[[TILE:.*]] = arith.addi %[[BLOCK]], %[[LATER]]
// CHECK: %[[STEP:.*]] = arith.muli %[[GRID]], %c2
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[GROUP]], %c0
// CHECK: %[[PASSES:.*]] = arith.extui %[[FIRST]] : i1 to i32
// CHECK: scf.for %{{.*}} = %[[TILE]] to %{{.*}} step %[[STEP]] iter_args(%[[S:.*]] = %[[STAGE]], %[[P:.*]] = %{{.*}}, %[[TURN:.*]] = %[[PASSES]])
// CHECK: "fuse.mbarrier_wait"(%[[TURNS]], %[[GROUP]], %[[TURN]])
// CHECK: %[[NEXT:.*]] = arith.xori %[[TURN]], %c1_i32
// CHECK: %[[SUM:.*]]:3 = scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[S]], %{{.*}} = %[[P]])
// CHECK: %[[ONE_ON:.*]] = arith.addi %[[GROUP]], %c1
// CHECK: %[[OTHER:.*]] = arith.remui %[[ONE_ON]], %c2
// CHECK: "fuse.mbarrier_arrive"(%[[TURNS]], %[[OTHER]]) {warpgroups = 1 : i64}
// CHECK: "fuse.warpgroup_wait"(%[[SUM]]#0) {pending = 0 : i64}
// CHECK: "fuse.mbarrier_arrive"(%[[EMPTY]]
// CHECK: vector.transfer_write
// CHECK: %[[PAST:.*]] = arith.addi %[[SUM]]#1, %[[EIGHT]]
// CHECK: %[[THERE:.*]] = arith.remui %[[PAST]], %c3
// CHECK: scf.yield %[[THERE]], %{{.*}}, %[[NEXT]]
// The producer goes through all tiles.
// CHECK: }, {
// CHECK: scf.for %{{.*}} = %[[BLOCK]] to %{{.*}} step %[[GRID]]
// CHECK: {consumer_groups = 2 : i64, registers = array<i64: 232, 40>, warpgroups = array<i64: 1, 1>}
// expected-remark @below {{3 stages, 1 warpgroups of consumers in each of 2 consumer groups, persistent}}
func.func @consumer_groups(%A: memref<?x512xbf16> {fuse.align = 16 : i64}, %B: memref<8x512xbf16> {fuse.align = 16 : i64}, %C: memref<?x8xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<128x8xf32>
  %m = memref.dim %A, %c0 : memref<?x512xbf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 128)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 128)>(%block)
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x8xf32>) {
      %x = vector.transfer_read %A[%row, %k], %pad {in_bounds = [false, true]} : memref<?x512xbf16>, vector<128x64xbf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<8x512xbf16>, vector<8x64xbf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xbf16>, vector<8x64xbf16> into vector<128x8xf32>
      scf.yield %next : vector<128x8xf32>
    }
    vector.transfer_write %acc, %C[%row, %c0] {in_bounds = [false, true]} : vector<128x8xf32>, memref<?x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 4, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 8>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64, persistent = true, consumer_groups = 2 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// The number of stages of the other consumer group's tile must be static.
func.func @unknown_steps(%A: memref<?x512xbf16> {fuse.align = 16 : i64}, %B: memref<8x512xbf16> {fuse.align = 16 : i64}, %C: memref<?x8xf32>, %end: index)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<128x8xf32>
  %m = memref.dim %A, %c0 : memref<?x512xbf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 128)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 128)>(%block)
    // expected-error @below {{the schedule cannot be followed: the number of steps along k is not constant, so a consumer group cannot skip the other groups' steps}}
    %acc = scf.for %k = %c0 to %end step %c64 iter_args(%sum = %zero) -> (vector<128x8xf32>) {
      %x = vector.transfer_read %A[%row, %k], %pad {in_bounds = [false, true]} : memref<?x512xbf16>, vector<128x64xbf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<8x512xbf16>, vector<8x64xbf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xbf16>, vector<8x64xbf16> into vector<128x8xf32>
      scf.yield %next : vector<128x8xf32>
    }
    vector.transfer_write %acc, %C[%row, %c0] {in_bounds = [false, true]} : vector<128x8xf32>, memref<?x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 4, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 8>, layout = #layout, blocks_per_sm = 2 : i64, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64, persistent = true, streamed = true}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// Two blocks an SM, of one warpgroup of consumers with 128 rows each: the registers are shared among four
// warpgroups. What is copied need not stay in the L2.
// CHECK-LABEL: func.func @two_blocks
// CHECK: "fuse.resident_blocks"() {per_sm = 2 : i64}
// CHECK: "fuse.mbarrier_init"(%{{.*}}) {arrivals = 1 : i64}
// CHECK: "fuse.mbarrier_init"(%{{.*}}) {arrivals = 1 : i64}
// CHECK: "fuse.async_load"({{.*}}) {dims = array<i64: 0, 1>, streamed}
// CHECK: "fuse.async_load"({{.*}}) {dims = array<i64: 0, 1>, streamed}
// CHECK: {registers = array<i64: 216, 40>, warpgroups = array<i64: 1, 1>}
// expected-remark @below {{3 stages, 1 warpgroups of consumers, persistent}}
func.func @two_blocks(%A: memref<?x512xbf16> {fuse.align = 16 : i64}, %B: memref<8x512xbf16> {fuse.align = 16 : i64}, %C: memref<?x8xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<128x8xf32>
  %m = memref.dim %A, %c0 : memref<?x512xbf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 128)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 128)>(%block)
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x8xf32>) {
      %x = vector.transfer_read %A[%row, %k], %pad {in_bounds = [false, true]} : memref<?x512xbf16>, vector<128x64xbf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<8x512xbf16>, vector<8x64xbf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xbf16>, vector<8x64xbf16> into vector<128x8xf32>
      scf.yield %next : vector<128x8xf32>
    }
    vector.transfer_write %acc, %C[%row, %c0] {in_bounds = [false, true]} : vector<128x8xf32>, memref<?x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 8>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64, persistent = true}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @not_persistent(%A: memref<?x512xbf16> {fuse.align = 16 : i64}, %B: memref<8x512xbf16> {fuse.align = 16 : i64}, %C: memref<?x8xf32>,
    %sem: memref<1xi32> {fuse.workspace = "semaphores"}, %i: i32)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<128x8xf32>
  %m = memref.dim %A, %c0 : memref<?x512xbf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 128)>()[%m]
  scf.forall (%block) in (%blocks) {
    "fuse.semaphore_wait"(%sem, %c0, %i) : (memref<1xi32>, index, i32) -> ()
    %row = affine.apply affine_map<(d0) -> (d0 * 128)>(%block)
    // expected-error @below {{the schedule cannot be followed: a block has ops other than index arithmetic before its loop along k}}
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x8xf32>) {
      %x = vector.transfer_read %A[%row, %k], %pad {in_bounds = [false, true]} : memref<?x512xbf16>, vector<128x64xbf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<8x512xbf16>, vector<8x64xbf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xbf16>, vector<8x64xbf16> into vector<128x8xf32>
      scf.yield %next : vector<128x8xf32>
    }
    vector.transfer_write %acc, %C[%row, %c0] {in_bounds = [false, true]} : vector<128x8xf32>, memref<?x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// Operands whose k is not contiguous: the ring holds them as they lie in memory.
// CHECK-LABEL: func.func @transposed
// CHECK: memref.alloc() {alignment = 1024 : i64, fuse.phase = 0 : i64} : memref<3x64x128xf16
// CHECK: memref.alloc() {alignment = 1024 : i64, fuse.phase = 0 : i64} : memref<3x64x64xf16
// CHECK: "fuse.warpgroup_mma"({{.*}}) {a_major = "mn", b_major = "mn"}
// The producer computes indices in its own loop.
// CHECK: }, {
// CHECK: %[[K:.*]] = arith.muli
// CHECK: "fuse.async_load"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[K]], %c0) {dims = array<i64: 0, 1>}
// expected-remark @below {{3 stages, 2 warpgroups of consumers}}
func.func @transposed(%A: memref<512x128xf16> {fuse.align = 16 : i64}, %B: memref<512x64xf16> {fuse.align = 16 : i64}, %C: memref<128x64xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x64xf32>
  scf.forall (%block) in (1) {
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x64xf32>) {
      %x = vector.transfer_read %A[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x128xf16>, vector<64x128xf16>
      %w = vector.transfer_read %B[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x64xf16>, vector<64x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<64x128xf16>, vector<64x64xf16> into vector<128x64xf32>
      scf.yield %next : vector<128x64xf32>
    }
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x64xf32>, memref<128x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----


#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @unaligned
// CHECK-NOT: fuse.warp_roles
func.func @unaligned(%A: memref<512x128xf16> {fuse.align = 8 : i64}, %B: memref<512x64xf16> {fuse.align = 16 : i64}, %C: memref<128x64xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x64xf32>
  scf.forall (%block) in (1) {
    // expected-remark @below {{argument 0 is not aligned to 16 bytes, which a tensor map needs}}
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x64xf32>) {
      %x = vector.transfer_read %A[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x128xf16>, vector<64x128xf16>
      %w = vector.transfer_read %B[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x64xf16>, vector<64x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<64x128xf16>, vector<64x64xf16> into vector<128x64xf32>
      scf.yield %next : vector<128x64xf32>
    }
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x64xf32>, memref<128x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----


#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @reversed
// CHECK-NOT: fuse.warp_roles
func.func @reversed(%A: memref<512x128xf16, strided<[?, 1]>> {fuse.align = 16 : i64, fuse.strides = array<i64: -2, 1>}, %B: memref<512x64xf16> {fuse.align = 16 : i64}, %C: memref<128x64xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x64xf32>
  scf.forall (%block) in (1) {
    // expected-remark @below {{argument 0 has a rank or strides that a tensor map cannot describe}}
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x64xf32>) {
      %x = vector.transfer_read %A[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x128xf16, strided<[?, 1]>>, vector<64x128xf16>
      %w = vector.transfer_read %B[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x64xf16>, vector<64x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<64x128xf16>, vector<64x64xf16> into vector<128x64xf32>
      scf.yield %next : vector<128x64xf32>
    }
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x64xf32>, memref<128x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----


#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 4, 2>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @another_layout
// CHECK-NOT: fuse.warp_roles
func.func @another_layout(%A: memref<512x128xf16> {fuse.align = 16 : i64}, %B: memref<512x64xf16> {fuse.align = 16 : i64}, %C: memref<128x64xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x64xf32>
  scf.forall (%block) in (1) {
    // expected-remark @below {{the layout is not that of wgmma's accumulators}}
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x64xf32>) {
      %x = vector.transfer_read %A[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x128xf16>, vector<64x128xf16>
      %w = vector.transfer_read %B[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x64xf16>, vector<64x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<64x128xf16>, vector<64x64xf16> into vector<128x64xf32>
      scf.yield %next : vector<128x64xf32>
    }
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x64xf32>, memref<128x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----


#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @another_padding
// CHECK-NOT: fuse.warp_roles
func.func @another_padding(%A: memref<512x128xf16> {fuse.align = 16 : i64}, %B: memref<512x64xf16> {fuse.align = 16 : i64}, %C: memref<128x64xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 1.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x64xf32>
  scf.forall (%block) in (1) {
    // expected-remark @below {{an operand is padded with another number than zero}}
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x64xf32>) {
      %x = vector.transfer_read %A[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x128xf16>, vector<64x128xf16>
      %w = vector.transfer_read %B[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x64xf16>, vector<64x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<64x128xf16>, vector<64x64xf16> into vector<128x64xf32>
      scf.yield %next : vector<128x64xf32>
    }
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x64xf32>, memref<128x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----


#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @changed_before
// CHECK-NOT: fuse.warp_roles
func.func @changed_before(%A: memref<512x128xf16> {fuse.align = 16 : i64}, %B: memref<512x64xf16> {fuse.align = 16 : i64}, %C: memref<128x64xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x64xf32>
  scf.forall (%block) in (1) {
    // expected-remark @below {{an operand is not read in the loop, or is changed before the contraction}}
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x64xf32>) {
      %x = vector.transfer_read %A[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x128xf16>, vector<64x128xf16>
      %w = vector.transfer_read %B[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x64xf16>, vector<64x64xf16>
      %y = arith.negf %x : vector<64x128xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %y, %w, %sum {fuse.instruction = "wgmma"} : vector<64x128xf16>, vector<64x64xf16> into vector<128x64xf32>
      scf.yield %next : vector<128x64xf32>
    }
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x64xf32>, memref<128x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----


#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 4>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 32>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @narrow
// CHECK-NOT: fuse.warp_roles
func.func @narrow(%A: memref<512x128xf16> {fuse.align = 16 : i64}, %B: memref<512x32xf16> {fuse.align = 16 : i64}, %C: memref<128x32xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x32xf32>
  scf.forall (%block) in (1) {
    // expected-remark @below {{do not fit the 128-byte swizzle}}
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x32xf32>) {
      %x = vector.transfer_read %A[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x128xf16>, vector<64x128xf16>
      %w = vector.transfer_read %B[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x32xf16>, vector<64x32xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<64x128xf16>, vector<64x32xf16> into vector<128x32xf32>
      scf.yield %next : vector<128x32xf32>
    }
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x32xf32>, memref<128x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----


#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// Other instructions are left alone.
// CHECK-LABEL: func.func @mma
// CHECK-NOT: fuse.warp_roles
func.func @mma(%A: memref<512x128xf16> {fuse.align = 16 : i64}, %B: memref<512x64xf16> {fuse.align = 16 : i64}, %C: memref<128x64xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x64xf32>
  scf.forall (%block) in (1) {
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x64xf32>) {
      %x = vector.transfer_read %A[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x128xf16>, vector<64x128xf16>
      %w = vector.transfer_read %B[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x64xf16>, vector<64x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "mma"} : vector<64x128xf16>, vector<64x64xf16> into vector<128x64xf32>
      scf.yield %next : vector<128x64xf32>
    }
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x64xf32>, memref<128x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64, cluster = 2 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// Neighbouring blocks have the same tiles of A: each copies a part of them to both, waits for the consumers of both, and
// outlives the other's copies.
// CHECK-LABEL: func.func @shared_operand
// CHECK-SAME: fuse.cluster = 2 : i64
// CHECK: "fuse.mbarrier_init"(%{{.*}}) {arrivals = 1 : i64}
// CHECK: "fuse.mbarrier_init"(%{{.*}}) {arrivals = 4 : i64}
// CHECK-NEXT: "fuse.cluster_barrier"()
// CHECK: "fuse.mbarrier_arrive"(%{{.*}}) {peers = 2 : i64, warpgroups = 2 : i64}
// CHECK: "fuse.async_load"({{.*}}) {dims = array<i64: 0, 1>, peers = 2 : i64}
// CHECK: "fuse.async_load"({{.*}}) {dims = array<i64: 0, 1>} :
// CHECK: "fuse.cluster_barrier"()
// expected-remark @below {{3 stages, 2 warpgroups of consumers, clusters of 2}}
func.func @shared_operand(%A: memref<512x512xf16> {fuse.align = 16 : i64}, %B: memref<256x512xf16> {fuse.align = 16 : i64}, %C: memref<512x256xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x64xf32>
  scf.forall (%block) in (16) {
    %x = arith.divui %block, %c4 : index
    %y = arith.remui %block, %c4 : index
    %m = affine.apply affine_map<(d0) -> (d0 * 128)>(%x)
    %n = affine.apply affine_map<(d0) -> (d0 * 64)>(%y)
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x64xf32>) {
      %f = vector.transfer_read %A[%m, %k], %pad {in_bounds = [true, true]} : memref<512x512xf16>, vector<128x64xf16>
      %w = vector.transfer_read %B[%n, %k], %pad {in_bounds = [true, true]} : memref<256x512xf16>, vector<64x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %f, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xf16>, vector<64x64xf16> into vector<128x64xf32>
      scf.yield %next : vector<128x64xf32>
    }
    vector.transfer_write %acc, %C[%m, %n] {in_bounds = [true, true]} : vector<128x64xf32>, memref<512x256xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64, cluster = 2 : i64, persistent = true}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// A persistent grid of whole clusters: the blocks of a cluster have neighbouring tiles, and equally many. The barrier at the end is behind
// the last tile.
// CHECK-DAG: #[[PAIRS:.*]] = affine_map<()[s0] -> (16, (s0 floordiv 2) * 2)>
// CHECK-LABEL: func.func @persistent_clusters
// CHECK-SAME: fuse.cluster = 2 : i64
// CHECK: %[[HELD:.*]] = "fuse.resident_blocks"() {per_sm = 1 : i64}
// CHECK: %[[BLOCKS:.*]] = affine.min #[[PAIRS]]()[%[[HELD]]]
// CHECK: scf.forall (%[[BLOCK:.*]]) in (%[[BLOCKS]])
// CHECK: scf.for %[[TILE:.*]] = %[[BLOCK]] to %c16 step %[[BLOCKS]]
// CHECK: "fuse.mbarrier_arrive"(%{{.*}}) {peers = 2 : i64, warpgroups = 2 : i64}
// CHECK: scf.for %{{.*}} = %[[BLOCK]] to %c16 step %[[BLOCKS]]
// CHECK: "fuse.async_load"({{.*}}) {dims = array<i64: 0, 1>, peers = 2 : i64}
// CHECK: "fuse.cluster_barrier"()
// expected-remark @below {{3 stages, 2 warpgroups of consumers, persistent, clusters of 2}}
func.func @persistent_clusters(%A: memref<512x512xf16> {fuse.align = 16 : i64}, %B: memref<256x512xf16> {fuse.align = 16 : i64}, %C: memref<512x256xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x64xf32>
  scf.forall (%block) in (16) {
    %x = arith.divui %block, %c4 : index
    %y = arith.remui %block, %c4 : index
    %m = affine.apply affine_map<(d0) -> (d0 * 128)>(%x)
    %n = affine.apply affine_map<(d0) -> (d0 * 64)>(%y)
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x64xf32>) {
      %f = vector.transfer_read %A[%m, %k], %pad {in_bounds = [true, true]} : memref<512x512xf16>, vector<128x64xf16>
      %w = vector.transfer_read %B[%n, %k], %pad {in_bounds = [true, true]} : memref<256x512xf16>, vector<64x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %f, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xf16>, vector<64x64xf16> into vector<128x64xf32>
      scf.yield %next : vector<128x64xf32>
    }
    vector.transfer_write %acc, %C[%m, %n] {in_bounds = [true, true]} : vector<128x64xf32>, memref<512x256xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64, cluster = 2 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @other_order(%A: memref<512x512xf16> {fuse.align = 16 : i64}, %B: memref<256x512xf16> {fuse.align = 16 : i64}, %C: memref<512x256xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x64xf32>
  scf.forall (%block) in (16) {
    %x = arith.divui %block, %c4 : index
    %y = arith.remui %block, %c4 : index
    %m = affine.apply affine_map<(d0) -> (d0 * 128)>(%y)
    %n = affine.apply affine_map<(d0) -> (d0 * 64)>(%x)
    // expected-error @below {{the schedule cannot be followed: 2 neighbouring blocks do not have the same tiles of operand A}}
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x64xf32>) {
      %f = vector.transfer_read %A[%m, %k], %pad {in_bounds = [true, true]} : memref<512x512xf16>, vector<128x64xf16>
      %w = vector.transfer_read %B[%n, %k], %pad {in_bounds = [true, true]} : memref<256x512xf16>, vector<64x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %f, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xf16>, vector<64x64xf16> into vector<128x64xf32>
      scf.yield %next : vector<128x64xf32>
    }
    vector.transfer_write %acc, %C[%m, %n] {in_bounds = [true, true]} : vector<128x64xf32>, memref<512x256xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 8>, layout = #layout, contraction = {k = 128 : i64, instruction = "wgmma", stages = 3 : i64, promote = 1 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// Hopper's tensor cores keep too few bits of such sums: a stage's begins at zero, and is added to those before it while
// the next stage's is under way, in runs that divide the 12 steps. The casts that `vector.contract` needs for two
// types are dropped, as wgmma takes both types.
// CHECK-LABEL: func.func @float8
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<128x8xf32>
// CHECK: %[[SUM:.*]]:3 = scf.for %{{.*}} = %c0 to %c12 step %c4 iter_args(%[[ACC:.*]] = %[[ZERO]], %[[STAGE:.*]] = %c0, %{{.*}})
// CHECK: "fuse.mbarrier_wait"
// CHECK: %[[A:.*]] = "fuse.warpgroup_mma"(%{{.*}}, %{{.*}}, %[[STAGE]], %[[ZERO]]) {a_major = "k", b_major = "k"} : (memref<3x128x128xf8E4M3FN, {{.*}}>, memref<3x8x128xf8E5M2
// CHECK: "fuse.mbarrier_wait"
// CHECK: %[[B:.*]] = "fuse.warpgroup_mma"(%{{.*}}, %{{.*}}, %{{.*}}, %[[ZERO]])
// CHECK: %[[WA:.*]]:2 = "fuse.warpgroup_wait"(%[[A]], %[[B]]) {pending = 1 : i64}
// CHECK: "fuse.mbarrier_arrive"(%{{.*}}, %[[STAGE]])
// CHECK: %[[NEXT:.*]] = arith.addf %[[ACC]], %[[WA]]#0
// CHECK: %[[C:.*]] = "fuse.warpgroup_mma"
// CHECK: %[[WB:.*]]:2 = "fuse.warpgroup_wait"(%[[WA]]#1, %[[C]]) {pending = 1 : i64}
// CHECK: %[[D:.*]] = "fuse.warpgroup_mma"
// CHECK: %[[WC:.*]]:2 = "fuse.warpgroup_wait"(%[[WB]]#1, %[[D]]) {pending = 1 : i64}
// CHECK: "fuse.warpgroup_wait"(%[[WC]]#1) {pending = 0 : i64}
// CHECK: %[[LAST:.*]] = arith.addf
// CHECK: scf.yield %[[LAST]]
// CHECK: vector.transfer_write %[[SUM]]#0
// CHECK-NOT: arith.extf
// expected-remark @below {{3 stages, 2 warpgroups of consumers}}
func.func @float8(%A: memref<128x1536xf8E4M3FN> {fuse.align = 16 : i64}, %B: memref<8x1536xf8E5M2> {fuse.align = 16 : i64}, %C: memref<128x8xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %step = arith.constant 128 : index
  %c1536 = arith.constant 1536 : index
  %pa = arith.constant 0.0 : f8E4M3FN
  %pb = arith.constant 0.0 : f8E5M2
  %zero = arith.constant dense<0.0> : vector<128x8xf32>
  scf.forall (%block) in (1) {
    %acc = scf.for %k = %c0 to %c1536 step %step iter_args(%sum = %zero) -> (vector<128x8xf32>) {
      %x = vector.transfer_read %A[%c0, %k], %pa {in_bounds = [true, true]} : memref<128x1536xf8E4M3FN>, vector<128x128xf8E4M3FN>
      %w = vector.transfer_read %B[%c0, %k], %pb {in_bounds = [true, true]} : memref<8x1536xf8E5M2>, vector<8x128xf8E5M2>
      %xe = arith.extf %x : vector<128x128xf8E4M3FN> to vector<128x128xf16>
      %we = arith.extf %w : vector<8x128xf8E5M2> to vector<8x128xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %xe, %we, %sum {fuse.instruction = "wgmma"} : vector<128x128xf16>, vector<8x128xf16> into vector<128x8xf32>
      scf.yield %next : vector<128x8xf32>
    }
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x8xf32>, memref<128x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 8>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64, promote = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// Of 8 steps each 3 are summed from zero, and their sum is added to those before; the last 2 are what is left.
// CHECK-LABEL: func.func @long_sums
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<128x8xf32>
// CHECK: "fuse.warp_roles"() ({
// CHECK: %[[TOTAL:.*]]:3 = scf.for %[[I:.*]] = %c0 to %c8 step %c3 iter_args(%[[CARRIED:.*]] = %[[ZERO]], %[[S:.*]] = %c0, %[[P:.*]] = %c0_i32)
// CHECK: %[[REST:.*]] = arith.subi %c8, %[[I]]
// CHECK: %[[STEPS:.*]] = arith.minsi %[[REST]], %c3
// CHECK: %[[SUM:.*]]:3 = scf.for %{{.*}} = %c0 to %[[STEPS]] step %c1 iter_args(%[[ACC:.*]] = %[[ZERO]], %[[STAGE:.*]] = %[[S]], %{{.*}} = %[[P]])
// CHECK: %[[R:.*]] = "fuse.warpgroup_mma"(%{{.*}}, %{{.*}}, %[[STAGE]], %[[ACC]])
// CHECK: %[[W:.*]] = "fuse.warpgroup_wait"(%[[R]]) {pending = 1 : i64}
// CHECK: scf.yield %[[W]]
// CHECK: %[[DONE:.*]] = "fuse.warpgroup_wait"(%[[SUM]]#0) {pending = 0 : i64}
// CHECK: "fuse.mbarrier_arrive"
// CHECK: %[[NEXT:.*]] = arith.addf %[[CARRIED]], %[[DONE]]
// CHECK: scf.yield %[[NEXT]], %[[SUM]]#1, %[[SUM]]#2
// CHECK: vector.transfer_write %[[TOTAL]]#0
// expected-remark @below {{3 stages, 2 warpgroups of consumers}}
func.func @long_sums(%A: memref<128x512xbf16> {fuse.align = 16 : i64}, %B: memref<8x512xbf16> {fuse.align = 16 : i64}, %C: memref<128x8xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<128x8xf32>
  scf.forall (%block) in (1) {
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x8xf32>) {
      %x = vector.transfer_read %A[%c0, %k], %pad {in_bounds = [true, true]} : memref<128x512xbf16>, vector<128x64xbf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<8x512xbf16>, vector<8x64xbf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xbf16>, vector<8x64xbf16> into vector<128x8xf32>
      scf.yield %next : vector<128x8xf32>
    }
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x8xf32>, memref<128x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 8>, layout = #layout, contraction = {k = 128 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @float8_fast
// CHECK: "fuse.warpgroup_wait"(%{{.*}}) {pending = 1 : i64}
// CHECK-NOT: arith.addf
// expected-remark @below {{3 stages, 2 warpgroups of consumers}}
func.func @float8_fast(%A: memref<128x512xf8E4M3FN> {fuse.align = 16 : i64}, %B: memref<8x512xf8E4M3FN> {fuse.align = 16 : i64}, %C: memref<128x8xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %step = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %pa = arith.constant 0.0 : f8E4M3FN
  %pb = arith.constant 0.0 : f8E4M3FN
  %zero = arith.constant dense<0.0> : vector<128x8xf32>
  scf.forall (%block) in (1) {
    %acc = scf.for %k = %c0 to %c512 step %step iter_args(%sum = %zero) -> (vector<128x8xf32>) {
      %x = vector.transfer_read %A[%c0, %k], %pa {in_bounds = [true, true]} : memref<128x512xf8E4M3FN>, vector<128x128xf8E4M3FN>
      %w = vector.transfer_read %B[%c0, %k], %pb {in_bounds = [true, true]} : memref<8x512xf8E4M3FN>, vector<8x128xf8E4M3FN>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma", fuse.precision = "fast_accum"} : vector<128x128xf8E4M3FN>, vector<8x128xf8E4M3FN> into vector<128x8xf32>
      scf.yield %next : vector<128x8xf32>
    }
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x8xf32>, memref<128x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 8>, layout = #layout, contraction = {k = 32 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// Copies round to tf32.
// CHECK-LABEL: func.func @tf32
// CHECK: "fuse.warpgroup_mma"
// CHECK-COUNT-2: "fuse.async_load"({{.*}}) {dims = array<i64: 0, 1>, tf32} : (memref<{{.*}}xf32>
// expected-remark @below {{3 stages, 2 warpgroups of consumers}}
func.func @tf32(%A: memref<128x512xf32> {fuse.align = 16 : i64}, %B: memref<8x512xf32> {fuse.align = 16 : i64}, %C: memref<128x8xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %step = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %pa = arith.constant 0.0 : f32
  %pb = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<128x8xf32>
  scf.forall (%block) in (1) {
    %acc = scf.for %k = %c0 to %c512 step %step iter_args(%sum = %zero) -> (vector<128x8xf32>) {
      %x = vector.transfer_read %A[%c0, %k], %pa {in_bounds = [true, true]} : memref<128x512xf32>, vector<128x32xf32>
      %w = vector.transfer_read %B[%c0, %k], %pb {in_bounds = [true, true]} : memref<8x512xf32>, vector<8x32xf32>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma", fuse.precision = "tf32"} : vector<128x32xf32>, vector<8x32xf32> into vector<128x8xf32>
      scf.yield %next : vector<128x8xf32>
    }
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x8xf32>, memref<128x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 8>, layout = #layout, contraction = {k = 32 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @exact
// CHECK-NOT: fuse.warp_roles
func.func @exact(%A: memref<128x512xf32> {fuse.align = 16 : i64}, %B: memref<8x512xf32> {fuse.align = 16 : i64}, %C: memref<128x8xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %step = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %pa = arith.constant 0.0 : f32
  %pb = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<128x8xf32>
  scf.forall (%block) in (1) {
    // expected-remark @below {{wgmma does not multiply f32 as ieee}}
    %acc = scf.for %k = %c0 to %c512 step %step iter_args(%sum = %zero) -> (vector<128x8xf32>) {
      %x = vector.transfer_read %A[%c0, %k], %pa {in_bounds = [true, true]} : memref<128x512xf32>, vector<128x32xf32>
      %w = vector.transfer_read %B[%c0, %k], %pb {in_bounds = [true, true]} : memref<8x512xf32>, vector<8x32xf32>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x32xf32>, vector<8x32xf32> into vector<128x8xf32>
      scf.yield %next : vector<128x8xf32>
    }
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x8xf32>, memref<128x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 8>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// Of a tile that has all rows of an operand, only existing rows are copied where the others are undefined. The second
// read is not marked so, and is filled with zeros.
// CHECK-LABEL: func.func @few_rows
// CHECK: memref<3x128x64xbf16, #gpu.address_space<workgroup>>
// CHECK: "fuse.mbarrier_expect"(%{{.*}}) {bytes = 13824 : i64}
// CHECK: "fuse.async_load"({{.*}}) {dims = array<i64: 0, 1>, rows = 100 : i64}
// CHECK: "fuse.async_load"({{.*}}) {dims = array<i64: 0, 1>} :

// expected-remark @below {{3 stages, 2 warpgroups of consumers}}
func.func @few_rows(%A: memref<100x512xbf16> {fuse.align = 16 : i64}, %B: memref<5x512xbf16> {fuse.align = 16 : i64}, %C: memref<100x5xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<128x8xf32>
  scf.forall (%block) in (1) {
    %row = affine.apply affine_map<(d0) -> (d0 * 128)>(%block)
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x8xf32>) {
      %x = vector.transfer_read %A[%row, %k], %pad {in_bounds = [false, true], fuse.undefined = array<i64: 0>} : memref<100x512xbf16>, vector<128x64xbf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [false, true]} : memref<5x512xbf16>, vector<8x64xbf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xbf16>, vector<8x64xbf16> into vector<128x8xf32>
      scf.yield %next : vector<128x8xf32>
    }
    vector.transfer_write %acc, %C[%row, %c0] {in_bounds = [false, false]} : vector<128x8xf32>, memref<100x5xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 4, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 64, 16>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// The last of several tiles has fewer rows, and copies of its own. The bytes are those of both operands.
// CHECK-LABEL: func.func @last_rows
// CHECK: "fuse.warp_roles"
// CHECK: }, {
// CHECK: %[[A128:.*]] = arith.cmpi sge, %{{.*}}, %c128
// CHECK-NEXT: scf.if %[[A128]] {
// CHECK: %[[B32:.*]] = arith.cmpi sge, %{{.*}}, %c32
// CHECK-NEXT: scf.if %[[B32]] {
// CHECK: "fuse.mbarrier_expect"(%{{.*}}) {bytes = 5248 : i64}
// CHECK: "fuse.async_load"(%arg0, {{.*}}) {dims = array<i64: 0, 1>, rows = 36 : i64}
// CHECK: "fuse.async_load"(%arg1, {{.*}}) {dims = array<i64: 0, 1>, rows = 5 : i64}
// CHECK: } else {
// CHECK: "fuse.mbarrier_expect"(%{{.*}}) {bytes = 6656 : i64}
// CHECK: "fuse.async_load"(%arg0, {{.*}}) {dims = array<i64: 0, 1>, rows = 36 : i64}
// CHECK: "fuse.async_load"(%arg1, {{.*}}) {dims = array<i64: 0, 1>} :
// CHECK: } else {
// CHECK: scf.if
// CHECK: "fuse.mbarrier_expect"(%{{.*}}) {bytes = 8832 : i64}
// CHECK: "fuse.async_load"(%arg0, {{.*}}) {dims = array<i64: 0, 1>} :
// CHECK: "fuse.async_load"(%arg1, {{.*}}) {dims = array<i64: 0, 1>, rows = 5 : i64}
// CHECK: } else {
// CHECK: "fuse.mbarrier_expect"(%{{.*}}) {bytes = 10240 : i64}

// expected-remark @below {{3 stages, 1 warpgroups of consumers}}
func.func @last_rows(%A: memref<164x512xbf16> {fuse.align = 16 : i64}, %B: memref<37x512xbf16> {fuse.align = 16 : i64}, %C: memref<164x37xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<64x16xf32>
  scf.forall (%block) in (9) {
    %row = affine.apply affine_map<(d0) -> ((d0 floordiv 3) * 64)>(%block)
    %column = affine.apply affine_map<(d0) -> ((d0 mod 3) * 16)>(%block)
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<64x16xf32>) {
      %x = vector.transfer_read %A[%row, %k], %pad {in_bounds = [false, true], fuse.undefined = array<i64: 0>} : memref<164x512xbf16>, vector<64x64xbf16>
      %w = vector.transfer_read %B[%column, %k], %pad {in_bounds = [false, true], fuse.undefined = array<i64: 0>} : memref<37x512xbf16>, vector<16x64xbf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<64x64xbf16>, vector<16x64xbf16> into vector<64x16xf32>
      scf.yield %next : vector<64x16xf32>
    }
    vector.transfer_write %acc, %C[%row, %column] {in_bounds = [false, false]} : vector<64x16xf32>, memref<164x37xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 4, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 64, 16>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// Zeros are copied where the number of rows is dynamic, or where rows past the end are not undefined.
// CHECK-LABEL: func.func @zeros
// CHECK-NOT: rows =
// CHECK: "fuse.mbarrier_expect"(%{{.*}}) {bytes = 10240 : i64}
// CHECK-NOT: rows =

// expected-remark @below {{3 stages, 1 warpgroups of consumers}}
func.func @zeros(%A: memref<?x512xbf16> {fuse.align = 16 : i64}, %B: memref<37x512xbf16> {fuse.align = 16 : i64}, %C: memref<?x37xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<64x16xf32>
  %m = memref.dim %A, %c0 : memref<?x512xbf16>
  %tiles = affine.apply affine_map<()[s0] -> (s0 ceildiv 64)>()[%m]
  scf.forall (%block) in (%tiles) {
    %row = affine.apply affine_map<(d0) -> (d0 * 64)>(%block)
    %column = affine.apply affine_map<(d0) -> (d0 mod 3 * 16)>(%block)
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<64x16xf32>) {
      %x = vector.transfer_read %A[%row, %k], %pad {in_bounds = [false, true], fuse.undefined = array<i64: 0>} : memref<?x512xbf16>, vector<64x64xbf16>
      %w = vector.transfer_read %B[%column, %k], %pad {in_bounds = [false, true]} : memref<37x512xbf16>, vector<16x64xbf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<64x64xbf16>, vector<16x64xbf16> into vector<64x16xf32>
      scf.yield %next : vector<64x16xf32>
    }
    vector.transfer_write %acc, %C[%row, %column] {in_bounds = [false, false]} : vector<64x16xf32>, memref<?x37xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 16>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// Consumers add up elements of an operand between the start of a stage's products and the wait for those before.
// CHECK-LABEL: func.func @summed
// CHECK: %[[RA:.*]] = memref.alloc() {{.*}} : memref<3x128x64xbf16, #gpu.address_space<workgroup>>
// CHECK: %[[SUM:.*]]:4 = scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[PART:.*]] = %{{.*}}, %[[STAGE:.*]] = %c0, %{{.*}} = %c0_i32)
// CHECK: "fuse.mbarrier_wait"
// CHECK: %[[T:.*]] = "fuse.staged_tile"(%[[RA]], %[[STAGE]]) {columns = 16 : i64, first = 16 : i64, offsets = array<i64: 0>}
// CHECK: %[[E:.*]] = arith.extf %[[T]]
// CHECK: %[[LEFT:.*]] = vector.extract_strided_slice %[[E]] {offsets = [0, 0]
// CHECK: arith.addf %[[PART]], %[[LEFT]]
// CHECK: %[[TWO:.*]] = arith.addf
// CHECK: %[[R:.*]] = "fuse.warpgroup_mma"(%[[RA]], %{{.*}}, %[[STAGE]], %[[ACC]])
// CHECK: %[[W:.*]] = "fuse.warpgroup_wait"(%[[R]]) {pending = 1 : i64}
// CHECK: scf.yield %[[W]], %[[TWO]]
// CHECK: vector.multi_reduction <add>, %[[SUM]]#1
// The producer has nothing of it.
// CHECK: }, {
// CHECK-NOT: extract_strided_slice
// expected-remark @below {{3 stages, 2 warpgroups of consumers}}
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

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 16>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @depends_on_the_step
func.func @depends_on_the_step(%A: memref<128x512xbf16> {fuse.align = 16 : i64}, %B: memref<16x512xbf16> {fuse.align = 16 : i64}, %C: memref<128x16xf32>, %D: memref<128xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<128x16xf32>
  %zeros = arith.constant dense<0.0> : vector<128x8xf32>
  %flat = arith.constant dense<0.0> : vector<128xf32>
  scf.forall (%block) in (1) {
    // expected-remark @below {{what the loop carries beside the accumulators depends on these, or on the step}}
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
      %number = arith.index_cast %k : index to i32
      %float = arith.sitofp %number : i32 to f32
      %wide = vector.broadcast %float : f32 to vector<128x8xf32>
      %two = arith.addf %one, %wide : vector<128x8xf32>
      scf.yield %next, %two : vector<128x16xf32>, vector<128x8xf32>
    }
    %s = vector.multi_reduction <add>, %acc#1, %flat [1] : vector<128x8xf32> to vector<128xf32>
    vector.transfer_write %s, %D[%c0] {in_bounds = [true], fuse.dims = array<i64: 0>} : vector<128xf32>, memref<128xf32>
    vector.transfer_write %acc#0, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x16xf32>, memref<128x16xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
