// RUN: mlirfuse-opt --lower-math %s | FileCheck %s
// RUN: mlirfuse-opt --lower-attach-target --lower-kernel-abi --lower-math --emit=ptx %s | FileCheck %s --check-prefix=PTX

gpu.module @roots {
  // CHECK-LABEL: gpu.func @roots
  // PTX-LABEL: .entry roots(
  gpu.func @roots(%x: memref<?xf32>, %y: memref<?xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf32>
    // CHECK: llvm.call_intrinsic "llvm.sqrt"(%{{.*}}) : (f32) -> f32
    // PTX: sqrt.rn.f32
    %exact = math.sqrt %v : f32
    // CHECK: llvm.call_intrinsic "llvm.sqrt"(%{{.*}}) {fastmathFlags = #llvm.fastmath<afn>} : (f32) -> f32
    // PTX: sqrt.approx.f32
    %fast = math.sqrt %exact fastmath<afn> : f32
    // Division is exact with no help.
    // PTX: div.rn.f32
    %c3 = arith.constant 3.0 : f32
    %third = arith.divf %fast, %c3 : f32
    memref.store %third, %y[%t] : memref<?xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @others
  // CHECK: math.exp
  // PTX-LABEL: .entry others(
  // PTX: ex2.approx.ftz.f32
  // PTX-NOT: call
  gpu.func @others(%x: memref<?xf32>, %y: memref<?xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf32>
    %e = math.exp %v : f32
    memref.store %e, %y[%t] : memref<?xf32>
    gpu.return
  }
}
