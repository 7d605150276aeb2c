// RUN: mlirfuse-opt --pass-pipeline="builtin.module(fuse-pipeline-contraction,fuse-stage-results,fuse-stage-residuals,canonicalize,cse)" --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 16>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 128>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// A block with one tile: the copies follow those of the operands, and a thread overwrites what it has read.
// CHECK-LABEL: func.func @residual
// CHECK-SAME: %[[R:[a-z0-9]+]]: memref<256x128xf16> {fuse.align = 16 : i64}, %[[C:[a-z0-9]+]]: memref<256x128xf16>)
// CHECK: scf.forall (%[[BLOCK:.*]]) in (2)
// CHECK: %[[M:.*]] = affine.apply #{{.*}}(%[[BLOCK]])
// CHECK: "fuse.mbarrier_init"(%{{.*}}) {arrivals = 2 : i64}
// CHECK: %[[LANDED:.*]] = memref.alloc() {alignment = 16 : i64} : memref<2xi64, #gpu.address_space<workgroup>>
// CHECK-NEXT: "fuse.mbarrier_init"(%[[LANDED]]) {arrivals = 1 : i64}
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: %[[RING:.*]] = memref.alloc() {alignment = 1024 : i64} : memref<2x128x64xf16, #gpu.address_space<workgroup>>
// CHECK: %[[Y:.*]] = arith.truncf
// CHECK-NEXT: "fuse.mbarrier_wait"(%[[LANDED]], %c0, %c0_i32)
// CHECK-NEXT: "fuse.mbarrier_wait"(%[[LANDED]], %c1, %c0_i32)
// CHECK-NEXT: %[[TILE:.*]] = "fuse.staged_tile"(%[[RING]], %c0) {offsets = array<i64: 0, 64>} : ({{.*}}) -> vector<128x128xf16>
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[Y]], %[[TILE]]
// CHECK-NEXT: "fuse.stage_tile"(%[[RING]], %c0, %[[SUM]]) {offset = 0 : i64}
// CHECK: "fuse.stage_tile"(%[[RING]], %c1, %[[SUM]]) {offset = 64 : i64}
// CHECK: vector.yield
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: "fuse.mbarrier_expect"(%[[LANDED]], %c0) {bytes = 16384 : i64}
// CHECK-NEXT: "fuse.async_load"(%[[R]], %[[RING]], %c0, %[[LANDED]], %[[M]], %c0) {dims = array<i64: 0, 1>}
// CHECK-NEXT: "fuse.mbarrier_expect"(%[[LANDED]], %c1) {bytes = 16384 : i64}
// CHECK-NEXT: "fuse.async_load"(%[[R]], %[[RING]], %c1, %[[LANDED]], %[[M]], %c64)
// CHECK-NEXT: vector.yield
func.func @residual(%A: memref<256x512xf16> {fuse.align = 16 : i64}, %B: memref<128x512xf16> {fuse.align = 16 : i64},
                    %R: memref<256x128xf16> {fuse.align = 16 : i64}, %C: memref<256x128xf16>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x128xf32>
  scf.forall (%block) in (2) {
    %m = affine.apply affine_map<(d0) -> (d0 * 128)>(%block)
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x128xf32>) {
      %x = vector.transfer_read %A[%m, %k], %pad {in_bounds = [true, true]} : memref<256x512xf16>, vector<128x64xf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<128x512xf16>, vector<128x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xf16>, vector<128x64xf16> into vector<128x128xf32>
      scf.yield %next : vector<128x128xf32>
    }
    %y = arith.truncf %acc : vector<128x128xf32> to vector<128x128xf16>
    // expected-remark @below {{2 subtiles are loaded through the stages of a result}}
    %r = vector.transfer_read %R[%m, %c0], %pad {in_bounds = [true, true]} : memref<256x128xf16>, vector<128x128xf16>
    %z = arith.addf %y, %r : vector<128x128xf16>
    vector.transfer_write %z, %C[%m, %c0] {in_bounds = [true, true]} : vector<128x128xf16>, memref<256x128xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 4, 1>, repeats = array<i64: 2, 12>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 96>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 5 : i64, persistent = true, consumer_groups = 2 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// Consumer groups: the producer computes the tile's place anew, and waits until the consumer group's stages are free, which it says when the
// stores have read them; no other thread waits for these. The second subtile begins inside of the first.
// CHECK-LABEL: func.func @consumer_groups
// CHECK-SAME: %[[R:[a-z0-9]+]]: memref<1024x96xf16> {fuse.align = 16 : i64}
// CHECK: %[[LANDED:.*]] = memref.alloc() {alignment = 16 : i64} : memref<4xi64, #gpu.address_space<workgroup>>
// CHECK: %[[FREE:.*]] = memref.alloc() {alignment = 16 : i64} : memref<2xi64, #gpu.address_space<workgroup>>
// CHECK-NEXT: "fuse.mbarrier_init"(%[[FREE]]) {arrivals = 1 : i64}
// CHECK: %[[RING:.*]] = memref.alloc() {alignment = 1024 : i64} : memref<4x128x64xf16, #gpu.address_space<workgroup>>
// CHECK: ^bb0(%[[GROUP:.*]]: index):
// CHECK: scf.for {{.*}} iter_args({{.*}}, %[[ROUND:.*]] = %c0_i32)
// CHECK: %[[FIRST:.*]] = arith.muli %[[GROUP]], %c2
// CHECK-NEXT: "fuse.mbarrier_wait"(%[[LANDED]], %[[FIRST]], %[[ROUND]])
// CHECK: "fuse.staged_tile"(%[[RING]], %[[FIRST]]) {offsets = array<i64: 0, 32>}
// CHECK-NOT: fuse.async_store_wait
// CHECK: "fuse.async_store"
// CHECK-NEXT: "fuse.stage_tile"({{.*}}) {offset = 32 : i64}
// CHECK: "fuse.async_store"
// CHECK-NEXT: "fuse.async_store_wait"() {pending = 0 : i64}
// CHECK-NEXT: "fuse.mbarrier_arrive"(%[[FREE]], %[[GROUP]]) {warpgroups = 1 : i64}
// CHECK: %[[OTHER:.*]] = arith.xori %[[ROUND]], %c1_i32
// CHECK-NEXT: scf.yield {{.*}}, %[[OTHER]]
// CHECK: scf.for %[[TILE:.*]] = {{.*}} iter_args({{.*}}, %[[WHOSE:.*]] = %c0, %[[ITS:.*]] = %c0_i32)
// CHECK: %[[M:.*]] = affine.apply #{{.*}}(%[[TILE]])
// CHECK: %[[BEFORE:.*]] = arith.xori %[[ITS]], %c1_i32
// CHECK: "fuse.mbarrier_wait"(%[[FREE]], %[[WHOSE]], %[[BEFORE]])
// CHECK: "fuse.async_load"(%[[R]], %[[RING]], %{{.*}}, %[[LANDED]], %[[M]], %c0)
// CHECK: "fuse.async_load"(%[[R]], %[[RING]], %{{.*}}, %[[LANDED]], %[[M]], %c32)
func.func @consumer_groups(%A: memref<1024x512xf16> {fuse.align = 16 : i64}, %B: memref<96x512xf16> {fuse.align = 16 : i64},
                 %R: memref<1024x96xf16> {fuse.align = 16 : i64}, %C: memref<1024x96xf16>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x96xf32>
  scf.forall (%block) in (8) {
    %m = affine.apply affine_map<(d0) -> (d0 * 128)>(%block)
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x96xf32>) {
      %x = vector.transfer_read %A[%m, %k], %pad {in_bounds = [true, true]} : memref<1024x512xf16>, vector<128x64xf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<96x512xf16>, vector<96x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xf16>, vector<96x64xf16> into vector<128x96xf32>
      scf.yield %next : vector<128x96xf32>
    }
    %y = arith.truncf %acc : vector<128x96xf32> to vector<128x96xf16>
    // expected-remark @below {{2 subtiles are loaded through the stages of a result}}
    %r = vector.transfer_read %R[%m, %c0], %pad {in_bounds = [true, true]} : memref<1024x96xf16>, vector<128x96xf16>
    %z = arith.addf %y, %r : vector<128x96xf16>
    vector.transfer_write %z, %C[%m, %c0] {in_bounds = [true, true]} : vector<128x96xf16>, memref<1024x96xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 16>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 128>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// Reads that are not replaced stay as they are.
// CHECK-LABEL: func.func @declined
// CHECK-COUNT-7: vector.transfer_read
// CHECK: "fuse.staged_tile"
// CHECK: vector.transfer_read
func.func @declined(%A: memref<128x512xf16> {fuse.align = 16 : i64}, %B: memref<128x512xf16> {fuse.align = 16 : i64},
                    %R: memref<128x128xf16> {fuse.align = 16 : i64}, %S: memref<128xf16> {fuse.align = 16 : i64},
                    %T: memref<128x128xf32> {fuse.align = 16 : i64}, %U: memref<128x128xf16> {fuse.align = 8 : i64},
                    %V: memref<128x128xf16>, %C: memref<128x128xf16> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %one = arith.constant 1.0 : f16
  %pad32 = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<128x128xf32>
  scf.forall (%block) in (1) {
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x128xf32>) {
      %x = vector.transfer_read %A[%c0, %k], %pad {in_bounds = [true, true]} : memref<128x512xf16>, vector<128x64xf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<128x512xf16>, vector<128x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xf16>, vector<128x64xf16> into vector<128x128xf32>
      scf.yield %next : vector<128x128xf32>
    }
    // expected-remark @below {{a row or a column is broadcast}}
    %s = vector.transfer_read %S[%c0], %pad {in_bounds = [true, true], permutation_map = affine_map<(d0) -> (0, d0)>} : memref<128xf16>, vector<128x128xf16>
    // expected-remark @below {{no staged result of its type and memory order is computed elementwise from it}}
    %t = vector.transfer_read %T[%c0, %c0], %pad32 {in_bounds = [true, true]} : memref<128x128xf32>, vector<128x128xf32>
    // expected-remark @below {{a tensor map cannot describe memref<128x128xf16>}}
    %u = vector.transfer_read %U[%c0, %c0], %pad {in_bounds = [true, true]} : memref<128x128xf16>, vector<128x128xf16>
    // expected-remark @below {{the source is not aligned, or other blocks write it}}
    %v = vector.transfer_read %V[%c0, %c0], %pad {in_bounds = [true, true]} : memref<128x128xf16>, vector<128x128xf16>
    // expected-remark @below {{the source is not a read-only argument}}
    %c = vector.transfer_read %C[%c0, %c0], %pad {in_bounds = [true, true]} : memref<128x128xf16>, vector<128x128xf16>
    // expected-remark @below {{the tile is padded with another number than zero}}
    %p = vector.transfer_read %R[%c64, %c0], %one {in_bounds = [false, true]} : memref<128x128xf16>, vector<128x128xf16>
    // expected-remark @below {{no staged result of its type and memory order is computed elementwise from it}}
    %q = vector.transfer_read %R[%c0, %c0], %pad {in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : memref<128x128xf16>, vector<128x128xf16>
    // expected-remark @below {{2 subtiles are loaded through the stages of a result}}
    %r = vector.transfer_read %R[%c0, %c0], %pad {in_bounds = [true, true]} : memref<128x128xf16>, vector<128x128xf16>
    // expected-remark @below {{another input tile uses the result's stages}}
    %o = vector.transfer_read %R[%c64, %c0], %pad {in_bounds = [false, true]} : memref<128x128xf16>, vector<128x128xf16>
    %1 = arith.addf %acc, %t : vector<128x128xf32>
    %2 = arith.truncf %1 : vector<128x128xf32> to vector<128x128xf16>
    %3 = arith.addf %2, %s : vector<128x128xf16>
    %4 = arith.addf %3, %u : vector<128x128xf16>
    %5 = arith.addf %4, %v : vector<128x128xf16>
    %6 = arith.addf %5, %c : vector<128x128xf16>
    %7 = arith.addf %6, %p : vector<128x128xf16>
    %8 = arith.addf %7, %q : vector<128x128xf16>
    %9 = arith.addf %8, %r : vector<128x128xf16>
    %10 = arith.addf %9, %o : vector<128x128xf16>
    vector.transfer_write %10, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x128xf16>, memref<128x128xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 4, 1>, repeats = array<i64: 2, 16>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 128>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 6 : i64, persistent = true, consumer_groups = 2 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// Six stages leave room for one subtile a consumer group, and a result that is not computed of the tile may overwrite it.
// CHECK-LABEL: func.func @no_room
// CHECK-NOT: "fuse.staged_tile"
func.func @no_room(%A: memref<128x512xf16> {fuse.align = 16 : i64}, %B: memref<128x512xf16> {fuse.align = 16 : i64},
                   %R: memref<128x128xf16> {fuse.align = 16 : i64}, %S: memref<128x128xf16> {fuse.align = 16 : i64},
                   %C: memref<128x128xf16>, %D: memref<128xf16>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x128xf32>
  %none = arith.constant dense<0.0> : vector<128xf16>
  scf.forall (%block) in (1) {
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x128xf32>) {
      %x = vector.transfer_read %A[%c0, %k], %pad {in_bounds = [true, true]} : memref<128x512xf16>, vector<128x64xf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<128x512xf16>, vector<128x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xf16>, vector<128x64xf16> into vector<128x128xf32>
      scf.yield %next : vector<128x128xf32>
    }
    %y = arith.truncf %acc : vector<128x128xf32> to vector<128x128xf16>
    // expected-remark @below {{the result has fewer stages than subtiles}}
    %r = vector.transfer_read %R[%c0, %c0], %pad {in_bounds = [true, true]} : memref<128x128xf16>, vector<128x128xf16>
    // expected-remark @below {{no staged result of its type and memory order is computed elementwise from it}}
    %s = vector.transfer_read %S[%c0, %c0], %pad {in_bounds = [true, true]} : memref<128x128xf16>, vector<128x128xf16>
    %z = arith.addf %y, %r : vector<128x128xf16>
    vector.transfer_write %z, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x128xf16>, memref<128x128xf16>
    %d = vector.multi_reduction <add>, %s, %none [1] : vector<128x128xf16> to vector<128xf16>
    vector.transfer_write %d, %D[%c0] {in_bounds = [true]} : vector<128xf16>, memref<128xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 12>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 96>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64, swapped = true}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// Both are transposed on their way: rows of a stage are columns of the tile.
// CHECK-LABEL: func.func @transposed
// CHECK-SAME: %[[R:[a-z0-9]+]]: memref<96x128xf16> {fuse.align = 16 : i64}
// CHECK: %[[RING:.*]] = memref.alloc() {alignment = 1024 : i64} : memref<2x48x128xf16, #gpu.address_space<workgroup>>
// CHECK: "fuse.staged_tile"(%[[RING]], %c0) {offsets = array<i64: 0, 48>, transposed} : ({{.*}}) -> vector<128x96xf16>
// CHECK: "fuse.stage_tile"(%[[RING]], %c1, %{{.*}}) {offset = 48 : i64, transposed}
// CHECK: "fuse.mbarrier_expect"(%[[LANDED:.*]], %c0) {bytes = 12288 : i64}
// CHECK-NEXT: "fuse.async_load"(%[[R]], %[[RING]], %c0, %[[LANDED]], %c0, %c0) {dims = array<i64: 0, 1>}
// CHECK: "fuse.async_load"(%[[R]], %[[RING]], %c1, %[[LANDED]], %c48, %c0) {dims = array<i64: 0, 1>}
func.func @transposed(%A: memref<128x512xf16> {fuse.align = 16 : i64}, %B: memref<96x512xf16> {fuse.align = 16 : i64},
                      %R: memref<96x128xf16> {fuse.align = 16 : i64}, %C: memref<96x128xf16>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x96xf32>
  scf.forall (%block) in (1) {
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x96xf32>) {
      %x = vector.transfer_read %A[%c0, %k], %pad {in_bounds = [true, true]} : memref<128x512xf16>, vector<128x64xf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<96x512xf16>, vector<96x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xf16>, vector<96x64xf16> into vector<128x96xf32>
      scf.yield %next : vector<128x96xf32>
    }
    %y = arith.truncf %acc : vector<128x96xf32> to vector<128x96xf16>
    // expected-remark @below {{2 subtiles are loaded through the stages of a result}}
    %r = vector.transfer_read %R[%c0, %c0], %pad {in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : memref<96x128xf16>, vector<128x96xf16>
    %z = arith.addf %y, %r : vector<128x96xf16>
    vector.transfer_write %z, %C[%c0, %c0] {in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : vector<128x96xf16>, memref<96x128xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 16>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 128>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64, persistent = true, argument_stages = true}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// A factor of another type than the result has four subtiles of 32 columns of its own, as the schedule says; consumers
// release them at the end of the tile.
// CHECK-LABEL: func.func @factor
// CHECK-SAME: %[[R:[a-z0-9]+]]: memref<1024x128xf32>
// CHECK: %[[RING:.*]] = memref.alloc() {alignment = 1024 : i64} : memref<4x128x32xf32, #gpu.address_space<workgroup>>
// CHECK: "fuse.mbarrier_wait"(%[[LANDED:[a-z0-9_]+]], %c3, %[[PHASE:[a-z0-9_]+]])
// CHECK-NEXT: %[[TILE:.*]] = "fuse.staged_tile"(%[[RING]], %c0) {offsets = array<i64: 0, 32, 64, 96>} : ({{.*}}) -> vector<128x128xf32>
// CHECK-NEXT: arith.mulf %{{.*}}, %[[TILE]]
// CHECK: arith.xori %[[PHASE]]
// CHECK-NEXT: "fuse.mbarrier_arrive"(%[[FREE:.*]], %c0) {warpgroups = 2 : i64}
// CHECK-NEXT: scf.yield
// CHECK: "fuse.mbarrier_wait"(%[[FREE]], %{{.*}}, %{{.*}})
// CHECK: "fuse.async_load"(%[[R]], %[[RING]], %{{.*}}, %[[LANDED]], %{{.*}}, %c96) {dims = array<i64: 0, 1>}
func.func @factor(%A: memref<1024x512xf16> {fuse.align = 16 : i64}, %B: memref<128x512xf16> {fuse.align = 16 : i64},
                  %R: memref<1024x128xf32> {fuse.align = 16 : i64}, %C: memref<1024x128xf16>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %pad32 = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<128x128xf32>
  scf.forall (%block) in (8) {
    %m = affine.apply affine_map<(d0) -> (d0 * 128)>(%block)
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x128xf32>) {
      %x = vector.transfer_read %A[%m, %k], %pad {in_bounds = [true, true]} : memref<1024x512xf16>, vector<128x64xf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<128x512xf16>, vector<128x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xf16>, vector<128x64xf16> into vector<128x128xf32>
      scf.yield %next : vector<128x128xf32>
    }
    // expected-remark @below {{4 subtiles are loaded through stages of their own}}
    %r = vector.transfer_read %R[%m, %c0], %pad32 {in_bounds = [true, true]} : memref<1024x128xf32>, vector<128x128xf32>
    %y = arith.mulf %acc, %r : vector<128x128xf32>
    %c = arith.truncf %y : vector<128x128xf32> to vector<128x128xf16>
    vector.transfer_write %c, %C[%m, %c0] {in_bounds = [true, true]} : vector<128x128xf16>, memref<1024x128xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 16>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 128>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64, argument_stages = true}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// A result of four bytes has a stage for each of its four subtiles where the ring leaves room for them.
// CHECK-LABEL: func.func @wide
// CHECK: %[[RING:.*]] = memref.alloc() {alignment = 1024 : i64} : memref<4x128x32xf32, #gpu.address_space<workgroup>>
// CHECK: "fuse.staged_tile"(%[[RING]], %c0) {offsets = array<i64: 0, 32, 64, 96>}
func.func @wide(%A: memref<256x512xf16> {fuse.align = 16 : i64}, %B: memref<128x512xf16> {fuse.align = 16 : i64},
                %R: memref<256x128xf32> {fuse.align = 16 : i64}, %C: memref<256x128xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %wide = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<128x128xf32>
  scf.forall (%block) in (2) {
    %m = affine.apply affine_map<(d0) -> (d0 * 128)>(%block)
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x128xf32>) {
      %x = vector.transfer_read %A[%m, %k], %pad {in_bounds = [true, true]} : memref<256x512xf16>, vector<128x64xf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<128x512xf16>, vector<128x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<128x64xf16>, vector<128x64xf16> into vector<128x128xf32>
      scf.yield %next : vector<128x128xf32>
    }
    // expected-remark @below {{4 subtiles are loaded through the stages of a result}}
    %r = vector.transfer_read %R[%m, %c0], %wide {in_bounds = [true, true]} : memref<256x128xf32>, vector<128x128xf32>
    %z = arith.addf %acc, %r : vector<128x128xf32>
    vector.transfer_write %z, %C[%m, %c0] {in_bounds = [true, true]} : vector<128x128xf32>, memref<256x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
