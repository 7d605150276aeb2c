// RUN: mlirfuse-opt --fuse-assign-layouts --fuse-distribute --canonicalize --cse --split-input-file %s | FileCheck %s

#rows = {vector = array<i64: 1, 1>, lanes = array<i64: 32, 1>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 9>, blocks = array<i64: 1, 1>}
// 32 rows of 9 are 288 elements from any address on: two vectors of a thread reach over them. Vectors of both arrays are
// loaded before any is stored to shared memory, and one barrier is for both. Only whole vectors are stored to memory from
// there, and by a few threads the elements at both ends. The array's own end may lie inside of a vector.
// CHECK-LABEL: gpu.func @two
// CHECK-SAME: workgroup(%[[A:.*]] : memref<512xf16, #gpu.address_space<workgroup>> {{.*}}, %[[B:.*]] : memref<512xf16, #gpu.address_space<workgroup>> {{.*}}, %[[C:.*]] : memref<512xf16, #gpu.address_space<workgroup>>
// CHECK-COUNT-4: vector.load %{{.*}} {alignment = 16 : i64} : memref<?xf16>, vector<8xf16>
// CHECK-NOT: vector.load
// CHECK: scf.if
// CHECK-NEXT: vector.store %{{.*}}, %[[A]]
// CHECK: vector.store %{{.*}}, %[[A]]
// CHECK: scf.if
// CHECK-NEXT: memref.load %{{.*}} : memref<?xf16>
// CHECK-NEXT: memref.store %{{.*}}, %[[A]]
// CHECK: vector.store %{{.*}}, %[[B]]
// CHECK: gpu.barrier
// CHECK-COUNT-9: memref.load %[[A]]
// CHECK-NOT: gpu.barrier
// CHECK-COUNT-9: memref.store %{{.*}}, %[[C]]
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK-NEXT: vector.load %[[C]]
// CHECK: vector.store %{{.*}} : memref<?xf16>, vector<8xf16>
// CHECK: scf.if
// CHECK: scf.if
// CHECK-NEXT: memref.load %[[C]]
// CHECK: memref.store %{{.*}} : memref<?xf16>
// CHECK: scf.if
// CHECK-NEXT: memref.load %[[C]]
func.func private @two(%x: memref<?x9xf16>, %z: memref<?x9xf16>, %y: memref<?x9xf16>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 9>, layout = #rows, flat = true}} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  scf.forall (%block) in (2) {
    %i = arith.muli %block, %c32 : index
    %0 = vector.transfer_read %x[%i, %c0], %pad {fuse.flat, in_bounds = [false, true]} : memref<?x9xf16>, vector<32x9xf16>
    %1 = vector.transfer_read %z[%i, %c0], %pad {fuse.flat, in_bounds = [false, true]} : memref<?x9xf16>, vector<32x9xf16>
    %2 = arith.addf %0, %1 : vector<32x9xf16>
    vector.transfer_write %2, %y[%i, %c0] {fuse.flat, in_bounds = [false, true]} : vector<32x9xf16>, memref<?x9xf16>
  } {mapping = [#gpu.block<x>]}
  return
}
