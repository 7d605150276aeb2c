// RUN: mlirfuse-opt --lower-scaled-divisions --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s
// RUN: mlirfuse-opt --lower-attach-target --lower-kernel-abi --lower-scaled-divisions --split-input-file --emit=ptx %s | FileCheck %s --check-prefix=PTX

gpu.module @quotient {
  // Both are scaled by the same power of two, and the quotient is corrected where its remainder is a number but 0.
  // CHECK-LABEL: gpu.func @quotient
  // CHECK: %[[X:.*]] = memref.load
  // CHECK: %[[S:.*]] = memref.load
  // CHECK: %[[BITS:.*]] = arith.bitcast %[[S]] : f32 to i32
  // CHECK: arith.shrui %[[BITS]]
  // CHECK: arith.andi
  // CHECK: %[[SCALE:.*]] = arith.subi
  // CHECK: %[[K:.*]] = arith.bitcast %[[SCALE]] : i32 to f32
  // CHECK: %[[DIVISOR:.*]] = arith.mulf %[[S]], %[[K]]
  // CHECK: %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[DIVISOR]])
  // CHECK: %[[DIVIDEND:.*]] = arith.mulf %[[X]], %[[K]]
  // CHECK: %[[FIRST:.*]] = llvm.call_intrinsic "llvm.nvvm.mul.rz.f"(%[[DIVIDEND]], %{{.*}})
  // CHECK: %[[MINUS:.*]] = arith.negf %[[DIVISOR]]
  // CHECK: %[[REST:.*]] = math.fma %[[FIRST]], %[[MINUS]], %[[DIVIDEND]]
  // CHECK: %[[INEXACT:.*]] = arith.cmpf one, %[[REST]]
  // CHECK: %[[BETTER:.*]] = math.fma %[[REST]], %{{.*}}, %[[FIRST]]
  // CHECK: arith.select %[[INEXACT]], %[[BETTER]], %[[FIRST]]
  // CHECK-NOT: arith.divf
  // PTX-LABEL: .entry quotient(
  // PTX: rcp.approx.ftz.f32
  // PTX: mul.rz.f32
  // PTX-NOT: div.
  // PTX-NOT: bra
  // expected-remark @below {{1 divisions have no branch}}
  gpu.func @quotient(%x: memref<?xf32>, %y: memref<?xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf32>
    %s = memref.load %y[%t] : memref<?xf32>
    %q = arith.divf %v, %s : f32
    memref.store %q, %x[%t] : memref<?xf32>
    gpu.return
  }
}

// -----

gpu.module @reciprocal {
  // A power of two over vectors: no remainder.
  // CHECK-LABEL: gpu.func @reciprocal
  // CHECK: arith.bitcast {{.*}} : vector<2xi32> to vector<2xf32>
  // CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
  // CHECK-NOT: mul.rz
  // CHECK: arith.minnumf
  // CHECK: %[[NEAREST:.*]] = arith.mulf %{{.*}}, %{{.*}} : vector<2xf32>
  // CHECK: arith.mulf %[[NEAREST]], %{{.*}} : vector<2xf32>
  // CHECK-NOT: arith.divf
  // PTX-LABEL: .entry reciprocal(
  // PTX-NOT: div.rn.f32
  // expected-remark @below {{1 divisions have no branch}}
  gpu.func @reciprocal(%x: memref<?xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %two = arith.constant dense<2.0> : vector<2xf32>
    %s = vector.load %x[%t] : memref<?xf32>, vector<2xf32>
    %q = arith.divf %two, %s : vector<2xf32>
    vector.store %q, %x[%t] : memref<?xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

gpu.module @wide {
  // Double precision has no such reciprocal.
  // CHECK-LABEL: gpu.func @wide
  // CHECK: arith.divf %{{.*}} : f64
  // PTX-LABEL: .entry wide(
  // PTX: div.rn.f64
  // expected-remark @below {{no division in single precision is left}}
  gpu.func @wide(%x: memref<?xf64>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf64>
    %q = arith.divf %v, %v : f64
    memref.store %q, %x[%t] : memref<?xf64>
    gpu.return
  }
}
