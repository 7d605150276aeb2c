// RUN: mlirfuse-opt --lower-float-to-int --split-input-file %s | FileCheck %s
// RUN: mlirfuse-opt --lower-float-to-int --lower-float-to-int --split-input-file %s | FileCheck %s
// RUN: mlirfuse-opt --lower-attach-target --lower-kernel-abi --lower-float-to-int --split-input-file --emit=ptx %s | FileCheck %s --check-prefix=PTX

// A vector and a scalar; NaN is stored as an arbitrary integer.
gpu.module @cast {
  // CHECK-LABEL: gpu.func @cast
  // CHECK: %[[V:.*]] = arith.fptosi %{{.*}} : vector<2xf32> to vector<2xi32>
  // CHECK-NEXT: %[[F:.*]] = llvm.freeze %[[V]] : vector<2xi32>
  // CHECK-NEXT: vector.store %[[F]]
  // CHECK: %[[N:.*]] = arith.fptosi
  // CHECK-NEXT: %[[G:.*]] = llvm.freeze %[[N]] : i32
  // CHECK-NEXT: memref.store %[[G]]
  // CHECK-NOT: llvm.freeze
  // PTX-LABEL: .entry cast(
  // PTX: cvt.rzi.s32.f32
  // PTX: st.global
  // PTX: st.global
  // PTX: ret
  gpu.func @cast(%x: memref<?xf32>, %y: memref<?xi32>, %z: memref<?xi32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %nan = arith.constant 0x7FC00000 : f32
    %v = vector.load %x[%t] : memref<?xf32>, vector<2xf32>
    %i = arith.fptosi %v : vector<2xf32> to vector<2xi32>
    vector.store %i, %y[%t] {alignment = 8} : memref<?xi32>, vector<2xi32>
    %j = arith.fptosi %nan : f32 to i32
    memref.store %j, %z[%t] : memref<?xi32>
    gpu.return
  }
}

// -----

// Casts of integers are left alone.
gpu.module @none {
  // CHECK-LABEL: gpu.func @none
  // CHECK-NOT: llvm.freeze
  // PTX-LABEL: .entry none(
  // PTX: ret
  gpu.func @none(%x: memref<?xi32>, %y: memref<?xi64>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xi32>
    %i = arith.extsi %v : i32 to i64
    memref.store %i, %y[%t] : memref<?xi64>
    gpu.return
  }
}
