// RUN: mlirfuse-opt --pass-pipeline="builtin.module(fuse-pipeline-contraction,fuse-stage-results,fuse-assign-layouts,fuse-distribute,canonicalize)" --split-input-file %s | FileCheck %s
// Roles of warps, and multiplication by warpgroups, as one thread's code.

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 8>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// The first warps are consumers; one thread of the producer's warps runs the producer's code.
// CHECK-LABEL: gpu.func @product
// CHECK-SAME: workgroup(%[[RA:.*]] : memref<3x128x64xbf16, #gpu.address_space<workgroup>> {fuse.phase = 0 : i64, llvm.align = 1024 : i64},
// CHECK-SAME: known_block_size = array<i32: 384, 1, 1>
// CHECK: %[[WARP:.*]], %{{.*}} = gpu.shuffle idx
// CHECK: %[[CONSUMES:.*]] = arith.cmpi ult, %[[WARP]], %c8_i32
// CHECK: scf.if %[[CONSUMES]] {
// CHECK: "fuse.set_registers"() {action = "increase", count = 232 : i64}
// CHECK: %{{.*}}:2 = "fuse.warpgroup_mma"({{.*}}) {a_major = "k", b_major = "k"} : ({{.*}}, vector<2xf32>, vector<2xf32>) -> (vector<2xf32>, vector<2xf32>)
// CHECK: vector.store
// CHECK: } else {
// CHECK: "fuse.set_registers"() {action = "decrease", count = 40 : i64}
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[WARP]], %c8_i32
// CHECK: scf.if %[[FIRST]] {
// CHECK: %[[ONE:.*]] = "fuse.elect_one"()
// CHECK: scf.if %[[ONE]] {
// CHECK: "fuse.async_load"
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

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// All threads of the role write a subtile, and pass a barrier before the first thread stores it.
// CHECK-LABEL: gpu.func @staged
// CHECK: %[[THREAD:.*]] = gpu.thread_id x
// CHECK: "fuse.stage_tile"(%[[SUBTILES:.*]], %c0, {{.*}}) {offset = 0 : i64} : ({{.*}}, vector<2xf32>, vector<2xf32>) -> ()
// CHECK-NEXT: "fuse.group_barrier"() {warpgroups = 2 : i64}
// CHECK: scf.if %{{.*}} {
// CHECK-NEXT: "fuse.async_store"(%{{.*}}, %[[SUBTILES]], %c0, %{{.*}}, %c0)
// CHECK: "fuse.stage_tile"(%[[SUBTILES]], %c1, {{.*}}) {offset = 0 : i64}
// CHECK: "fuse.async_store"(%{{.*}}, %[[SUBTILES]], %c1, %{{.*}}, %c32)
// CHECK: scf.if %{{.*}} {
// CHECK-NEXT: "fuse.async_store_wait"() {pending = 0 : i64}
func.func @staged(%A: memref<?x512xbf16> {fuse.align = 16 : i64}, %B: memref<64x512xbf16> {fuse.align = 16 : i64}, %C: memref<?x64xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<128x64xf32>
  %m = memref.dim %A, %c0 : memref<?x512xbf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 128)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 128)>(%block)
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x64xf32>) {
      %x = vector.transfer_read %A[%row, %k], %pad {in_bounds = [false, true]} : memref<?x512xbf16>, vector<128x64xbf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<64x512xbf16>, vector<64x64xbf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xbf16>, vector<64x64xbf16> into vector<128x64xf32>
      scf.yield %next : vector<128x64xf32>
    }
    vector.transfer_write %acc, %C[%row, %c0] {in_bounds = [false, true]} : vector<128x64xf32>, memref<?x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 4, 1>, repeats = array<i64: 2, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64, persistent = true, consumer_groups = 2 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// Consumer groups have the same code, each with its own number, threads and barrier.
