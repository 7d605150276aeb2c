// RUN: mlirfuse-opt --fuse-assign-layouts --fuse-distribute --canonicalize --cse --split-input-file %s | FileCheck %s

#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#shared = #gpu.address_space<workgroup>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}

// Copies run along the last axis of their source, so an operand that is contiguous along another axis is transposed. An
// operand without a contiguous axis goes through registers, even if `cp.async` supports its element size.
// CHECK-LABEL: gpu.func @views_kernel(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<6x8xf32, strided<[1, ?]>>{{.*}}, %[[W:[a-z0-9]+]]: memref<8x32xf32, strided<[?, ?]>>
// CHECK: %[[T:.*]] = memref.transpose %[[X]] (d0, d1) -> (d1, d0) : memref<6x8xf32, strided<[1, ?]>> to memref<8x6xf32, strided<[?, 1]>>
// The piece's second coordinate, clipped at 6, lies along the last axis.
// CHECK: %[[IN:.*]] = arith.cmpi ult, %[[M:.*]], %c6
// CHECK: %[[COUNT:.*]] = arith.select %[[IN]], %c2, %c0
// CHECK: nvgpu.device_async_copy %[[T]][%[[K:.*]], %[[M]]], %{{.*}}[%[[K]], %[[M]]], 2, %[[COUNT]]
// CHECK-NOT: nvgpu.device_async_copy
// CHECK: memref.load %[[W]]
// CHECK: memref.store
func.func private @views_kernel(%x: memref<6x8xf32, strided<[1, ?]>> {fuse.align = 16 : i64}, %w: memref<8x32xf32, strided<[?, ?]>> {fuse.align = 16 : i64}, %y: memref<8x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 8, 32>, layout = #layout, contraction = {k = 8, instruction = "fma"}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    %zero = arith.constant dense<0.0> : vector<8x32xf32>
    %a = memref.alloc() : memref<8x8xf32, #shared>
    %b = memref.alloc() : memref<8x32xf32, #shared>
    "fuse.copy_tile"(%x, %a, %c0, %c0) {axes = array<i64: 1, 0>, clipped = array<i64: 1>}
        : (memref<6x8xf32, strided<[1, ?]>>, memref<8x8xf32, #shared>, index, index) -> ()
    "fuse.copy_tile"(%w, %b, %c0, %c0) {axes = array<i64: 0, 1>, clipped = array<i64>}
        : (memref<8x32xf32, strided<[?, ?]>>, memref<8x32xf32, #shared>, index, index) -> ()
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    gpu.barrier
    %ta = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x8xf32, #shared>, vector<8x8xf32>
    %tb = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x32xf32, #shared>, vector<8x32xf32>
    %acc = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %ta, %tb, %zero {fuse.instruction = "fma"}
        : vector<8x8xf32>, vector<8x32xf32> into vector<8x32xf32>
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<8x32xf32>, memref<8x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// The same holds for a thread's own loads and stores.
// CHECK-LABEL: gpu.func @transfers
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<128x3xf32, strided<[1, ?]>>{{.*}}, %[[Y:[a-z0-9]+]]: memref<128x3xf32, strided<[1, ?]>>
// CHECK-SAME: %[[ROW:[a-z0-9]+]]: index
// CHECK: %[[TX:.*]] = memref.transpose %[[X]] (d0, d1) -> (d1, d0)
// CHECK: %[[V:.*]] = vector.load %[[TX]][%[[ROW]], %[[COLUMN:.*]]] {alignment = 16 : i64} : memref<3x128xf32, strided<[?, 1]>>, vector<4xf32>
// CHECK: %[[TY:.*]] = memref.transpose %[[Y]] (d0, d1) -> (d1, d0)
// CHECK: vector.store %[[V]], %[[TY]][%[[ROW]], %[[COLUMN]]] {alignment = 16 : i64}
func.func private @transfers(%x: memref<128x3xf32, strided<[1, ?]>> {fuse.align = 16 : i64}, %y: memref<128x3xf32, strided<[1, ?]>> {fuse.align = 16 : i64}, %row: index)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%block) in (1) {
    %0 = vector.transfer_read %x[%c0, %row], %pad {in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : memref<128x3xf32, strided<[1, ?]>>, vector<1x128xf32>
    vector.transfer_write %0, %y[%c0, %row] {in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : vector<1x128xf32>, memref<128x3xf32, strided<[1, ?]>>
  } {mapping = [#gpu.block<x>]}
  return
}
