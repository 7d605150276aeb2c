// RUN: mlirfuse-opt --lower-bfloat16 --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s
// RUN: mlirfuse-opt --lower-attach-target --lower-kernel-abi --lower-bfloat16 --split-input-file --emit=ptx %s | FileCheck %s --check-prefix=PTX

// CHECK-LABEL: gpu.func @words(
// CHECK: %[[X:.*]] = vector.load
// CHECK: %[[B:.*]] = vector.bitcast %[[X]] : vector<4xbf16> to vector<2xi32>
// CHECK: %[[W:.*]]:2 = vector.to_elements %[[B]]
// CHECK-DAG: %[[SHIFT:.*]] = arith.constant 16 : i32
// CHECK-DAG: %[[MASK:.*]] = arith.constant -65536 : i32
// CHECK: %[[L0:.*]] = arith.shli %[[W]]#0, %[[SHIFT]]
// CHECK: %[[H0:.*]] = arith.andi %[[W]]#0, %[[MASK]]
// CHECK: %[[L1:.*]] = arith.shli %[[W]]#1, %[[SHIFT]]
// CHECK: %[[H1:.*]] = arith.andi %[[W]]#1, %[[MASK]]
// CHECK: %[[F:.*]] = vector.from_elements %[[L0]], %[[H0]], %[[L1]], %[[H1]] : vector<4xi32>
// CHECK: %[[R:.*]] = vector.bitcast %[[F]] : vector<4xi32> to vector<4xf32>
// CHECK: vector.store %[[R]]
// PTX-LABEL: .entry words(
// PTX-NOT: cvt.f32.bf16
// PTX: shl.b32
// PTX-NOT: cvt.f32.bf16
// PTX: ret
gpu.module @words {
  // expected-remark @below {{1 casts of bfloat16 are computed on 32-bit words}}
  gpu.func @words(%x: memref<4xbf16>, %y: memref<4xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %0 = vector.load %x[%c0] {alignment = 8 : i64} : memref<4xbf16>, vector<4xbf16>
    %1 = arith.extf %0 : vector<4xbf16> to vector<4xf32>
    vector.store %1, %y[%c0] {alignment = 16 : i64} : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

// Scalars, odd vectors, types wider than single precision, and other types are left alone.
// CHECK-LABEL: gpu.func @others(
// CHECK-NOT: arith.shli
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: arith.extf %{{.*}} : vector<3xbf16> to vector<3xf32>
// CHECK: arith.extf %{{.*}} : vector<2xbf16> to vector<2xf64>
// CHECK: arith.extf %{{.*}} : vector<2xf16> to vector<2xf32>
// CHECK-NOT: arith.shli
// PTX-LABEL: .entry others(
gpu.module @others {
  // expected-remark @below {{2 casts of bfloat16 are of scalars or odd vectors}}
  gpu.func @others(%a: bf16, %b: vector<3xbf16>, %c: vector<2xbf16>, %d: vector<2xf16>, %y: memref<3xf32>,
                   %z: memref<2xf64>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.extf %b : vector<3xbf16> to vector<3xf32>
    %2 = arith.extf %c : vector<2xbf16> to vector<2xf64>
    %3 = arith.extf %d : vector<2xf16> to vector<2xf32>
    memref.store %0, %y[%c0] : memref<3xf32>
    vector.store %1, %y[%c0] : memref<3xf32>, vector<3xf32>
    vector.store %2, %z[%c0] : memref<2xf64>, vector<2xf64>
    vector.store %3, %y[%c0] : memref<3xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

// The product is rounded at once, so LLVM narrows it to bfloat16; the sum has another operand.
// CHECK-LABEL: gpu.func @rounded(
// CHECK: %[[A:.*]] = arith.extf
// CHECK: %[[P:.*]] = arith.mulf %[[A]], %[[A]]
// CHECK: arith.truncf %[[P]]
// CHECK-COUNT-2: arith.shli
// CHECK: arith.addf
// PTX-LABEL: .entry rounded(
// PTX: mul.rn.bf16x2
// PTX: add.rn.f32
gpu.module @rounded {
  // expected-remark @below {{1 casts of bfloat16 are computed on 32-bit words}}
  // expected-remark @below {{1 casts are left to LLVM, which narrows their uses to bfloat16}}
  gpu.func @rounded(%x: memref<4xbf16>, %z: memref<4xf32>, %y: memref<4xbf16>) kernel
      attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %0 = vector.load %x[%c0] {alignment = 8 : i64} : memref<4xbf16>, vector<4xbf16>
    %1 = arith.extf %0 : vector<4xbf16> to vector<4xf32>
    %2 = arith.mulf %1, %1 : vector<4xf32>
    %3 = arith.truncf %2 : vector<4xf32> to vector<4xbf16>
    %4 = arith.extf %3 : vector<4xbf16> to vector<4xf32>
    %5 = vector.load %z[%c0] {alignment = 16 : i64} : memref<4xf32>, vector<4xf32>
    %6 = arith.addf %4, %5 : vector<4xf32>
    %7 = arith.truncf %6 : vector<4xf32> to vector<4xbf16>
    vector.store %7, %y[%c0] {alignment = 8 : i64} : memref<4xbf16>, vector<4xbf16>
    gpu.return
  }
}
