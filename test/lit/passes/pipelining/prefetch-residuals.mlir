// RUN: mlirfuse-opt --pass-pipeline="builtin.module(fuse-pipeline-contraction,fuse-stage-results,fuse-stage-residuals,fuse-prefetch-residuals,canonicalize,cse)" --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks
// RUN: mlirfuse-opt --pass-pipeline="builtin.module(fuse-pipeline-contraction,fuse-stage-results,fuse-prefetch-residuals,fuse-prefetch-residuals)" --split-input-file --show-remarks %s 2>&1 | FileCheck %s --check-prefix=TWICE

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 16>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 128>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64, persistent = true}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// A mask and a tile of another type than the result: the producer asks for both in front of its loop along k. The row
// of a bias is no tile.
// CHECK-LABEL: func.func @persistent
// CHECK-SAME: %[[R:[a-z0-9]+]]: memref<1024x128xf32> {fuse.align = 16 : i64}, %[[MASK:[a-z0-9]+]]: memref<1024x128xi1>
// CHECK: vector.transfer_read %[[R]]
// CHECK: vector.transfer_read %[[MASK]]
// CHECK: vector.yield
// CHECK: scf.for %[[TILE:[a-z0-9]+]] =
// CHECK: %[[M:.*]] = affine.apply #{{.*}}(%[[TILE]])
// CHECK: "fuse.prefetch_tile"(%[[R]], %[[M]], %c0) {dims = array<i64: 0, 1>, tile = array<i64: 128, 128>}
// CHECK: "fuse.prefetch_tile"(%[[MASK]], %[[M]], %c0) {dims = array<i64: 0, 1>, tile = array<i64: 128, 128>}
// CHECK-NOT: fuse.prefetch_tile
// CHECK: scf.for
// CHECK: "fuse.async_load"
// REMARK: fuse-prefetch-residuals: declined: a row or a column is broadcast
// REMARK: fuse-prefetch-residuals: applied: the producer prefetches the tile
// TWICE: fuse-prefetch-residuals: declined: the producer prefetches tiles already
func.func @persistent(%A: memref<1024x512xf16> {fuse.align = 16 : i64}, %B: memref<128x512xf16> {fuse.align = 16 : i64},
                      %R: memref<1024x128xf32> {fuse.align = 16 : i64}, %mask: memref<1024x128xi1> {fuse.align = 16 : i64},
                      %bias: memref<128xf32> {fuse.align = 16 : i64}, %C: memref<1024x128xf16>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %pad32 = arith.constant 0.0 : f32
  %no = arith.constant false
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
    %v = vector.transfer_read %bias[%c0], %pad32 {in_bounds = [true, true], permutation_map = affine_map<(n) -> (0, n)>} : memref<128xf32>, vector<128x128xf32>
    %r = vector.transfer_read %R[%m, %c0], %pad32 {in_bounds = [true, true]} : memref<1024x128xf32>, vector<128x128xf32>
    %keep = vector.transfer_read %mask[%m, %c0], %no {in_bounds = [true, true]} : memref<1024x128xi1>, vector<128x128xi1>
    %y = arith.mulf %acc, %r : vector<128x128xf32>
    %z = arith.addf %y, %v : vector<128x128xf32>
    %kept = arith.select %keep, %z, %zero : vector<128x128xi1>, vector<128x128xf32>
    %c = arith.truncf %kept : vector<128x128xf32> to vector<128x128xf16>
    vector.transfer_write %c, %C[%m, %c0] {in_bounds = [true, true]} : vector<128x128xf16>, memref<1024x128xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// No contraction: nothing is rewritten.
// CHECK-LABEL: func.func @elementwise
// CHECK-NOT: fuse.prefetch_tile
// REMARK: fuse-prefetch-residuals: declined: no producer copies a contraction's operands
func.func @elementwise(%x: memref<64xf32>, %y: memref<64xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 64>, layout = {vector = array<i64: 2>, lanes = array<i64: 32>, warps = array<i64: 1>, repeats = array<i64: 1>, blocks = array<i64: 1>}}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %v = vector.transfer_read %x[%c0], %pad {in_bounds = [true]} : memref<64xf32>, vector<64xf32>
    vector.transfer_write %v, %y[%c0] {in_bounds = [true]} : vector<64xf32>, memref<64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 16>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 128>, layout = #layout, contraction = {k = 64 : i64, instruction = "wgmma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// Of an argument that may begin anywhere there is no tensor map.
// CHECK-LABEL: func.func @unaligned
// CHECK-NOT: fuse.prefetch_tile
// REMARK: fuse-prefetch-residuals: declined: the source is not aligned, or other blocks write it
func.func @unaligned(%A: memref<256x512xf16> {fuse.align = 16 : i64}, %B: memref<128x512xf16> {fuse.align = 16 : i64},
                     %R: memref<256x128xf32>, %C: memref<256x128xf16>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %pad32 = arith.constant 0.0 : f32
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
    %r = vector.transfer_read %R[%m, %c0], %pad32 {in_bounds = [true, true]} : memref<256x128xf32>, vector<128x128xf32>
    %y = arith.mulf %acc, %r : vector<128x128xf32>
    %c = arith.truncf %y : vector<128x128xf32> to vector<128x128xf16>
    vector.transfer_write %c, %C[%m, %c0] {in_bounds = [true, true]} : vector<128x128xf16>, memref<256x128xf16>
  } {mapping = [#gpu.block<x>]}
  return
}
