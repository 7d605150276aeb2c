// RUN: mlirfuse-opt --fuse-distribute --canonicalize --cse --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

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
