// RUN: mlirfuse-opt --fuse-assign-layouts --fuse-distribute --canonicalize --cse --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A small exchange in a loop alternates between two copies of its memory, so that one barrier a step is enough.
// CHECK-LABEL: gpu.func @alternating
// CHECK-SAME: workgroup(%[[PARTIALS:[a-z0-9]+]] : memref<4xf32, #gpu.address_space<workgroup>>
// CHECK: scf.for {{.*}} iter_args(%[[PHASE:[a-z0-9]+]] = %c0{{.*}}) -> (index)
// CHECK: %[[BASE:.*]] = arith.muli %[[PHASE]], %c2
// CHECK: %[[SLOT:.*]] = arith.addi
// CHECK: memref.store %{{.*}}, %[[PARTIALS]][%[[SLOT]]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[PARTIALS]]
// CHECK: %[[OTHER:.*]] = arith.subi %c1{{.*}}, %[[PHASE]]
// CHECK-NOT: gpu.barrier
// CHECK: scf.yield %[[OTHER]] : index
func.func private @alternating(%x: memref<8x256xf32> {fuse.align = 16 : i64}, %y: memref<8xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%block) in (1) {
    scf.for %row = %c0 to %c8 step %c1 {
      %0 = vector.transfer_read %x[%row, %c0], %pad {in_bounds = [true, true]} : memref<8x256xf32>, vector<1x256xf32>
      %1 = vector.multi_reduction <add>, %0, %zero [1] : vector<1x256xf32> to vector<1xf32>
      vector.transfer_write %1, %y[%row] {in_bounds = [true]} : vector<1xf32>, memref<8xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>}
// A large exchange (8 partials of 1024 numbers) has one copy, and a second barrier before the next writes.
// CHECK-LABEL: gpu.func @once
// CHECK-SAME: workgroup(%{{[a-z0-9]+}} : memref<8192xf32, #gpu.address_space<workgroup>>
// CHECK: scf.for
// CHECK: gpu.barrier
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: gpu.return
func.func private @once(%x: memref<64x1024xf32> {fuse.align = 16 : i64}, %y: memref<8x1024xf32> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 8, 1024>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1024xf32>
  scf.forall (%block) in (1) {
    scf.for %part = %c0 to %c8 step %c1 {
      %row = arith.muli %part, %c8 : index
      %0 = vector.transfer_read %x[%row, %c0], %pad {in_bounds = [true, true]} : memref<64x1024xf32>, vector<8x1024xf32>
      %1 = vector.multi_reduction <add>, %0, %zero [0] : vector<8x1024xf32> to vector<1024xf32>
      %2 = vector.shape_cast %1 : vector<1024xf32> to vector<1x1024xf32>
      vector.transfer_write %2, %y[%part, %c0] {in_bounds = [true, true]} : vector<1x1024xf32>, memref<8x1024xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
// A branch with a tile as its result returns a thread's fragments, which are loaded in the branch only, and scalars.
// CHECK-LABEL: gpu.func @branch(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x256xf32>{{.*}}, %{{[a-z0-9]+}}: memref<1x256xf32>{{.*}}, %[[MORE:[a-z0-9]+]]: i1
// CHECK: %[[AT:.*]] = arith.select %[[MORE]], %c7, %c0
// CHECK: %[[R:.*]]:2 = scf.if %[[MORE]] -> (vector<4xf32>, vector<4xf32>) {
// CHECK-COUNT-2: vector.load %[[X]]
// CHECK: scf.yield %{{.*}}, %{{.*}} : vector<4xf32>, vector<4xf32>
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[ZERO:[a-z0-9]+]], %[[ZERO]] : vector<4xf32>, vector<4xf32>
// CHECK: arith.subi %[[AT]], %c7
// CHECK: vector.store %[[R]]#0
// CHECK: vector.store %[[R]]#1
func.func private @branch(%x: memref<?x256xf32> {fuse.align = 16 : i64}, %y: memref<1x256xf32> {fuse.align = 16 : i64}, %more: i1)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %0:2 = scf.if %more -> (vector<1x256xf32>, index) {
      %1 = vector.transfer_read %x[%c7, %c0], %pad {in_bounds = [true, true]} : memref<?x256xf32>, vector<1x256xf32>
      scf.yield %1, %c7 : vector<1x256xf32>, index
    } else {
      %zero = arith.constant dense<0.0> : vector<1x256xf32>
      scf.yield %zero, %c0 : vector<1x256xf32>, index
    }
    %2 = arith.subi %0#1, %c7 : index
    vector.transfer_write %0#0, %y[%2, %c0] {in_bounds = [true, true]} : vector<1x256xf32>, memref<1x256xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// An exchange in a branch of a loop does not alternate, because the phase would have to leave the branch.
// CHECK-LABEL: gpu.func @exchange_in_a_branch
// CHECK-SAME: workgroup(%{{[a-z0-9]+}} : memref<2xf32, #gpu.address_space<workgroup>>
// CHECK: scf.if
// CHECK: gpu.barrier
// CHECK: gpu.barrier
func.func private @exchange_in_a_branch(%x: memref<8x256xf32> {fuse.align = 16 : i64}, %y: memref<8xf32>, %until: index)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%block) in (1) {
    scf.for %row = %c0 to %c8 step %c1 {
      %more = arith.cmpi ult, %row, %until : index
      scf.if %more {
        %0 = vector.transfer_read %x[%row, %c0], %pad {in_bounds = [true, true]} : memref<8x256xf32>, vector<1x256xf32>
        %1 = vector.multi_reduction <add>, %0, %zero [1] : vector<1x256xf32> to vector<1xf32>
        vector.transfer_write %1, %y[%row] {in_bounds = [true]} : vector<1xf32>, memref<8xf32>
      }
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @device_memory() attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    // expected-error @below {{a tile program may allocate shared memory only, not memref<1x128xf32>}}
    %0 = memref.alloc() : memref<1x128xf32>
    %1 = vector.transfer_read %0[%c0, %c0], %pad {in_bounds = [true, true]} : memref<1x128xf32>, vector<1x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Two rows of two warps each do not wait for each other in a loop: threads 0 to 63 use barrier 1, the others barrier 2.
// CHECK-LABEL: gpu.func @apart
// CHECK: scf.for
// CHECK: %[[ROW:.*]] = arith.divui %{{.*}}, %c64
// CHECK: %[[NUMBER:.*]] = arith.addi %[[ROW]], %c1
// CHECK: %[[ID:.*]] = arith.index_cast %[[NUMBER]] : index to i32
// CHECK: nvvm.barrier id = %[[ID]] number_of_threads = %c64_i32
// CHECK-NOT: gpu.barrier
// CHECK: scf.yield
// CHECK: gpu.return
func.func private @apart(%x: memref<8x256xf32> {fuse.align = 16 : i64}, %y: memref<8xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<2xf32>
  scf.forall (%block) in (1) {
    scf.for %row = %c0 to %c8 step %c2 {
      %0 = vector.transfer_read %x[%row, %c0], %pad {in_bounds = [true, true]} : memref<8x256xf32>, vector<2x256xf32>
      %1 = vector.multi_reduction <add>, %0, %zero [1] : vector<2x256xf32> to vector<2xf32>
      vector.transfer_write %1, %y[%row] {in_bounds = [true]} : vector<2xf32>, memref<8xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 1, 4>, lanes = array<i64: 1, 1, 32>, warps = array<i64: 2, 2, 2>, repeats = array<i64: 1, 1, 1>, blocks = array<i64: 1, 1, 1>}
// Sums within two warps, and then within four: both steps synchronise four, as groups of different sizes would share
// numbers, and the second step's memory would not be ordered by the first.
// CHECK-LABEL: gpu.func @nested_groups
// CHECK: scf.for
// CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %c128_i32
// CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %c128_i32
// CHECK-NOT: gpu.barrier
// CHECK: gpu.return
func.func private @nested_groups(%x: memref<8x2x256xf32> {fuse.align = 16 : i64}, %y: memref<8xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 2, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<2x2xf32>
  %zero = arith.constant dense<0.0> : vector<2xf32>
  scf.forall (%block) in (1) {
    scf.for %row = %c0 to %c8 step %c2 {
      %0 = vector.transfer_read %x[%row, %c0, %c0], %pad {in_bounds = [true, true, true]} : memref<8x2x256xf32>, vector<2x2x256xf32>
      %1 = vector.multi_reduction <add>, %0, %zeros [2] : vector<2x2x256xf32> to vector<2x2xf32>
      %2 = vector.shape_cast %1 : vector<2x2xf32> to vector<2x2x1xf32>
      %3 = vector.broadcast %2 : vector<2x2x1xf32> to vector<2x2x256xf32>
      %4 = arith.mulf %0, %3 : vector<2x2x256xf32>
      %5 = vector.multi_reduction <add>, %4, %zero [1, 2] : vector<2x2x256xf32> to vector<2xf32>
      vector.transfer_write %5, %y[%row] {in_bounds = [true]} : vector<2xf32>, memref<8xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// For a sum over rows, warps 0 and 2 exchange, and 1 and 3, which are not consecutive: all warps pass one barrier.
// CHECK-LABEL: gpu.func @across
// CHECK: scf.for
// CHECK: gpu.barrier
// CHECK-NOT: nvvm.barrier
// CHECK: gpu.return
func.func private @across(%x: memref<8x256xf32> {fuse.align = 16 : i64}, %y: memref<4x256xf32> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<256xf32>
  scf.forall (%block) in (1) {
    scf.for %part = %c0 to %c4 step %c1 {
      %row = arith.muli %part, %c2 : index
      %0 = vector.transfer_read %x[%row, %c0], %pad {in_bounds = [true, true]} : memref<8x256xf32>, vector<2x256xf32>
      %1 = vector.multi_reduction <add>, %0, %zero [0] : vector<2x256xf32> to vector<256xf32>
      %2 = vector.shape_cast %1 : vector<256xf32> to vector<1x256xf32>
      vector.transfer_write %2, %y[%part, %c0] {in_bounds = [true, true]} : vector<1x256xf32>, memref<4x256xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// An scf.while carries its scalars, and then the phases of exchanges.
// CHECK-LABEL: gpu.func @condition
// CHECK: scf.while (%[[ROW:[a-z0-9]+]] = %c0{{[a-z0-9_]*}}, %[[PHASE:[a-z0-9]+]] = %c0{{[a-z0-9_]*}}) : (index, index) -> (index, index)
// CHECK: %[[MORE:.*]] = arith.cmpi ult, %[[ROW]]
// CHECK: scf.condition(%[[MORE]]) %[[ROW]], %[[PHASE]]
// CHECK: ^bb0(%[[AT:.*]]: index, %[[TURN:.*]]: index):
// CHECK: arith.muli %[[TURN]], %c2
// CHECK: gpu.barrier
// CHECK: %[[OTHER:.*]] = arith.subi %c1{{.*}}, %[[TURN]]
// CHECK-NOT: gpu.barrier
// CHECK: scf.yield %{{.*}}, %[[OTHER]] : index, index
func.func private @condition(%x: memref<8x256xf32> {fuse.align = 16 : i64}, %y: memref<8xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%block) in (1) {
    %last = scf.while (%row = %c0) : (index) -> index {
      %more = arith.cmpi ult, %row, %c8 : index
      scf.condition(%more) %row : index
    } do {
    ^bb0(%row: index):
      %0 = vector.transfer_read %x[%row, %c0], %pad {in_bounds = [true, true]} : memref<8x256xf32>, vector<1x256xf32>
      %1 = vector.multi_reduction <add>, %0, %zero [1] : vector<1x256xf32> to vector<1xf32>
      vector.transfer_write %1, %y[%row] {in_bounds = [true]} : vector<1xf32>, memref<8xf32>
      %next = arith.addi %row, %c3 : index
      scf.yield %next : index
    }
  } {mapping = [#gpu.block<x>]}
  return
}
