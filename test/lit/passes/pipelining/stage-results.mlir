// RUN: mlirfuse-opt --pass-pipeline="builtin.module(fuse-pipeline-contraction,fuse-stage-results,canonicalize)" --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// Two subtiles of 32 columns are stored through two stages: a write, a barrier and an asynchronous store for each.
// CHECK-LABEL: func.func @subtiles
// CHECK-SAME: %[[C:[a-z0-9]+]]: memref<128x64xf32>)
// CHECK: %[[RING:.*]] = memref.alloc() {alignment = 1024 : i64} : memref<2x128x32xf32, #gpu.address_space<workgroup>>
// CHECK: %[[Y:.*]] = "fuse.warpgroup_wait"({{.*}}) {pending = 0 : i64}
// CHECK-NEXT: "fuse.stage_tile"(%[[RING]], %c0, %[[Y]]) {offset = 0 : i64}
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: "fuse.async_store"(%[[C]], %[[RING]], %c0, %c0, %c0) {dims = array<i64: 0, 1>}
// CHECK-NEXT: "fuse.stage_tile"(%[[RING]], %c1, %[[Y]]) {offset = 32 : i64}
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: "fuse.async_store"(%[[C]], %[[RING]], %c1, %c0, %c32)
// CHECK-NEXT: "fuse.async_store_wait"() {pending = 0 : i64}
// CHECK-NEXT: vector.yield
// expected-remark @below {{3 stages, 2 warpgroups of consumers}}
func.func @subtiles(%A: memref<512x128xf16> {fuse.align = 16 : i64}, %B: memref<512x64xf16> {fuse.align = 16 : i64}, %C: memref<128x64xf32>)
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
    // expected-remark @below {{2 subtiles through 2 stages}}
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x64xf32>, memref<128x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 4, 1>, repeats = array<i64: 2, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 8 : i64, persistent = true, consumer_groups = 2 : i64}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// Each consumer group has a subtile of its own, the most that fits beside 192 KB of stages.
// CHECK-LABEL: func.func @consumer_groups
// CHECK: %[[RING:.*]] = memref.alloc() {alignment = 1024 : i64} : memref<2x128x32xf32, #gpu.address_space<workgroup>>
// CHECK: ^bb0(%[[GROUP:.*]]: index):
// CHECK: "fuse.async_store_wait"() {pending = 0 : i64}
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: "fuse.stage_tile"(%[[RING]], %[[GROUP]], %{{.*}}) {offset = 0 : i64}
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: "fuse.async_store"(%{{.*}}, %[[RING]], %[[GROUP]], %c0, %c0)
// CHECK: "fuse.stage_tile"(%[[RING]], %[[GROUP]], %{{.*}}) {offset = 32 : i64}
// expected-remark @below {{8 stages, 1 warpgroups of consumers in each of 2 consumer groups, persistent}}
func.func @consumer_groups(%A: memref<512x128xf16> {fuse.align = 16 : i64}, %B: memref<512x64xf16> {fuse.align = 16 : i64}, %C: memref<128x64xf32>)
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
    // expected-remark @below {{2 subtiles through 1 stages}}
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x64xf32>, memref<128x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, blocks_per_sm = 2 : i64, contraction = {k = 64 : i64, instruction = "wgmma", stages = 4 : i64}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// Two blocks share an SM's memory: beside 96 KB of stages one subtile fits.
// CHECK-LABEL: func.func @halves
// CHECK: memref.alloc() {alignment = 1024 : i64} : memref<1x128x32xf32, #gpu.address_space<workgroup>>
// expected-remark @below {{4 stages, 2 warpgroups of consumers}}
func.func @halves(%A: memref<512x128xf16> {fuse.align = 16 : i64}, %B: memref<512x64xf16> {fuse.align = 16 : i64}, %C: memref<128x64xf32>)
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
    // expected-remark @below {{2 subtiles through 1 stages}}
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x64xf32>, memref<128x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 8 : i64}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// Column sums across warps need 2 KB for each of two reductions, so that the second subtile does not fit.
// CHECK-LABEL: func.func @column_sums
// CHECK: memref.alloc() {alignment = 1024 : i64} : memref<1x128x32xf32, #gpu.address_space<workgroup>>
// expected-remark @below {{8 stages, 2 warpgroups of consumers}}
func.func @column_sums(%A: memref<512x128xf16> {fuse.align = 16 : i64}, %B: memref<512x64xf16> {fuse.align = 16 : i64},
                  %C: memref<128x64xf32>, %S: memref<64xf32>, %T: memref<64xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x64xf32>
  %none = arith.constant dense<0.0> : vector<64xf32>
  scf.forall (%block) in (1) {
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x64xf32>) {
      %x = vector.transfer_read %A[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x128xf16>, vector<64x128xf16>
      %w = vector.transfer_read %B[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x64xf16>, vector<64x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<64x128xf16>, vector<64x64xf16> into vector<128x64xf32>
      scf.yield %next : vector<128x64xf32>
    }
    // expected-remark @below {{2 subtiles through 1 stages}}
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x64xf32>, memref<128x64xf32>
    %s = vector.multi_reduction <add>, %acc, %none [0] : vector<128x64xf32> to vector<64xf32>
    // expected-remark @below {{the tile has more than two dimensions, or a mask}}
    vector.transfer_write %s, %S[%c0] {in_bounds = [true]} : vector<64xf32>, memref<64xf32>
    %t = vector.multi_reduction <maximumf>, %acc, %none [0] : vector<128x64xf32> to vector<64xf32>
    // expected-remark @below {{the tile has more than two dimensions, or a mask}}
    vector.transfer_write %t, %T[%c0] {in_bounds = [true]} : vector<64xf32>, memref<64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 16>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 128>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// Four subtiles: before one is written again, the store that reads it is awaited.
// CHECK-LABEL: func.func @reused
// CHECK: "fuse.stage_tile"({{.*}}) {offset = 32 : i64}
// CHECK: "fuse.async_store"
// CHECK-NEXT: "fuse.async_store_wait"() {pending = 1 : i64}
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: "fuse.stage_tile"({{.*}}, %c0, {{.*}}) {offset = 64 : i64}
// expected-remark @below {{3 stages, 2 warpgroups of consumers}}
func.func @reused(%A: memref<512x128xf16> {fuse.align = 16 : i64}, %B: memref<512x128xf16> {fuse.align = 16 : i64}, %C: memref<128x128xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x128xf32>
  scf.forall (%block) in (1) {
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x128xf32>) {
      %x = vector.transfer_read %A[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x128xf16>, vector<64x128xf16>
      %w = vector.transfer_read %B[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x128xf16>, vector<64x128xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<64x128xf16>, vector<64x128xf16> into vector<128x128xf32>
      scf.yield %next : vector<128x128xf32>
    }
    // expected-remark @below {{4 subtiles through 2 stages}}
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x128xf32>, memref<128x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 4, 1>, repeats = array<i64: 1, 12>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 64, 96>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64, persistent = true}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// Three subtiles in two stages: the first subtile of a tile goes where the last one of the tile before is read, whose store
// is the newest; two are newer than the one that reads the other stage.
// CHECK-LABEL: func.func @odd
// CHECK: "fuse.warpgroup_wait"({{.*}}) {pending = 0 : i64}
// CHECK: "fuse.async_store_wait"() {pending = 0 : i64}
// CHECK: "fuse.stage_tile"(%{{.*}}, %c0, %{{.*}}) {offset = 0 : i64}
// CHECK: "fuse.async_store_wait"() {pending = 2 : i64}
// CHECK: "fuse.stage_tile"(%{{.*}}, %c1, %{{.*}}) {offset = 32 : i64}
// CHECK: "fuse.async_store_wait"() {pending = 1 : i64}
// CHECK: "fuse.stage_tile"(%{{.*}}, %c0, %{{.*}}) {offset = 64 : i64}
// expected-remark @below {{3 stages, 1 warpgroups of consumers, persistent}}
func.func @odd(%A: memref<512x64xf16> {fuse.align = 16 : i64}, %B: memref<96x512xf16> {fuse.align = 16 : i64}, %C: memref<64x96xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<64x96xf32>
  scf.forall (%block) in (1) {
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<64x96xf32>) {
      %x = vector.transfer_read %A[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x64xf16>, vector<64x64xf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<96x512xf16>, vector<96x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<64x64xf16>, vector<96x64xf16> into vector<64x96xf32>
      scf.yield %next : vector<64x96xf32>
    }
    // expected-remark @below {{3 subtiles through 2 stages}}
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<64x96xf32>, memref<64x96xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 10>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 80>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// Subtiles of 32 columns do not divide 80: the last one has 16 that the one before has too.
// CHECK-LABEL: func.func @overlapping
// CHECK: "fuse.stage_tile"({{.*}}) {offset = 32 : i64}
// CHECK: "fuse.stage_tile"({{.*}}, %c0, {{.*}}) {offset = 48 : i64}
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: "fuse.async_store"({{.*}}, %c0, %c48) {dims = array<i64: 0, 1>}
// expected-remark @below {{3 stages, 2 warpgroups of consumers}}
func.func @overlapping(%A: memref<512x128xf16> {fuse.align = 16 : i64}, %B: memref<80x512xf16> {fuse.align = 16 : i64}, %C: memref<128x80xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x80xf32>
  scf.forall (%block) in (1) {
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x80xf32>) {
      %x = vector.transfer_read %A[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x128xf16>, vector<64x128xf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<80x512xf16>, vector<80x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<64x128xf16>, vector<80x64xf16> into vector<128x80xf32>
      scf.yield %next : vector<128x80xf32>
    }
    // expected-remark @below {{3 subtiles through 2 stages}}
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x80xf32>, memref<128x80xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 12>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 96>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64, swapped = true}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// The tile's rows are contiguous in memory: 48 of its columns at a time are the rows of a stage of 128 columns.
// CHECK-LABEL: func.func @transposed
// CHECK-SAME: %[[C:[a-z0-9]+]]: memref<?x512xf32>)
// CHECK: %[[RING:.*]] = memref.alloc() {alignment = 1024 : i64} : memref<2x48x128xf32, #gpu.address_space<workgroup>>
// CHECK: "fuse.stage_tile"(%[[RING]], %c0, %{{.*}}) {offset = 0 : i64, transposed}
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: "fuse.async_store"(%[[C]], %[[RING]], %c0, %c0, %c128) {dims = array<i64: 0, 1>}
// CHECK-NEXT: "fuse.stage_tile"(%[[RING]], %c1, %{{.*}}) {offset = 48 : i64, transposed}
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: "fuse.async_store"(%[[C]], %[[RING]], %c1, %c48, %c128) {dims = array<i64: 0, 1>}
// expected-remark @below {{3 stages, 2 warpgroups of consumers}}
func.func @transposed(%A: memref<512x128xf16> {fuse.align = 16 : i64}, %B: memref<96x512xf16> {fuse.align = 16 : i64}, %C: memref<?x512xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<128x96xf32>
  scf.forall (%block) in (1) {
    %acc = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (vector<128x96xf32>) {
      %x = vector.transfer_read %A[%k, %c0], %pad {in_bounds = [true, true]} : memref<512x128xf16>, vector<64x128xf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<96x512xf16>, vector<96x64xf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "wgmma"} : vector<64x128xf16>, vector<96x64xf16> into vector<128x96xf32>
      scf.yield %next : vector<128x96xf32>
    }
    // expected-remark @below {{2 subtiles through 2 stages}}
    vector.transfer_write %acc, %C[%c0, %c128] {in_bounds = [false, true], permutation_map = affine_map<(m, n) -> (n, m)>} : vector<128x96xf32>, memref<?x512xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, order = "depth", contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// A thread that has no registers for it loads nothing ahead of what it stores.
// CHECK-LABEL: func.func @depth_first
// CHECK: "fuse.stage_tile"(%{{.*}}, %c0, %{{.*}}) {loads_in_turn, offset = 0 : i64}
// CHECK: "fuse.stage_tile"(%{{.*}}, %c1, %{{.*}}) {loads_in_turn, offset = 32 : i64}
// expected-remark @below {{3 stages, 2 warpgroups of consumers}}
func.func @depth_first(%A: memref<512x128xf16> {fuse.align = 16 : i64}, %B: memref<512x64xf16> {fuse.align = 16 : i64}, %C: memref<128x64xf32>)
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
    // expected-remark @below {{2 subtiles through 2 stages}}
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x64xf32>, memref<128x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
