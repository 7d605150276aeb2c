// RUN: mlirfuse-opt %s --fuse-resolve-scatters --split-input-file --verify-diagnostics=only-expected | FileCheck %s

// A vector stays inside one row; only the row can be out of bounds.
// CHECK-LABEL: gpu.func @classes
// CHECK-NOT: fuse.scattered
// CHECK: %[[A:.*]] = arith.divui %{{.*}}, %c8_i32
// CHECK: %[[H:.*]] = arith.muli %{{.*}}, %c2_i32
// CHECK: %[[ROW:.*]] = arith.addi %[[H]], %[[A]]
// CHECK: %[[IN:.*]] = arith.cmpi ult, %[[ROW]], %c15_i32
// CHECK-NOT: arith.cmpi
// CHECK: scf.if %[[IN]] {
// CHECK-NEXT: vector.store %{{.*}}, %arg0[%{{.*}}, %{{.*}}] {alignment = 16 : i64, nontemporal = true} : memref<15x16xf16>, vector<8xf16>
gpu.module @classes {
  // expected-remark @below {{1 stores of classes to 1 scattered views}}
  gpu.func @classes(%y: memref<15x16xf16>, %v: vector<8xf16>) kernel {
    %t = gpu.thread_id x
    %c8 = arith.constant 8 : index
    %view = "fuse.scattered"(%y) {basis = array<i64: 2, 8, 16>, ranks = array<i64: 2, 1>,
        map = affine_map<(a, h, c) -> (h * 2 + a, c)>} : (memref<15x16xf16>) -> memref<16x16xf16, strided<[16, 1]>>
    vector.store %v, %view[%t, %c8] {alignment = 16 : i64, nontemporal = true} : memref<16x16xf16, strided<[16, 1]>>, vector<8xf16>
    gpu.return
  }
}

// -----

// A store through a transpose, which is always inside, is in no branch; a start below zero is checked as one comparison.
// CHECK-LABEL: gpu.func @elements
// CHECK-NOT: fuse.scattered
// CHECK-NOT: scf.if
// CHECK: memref.store %arg1, %arg0[%{{.*}}, %{{.*}}] : memref<16x3xf32>
// CHECK: arith.addi %{{.*}}, %c-1_i32
// CHECK: scf.if
// CHECK-NEXT: memref.store %arg1, %arg2
gpu.module @elements {
  gpu.func @elements(%y: memref<16x3xf32>, %v: f32, %z: memref<15xf32>) kernel {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %view = "fuse.scattered"(%y) {basis = array<i64: 2, 8, 3>, ranks = array<i64: 2, 1>,
        map = affine_map<(a, h, c) -> (h * 2 + a, c)>} : (memref<16x3xf32>) -> memref<16x3xf32, strided<[3, 1]>>
    %turned = memref.transpose %view (i, j) -> (j, i) : memref<16x3xf32, strided<[3, 1]>> to memref<3x16xf32, strided<[1, 3]>>
    memref.store %v, %turned[%c0, %t] : memref<3x16xf32, strided<[1, 3]>>
    %shifted = "fuse.scattered"(%z) {basis = array<i64: 16>, ranks = array<i64: 1>, map = affine_map<(h) -> (h - 1)>}
        : (memref<15xf32>) -> memref<16xf32, strided<[1]>>
    memref.store %v, %shifted[%t] : memref<16xf32, strided<[1]>>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @plain
gpu.module @plain {
  // expected-remark @below {{no scattered view}}
  gpu.func @plain(%y: memref<16xf32>, %v: f32) kernel {
    %t = gpu.thread_id x
    memref.store %v, %y[%t] : memref<16xf32>
    gpu.return
  }
}

// -----

gpu.module @loads {
  gpu.func @loads(%y: memref<16xf32>, %z: memref<16xf32>) kernel {
    %t = gpu.thread_id x
    %view = "fuse.scattered"(%y) {basis = array<i64: 16>, ranks = array<i64: 1>, map = affine_map<(h) -> (h)>}
        : (memref<16xf32>) -> memref<16xf32, strided<[1]>>
    // expected-error @below {{memref.load does not take a scattered view}}
    %v = memref.load %view[%t] : memref<16xf32, strided<[1]>>
    memref.store %v, %z[%t] : memref<16xf32>
    gpu.return
  }
}
