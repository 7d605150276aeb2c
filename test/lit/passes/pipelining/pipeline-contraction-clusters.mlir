// RUN: mlirfuse-opt --fuse-pipeline-contraction --canonicalize --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

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
