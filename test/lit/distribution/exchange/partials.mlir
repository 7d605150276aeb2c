// RUN: mlirfuse-opt --fuse-assign-layouts --fuse-distribute --canonicalize --cse --split-input-file %s | FileCheck %s

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 32, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Rows on 32 warps: partials are vectors, and differ between lanes. They are merged four at a time, as a tree, in a loop
// whose length is unknown to the compilers, and which they may not unroll.
// CHECK: #[[ROLLED:.*]] = #llvm.loop_unroll<disable = true>
// CHECK: #[[STAY:.*]] = #llvm.loop_annotation<unroll = #[[ROLLED]]>
// CHECK-LABEL: gpu.func @looped
// CHECK-SAME: workgroup(%[[PARTIALS:[a-z0-9]+]] : memref<4096xf32, #gpu.address_space<workgroup>>
// CHECK: vector.store %{{.*}}, %[[PARTIALS]]
// CHECK: gpu.barrier
// CHECK-COUNT-4: vector.load %[[PARTIALS]]
// CHECK: %[[FIRST:.*]] = arith.addf
// CHECK: %[[NONE:.*]] = gpu.block_id y
// CHECK: %[[END:.*]] = arith.addi %[[NONE]], %c32
// CHECK: scf.for %{{.*}} = %c4{{.*}} to %[[END]] step %c4{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (vector<4xf32>)
// CHECK-COUNT-4: vector.load %[[PARTIALS]]
// CHECK-COUNT-3: arith.addf
// CHECK: %[[MORE:.*]] = arith.addf %[[SUM]], %
// CHECK: scf.yield %[[MORE]]
// CHECK-NEXT: {llvm.loop_annotation = #[[STAY]]}
func.func private @looped(%x: memref<32x128xf32> {fuse.align = 16 : i64}, %y: memref<1x128xf32> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<128xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x128xf32>, vector<32x128xf32>
    %1 = vector.multi_reduction <add>, %0, %zero [0] : vector<32x128xf32> to vector<128xf32>
    %2 = vector.shape_cast %1 : vector<128xf32> to vector<1x128xf32>
    vector.transfer_write %2, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1x128xf32>, memref<1x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 22, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Of 22 warps the first two are merged before the loop.
// CHECK-LABEL: gpu.func @remainder
// CHECK: gpu.barrier
// CHECK-COUNT-2: vector.load %{{.*}} : memref<2816xf32, #gpu.address_space<workgroup>>, vector<4xf32>
// CHECK: %[[FIRST:.*]] = arith.addf
// CHECK-NOT: arith.addf
// CHECK: scf.for %{{.*}} = %c2{{.*}} to %{{.*}} step %c4{{.*}} iter_args(%{{.*}} = %[[FIRST]])
// CHECK-COUNT-4: vector.load
// CHECK: gpu.return
func.func private @remainder(%x: memref<22x128xf32> {fuse.align = 16 : i64}, %y: memref<1x128xf32> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 22, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<128xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<22x128xf32>, vector<22x128xf32>
    %1 = vector.multi_reduction <add>, %0, %zero [0] : vector<22x128xf32> to vector<128xf32>
    %2 = vector.shape_cast %1 : vector<128xf32> to vector<1x128xf32>
    vector.transfer_write %2, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1x128xf32>, memref<1x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 4, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>}
// Four partials need no loop, however many vectors each has.
// CHECK-LABEL: gpu.func @few
// CHECK: gpu.barrier
// CHECK-NOT: scf.for
// CHECK-COUNT-32: vector.load %{{.*}} : memref<4096xf32, #gpu.address_space<workgroup>>, vector<4xf32>
// CHECK-NOT: vector.load
// CHECK: gpu.return
func.func private @few(%x: memref<4x1024xf32> {fuse.align = 16 : i64}, %y: memref<1x1024xf32> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 4, 1024>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1024xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<4x1024xf32>, vector<4x1024xf32>
    %1 = vector.multi_reduction <add>, %0, %zero [0] : vector<4x1024xf32> to vector<1024xf32>
    %2 = vector.shape_cast %1 : vector<1024xf32> to vector<1x1024xf32>
    vector.transfer_write %2, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1x1024xf32>, memref<1x1024xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Vectors of up to 64 elements in all are added by each thread, as a tree.
// CHECK-LABEL: gpu.func @listed
// CHECK: gpu.barrier
// CHECK-NOT: scf.for
// CHECK-COUNT-8: vector.load %{{.*}} : memref<1024xf32, #gpu.address_space<workgroup>>, vector<4xf32>
// CHECK-COUNT-7: arith.addf
// CHECK-NOT: arith.addf
func.func private @listed(%x: memref<8x128xf32> {fuse.align = 16 : i64}, %y: memref<1x128xf32> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 8, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<128xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x128xf32>, vector<8x128xf32>
    %1 = vector.multi_reduction <add>, %0, %zero [0] : vector<8x128xf32> to vector<128xf32>
    %2 = vector.shape_cast %1 : vector<128xf32> to vector<1x128xf32>
    vector.transfer_write %2, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1x128xf32>, memref<1x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 8>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Up to eight numbers are added by each thread, which loads four at a time.
// CHECK-LABEL: gpu.func @eight
// CHECK: gpu.barrier
// CHECK-COUNT-2: vector.load %{{.*}} : memref<8xf32, #gpu.address_space<workgroup>>, vector<4xf32>
// CHECK-NOT: gpu.shuffle
// CHECK: gpu.return
func.func private @eight(%x: memref<1x1024xf32> {fuse.align = 16 : i64}, %y: memref<1xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 1024>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<1x1024xf32>, vector<1x1024xf32>
    %1 = vector.multi_reduction <add>, %0, %zero [1] : vector<1x1024xf32> to vector<1xf32>
    vector.transfer_write %1, %y[%c0] {in_bounds = [true]} : vector<1xf32>, memref<1xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 8, 4>, warps = array<i64: 15, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// If lanes run along rows too, each of the lanes with the same columns merges some of the vectors, here two of 15 (the last
// lane one), and the lanes merge by shuffles.
// CHECK-LABEL: gpu.func @shared
// CHECK: gpu.barrier
// CHECK-NOT: scf.for
// CHECK-COUNT-2: vector.load %{{.*}} : memref<480xf32, #gpu.address_space<workgroup>>, vector<8xf32>
// CHECK-NOT: vector.load
// CHECK: %[[SENT:.*]] = arith.cmpi ult, %{{.*}}, %c15
// CHECK: arith.select %[[SENT]], %{{.*}} : vector<8xf32>
// CHECK-COUNT-24: gpu.shuffle xor
// CHECK: gpu.return
func.func private @shared(%x: memref<120x32xf32> {fuse.align = 16 : i64}, %y: memref<1x32xf32> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 120, 32>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<32xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<120x32xf32>, vector<120x32xf32>
    %1 = vector.multi_reduction <add>, %0, %zero [0] : vector<120x32xf32> to vector<32xf32>
    %2 = vector.shape_cast %1 : vector<32xf32> to vector<1x32xf32>
    vector.transfer_write %2, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1x32xf32>, memref<1x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
