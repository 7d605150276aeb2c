// RUN: mlirfuse-opt --lower-divisions --split-input-file %s | FileCheck %s

gpu.module @constant {
  // CHECK-LABEL: gpu.func @constant
  // CHECK-SAME: (%[[X:.*]]: f32
  gpu.func @constant(%x: f32, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c = arith.constant 5140.0 : f32
    // CHECK: %[[MINUS:.*]] = arith.negf %[[X]]
    // CHECK: %[[ABOVE:.*]] = arith.constant -1.94552529E-4 : f32
    // CHECK: %[[C:.*]] = arith.constant 5.140000e+03 : f32
    // CHECK: %[[R:.*]] = arith.constant -1.94552529E-4 : f32
    // CHECK: %[[Q:.*]] = llvm.call_intrinsic "llvm.nvvm.mul.rz.f"(%[[MINUS]], %[[ABOVE]])
    // CHECK: %[[REST:.*]] = math.fma %[[Q]], %[[C]], %[[MINUS]]
    // CHECK: %[[FINITE:.*]] = arith.minnumf %[[REST]], %{{.*}}
    // CHECK: math.fma %[[FINITE]], %[[R]], %[[Q]]
    // CHECK-NOT: arith.divf
    %0 = arith.divf %x, %c : f32
    memref.store %0, %out[%c0] : memref<4xf32>
    gpu.return
  }
}

// -----

// Small divisors are scaled to at least 0.5, so that subnormal dividends have a remainder; negative divisors stay negative.
gpu.module @small {
  // CHECK-LABEL: gpu.func @small
  // CHECK-SAME: (%[[X:.*]]: f32, %[[Y:.*]]: f32
  gpu.func @small(%x: f32, %y: f32, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %tenth = arith.constant 0.1 : f32
    %c = arith.constant -0.75 : f32
    // CHECK: %[[K:.*]] = arith.constant -8.000000e+00 : f32
    // CHECK: %[[XK:.*]] = arith.mulf %[[X]], %[[K]] : f32
    // CHECK: llvm.call_intrinsic "llvm.nvvm.mul.rz.f"(%[[XK]]
    // CHECK: llvm.call_intrinsic "llvm.nvvm.mul.rz.f"(%[[Y]]
    // CHECK-NOT: arith.divf
    %0 = arith.divf %x, %tenth : f32
    %1 = arith.divf %y, %c : f32
    memref.store %0, %out[%c0] : memref<4xf32>
    memref.store %1, %out[%c0] : memref<4xf32>
    gpu.return
  }
}

// -----

// Powers of two are left to LLVM; with too large a divisor the correction could be subnormal.
gpu.module @left_alone {
  // CHECK-LABEL: gpu.func @left_alone
  gpu.func @left_alone(%x: f32, %y: f32, %d: f64, %y64: f64, %out: memref<4xf32>, %outd: memref<4xf64>) kernel {
    %c0 = arith.constant 0 : index
    %two = arith.constant 2.0 : f32
    %huge = arith.constant 3.0e+30 : f32
    // CHECK-COUNT-3: arith.divf %{{.*}} : f32
    %0 = arith.divf %x, %two : f32
    %1 = arith.divf %0, %huge : f32
    %2 = arith.divf %1, %y : f32
    // CHECK: arith.divf %{{.*}} : f64
    %3 = arith.divf %d, %y64 : f64
    memref.store %2, %out[%c0] : memref<4xf32>
    memref.store %3, %outd[%c0] : memref<4xf64>
    gpu.return
  }
}

// -----

// Double precision has a smaller excess, and numbers of its own.
gpu.module @double {
  // CHECK-LABEL: gpu.func @double
  // CHECK-SAME: (%[[X:.*]]: f64
  gpu.func @double(%x: f64, %out: memref<4xf64>) kernel {
    %c0 = arith.constant 0 : index
    %three = arith.constant 3.0 : f64
    // CHECK: %[[MINUS:.*]] = arith.negf %[[X]]
    // CHECK: %[[Q:.*]] = llvm.call_intrinsic "llvm.nvvm.mul.rz.d"(%[[MINUS]], %{{.*}}) : (f64, f64) -> f64
    // CHECK: %[[REST:.*]] = math.fma %[[Q]], %{{.*}}, %[[MINUS]] : f64
    // CHECK: %[[FINITE:.*]] = arith.cmpf ord, %[[REST]], %[[REST]] : f64
    // CHECK: %[[BETTER:.*]] = math.fma %[[REST]], %{{.*}}, %[[Q]] : f64
    // CHECK: arith.select %[[FINITE]], %[[BETTER]], %[[Q]] : f64
    // CHECK-NOT: arith.divf
    %0 = arith.divf %x, %three : f64
    memref.store %0, %out[%c0] : memref<4xf64>
    gpu.return
  }
}
