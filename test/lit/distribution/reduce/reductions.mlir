// RUN: mlirfuse-opt --fuse-assign-layouts --fuse-distribute --canonicalize --cse --split-input-file %s | FileCheck %s

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 3, 2>, blocks = array<i64: 1, 1>}
// What a thread alone reduces is combined with the starting value, a row for all results before the next row.
// CHECK-LABEL: gpu.func @alone
// CHECK-COUNT-2: %{{.*}} = vector.load %arg1
// CHECK: %[[A0:.*]] = arith.addf %{{.*}}, %{{.*}} : vector<2xf32>
// CHECK: %[[B0:.*]] = arith.addf %{{.*}}, %{{.*}} : vector<2xf32>
// CHECK: %[[A1:.*]] = arith.addf %[[A0]], %{{.*}} : vector<2xf32>
// CHECK: %[[B1:.*]] = arith.addf %[[B0]], %{{.*}} : vector<2xf32>
// CHECK: %[[A2:.*]] = arith.addf %[[A1]], %{{.*}} : vector<2xf32>
// CHECK: %[[B2:.*]] = arith.addf %[[B1]], %{{.*}} : vector<2xf32>
// CHECK-NOT: arith.addf
// CHECK-DAG: vector.store %[[A2]]
// CHECK-DAG: vector.store %[[B2]]
func.func private @alone(%x: memref<3x128xf32> {fuse.align = 16 : i64}, %s: memref<128xf32> {fuse.align = 16 : i64}, %y: memref<128xf32> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 3, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %row = vector.transfer_read %s[%c0], %none {in_bounds = [true, true], permutation_map = affine_map<(d0) -> (0, d0)>} : memref<128xf32>, vector<1x128xf32>
    %start = vector.shape_cast %row : vector<1x128xf32> to vector<128xf32>
    %0 = vector.transfer_read %x[%c0, %c0], %none {in_bounds = [true, true]} : memref<3x128xf32>, vector<3x128xf32>
    %1 = vector.multi_reduction <add>, %0, %start [0] : vector<3x128xf32> to vector<128xf32>
    vector.transfer_write %1, %y[%c0] {in_bounds = [true]} : vector<128xf32>, memref<128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 2, 16>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 4>, blocks = array<i64: 1, 1>}
// The starting value is added once to what several threads reduce.
// CHECK-LABEL: gpu.func @shared
// CHECK: gpu.shuffle xor
// CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : vector<2xf32>
// CHECK: arith.addf %{{.*}}, %[[SUM]] : vector<2xf32>
func.func private @shared(%x: memref<4x128xf32> {fuse.align = 16 : i64}, %s: memref<128xf32> {fuse.align = 16 : i64}, %y: memref<128xf32> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 4, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %row = vector.transfer_read %s[%c0], %none {in_bounds = [true, true], permutation_map = affine_map<(d0) -> (0, d0)>} : memref<128xf32>, vector<1x128xf32>
    %start = vector.shape_cast %row : vector<1x128xf32> to vector<128xf32>
    %0 = vector.transfer_read %x[%c0, %c0], %none {in_bounds = [true, true]} : memref<4x128xf32>, vector<4x128xf32>
    %1 = vector.multi_reduction <add>, %0, %start [0] : vector<4x128xf32> to vector<128xf32>
    vector.transfer_write %1, %y[%c0] {in_bounds = [true]} : vector<128xf32>, memref<128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 1, 1>, lanes = array<i64: 1, 1, 32>, warps = array<i64: 1, 1, 1>, repeats = array<i64: 2, 2, 2>, blocks = array<i64: 1, 1, 1>}
// All rows of one result, of two columns a thread, before those of the next result: fewer elements are live at once.
// CHECK-LABEL: gpu.func @rows
// CHECK-DAG: %[[A0:.*]] = memref.load %arg0[%c0, %c0, %[[T:.*]]]
// CHECK-DAG: %[[A1:.*]] = memref.load %arg0[%c0, %c0, %[[U:.*]]]
// CHECK-DAG: %[[B0:.*]] = memref.load %arg0[%c1, %c0, %[[T]]]
// CHECK-DAG: %[[B1:.*]] = memref.load %arg0[%c1, %c0, %[[U]]]
// CHECK-DAG: %[[C0:.*]] = memref.load %arg0[%c0, %c1, %[[T]]]
// CHECK: %[[S0:.*]] = arith.addf %{{.*}}, %[[A0]]
// CHECK: %[[S1:.*]] = arith.addf %{{.*}}, %[[A1]]
// CHECK: arith.addf %[[S0]], %[[B0]]
// CHECK: arith.addf %[[S1]], %[[B1]]
// CHECK: arith.addf %{{.*}}, %[[C0]]
func.func private @rows(%x: memref<2x2x64xf32> {fuse.align = 16 : i64}, %s: memref<2x64xf32> {fuse.align = 16 : i64}, %y: memref<2x64xf32> {fuse.align = 16 : i64})
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 2, 2, 64>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %plane = vector.transfer_read %s[%c0, %c0], %none {in_bounds = [true, true, true], permutation_map = affine_map<(d0, d1) -> (0, d0, d1)>} : memref<2x64xf32>, vector<1x2x64xf32>
    %start = vector.shape_cast %plane : vector<1x2x64xf32> to vector<2x64xf32>
    %0 = vector.transfer_read %x[%c0, %c0, %c0], %none {in_bounds = [true, true, true]} : memref<2x2x64xf32>, vector<2x2x64xf32>
    %1 = vector.multi_reduction <add>, %0, %start [0] : vector<2x2x64xf32> to vector<2x64xf32>
    vector.transfer_write %1, %y[%c0, %c0] {in_bounds = [true, true]} : vector<2x64xf32>, memref<2x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
