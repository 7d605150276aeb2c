// RUN: mlirfuse-opt --fuse-pipeline-contraction --canonicalize --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

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