// CHECK-LABEL: gpu.func @consumer_groups
// CHECK-SAME: known_block_size = array<i32: 384, 1, 1>
// CHECK: %[[THREAD:.*]] = gpu.thread_id x
// CHECK: %[[WARP:.*]], %{{.*}} = gpu.shuffle idx
// CHECK: %[[CONSUMES:.*]] = arith.cmpi ult, %[[WARP]], %c8_i32
// CHECK: scf.if %[[CONSUMES]] {
// CHECK: "fuse.set_registers"() {action = "increase", count = 232 : i64}
// CHECK: %[[FIRST:.*]] = arith.cmpi ult, %[[WARP]], %c4_i32
// CHECK: scf.if %[[FIRST]] {
// CHECK: "fuse.mbarrier_wait"(%[[TURNS:.*]], %c0,
// CHECK: "fuse.mbarrier_arrive"(%[[TURNS]], %c1)
// CHECK: "fuse.stage_tile"(%{{.*}}, %c0,
// CHECK: "fuse.group_barrier"() {warpgroups = 1 : i64}
// CHECK: } else {
// CHECK: %[[OWN:.*]] = arith.subi %{{.*}}, %c128
// CHECK: "fuse.mbarrier_wait"(%[[TURNS]], %c1,
// CHECK: "fuse.mbarrier_arrive"(%[[TURNS]], %c0)
// CHECK: "fuse.stage_tile"(%{{.*}}, %c2,
// CHECK: "fuse.group_barrier"() {first = 1 : i64, warpgroups = 1 : i64}
// CHECK: %[[SENDS:.*]] = arith.cmpi eq, %[[OWN]], %c0
// CHECK: scf.if %[[SENDS]] {
// CHECK-NEXT: "fuse.async_store"
// CHECK: "fuse.set_registers"() {action = "decrease", count = 40 : i64}
func.func @consumer_groups(%A: memref<?x512xbf16> {fuse.align = 16 : i64}, %B: memref<64x512xbf16> {fuse.align = 16 : i64}, %C: memref<?x64xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<128x64xf32>
  %m = memref.dim %A, %c0 : memref<?x512xbf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 128)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 128)>(%block)
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x64xf32>) {
      %x = vector.transfer_read %A[%row, %k], %pad {in_bounds = [false, true]} : memref<?x512xbf16>, vector<128x64xbf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<64x512xbf16>, vector<64x64xbf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xbf16>, vector<64x64xbf16> into vector<128x64xf32>
      scf.yield %next : vector<128x64xf32>
    }
    vector.transfer_write %acc, %C[%row, %c0] {in_bounds = [false, true]} : vector<128x64xf32>, memref<?x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 4, 1>, repeats = array<i64: 1, 12>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 64, 96>, layout = #layout, order = "depth", contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#shared = #gpu.address_space<workgroup>

// The first use of a fragment reads its whole stage, before any write to that stage. Columns that both stages hold are read
// from the first one: only the last eight columns of the second stage are new.
// CHECK-LABEL: gpu.func @read_back
// CHECK: %[[FIRST:.*]]:16 = "fuse.staged_tile"(%[[RING:.*]], %c0) {offsets = array<i64: 0>} : {{.*}} -> (vector<2xf16>,
// CHECK: arith.negf %[[FIRST]]#0
// CHECK: "fuse.stage_tile"(%[[RING]], %c0,
// CHECK: %[[SECOND:.*]]:16 = "fuse.staged_tile"(%[[RING]], %c1)
// CHECK-NOT: %[[SECOND]]#7
// CHECK: arith.negf %[[SECOND]]#8
// CHECK: "fuse.stage_tile"(%[[RING]], %c1,
func.func @read_back(%A: memref<64x96xf16> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %pad = arith.constant 0.0 : f16
  scf.forall (%block) in (1) {
    %ring = memref.alloc() {alignment = 1024 : i64} : memref<2x64x64xf16, #shared>
    "fuse.warp_roles"() ({
      %a = vector.transfer_read %A[%c0, %c0], %pad {in_bounds = [true, true]} : memref<64x96xf16>, vector<64x96xf16>
      %t = "fuse.staged_tile"(%ring, %c0) {offsets = array<i64: 0, 32>} : (memref<2x64x64xf16, #shared>, index) -> vector<64x96xf16>
      %n = arith.negf %t : vector<64x96xf16>
      "fuse.stage_tile"(%ring, %c0, %n) {offset = 0 : i64} : (memref<2x64x64xf16, #shared>, index, vector<64x96xf16>) -> ()
      "fuse.stage_tile"(%ring, %c1, %n) {offset = 32 : i64} : (memref<2x64x64xf16, #shared>, index, vector<64x96xf16>) -> ()
      vector.yield
    }, {
      vector.yield
    }) {warpgroups = array<i64: 1, 1>, registers = array<i64: 232, 40>} : () -> ()
  } {mapping = [#gpu.block<x>]}
  return
}
