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
