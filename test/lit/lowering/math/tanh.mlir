// RUN: mlirfuse-opt --lower-tanh --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s
// RUN: mlirfuse-opt --lower-attach-target --lower-tanh --lower-kernel-abi --split-input-file --emit=ptx %s | FileCheck %s --check-prefix=PTX

gpu.module @gelu {
  // CHECK-LABEL: gpu.func @gelu
  // CHECK: %[[X:.*]] = vector.load
  // CHECK: %[[N:.*]]:2 = vector.to_elements %[[X]]
  // CHECK: %[[S:.*]] = arith.mulf %[[N]]#0, %{{.*}} : f32
  // CHECK: %[[E:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%[[S]]) : (f32) -> f32
  // CHECK: %[[D:.*]] = arith.addf %[[E]], %{{.*}} : f32
  // CHECK: %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[D]]) : (f32) -> f32
  // CHECK: %[[H:.*]] = vector.from_elements %[[R]]
  // CHECK: arith.addf %[[H]], %[[H]] : vector<2xf32>
  // PTX-LABEL: .entry gelu(
  // PTX: ex2.approx.ftz.f32
  // PTX: rcp.approx.ftz.f32
  gpu.func @gelu(%x: memref<?xf32>, %y: memref<?xbf16>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %one = arith.constant dense<1.0> : vector<2xf32>
    %v = vector.load %x[%t] : memref<?xf32>, vector<2xf32>
    %u = math.tanh %v : vector<2xf32>
    %s = arith.addf %one, %u : vector<2xf32>
    %p = arith.mulf %s, %v : vector<2xf32>
    %h = arith.truncf %p : vector<2xf32> to vector<2xbf16>
    vector.store %h, %y[%t] : memref<?xbf16>, vector<2xbf16>
    gpu.return
  }
}

// -----

gpu.module @halves {
  // The argument's factor 1.5 is folded into the scale -2 log2(e), and half of the sum is used.
  // CHECK-LABEL: gpu.func @halves
  // CHECK: %[[SCALE:.*]] = arith.constant -4.32808
  // CHECK: %[[S:.*]] = arith.mulf %[[V:.*]], %[[SCALE]] : f32
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%[[S]]) : (f32) -> f32
  // CHECK: %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
  // CHECK: %[[G:.*]] = arith.mulf %[[V]], %[[R]] : f32
  // CHECK: arith.truncf %[[G]]
  gpu.func @halves(%x: memref<?xf32>, %y: memref<?xbf16>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %one = arith.constant 1.0 : f32
    %c = arith.constant 1.5 : f32
    %half = arith.constant 0.5 : f32
    %v = memref.load %x[%t] : memref<?xf32>
    %a = arith.mulf %v, %c : f32
    %u = math.tanh %a : f32
    %s = arith.addf %u, %one : f32
    %w = arith.mulf %half, %v : f32
    %p = arith.mulf %w, %s : f32
    %h = arith.truncf %p : f32 to bf16
    memref.store %h, %y[%t] : memref<?xbf16>
    gpu.return
  }
}

// -----

gpu.module @single {
  // expected-remark @below {{1 hyperbolic tangents have uses other than 1 + tanh(x) rounded to half precision}}
  gpu.func @single(%x: memref<?xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %one = arith.constant 1.0 : f32
    %v = memref.load %x[%t] : memref<?xf32>
    // CHECK-LABEL: gpu.func @single
    // CHECK: math.tanh
    %u = math.tanh %v : f32
    %s = arith.addf %u, %one : f32
    memref.store %s, %x[%t] : memref<?xf32>
    gpu.return
  }
}

// -----

gpu.module @two {
  // expected-remark @below {{1 hyperbolic tangents have uses other than 1 + tanh(x) rounded to half precision}}
  gpu.func @two(%x: memref<?xf32>, %y: memref<?xf16>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %two = arith.constant 2.0 : f32
    %v = memref.load %x[%t] : memref<?xf32>
    // CHECK-LABEL: gpu.func @two
    // CHECK: math.tanh
    %u = math.tanh %v : f32
    %s = arith.addf %u, %two : f32
    %h = arith.truncf %s : f32 to f16
    memref.store %h, %y[%t] : memref<?xf16>
    gpu.return
  }
}
