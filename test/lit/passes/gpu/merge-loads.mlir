// RUN: mlirfuse-opt %s --fuse-merge-loads --split-input-file --show-remarks 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// Windows of a row begin at %j, which 4 divides, beside it, and behind it: two elements of the second piece are wanted.
// CHECK-LABEL: gpu.func @windows
// CHECK: %[[A:.*]] = vector.load %arg0[%arg2, %[[J:.*]]] {alignment = 16 : i64} : memref<64x512xf32>, vector<4xf32>
// CHECK: %[[K:.*]] = arith.addi %[[J]], %c4
// CHECK: %[[B:.*]] = vector.load %arg0[%arg2, %[[K]]] {alignment = 8 : i64} : memref<64x512xf32>, vector<2xf32>
// CHECK-NOT: load
// CHECK-DAG: vector.extract_strided_slice %[[A]] {offsets = [0], sizes = [2], strides = [1]}
// CHECK-DAG: vector.extract %[[A]][1]
// CHECK-DAG: vector.extract %[[B]][1]
// REMARK: fuse-merge-loads: applied: 6 loads of windows are 2
gpu.module @windows {
  gpu.func @windows(%x: memref<64x512xf32> {fuse.align = 16 : i64}, %y: memref<16xf32>, %i: index) kernel {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %j = arith.muli %t, %c4 : index
    %j1 = arith.addi %j, %c1 : index
    %j2 = arith.addi %j, %c2 : index
    %j4 = arith.addi %j, %c4 : index
    %j5 = arith.addi %j, %c5 : index
    %0 = vector.load %x[%i, %j] {alignment = 8 : i64} : memref<64x512xf32>, vector<2xf32>
    %1 = memref.load %x[%i, %j1] : memref<64x512xf32>
    %2 = memref.load %x[%i, %j2] : memref<64x512xf32>
    %3 = vector.load %x[%i, %j2] {alignment = 8 : i64} : memref<64x512xf32>, vector<2xf32>
    %4 = memref.load %x[%i, %j4] : memref<64x512xf32>
    %5 = memref.load %x[%i, %j5] : memref<64x512xf32>
    %6 = vector.from_elements %1, %2, %4, %5 : vector<4xf32>
    vector.store %0, %y[%c0] : memref<16xf32>, vector<2xf32>
    vector.store %3, %y[%c2] : memref<16xf32>, vector<2xf32>
    vector.store %6, %y[%c4] : memref<16xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

// Every second element of an argument: both components are one load, at twice the index.
// CHECK-LABEL: gpu.func @components
// CHECK-NOT: memref.subview
// CHECK: %[[I:.*]] = arith.muli %thread_id_x, %c2
// CHECK: %[[J:.*]] = arith.muli %[[I]], %c2
// CHECK: %[[V:.*]] = vector.load %arg0[%arg3, %[[J]]] {alignment = 8 : i64, nontemporal = true}
// CHECK-SAME: memref<?x128xbf16>, vector<4xbf16>
// CHECK-NOT: load
// CHECK: vector.extract %[[V]][1]
// REMARK: fuse-merge-loads: applied: 4 loads of components are 1
gpu.module @components {
  gpu.func @components(%x: memref<?x128xbf16>, %n: index, %y: memref<4xbf16>, %i: index) kernel {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %a = memref.subview %x[0, 0] [%n, 64] [1, 2] : memref<?x128xbf16> to memref<?x64xbf16, strided<[128, 2]>>
    %b = memref.subview %x[0, 1] [%n, 64] [1, 2] : memref<?x128xbf16> to memref<?x64xbf16, strided<[128, 2], offset: 1>>
    %j = arith.muli %t, %c2 : index
    %j1 = arith.addi %j, %c1 : index
    %0 = memref.load %a[%i, %j] {nontemporal = true} : memref<?x64xbf16, strided<[128, 2]>>
    %1 = memref.load %a[%i, %j1] {nontemporal = true} : memref<?x64xbf16, strided<[128, 2]>>
    %2 = memref.load %b[%i, %j] {nontemporal = true} : memref<?x64xbf16, strided<[128, 2], offset: 1>>
    %3 = memref.load %b[%i, %j1] {nontemporal = true} : memref<?x64xbf16, strided<[128, 2], offset: 1>>
    %4 = vector.from_elements %0, %1, %2, %3 : vector<4xbf16>
    vector.store %4, %y[%c0] : memref<4xbf16>, vector<4xbf16>
    gpu.return
  }
}

// -----

// Indices that are clamped to a row's last element, which nothing asks for, are clamped to its last piece.
// CHECK-LABEL: gpu.func @clamped
// CHECK: %[[J:.*]] = arith.muli
// CHECK: %[[LAST:.*]] = arith.minui %[[J]], %c510
// CHECK: vector.load %arg0[%arg2, %[[LAST]]] {alignment = 8 : i64}
// CHECK-NOT: load
// REMARK: fuse-merge-loads: applied: 2 loads of clamped are 1
gpu.module @clamped {
  gpu.func @clamped(%x: memref<64x512xf32>, %y: memref<2xf32>, %i: index) kernel {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c511 = arith.constant 511 : index
    %j = arith.muli %t, %c2 : index
    %j1 = arith.addi %j, %c1 : index
    %at = arith.minui %j, %c511 : index
    %at1 = arith.minui %j1, %c511 : index
    %0 = memref.load %x[%i, %at] {fuse.clamped} : memref<64x512xf32>
    %1 = memref.load %x[%i, %at1] {fuse.clamped} : memref<64x512xf32>
    %2 = vector.from_elements %0, %1 : vector<2xf32>
    vector.store %2, %y[%c0] : memref<2xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

// Rows of 7 elements begin anywhere.
// CHECK-LABEL: gpu.func @unaligned
// CHECK-COUNT-2: memref.load
// REMARK: fuse-merge-loads: declined: no loads are parts of fewer aligned ones
gpu.module @unaligned {
  gpu.func @unaligned(%x: memref<64x7xf32>, %y: memref<2xf32>, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = memref.load %x[%i, %c0] : memref<64x7xf32>
    %1 = memref.load %x[%i, %c1] : memref<64x7xf32>
    %2 = vector.from_elements %0, %1 : vector<2xf32>
    vector.store %2, %y[%c0] : memref<2xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

// The array may have been written between the two.
// CHECK-LABEL: gpu.func @written
// CHECK-COUNT-2: memref.load
// REMARK: fuse-merge-loads: declined: no loads are parts of fewer aligned ones
gpu.module @written {
  gpu.func @written(%x: memref<64x8xf32>, %y: memref<2xf32>, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = memref.load %x[%i, %c0] : memref<64x8xf32>
    memref.store %0, %y[%c0] : memref<2xf32>
    %1 = memref.load %x[%i, %c1] : memref<64x8xf32>
    memref.store %1, %y[%c1] : memref<2xf32>
    gpu.return
  }
}
