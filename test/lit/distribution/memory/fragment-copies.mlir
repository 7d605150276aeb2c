// RUN: mlirfuse-opt --fuse-assign-layouts --fuse-distribute --canonicalize --cse --split-input-file %s | FileCheck %s

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}
#shared = #gpu.address_space<workgroup>
// Aligned fragments of 16 bytes are copied asynchronously, bypassing the L1. Rows past the end are clamped, so that the copy
// needs no branch. Each thread copies to elements of the slot that only it reads back.
// CHECK-LABEL: gpu.func @wide
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x256xbf16>
// CHECK-SAME: workgroup(%[[SLOT:[a-z0-9]+]] : memref<2x256xbf16, #gpu.address_space<workgroup>>
// CHECK: %[[COLUMN:.*]] = arith.muli %{{.*}}, %c8
// CHECK: %[[ROW:.*]] = arith.minui
// CHECK: nvgpu.device_async_copy %[[X]][%[[ROW]], %[[COLUMN]]], %[[SLOT]][%c0, %[[COLUMN]]], 8 {bypassL1} : memref<?x256xbf16> to memref<2x256xbf16,
// CHECK: %[[ROW2:.*]] = arith.minui
// CHECK: nvgpu.device_async_copy %[[X]][%[[ROW2]], %[[COLUMN]]], %[[SLOT]][%c1, %[[COLUMN]]], 8 {bypassL1}
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NOT: gpu.barrier
// CHECK: vector.load %[[SLOT]][%c0, %[[COLUMN]]] {alignment = 16 : i64}
// CHECK: vector.load %[[SLOT]][%c1, %[[COLUMN]]] {alignment = 16 : i64}
func.func private @wide(%x: memref<?x256xbf16> {fuse.align = 16 : i64}, %y: memref<2x256xbf16> {fuse.align = 16 : i64}, %row: index)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : bf16
  scf.forall (%block) in (1) {
    %slot = memref.alloc() : memref<2x256xbf16, #shared>
    "fuse.copy_fragments"(%x, %slot, %row, %c0) {tile = array<i64: 2, 256>, permutation_map = affine_map<(d0, d1) -> (d0, d1)>, in_bounds = [false, true]}
        : (memref<?x256xbf16>, memref<2x256xbf16, #shared>, index, index) -> ()
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    %0 = vector.transfer_read %slot[%c0, %c0], %pad {in_bounds = [true, true]} : memref<2x256xbf16, #shared>, vector<2x256xbf16>
    vector.transfer_write %0, %y[%c0, %c0] {in_bounds = [true, true]} : vector<2x256xbf16>, memref<2x256xbf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#shared = #gpu.address_space<workgroup>
// Bools are not bytes at this stage, and go through registers.
// CHECK-LABEL: gpu.func @bools
// CHECK-NOT: nvgpu.device_async_copy
// CHECK: %[[PIECE:.*]] = vector.load %{{.*}} : memref<8x128xi1>, vector<4xi1>
// CHECK: vector.store %[[PIECE]], %{{.*}} : memref<1x128xi1, #gpu.address_space<workgroup>>, vector<4xi1>
func.func private @bools(%x: memref<8x128xi1> {fuse.align = 16 : i64}, %y: memref<1x128xi1> {fuse.align = 16 : i64}, %row: index)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant false
  scf.forall (%block) in (1) {
    %slot = memref.alloc() : memref<1x128xi1, #shared>
    "fuse.copy_fragments"(%x, %slot, %row, %c0) {tile = array<i64: 1, 128>, permutation_map = affine_map<(d0, d1) -> (d0, d1)>, in_bounds = [true, true]}
        : (memref<8x128xi1>, memref<1x128xi1, #shared>, index, index) -> ()
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    %0 = vector.transfer_read %slot[%c0, %c0], %pad {in_bounds = [true, true]} : memref<1x128xi1, #shared>, vector<1x128xi1>
    vector.transfer_write %0, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1x128xi1>, memref<1x128xi1>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#shared = #gpu.address_space<workgroup>
// Fragments of 4 bytes go through the L1, which only copies of 16 bytes may bypass.
// CHECK-LABEL: gpu.func @narrow
// CHECK: nvgpu.device_async_copy %{{.*}}, 2 : memref<8x64xf16>
func.func private @narrow(%x: memref<8x64xf16> {fuse.align = 16 : i64}, %y: memref<1x64xf16> {fuse.align = 16 : i64}, %row: index)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 64>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  scf.forall (%block) in (1) {
    %slot = memref.alloc() : memref<1x64xf16, #shared>
    "fuse.copy_fragments"(%x, %slot, %row, %c0) {tile = array<i64: 1, 64>, permutation_map = affine_map<(d0, d1) -> (d0, d1)>, in_bounds = [true, true]}
        : (memref<8x64xf16>, memref<1x64xf16, #shared>, index, index) -> ()
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    %0 = vector.transfer_read %slot[%c0, %c0], %pad {in_bounds = [true, true]} : memref<1x64xf16, #shared>, vector<1x64xf16>
    vector.transfer_write %0, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1x64xf16>, memref<1x64xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#shared = #gpu.address_space<workgroup>
// Elements of 2 bytes have no asynchronous copy, and go through registers.
// CHECK-LABEL: gpu.func @unaligned
// CHECK-SAME: workgroup(%[[SLOT:[a-z0-9]+]] : memref<1x256xbf16, #gpu.address_space<workgroup>>
// CHECK-NOT: nvgpu.device_async_copy
// CHECK-COUNT-8: memref.load %{{.*}} : memref<8x256xbf16>
// CHECK: vector.store %{{.*}}, %[[SLOT]]{{.*}} {alignment = 16 : i64}
// CHECK: nvvm.cp.async.commit.group
func.func private @unaligned(%x: memref<8x256xbf16> {fuse.align = 2 : i64}, %y: memref<1x256xbf16> {fuse.align = 16 : i64}, %row: index)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : bf16
  scf.forall (%block) in (1) {
    %slot = memref.alloc() : memref<1x256xbf16, #shared>
    "fuse.copy_fragments"(%x, %slot, %row, %c0) {tile = array<i64: 1, 256>, permutation_map = affine_map<(d0, d1) -> (d0, d1)>, in_bounds = [true, true]}
        : (memref<8x256xbf16>, memref<1x256xbf16, #shared>, index, index) -> ()
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    %0 = vector.transfer_read %slot[%c0, %c0], %pad {in_bounds = [true, true]} : memref<1x256xbf16, #shared>, vector<1x256xbf16>
    vector.transfer_write %0, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1x256xbf16>, memref<1x256xbf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#shared = #gpu.address_space<workgroup>
// Copies of data that the grid accesses once are nontemporal; loads of pieces of a fragment, which replace copies, are not,
// because they share lines in the L1.
// CHECK-LABEL: gpu.func @streaming
// CHECK: nvgpu.device_async_copy %{{.*}}, 8 {bypassL1, fuse.evict_first, nontemporal = true} : memref<8x256xbf16>
// CHECK-COUNT-2: vector.load %{{.*}} {alignment = 8 : i64} : memref<8x256xbf16>
func.func private @streaming(%x: memref<8x256xbf16> {fuse.align = 16 : i64}, %z: memref<8x256xbf16> {fuse.align = 8 : i64},
    %y: memref<1x256xbf16> {fuse.align = 16 : i64}, %row: index)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : bf16
  scf.forall (%block) in (1) {
    %slot = memref.alloc() : memref<1x256xbf16, #shared>
    %other = memref.alloc() : memref<1x256xbf16, #shared>
    "fuse.copy_fragments"(%x, %slot, %row, %c0) {fuse.streaming, fuse.evict_first, tile = array<i64: 1, 256>, permutation_map = affine_map<(d0, d1) -> (d0, d1)>, in_bounds = [true, true]}
        : (memref<8x256xbf16>, memref<1x256xbf16, #shared>, index, index) -> ()
    "fuse.copy_fragments"(%z, %other, %row, %c0) {fuse.streaming, tile = array<i64: 1, 256>, permutation_map = affine_map<(d0, d1) -> (d0, d1)>, in_bounds = [true, true]}
        : (memref<8x256xbf16>, memref<1x256xbf16, #shared>, index, index) -> ()
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    %0 = vector.transfer_read %slot[%c0, %c0], %pad {in_bounds = [true, true]} : memref<1x256xbf16, #shared>, vector<1x256xbf16>
    vector.transfer_write %0, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1x256xbf16>, memref<1x256xbf16>
    %1 = vector.transfer_read %other[%c0, %c0], %pad {in_bounds = [true, true]} : memref<1x256xbf16, #shared>, vector<1x256xbf16>
    vector.transfer_write %1, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1x256xbf16>, memref<1x256xbf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 2, 16>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#shared = #gpu.address_space<workgroup>
// A tile with one number a row is copied by each thread that holds some of the row, to its own element of the slot. Half a
// warp holds a row, and the second warp's elements follow the first warp's.
// CHECK-LABEL: gpu.func @row_values
// CHECK-SAME: %[[R:[a-z0-9]+]]: memref<?xf32>
// CHECK-SAME: workgroup(%[[SLOT:[a-z0-9]+]] : memref<2x32xf32, #gpu.address_space<workgroup>>
// CHECK: %[[T:.*]] = gpu.thread_id x
// CHECK-DAG: %[[IN_WARP:.*]] = arith.remui %[[T]], %c32
// CHECK-DAG: %[[ROW:.*]] = arith.divui %[[IN_WARP]], %c16
// CHECK-DAG: %[[LANE:.*]] = arith.remui %[[IN_WARP]], %c16
// CHECK-DAG: %[[WARP:.*]] = arith.divui %[[T]], %c32
// CHECK: %[[FROM:.*]] = arith.minui
// CHECK: %[[FIRST:.*]] = arith.muli %[[WARP]], %c16
// CHECK: %[[OWN:.*]] = arith.addi %[[FIRST]], %[[LANE]]
// CHECK: nvgpu.device_async_copy %[[R]][%[[FROM]]], %[[SLOT]][%[[ROW]], %[[OWN]]], 1 : memref<?xf32> to memref<2x32xf32,
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NOT: gpu.barrier
// CHECK: memref.load %[[SLOT]][%[[ROW]], %[[OWN]]]
func.func private @row_values(%r: memref<?xf32>, %y: memref<2x256xf32>, %row: index)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %slot = memref.alloc() : memref<2x32xf32, #shared>
    "fuse.copy_fragments"(%r, %slot, %row) {tile = array<i64: 2, 1>, permutation_map = affine_map<(d0) -> (d0, 0)>, in_bounds = [false, true]}
        : (memref<?xf32>, memref<2x32xf32, #shared>, index) -> ()
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    %0 = vector.transfer_read %slot[%c0, %c0], %pad {fuse.own, in_bounds = [true, true]} : memref<2x32xf32, #shared>, vector<2x1xf32>
    %1 = vector.broadcast %0 : vector<2x1xf32> to vector<2x256xf32>
    vector.transfer_write %1, %y[%c0, %c0] {in_bounds = [true, true]} : vector<2x256xf32>, memref<2x256xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 4, 1>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#shared = #gpu.address_space<workgroup>
// Vectors along another dimension than the slot's last one are not contiguous in the slot.
// CHECK-LABEL: gpu.func @across
// CHECK-NOT: nvgpu.device_async_copy
// CHECK: %[[PIECE:.*]] = vector.load %{{.*}} : memref<{{.*}}>, vector<4xf32>
// CHECK: %[[E:.*]]:4 = vector.to_elements %[[PIECE]]
// CHECK: memref.store %[[E]]#0, %[[SLOT:[a-z0-9]+]][%c0, %[[T:.*]]] : memref<4x32xf32,
// CHECK: memref.store %[[E]]#1, %[[SLOT]][%c1, %[[T]]]
// CHECK: memref.store %[[E]]#3, %[[SLOT]][%c3, %[[T]]]
func.func private @across(%x: memref<32x4xf32> {fuse.align = 16 : i64}, %y: memref<4x32xf32> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 4, 32>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %slot = memref.alloc() : memref<4x32xf32, #shared>
    "fuse.copy_fragments"(%x, %slot, %c0, %c0) {tile = array<i64: 4, 32>, permutation_map = affine_map<(d0, d1) -> (d1, d0)>, in_bounds = [true, true]}
        : (memref<32x4xf32>, memref<4x32xf32, #shared>, index, index) -> ()
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    %0 = vector.transfer_read %slot[%c0, %c0], %pad {in_bounds = [true, true]} : memref<4x32xf32, #shared>, vector<4x32xf32>
    vector.transfer_write %0, %y[%c0, %c0] {in_bounds = [true, true]} : vector<4x32xf32>, memref<4x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
