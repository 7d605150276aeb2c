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

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 4, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 8>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64, persistent = true, consumer_groups = 2 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// Tiles of four and of eight steps: a consumer group counts those of the other group's tiles, before its first tile and
// after each, as it counts its own.
// CHECK-LABEL: func.func @steps_of_tiles
// CHECK: "fuse.warp_roles"() ({
// CHECK-NEXT: ^bb0(%[[GROUP:.*]]: index):
// CHECK: %[[BEFORE:.*]] = arith.cmpi ugt, %[[GROUP]], %c0
// CHECK: %[[FIRST:.*]] = affine.apply #{{.*}}(%{{.*}})
// CHECK: %[[STEPS:.*]] = arith.ceildivsi %[[FIRST]], %c64
// CHECK: arith.select %[[BEFORE]], %[[STEPS]], %c0
// CHECK: scf.for %[[TILE:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args
// CHECK: vector.transfer_write
// CHECK: %[[OTHER:.*]] = arith.addi %[[TILE]], %{{.*}}
// CHECK: %[[ITS:.*]] = affine.apply #{{.*}}(%[[OTHER]])
// CHECK: %[[SKIPPED:.*]] = arith.ceildivsi %[[ITS]], %c64
// CHECK: arith.addi %{{.*}}, %[[SKIPPED]]
func.func @steps_of_tiles(%A: memref<?x512xbf16> {fuse.align = 16 : i64}, %B: memref<8x512xbf16> {fuse.align = 16 : i64}, %C: memref<?x8xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<128x8xf32>
  %m = memref.dim %A, %c0 : memref<?x512xbf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 128)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 128)>(%block)
    %end = affine.apply affine_map<(d0) -> ((d0 mod 2) * 256 + 256)>(%block)
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
