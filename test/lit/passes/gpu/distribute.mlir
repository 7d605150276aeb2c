// RUN: mlirfuse-opt --fuse-distribute --canonicalize --cse --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A row in a warp: one wide load, a shuffle reduction over the lanes, and a store by the first lane; no barrier.
// CHECK-LABEL: gpu.func @warp
// CHECK-SAME: known_block_size = array<i32: 32, 1, 1>
// CHECK: vector.load {{.*}}alignment = 16 : i64{{.*}} : memref<?x128xf32>, vector<4xf32>
// CHECK-NOT: gpu.barrier
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
// CHECK: scf.if
// CHECK: memref.store
func.func private @warp(%x: memref<?x128xf32> {fuse.align = 16 : i64}, %y: memref<?xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  %m = memref.dim %x, %c0 : memref<?x128xf32>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 1)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 1)>(%block)
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [false, true]} : memref<?x128xf32>, vector<1x128xf32>
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [1] : vector<1x128xf32> to vector<1xf32>
    vector.transfer_write %1, %y[%row] {fuse.layout = #layout, in_bounds = [false]} : vector<1xf32>, memref<?xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Two independent reductions across warps share one barrier.
// CHECK-LABEL: gpu.func @warps
// CHECK-SAME: workgroup(%{{[a-z0-9]+}} : memref<2xf32, #gpu.address_space<workgroup>>
// CHECK-SAME: %{{.*}} : memref<2xf32, #gpu.address_space<workgroup>>
// CHECK-COUNT-1: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: gpu.return
func.func private @warps(%x: memref<?x256xf32> {fuse.align = 16 : i64}, %y: memref<?xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  %m = memref.dim %x, %c0 : memref<?x256xf32>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 1)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 1)>(%block)
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [false, true]} : memref<?x256xf32>, vector<1x256xf32>
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [1] : vector<1x256xf32> to vector<1xf32>
    %2 = vector.multi_reduction <maximumf>, %0, %zero {fuse.layout = #layout} [1] : vector<1x256xf32> to vector<1xf32>
    vector.transfer_write %2, %y[%row] {fuse.layout = #layout, in_bounds = [false]} : vector<1xf32>, memref<?xf32>
    vector.transfer_write %1, %y[%row] {fuse.layout = #layout, in_bounds = [false]} : vector<1xf32>, memref<?xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Ragged columns: the index is clamped into the row, and what it read is replaced before it is added.
// CHECK-LABEL: gpu.func @ragged
// CHECK: %[[COLUMN:.*]] = arith.minui %{{.*}}, %c96
// CHECK: vector.load %{{.*}}[%{{.*}}, %[[COLUMN]]]
// CHECK: arith.cmpi ult, %{{.*}}, %c100
// CHECK: arith.select
// CHECK: gpu.shuffle
func.func private @ragged(%x: memref<?x100xf32> {fuse.align = 16 : i64}, %y: memref<?xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 100>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  %m = memref.dim %x, %c0 : memref<?x100xf32>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 1)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 1)>(%block)
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [false, true]} : memref<?x100xf32>, vector<1x100xf32>
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [1] : vector<1x100xf32> to vector<1xf32>
    vector.transfer_write %1, %y[%row] {fuse.layout = #layout, in_bounds = [false]} : vector<1xf32>, memref<?xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Two rows a block, one a warp: rows past the end are clamped when read and predicated when written.
// CHECK-DAG: #[[GRID:.*]] = affine_map<()[s0] -> (s0 ceildiv 2)>
// CHECK-LABEL: gpu.func @rows
// CHECK-SAME: fuse.grid = #[[GRID]], fuse.grid_operands = array<i64: 0, 0>
// CHECK-SAME: known_block_size = array<i32: 64, 1, 1>
// CHECK: %[[M:.*]] = memref.dim %arg0
// CHECK: %[[LAST:.*]] = arith.addi %[[M]], %c-1
// CHECK: %[[ROW:.*]] = arith.minui %{{.*}}, %[[LAST]]
// CHECK: vector.load %arg0[%[[ROW]],
// CHECK: arith.cmpi ult
// CHECK: scf.if
func.func private @rows(%x: memref<?x128xf32> {fuse.align = 16 : i64}, %y: memref<?xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<2xf32>
  %m = memref.dim %x, %c0 : memref<?x128xf32>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 2)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 2)>(%block)
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [false, true]} : memref<?x128xf32>, vector<2x128xf32>
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [1] : vector<2x128xf32> to vector<2xf32>
    vector.transfer_write %1, %y[%row] {fuse.layout = #layout, in_bounds = [false]} : vector<2xf32>, memref<?xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 2>}
// A row over two blocks of a cluster: partial sums are exchanged in distributed shared memory.
// CHECK-DAG: #[[GRID:.*]] = affine_map<()[s0] -> (s0 * 2)>
// CHECK-LABEL: gpu.func @cluster
// CHECK-SAME: fuse.grid = #[[GRID]]
// CHECK-SAME: known_cluster_size = array<i32: 2, 1, 1>
// CHECK: gpu.cluster_block_id x
// CHECK: "fuse.cluster_barrier"
// CHECK: "fuse.cluster_store"
// CHECK: "fuse.cluster_barrier"
// CHECK: gpu.return
func.func private @cluster(%x: memref<?x256xf32> {fuse.align = 16 : i64}, %y: memref<?xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  %m = memref.dim %x, %c0 : memref<?x256xf32>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 1)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 1)>(%block)
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [false, true]} : memref<?x256xf32>, vector<1x256xf32>
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [1] : vector<1x256xf32> to vector<1xf32>
    vector.transfer_write %1, %y[%row] {fuse.layout = #layout, in_bounds = [false]} : vector<1xf32>, memref<?xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// An argument that is aligned to 4 bytes only is read element by element.
// CHECK-LABEL: gpu.func @unaligned
// CHECK-NOT: vector.load
// CHECK-COUNT-4: memref.load
func.func private @unaligned(%x: memref<?x128xf32> {fuse.align = 4 : i64}, %y: memref<?xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  %m = memref.dim %x, %c0 : memref<?x128xf32>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 1)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 1)>(%block)
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [false, true]} : memref<?x128xf32>, vector<1x128xf32>
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [1] : vector<1x128xf32> to vector<1xf32>
    vector.transfer_write %1, %y[%row] {fuse.layout = #layout, in_bounds = [false]} : vector<1xf32>, memref<?xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}
// A sum over the outer dimension: a thread's two repeats are added, no shuffles are needed, and two warps exchange.
// CHECK-LABEL: gpu.func @outer
// CHECK-COUNT-2: vector.load
// CHECK-NOT: gpu.shuffle
// CHECK: gpu.barrier
// CHECK-NOT: gpu.shuffle
// CHECK: scf.if
// CHECK: vector.store {{.*}} : memref<128xf32>, vector<4xf32>
func.func private @outer(%x: memref<4x128xf32> {fuse.align = 16 : i64}, %y: memref<128xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 4, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<128xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<4x128xf32>, vector<4x128xf32>
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [0] : vector<4x128xf32> to vector<128xf32>
    vector.transfer_write %1, %y[%c0] {fuse.layout = #layout, in_bounds = [true]} : vector<128xf32>, memref<128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A value that is one number stays a scalar until it is stored.
// CHECK-LABEL: gpu.func @uniform
// CHECK: %[[DOUBLE:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK: %[[WIDE:.*]] = vector.broadcast %[[DOUBLE]] : f32 to vector<4xf32>
// CHECK: vector.store %[[WIDE]]
func.func private @uniform(%s: f32, %y: memref<?x128xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %m = memref.dim %y, %c0 : memref<?x128xf32>
  scf.forall (%row) in (%m) {
    %0 = vector.broadcast %s : f32 to vector<1x128xf32>
    %1 = arith.addf %0, %0 : vector<1x128xf32>
    vector.transfer_write %1, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [false, true]} : vector<1x128xf32>, memref<?x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A transposed argument is read element by element; one with padded rows is not.
// CHECK-LABEL: gpu.func @strided
// CHECK: vector.load %arg0[{{.*}}vector<4xf32>
// CHECK-COUNT-4: memref.load %arg1
// CHECK-NOT: memref.load
func.func private @strided(%x: memref<?x128xf32, strided<[?, 1]>> {fuse.align = 16 : i64}, %t: memref<?x128xf32, strided<[1, ?]>> {fuse.align = 16 : i64}, %y: memref<?x128xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %m = memref.dim %x, %c0 : memref<?x128xf32, strided<[?, 1]>>
  scf.forall (%row) in (%m) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [false, true]} : memref<?x128xf32, strided<[?, 1]>>, vector<1x128xf32>
    %1 = vector.transfer_read %t[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [false, true]} : memref<?x128xf32, strided<[1, ?]>>, vector<1x128xf32>
    %2 = arith.addf %0, %1 : vector<1x128xf32>
    vector.transfer_write %2, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [false, true]} : vector<1x128xf32>, memref<?x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
// 200 of 256 columns: the first repeat is stored by all lanes; the second by those whose fragment lies in the row, and
// what it reads is clamped into it.
// CHECK-LABEL: gpu.func @predicated
// CHECK: arith.minui %{{.*}}, %c196
// CHECK: vector.store
// CHECK: arith.cmpi ult, %{{.*}}, %c200
// CHECK: scf.if
// CHECK-NEXT: vector.store
func.func private @predicated(%x: memref<8x200xf32>, %y: memref<8x200xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 200>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%row) in (8) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<8x200xf32>, vector<1x200xf32>
    vector.transfer_write %0, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x200xf32>, memref<8x200xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A tile of one row that may lie past the end as a whole: its row is clamped when read and predicated when written.
// CHECK-LABEL: gpu.func @one_row
// CHECK: %[[ROW:.*]] = affine.apply
// CHECK: arith.minui %[[ROW]], %c5
// CHECK: arith.cmpi ult, %[[ROW]], %c6
// CHECK-NEXT: scf.if
// CHECK-NEXT: vector.store %{{.*}}, %{{.*}}[%[[ROW]], %{{.*}}]
func.func private @one_row(%x: memref<6x128xf32>, %y: memref<6x128xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%block) in (4) {
    %row = affine.apply affine_map<(d0) -> (d0 * 2 + 1)>(%block)
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [false, true]} : memref<6x128xf32>, vector<1x128xf32>
    vector.transfer_write %0, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [false, true]} : vector<1x128xf32>, memref<6x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
// A tile that is only used after the reduction is neither written to shared memory nor read from there.
// CHECK-LABEL: gpu.func @spilled_for_later
// CHECK-NOT: #gpu.address_space<workgroup>
// CHECK: %[[EARLY:.*]] = vector.load %arg1
// CHECK: gpu.shuffle
// CHECK-NOT: #gpu.address_space<workgroup>
// CHECK: "fuse.optimization_barrier"(%[[EARLY]],
// CHECK: gpu.return
func.func private @spilled_for_later(%x: memref<8x256xf32> {fuse.align = 16 : i64}, %r: memref<8x256xf32> {fuse.align = 16 : i64}, %y: memref<8x256xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout, order = "depth", shared_spill = 1 : i64}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%row) in (8) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : memref<8x256xf32>, vector<1x256xf32>
    %1 = vector.transfer_read %r[%row, %c0], %pad {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : memref<8x256xf32>, vector<1x256xf32>
    %2 = "fuse.spill_to_shared"(%1) {fragments = 1 : i64} : (vector<1x256xf32>) -> vector<1x256xf32>
    %3 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [1] : vector<1x256xf32> to vector<1xf32>
    %4 = vector.shape_cast %3 : vector<1xf32> to vector<1x1xf32>
    %5 = "fuse.optimization_barrier"(%2, %4) : (vector<1x256xf32>, vector<1x1xf32>) -> vector<1x256xf32>
    %6 = vector.broadcast %4 : vector<1x1xf32> to vector<1x256xf32>
    %7 = arith.addf %5, %6 : vector<1x256xf32>
    vector.transfer_write %7, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x256xf32>, memref<8x256xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 5>, blocks = array<i64: 1, 1>}
// In order: two fragments are loaded ahead of the one that is spilled to shared memory, and so are those that stay in registers; a thread
// keeps two sums. The addresses of results depend on coordinates behind an optimization barrier at the reduction.
// CHECK-LABEL: gpu.func @in_order
// CHECK-COUNT-3: vector.load %arg0{{.*}} fuse.in_order
// CHECK: vector.store {{.*}} fuse.in_order} : memref<512xf32, #gpu.address_space<workgroup>>
// CHECK: vector.load %arg0{{.*}} fuse.in_order
// CHECK: vector.store {{.*}} fuse.in_order} : memref<512xf32, #gpu.address_space<workgroup>>
// CHECK: vector.load %arg0{{.*}} fuse.in_order
// CHECK: %[[LAST:.*]]:4 = vector.to_elements
// CHECK: %[[EVEN:.*]] = arith.addf %{{.*}}, %[[LAST]]#0
// CHECK: arith.addf %[[EVEN]], %[[LAST]]#2
// CHECK: gpu.barrier
// CHECK: %[[NARROW:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK-NEXT: %[[LATE:.*]] = "fuse.optimization_barrier"(%[[NARROW]], %{{.*}}) : (i32, f32) -> i32
// CHECK-NEXT: arith.index_cast %[[LATE]] : i32 to index
// CHECK: vector.store {{.*}} %arg1
// CHECK: gpu.return
func.func private @in_order(%x: memref<8x1280xf32> {fuse.align = 16 : i64}, %y: memref<8x1280xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 1280>, layout = #layout, order = "depth", shared_spill = 2 : i64, in_order = true, rematerialize_addresses = true}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%row) in (8) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : memref<8x1280xf32>, vector<1x1280xf32>
    %1 = "fuse.spill_to_shared"(%0) {fragments = 2 : i64} : (vector<1x1280xf32>) -> vector<1x1280xf32>
    %2 = vector.multi_reduction <add>, %1, %zero {fuse.layout = #layout} [1] : vector<1x1280xf32> to vector<1xf32>
    %3 = vector.shape_cast %2 : vector<1xf32> to vector<1x1xf32>
    %4 = "fuse.optimization_barrier"(%1, %3) : (vector<1x1280xf32>, vector<1x1xf32>) -> vector<1x1280xf32>
    %5 = vector.broadcast %3 : vector<1x1xf32> to vector<1x1280xf32>
    %6 = arith.addf %4, %5 : vector<1x1280xf32>
    vector.transfer_write %6, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x1280xf32>, memref<8x1280xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// expected-remark @below {{not a tile program}}
func.func private @tensors(%x: tensor<8xf32>) -> tensor<8xf32> attributes {fuse.kernel} {
  return %x : tensor<8xf32>
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
// In order, with a reduction in a branch: behind it, where its result may not be known, nothing waits for it.
// CHECK-LABEL: gpu.func @in_order_branch
// CHECK: scf.if
// CHECK: "fuse.optimization_barrier"
// CHECK: vector.store {{.*}} %arg1
// CHECK-NOT: "fuse.optimization_barrier"
// CHECK: vector.store {{.*}} %arg2
// CHECK: gpu.return
func.func private @in_order_branch(%x: memref<8x512xf32> {fuse.align = 16 : i64}, %y: memref<8x512xf32>, %z: memref<8x512xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 512>, layout = #layout, order = "depth", shared_spill = 1 : i64, in_order = true, rematerialize_addresses = true}} {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%row) in (8) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : memref<8x512xf32>, vector<1x512xf32>
    %few = arith.cmpi ult, %row, %c5 : index
    scf.if %few {
      %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [1] : vector<1x512xf32> to vector<1xf32>
      %2 = vector.shape_cast %1 : vector<1xf32> to vector<1x1xf32>
      %3 = vector.broadcast %2 : vector<1x1xf32> to vector<1x512xf32>
      vector.transfer_write %3, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x512xf32>, memref<8x512xf32>
    }
    vector.transfer_write %0, %z[%row, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x512xf32>, memref<8x512xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 1>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
// Depth first, with shared memory, and no attribute on any argument.
// CHECK-LABEL: gpu.func @no_attributes
// CHECK-SAME: (%{{.*}}: memref<8x128xf32>, %{{.*}}: memref<8xf32>) workgroup(
func.func private @no_attributes(%x: memref<8x128xf32>, %y: memref<8xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout, order = "depth"}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%row) in (8) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : memref<8x128xf32>, vector<1x128xf32>
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [1] : vector<1x128xf32> to vector<1xf32>
    vector.transfer_write %1, %y[%row] {fuse.layout = #layout, in_bounds = [true]} : vector<1xf32>, memref<8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// expected-error @below {{no op has a layout}}
func.func private @no_layout(%x: memref<8xf32>) attributes {fuse.kernel} {
  scf.forall (%block) in (8) {
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Blocks that stay: the grid is the smaller of two numbers, one of which only the launch knows; in the kernel it is the
// size of the grid. The last block writes: one thread reads the semaphore, and broadcasts the result.
// CHECK-DAG: #[[GRID:.*]] = affine_map<()[s0, s1] -> (s0 ceildiv 8, s1)>
// CHECK-LABEL: gpu.func @last_block
// CHECK-SAME: %{{.*}}: memref<1xi32> {fuse.workspace = "semaphores"})
// CHECK-SAME: workgroup(%[[TOLD:.*]] : memref<1xi32, #gpu.address_space<workgroup>> {{.*}})
// CHECK-SAME: fuse.cooperative, fuse.grid = #[[GRID]], fuse.grid_operands = array<i64: 0, 0, -1, 2>
// CHECK: %[[BLOCKS:.*]] = gpu.grid_dim x
// CHECK-NOT: fuse.resident_blocks
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %[[BLOCKS]]
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK-NEXT: %[[OLD:.*]] = "fuse.semaphore_arrive"
// CHECK-NEXT: memref.store %[[OLD]], %[[TOLD]]
// CHECK: gpu.barrier
// CHECK-NEXT: %[[SEEN:.*]] = memref.load %[[TOLD]]
// CHECK: arith.cmpi eq, %[[SEEN]]
// CHECK: scf.if
// CHECK-NEXT: scf.if
// CHECK-NEXT: "fuse.semaphore_wait"
// CHECK-NEXT: }
// CHECK-NEXT: gpu.barrier
func.func private @last_block(%x: memref<?x256xf32> {fuse.align = 16 : i64}, %y: memref<?x256xf32>, %semaphores: memref<1xi32> {fuse.workspace = "semaphores"}) attributes {fuse.kernel, fuse.cooperative, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i32
  %pad = arith.constant 0.0 : f32
  %m = memref.dim %x, %c0 : memref<?x256xf32>
  %resident = "fuse.resident_blocks"() {per_sm = 2 : i64} : () -> index
  %blocks = affine.min affine_map<(d0)[s0] -> (s0 ceildiv 8, d0)>(%resident)[%m]
  scf.forall (%block) in (%blocks) {
    scf.for %row = %block to %m step %blocks {
      %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<?x256xf32>, vector<1x256xf32>
      vector.transfer_write %0, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x256xf32>, memref<?x256xf32>
    }
    %old = "fuse.semaphore_arrive"(%semaphores, %c0, %one) : (memref<1xi32>, index, i32) -> i32
    %last = arith.cmpi eq, %old, %one : i32
    scf.if %last {
      "fuse.semaphore_wait"(%semaphores, %c0, %one) : (memref<1xi32>, index, i32) -> ()
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 2>}
// What the device holds counts whole clusters. The arrival's result is unused: no barrier follows it.
// CHECK-DAG: #[[GRID:.*]] = affine_map<()[s0] -> ((s0 floordiv 2) * 2)>
// CHECK-LABEL: gpu.func @resident_clusters
// CHECK-SAME: fuse.grid = #[[GRID]], fuse.grid_operands = array<i64: -1, 1>
// CHECK: "fuse.cluster_barrier"
// CHECK: "fuse.cluster_barrier"
// CHECK: scf.if
// CHECK-NEXT: fuse.semaphore_arrive
// CHECK-NEXT: }
// CHECK-NEXT: gpu.return
func.func private @resident_clusters(%x: memref<?x256xf32> {fuse.align = 16 : i64}, %y: memref<?x256xf32>, %semaphores: memref<1xi32> {fuse.workspace = "semaphores"}) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i32
  %pad = arith.constant 0.0 : f32
  %resident = "fuse.resident_blocks"() {per_sm = 1 : i64} : () -> index
  scf.forall (%block) in (%resident) {
    %0 = vector.transfer_read %x[%block, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<?x256xf32>, vector<1x256xf32>
    vector.transfer_write %0, %y[%block, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x256xf32>, memref<?x256xf32>
    %old = "fuse.semaphore_arrive"(%semaphores, %c0, %one) : (memref<1xi32>, index, i32) -> i32
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 2>}
// As many clusters as rows, but eight at least, where the device holds so many.
// CHECK-DAG: #[[GRID:.*]] = affine_map<()[s0, s1] -> (s1 * 2, (s0 floordiv 2) * 2)>
// CHECK-LABEL: gpu.func @at_least
// CHECK-SAME: fuse.grid = #[[GRID]], fuse.grid_least = array<i64: 16, 0>, fuse.grid_operands = array<i64: -1, 1, 0, 0>
// CHECK: gpu.grid_dim x
// CHECK-NOT: affine.max
func.func private @at_least(%x: memref<?x256xf32> {fuse.align = 16 : i64}, %y: memref<?x256xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %m = memref.dim %x, %c0 : memref<?x256xf32>
  %resident = "fuse.resident_blocks"() {per_sm = 1 : i64} : () -> index
  %wanted = affine.max affine_map<()[s0] -> (s0, 8)>()[%m]
  %blocks = affine.min affine_map<()[s0, s1] -> (s0, s1)>()[%wanted, %resident]
  scf.forall (%block) in (%blocks) {
    scf.for %row = %block to %m step %blocks {
      %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<?x256xf32>, vector<1x256xf32>
      vector.transfer_write %0, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x256xf32>, memref<?x256xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @most_of_two(%x: memref<?x256xf32> {fuse.align = 16 : i64}, %y: memref<?x256xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %m = memref.dim %x, %c0 : memref<?x256xf32>
  %resident = "fuse.resident_blocks"() {per_sm = 1 : i64} : () -> index
  // expected-error @below {{the number of blocks is the maximum of 2 run-time numbers, one is allowed}}
  %wanted = affine.max affine_map<()[s0] -> (s0, s0 ceildiv 2 + 4)>()[%m]
  %blocks = affine.min affine_map<()[s0, s1] -> (s0, s1)>()[%wanted, %resident]
  scf.forall (%block) in (%blocks) {
    %0 = vector.transfer_read %x[%block, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<?x256xf32>, vector<1x256xf32>
    vector.transfer_write %0, %y[%block, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x256xf32>, memref<?x256xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @used_elsewhere(%x: memref<?x128xf32> {fuse.align = 16 : i64}, %y: memref<?x128xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : f32
  // expected-error @below {{fuse.resident_blocks has another use than the bound of the loop over blocks}}
  %resident = "fuse.resident_blocks"() {per_sm = 1 : i64} : () -> index
  %blocks = affine.min affine_map<()[s0] -> (s0, 8)>()[%resident]
  scf.forall (%block) in (%blocks) {
    %row = arith.minui %resident, %block : index
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<?x128xf32>, vector<1x128xf32>
    vector.transfer_write %0, %y[%block, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x128xf32>, memref<?x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 4>, lanes = array<i64: 32>, warps = array<i64: 1>, repeats = array<i64: 1>, blocks = array<i64: 1>}
// A run of run-time extent: a fragment that lies inside whole is one access, the one at the end four.
// CHECK-LABEL: gpu.func @run
// CHECK: %[[N:.*]] = memref.dim %arg0
// CHECK: %[[WHOLE:.*]] = arith.cmpi ult, %{{.*}}, %[[N]]
// CHECK: scf.if %[[WHOLE]] -> (vector<4xf32>) {
// CHECK-NEXT: vector.load %arg0
// CHECK: } else {
// CHECK: arith.minui
// CHECK-COUNT-4: memref.load %arg0
// CHECK: scf.if
// CHECK: scf.if
// CHECK-NEXT: vector.store {{.*}} %arg1
// CHECK: } else {
// CHECK-NEXT: arith.addi
// CHECK: memref.store {{.*}} %arg1
// CHECK: scf.if
// CHECK-NEXT: memref.store {{.*}} %arg1
func.func private @run(%x: memref<?xf32>, %y: memref<?xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : memref<?xf32>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 128)>()[%n]
  scf.forall (%block) in (%blocks) {
    %i = affine.apply affine_map<(d0) -> (d0 * 128)>(%block)
    %0 = vector.transfer_read %x[%i], %pad {fuse.layout = #layout, in_bounds = [false]} : memref<?xf32>, vector<128xf32>
    vector.transfer_write %0, %y[%i] {fuse.layout = #layout, in_bounds = [false]} : vector<128xf32>, memref<?xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
// One branch tests the row for all of its fragments; a branch inside it tests the last fragment.
// CHECK-LABEL: gpu.func @ragged_rows
// CHECK: arith.addf
// CHECK: arith.addf
// CHECK: %[[ROW:.*]] = arith.cmpi ult, %{{.*}}, %dim
// CHECK-NEXT: scf.if %[[ROW]] {
// CHECK: vector.store
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %c200
// CHECK-NEXT: scf.if %[[INSIDE]] {
// CHECK: vector.store
// CHECK: gpu.return
func.func private @ragged_rows(%x: memref<?x200xf32> {fuse.align = 16 : i64}, %y: memref<?x200xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 200>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %m = memref.dim %x, %c0 : memref<?x200xf32>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 2)>()[%m]
  scf.forall (%block) in (%blocks) {
    %row = affine.apply affine_map<(d0) -> (d0 * 2)>(%block)
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, fuse.streaming, in_bounds = [false, true]} : memref<?x200xf32>, vector<2x200xf32>
    %1 = arith.addf %0, %0 : vector<2x200xf32>
    vector.transfer_write %1, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [false, true]} : vector<2x200xf32>, memref<?x200xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 3>, blocks = array<i64: 1, 1>, shift_to = array<i64: 0, 8>}
// Rows of an odd number of elements are shifted: what holds whole rows is accessed by aligned vectors, of which the first
// and the last one are masked; values that all rows share are shifted in registers. Single elements are loaded only at the
// end of the memory.
// CHECK-LABEL: gpu.func @shifted
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x513xf16>
// CHECK: %[[START:.*]] = arith.muli %block_id_x, %c513
// CHECK: arith.andi %[[START]], %c7
// CHECK: %[[FLAT:.*]] = memref.collapse_shape %[[X]] {{.*}} : memref<?x513xf16> into memref<?xf16>
// CHECK: vector.load %[[FLAT]][{{.*}}] {alignment = 16 : i64, nontemporal = true} : memref<?xf16>, vector<8xf16>
// CHECK: vector.load %[[FLAT]][{{.*}}] {alignment = 16 : i64, nontemporal = true} : memref<?xf16>, vector<8xf16>
// CHECK: scf.if
// CHECK: vector.load %[[FLAT]][{{.*}}] {alignment = 16 : i64, nontemporal = true} : memref<?xf16>, vector<8xf16>
// CHECK: %[[EACH:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : vector<8xi32>
// CHECK: arith.select %[[EACH]], %{{.*}} : vector<8xi1>, vector<8xf16>
// CHECK: vector.load %{{.*}} {alignment = 16 : i64} : memref<513xf16>, vector<8xf16>
// CHECK: vector.load %{{.*}} {alignment = 16 : i64} : memref<513xf16>, vector<8xf16>
// CHECK: arith.select %{{.*}} : i32
// CHECK: arith.shrui %{{.*}} : i64
// CHECK: vector.store %{{.*}} {alignment = 16 : i64, nontemporal = true} : memref<?xf16>, vector<8xf16>
func.func private @shifted(%x: memref<?x513xf16> {fuse.align = 16 : i64}, %w: memref<513xf16> {fuse.align = 16 : i64}, %y: memref<?x513xf16>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 513>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  %lowest = arith.constant dense<0xFC00> : vector<1xf16>
  %m = memref.dim %x, %c0 : memref<?x513xf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0)>()[%m]
  scf.forall (%row) in (%blocks) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : memref<?x513xf16>, vector<1x513xf16>
    %1 = vector.multi_reduction <maximumf>, %0, %lowest {fuse.layout = #layout} [1] : vector<1x513xf16> to vector<1xf16>
    %2 = vector.shape_cast %1 : vector<1xf16> to vector<1x1xf16>
    %3 = vector.broadcast %2 : vector<1x1xf16> to vector<1x513xf16>
    %4 = vector.transfer_read %w[%c0], %pad {fuse.layout = #layout, in_bounds = [true, true], permutation_map = affine_map<(d0) -> (0, d0)>} : memref<513xf16>, vector<1x513xf16>
    %5 = arith.subf %0, %3 : vector<1x513xf16>
    %6 = arith.mulf %5, %4 : vector<1x513xf16>
    vector.transfer_write %6, %y[%row, %c0] {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : vector<1x513xf16>, memref<?x513xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 5>, blocks = array<i64: 1, 1>, shift_to = array<i64: 0, 64>}
// Rows of whole vectors are shifted to lines of 64 elements. Of a fragment that may lie outside of its row the row's last
// vector is read, and nothing is written; fragments in between have no tests. Values that all rows share are shifted alike.
// CHECK-LABEL: gpu.func @lines
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x516xf16>
// CHECK-SAME: %[[W:[a-z0-9]+]]: memref<516xf16>
// CHECK: %[[START:.*]] = arith.muli %block_id_x, %c516
// CHECK: %[[SHIFT:.*]] = arith.andi %[[START]], %c63
// CHECK: %[[FLAT:.*]] = memref.collapse_shape %[[X]] {{.*}} : memref<?x516xf16> into memref<?xf16>
// CHECK: %[[FIRST:.*]] = arith.subi %{{.*}}, %[[SHIFT]]
// CHECK: %[[COLUMN:.*]] = arith.minui %[[FIRST]], %c512
// CHECK: %[[PLACE:.*]] = arith.addi %[[START]], %[[COLUMN]]
// CHECK: vector.load %[[FLAT]][%[[PLACE]]] {alignment = 8 : i64, nontemporal = true} : memref<?xf16>, vector<4xf16>
// CHECK-NOT: arith.minui
// CHECK-COUNT-3: vector.load %[[FLAT]]
// CHECK: arith.minui %{{.*}}, %c512
// CHECK: vector.load %[[FLAT]]
// CHECK-NOT: scf.if
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[FIRST]], %c516
// CHECK: arith.select %[[INSIDE]], %{{.*}} : vector<4xf16>
// CHECK: vector.load %[[W]][%[[COLUMN]]] {alignment = 8 : i64} : memref<516xf16>, vector<4xf16>
// CHECK-NOT: arith.shrui
// CHECK: scf.if %{{.*}} {
// CHECK: vector.store %{{.*}}, %{{.*}}[{{.*}}] {alignment = 8 : i64, nontemporal = true} : memref<?xf16>, vector<4xf16>
// CHECK-NEXT: }
// CHECK-COUNT-3: vector.store
// CHECK: scf.if
// CHECK-NEXT: vector.store
// CHECK-NOT: memref.store
func.func private @lines(%x: memref<?x516xf16> {fuse.align = 16 : i64}, %w: memref<516xf16> {fuse.align = 16 : i64}, %y: memref<?x516xf16>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 516>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  %lowest = arith.constant dense<0xFC00> : vector<1xf16>
  %m = memref.dim %x, %c0 : memref<?x516xf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0)>()[%m]
  scf.forall (%row) in (%blocks) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : memref<?x516xf16>, vector<1x516xf16>
    %1 = vector.multi_reduction <maximumf>, %0, %lowest {fuse.layout = #layout} [1] : vector<1x516xf16> to vector<1xf16>
    %2 = vector.shape_cast %1 : vector<1xf16> to vector<1x1xf16>
    %3 = vector.broadcast %2 : vector<1x1xf16> to vector<1x516xf16>
    %4 = vector.transfer_read %w[%c0], %pad {fuse.layout = #layout, in_bounds = [true, true], permutation_map = affine_map<(d0) -> (0, d0)>} : memref<516xf16>, vector<1x516xf16>
    %5 = arith.subf %0, %3 : vector<1x516xf16>
    %6 = arith.mulf %5, %4 : vector<1x516xf16>
    vector.transfer_write %6, %y[%row, %c0] {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : vector<1x516xf16>, memref<?x516xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 3>, blocks = array<i64: 1, 1>, shift_to = array<i64: 0, 8>}
// With recomputed addresses, the start and shift of a row are computed again after the reduction, from row and thread
// numbers behind an optimization barrier.
// CHECK-LABEL: gpu.func @shifted_late
// CHECK: %[[START:.*]] = arith.muli %block_id_x, %c513
// CHECK: arith.andi %[[START]], %c7
// CHECK: %[[THREAD:.*]] = arith.index_cast %thread_id_x{{.*}} : index to i32
// CHECK: "fuse.optimization_barrier"(%[[THREAD]], %{{.*}}) : (i32, f16) -> i32
// CHECK: %[[ROW:.*]] = arith.index_cast %block_id_x : index to i32
// CHECK: %[[OPAQUE:.*]] = "fuse.optimization_barrier"(%[[ROW]], %{{.*}}) : (i32, f16) -> i32
// CHECK: %[[LATE:.*]] = arith.index_cast %[[OPAQUE]] : i32 to index
// CHECK: %[[AGAIN:.*]] = arith.muli %[[LATE]], %c513
// CHECK: arith.andi %[[AGAIN]], %c7
// CHECK: vector.store %{{.*}} {alignment = 16 : i64, nontemporal = true} : memref<?xf16>, vector<8xf16>
func.func private @shifted_late(%x: memref<?x513xf16> {fuse.align = 16 : i64}, %y: memref<?x513xf16>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 513>, layout = #layout, rematerialize_addresses = true}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  %lowest = arith.constant dense<0xFC00> : vector<1xf16>
  %m = memref.dim %x, %c0 : memref<?x513xf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0)>()[%m]
  scf.forall (%row) in (%blocks) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : memref<?x513xf16>, vector<1x513xf16>
    %1 = vector.multi_reduction <maximumf>, %0, %lowest {fuse.layout = #layout} [1] : vector<1x513xf16> to vector<1xf16>
    %2 = vector.shape_cast %1 : vector<1xf16> to vector<1x1xf16>
    %3 = vector.broadcast %2 : vector<1x1xf16> to vector<1x513xf16>
    %4 = arith.subf %0, %3 : vector<1x513xf16>
    vector.transfer_write %4, %y[%row, %c0] {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : vector<1x513xf16>, memref<?x513xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 3>, blocks = array<i64: 1, 1>, realigned = array<i64: 0, 1>}
// Or they are realigned: two aligned windows of what holds whole rows become one fragment, and of the result, through shared
// memory, one aligned vector. Values that all rows share are accessed unshifted.
// CHECK-LABEL: gpu.func @realigned
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x513xf16>
// CHECK-SAME: %[[W:[a-z0-9]+]]: memref<513xf16>
// CHECK-SAME: workgroup(%[[STAGED:.*]] : memref<768xf16, #gpu.address_space<workgroup>>
// CHECK: %[[START:.*]] = arith.muli %block_id_x, %c513
// CHECK: %[[FLAT:.*]] = memref.collapse_shape %[[X]] {{.*}} : memref<?x513xf16> into memref<?xf16>
// CHECK: %[[LOW:.*]] = vector.load %[[FLAT]][{{.*}}] {alignment = 16 : i64} : memref<?xf16>, vector<8xf16>
// CHECK: %[[HIGH:.*]] = vector.load %[[FLAT]][{{.*}}] {alignment = 16 : i64} : memref<?xf16>, vector<8xf16>
// CHECK: arith.select %{{.*}} : i32
// CHECK: arith.shrui %{{.*}} : i64
// CHECK: vector.load %[[W]][{{.*}}] {alignment = 16 : i64} : memref<513xf16>, vector<8xf16>
// CHECK: vector.store %{{.*}}, %[[STAGED]][{{.*}}] {alignment = 16 : i64}
// CHECK: gpu.barrier
// CHECK: vector.load %[[STAGED]][{{.*}}] {alignment = 16 : i64}
// CHECK: vector.load %[[STAGED]][{{.*}}] {alignment = 16 : i64}
// CHECK: arith.shrui %{{.*}} : i64
// CHECK: vector.store %{{.*}} {alignment = 16 : i64, nontemporal = true} : memref<?xf16>, vector<8xf16>
func.func private @realigned(%x: memref<?x513xf16> {fuse.align = 16 : i64}, %w: memref<513xf16> {fuse.align = 16 : i64}, %y: memref<?x513xf16>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 513>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  %m = memref.dim %x, %c0 : memref<?x513xf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0)>()[%m]
  scf.forall (%row) in (%blocks) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : memref<?x513xf16>, vector<1x513xf16>
    %1 = vector.transfer_read %w[%c0], %pad {fuse.layout = #layout, in_bounds = [true, true], permutation_map = affine_map<(d0) -> (0, d0)>} : memref<513xf16>, vector<1x513xf16>
    %2 = arith.mulf %0, %1 : vector<1x513xf16>
    vector.transfer_write %2, %y[%row, %c0] {fuse.layout = #layout, fuse.streaming, in_bounds = [true, true]} : vector<1x513xf16>, memref<?x513xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 3>, blocks = array<i64: 1, 1>, shift_to = array<i64: 0, 8>}
func.func private @unaligned(%x: memref<?x513xf16> {fuse.align = 2 : i64}, %y: memref<?xf16>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 513>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  %lowest = arith.constant dense<0xFC00> : vector<1xf16>
  %m = memref.dim %x, %c0 : memref<?x513xf16>
  %blocks = affine.apply affine_map<()[s0] -> (s0)>()[%m]
  scf.forall (%row) in (%blocks) {
    // expected-error @below {{memref<?x513xf16> has no rows, whole and aligned, that a layout could shift or realign}}
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<?x513xf16>, vector<1x513xf16>
    %1 = vector.multi_reduction <maximumf>, %0, %lowest {fuse.layout = #layout} [1] : vector<1x513xf16> to vector<1xf16>
    vector.transfer_write %1, %y[%row] {fuse.layout = #layout, in_bounds = [true]} : vector<1xf16>, memref<?xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 2, 1>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Canonicalisation repeats a number in fewer dimensions than the layout has; the write says that these are the first.
// CHECK-LABEL: gpu.func @repeated
// CHECK: %[[ALL:.*]] = arith.andi %{{.*}}, %{{.*}} : i1
// CHECK: %[[TWICE:.*]] = vector.broadcast %[[ALL]] : i1 to vector<2xi1>
// CHECK: vector.store %[[TWICE]], %{{.*}}[%c0, %c0] {{.*}} : memref<1x2xi1>, vector<2xi1>
func.func private @repeated(%x: memref<1x2xi1> {fuse.align = 16 : i64}, %y: memref<1x2xi1>, %z: memref<32x2xi1>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 32>, layout = #layout}} {
  %true = arith.constant dense<true> : vector<1xi1>
  %false = arith.constant false
  %c0 = arith.constant 0 : index
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0], %false {fuse.layout = #layout, in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, 0)>} : memref<1x2xi1>, vector<2x1xi1>
    %1 = vector.multi_reduction <and>, %0, %true {fuse.layout = #layout} [0] : vector<2x1xi1> to vector<1xi1>
    %2 = vector.broadcast %1 : vector<1xi1> to vector<2xi1>
    vector.transfer_write %2, %y[%c0, %c0] {fuse.dims = array<i64: 0>, fuse.layout = #layout, in_bounds = [true], permutation_map = affine_map<(d0, d1) -> (d1)>} : vector<2xi1>, memref<1x2xi1>
    %3 = vector.broadcast %0 : vector<2x1xi1> to vector<2x32xi1>
    vector.transfer_write %3, %z[%c0, %c0] {fuse.layout = #layout, in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : vector<2x32xi1>, memref<32x2xi1>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 8, 1>, lanes = array<i64: 32, 1>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 3>, blocks = array<i64: 1, 1>}
// A thread has three channels of eight pixels: 24 neighbours in memory, which are stored as three vectors, in order.
// CHECK-LABEL: gpu.func @packed
// CHECK-COUNT-3: vector.load %{{.*}} : memref<3x512xf16>, vector<8xf16>
// CHECK: %[[RUNS:.*]] = memref.collapse_shape %{{.*}} {{\[\[}}0, 1]] : memref<512x3xf16> into memref<1536xf16>
// CHECK: %[[FIRST:.*]] = vector.from_elements %[[A:.*]]#0, %[[B:.*]]#0, %[[C:.*]]#0, %[[A]]#1, %[[B]]#1, %[[C]]#1, %[[A]]#2, %[[B]]#2 : vector<8xf16>
// CHECK: vector.store %[[FIRST]], %[[RUNS]][%{{.*}}] {alignment = 16 : i64} : memref<1536xf16>, vector<8xf16>
// CHECK-COUNT-2: vector.store %{{.*}}, %[[RUNS]][%{{.*}}] {alignment = 16 : i64} : memref<1536xf16>, vector<8xf16>
func.func private @packed(%x: memref<3x512xf16> {fuse.align = 16 : i64}, %y: memref<512x3xf16>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 256, 3>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %pad = arith.constant 0.0 : f16
  scf.forall (%block) in (2) {
    %i = arith.muli %block, %c256 : index
    %0 = vector.transfer_read %x[%c0, %i], %pad {fuse.layout = #layout, in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : memref<3x512xf16>, vector<256x3xf16>
    vector.transfer_write %0, %y[%i, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<256x3xf16>, memref<512x3xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 4, 1>, lanes = array<i64: 32, 1>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 3>, blocks = array<i64: 1, 1>}
// Of rows that run time counts, the last run may be partly outside: its elements are then loaded one by one.
// CHECK-LABEL: gpu.func @split
// CHECK: %[[RUNS:.*]] = memref.collapse_shape %{{.*}} {{\[\[}}0, 1]] : memref<?x3xf32> into memref<?xf32>
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : index
// CHECK: scf.if %[[INSIDE]] -> (vector<4xf32>, vector<4xf32>, vector<4xf32>) {
// CHECK-COUNT-3: vector.load %[[RUNS]][%{{.*}}] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
// CHECK: } else {
// CHECK: arith.minui
// CHECK-COUNT-12: memref.load %[[RUNS]]
func.func private @split(%x: memref<?x3xf32> {fuse.align = 16 : i64}, %y: memref<?xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 128, 3>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<128xf32>
  %n = memref.dim %x, %c0 : memref<?x3xf32>
  %blocks = affine.apply affine_map<()[s0] -> (s0 ceildiv 128)>()[%n]
  scf.forall (%block) in (%blocks) {
    %i = arith.muli %block, %c128 : index
    %0 = vector.transfer_read %x[%i, %c0], %pad {fuse.layout = #layout, in_bounds = [false, true]} : memref<?x3xf32>, vector<128x3xf32>
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [1] : vector<128x3xf32> to vector<128xf32>
    vector.transfer_write %1, %y[%i] {fuse.dims = array<i64: 0>, fuse.layout = #layout, in_bounds = [false]} : vector<128xf32>, memref<?xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 2, 1, 1>, lanes = array<i64: 4, 8, 1>, warps = array<i64: 1, 1, 1>, repeats = array<i64: 1, 1, 4>, blocks = array<i64: 1, 1, 1>}
// A thread has two rows, and four neighbours of each: the two elements of a fragment are apart, and no run has both.
// CHECK-LABEL: gpu.func @rows_apart
// CHECK-NOT: memref.collapse_shape
// CHECK: memref.load %{{.*}} : memref<8x5x4xf32>
// CHECK-NOT: memref.collapse_shape
// CHECK: gpu.return
func.func private @rows_apart(%x: memref<8x5x4xf32> {fuse.align = 16 : i64}, %y: memref<8xf32>) attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 8, 5, 4>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<8xf32>
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %c0, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true, true]} : memref<8x5x4xf32>, vector<8x5x4xf32>
    %1 = vector.multi_reduction <add>, %0, %zero {fuse.layout = #layout} [1, 2] : vector<8x5x4xf32> to vector<8xf32>
    vector.transfer_write %1, %y[%c0] {fuse.dims = array<i64: 0>, fuse.layout = #layout, in_bounds = [true]} : vector<8xf32>, memref<8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
