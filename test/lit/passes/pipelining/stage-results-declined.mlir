// RUN: mlirfuse-opt --pass-pipeline="builtin.module(fuse-pipeline-contraction,fuse-stage-results,canonicalize)" --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @row_alignment
// CHECK-NOT: fuse.stage_tile
// CHECK: vector.transfer_write
// expected-remark @below {{3 stages, 2 warpgroups of consumers}}
func.func @row_alignment(%A: memref<512x128xf16> {fuse.align = 16 : i64}, %B: memref<512x64xf16> {fuse.align = 16 : i64}, %C: memref<128x63xf32>)
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
    // expected-remark @below {{a tensor map cannot describe strides [63, 1]}}
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x64xf32>, memref<128x63xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @workspace
// CHECK-NOT: fuse.stage_tile
// CHECK: vector.transfer_write
// expected-remark @below {{3 stages, 2 warpgroups of consumers}}
func.func @workspace(%A: memref<512x128xf16> {fuse.align = 16 : i64}, %B: memref<512x64xf16> {fuse.align = 16 : i64}, %C: memref<128x64xf32> {fuse.workspace = "scratch"})
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
    // expected-remark @below {{other blocks read the target, and asynchronous stores are visible when the kernel ends}}
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x64xf32>, memref<128x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 64>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 9 : i64}}
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @no_room
// CHECK-NOT: fuse.stage_tile
// CHECK: vector.transfer_write
// expected-remark @below {{9 stages, 2 warpgroups of consumers}}
func.func @no_room(%A: memref<512x128xf16> {fuse.align = 16 : i64}, %B: memref<512x64xf16> {fuse.align = 16 : i64}, %C: memref<128x64xf32>)
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
    // expected-remark @below {{there is no shared memory left for a subtile}}
    vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x64xf32>, memref<128x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// A kernel without warp roles is left alone.
// CHECK-LABEL: func.func @plain
// CHECK: vector.transfer_write
func.func @plain(%C: memref<8xf32>) attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  scf.forall (%block) in (1) {
    vector.transfer_write %zero, %C[%c0] {in_bounds = [true]} : vector<8xf32>, memref<8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
