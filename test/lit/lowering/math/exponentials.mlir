// RUN: mlirfuse-opt --lower-exponentials --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s
// RUN: mlirfuse-opt --lower-attach-target --lower-kernel-abi --lower-exponentials --split-input-file --emit=ptx %s | FileCheck %s --check-prefix=PTX
// RUN: mlirfuse-opt --lower-exponentials=flush-subnormals=true --split-input-file %s | FileCheck %s --check-prefix=FLUSH

gpu.module @rounded {
  // Through a quotient and a product to half precision, element by element.
  // CHECK-LABEL: gpu.func @rounded
  // FLUSH-LABEL: gpu.func @rounded
  // FLUSH: arith.constant 1.44269502 : f32
  // CHECK: %[[X:.*]] = vector.load
  // CHECK: %[[C:.*]] = arith.constant 0.721347{{[0-9]+}} : f32
  // CHECK: %[[B:.*]] = vector.broadcast %[[C]] : f32 to vector<2xf32>
  // CHECK: %[[S:.*]] = arith.mulf %[[X]], %[[B]]
  // CHECK: %[[E:.*]]:2 = vector.to_elements %[[S]]
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%[[E]]#0) : (f32) -> f32
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%[[E]]#1) : (f32) -> f32
  // CHECK: %[[R:.*]] = vector.from_elements
  // The square is subnormal if the exponential is.
  // CHECK: arith.mulf %[[R]], %[[R]] : vector<2xf32>
  // CHECK-NOT: math.exp
  // PTX-LABEL: .entry rounded(
  // PTX: mul.rn.f32 %{{.*}}, 0f3F38AA3B;
  // PTX: ex2.approx.ftz.f32
  gpu.func @rounded(%x: memref<?xf32>, %y: memref<?xf16>, %s: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %v = vector.load %x[%t] : memref<?xf32>, vector<2xf32>
    %e = math.exp %v : vector<2xf32>
    %b = vector.broadcast %s : f32 to vector<2xf32>
    %q = arith.divf %e, %b : vector<2xf32>
    %p = arith.mulf %q, %q : vector<2xf32>
    %h = arith.truncf %p : vector<2xf32> to vector<2xf16>
    vector.store %h, %y[%t] : memref<?xf16>, vector<2xf16>
    gpu.return
  }
}

// -----

gpu.module @flagged {
  // CHECK-LABEL: gpu.func @flagged
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
  // PTX-LABEL: .entry flagged(
  // PTX: ex2.approx.ftz.f32
  gpu.func @flagged(%x: memref<?xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf32>
    %e = math.exp %v fastmath<afn> : f32
    memref.store %e, %x[%t] : memref<?xf32>
    gpu.return
  }
}

// -----

gpu.module @exact {
  // In a sum all but the error may cancel; results in single and double precision show the error.
  // CHECK-LABEL: gpu.func @exact
  // CHECK-COUNT-3: math.exp
  // expected-remark @below {{2 exponentials must be exact in single precision}}
  gpu.func @exact(%x: memref<?xf32>, %y: memref<?xf16>, %z: memref<?xf64>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %one = arith.constant 1.0 : f32
    %v = memref.load %x[%t] : memref<?xf32>
    %e = math.exp %v : f32
    %d = arith.subf %e, %one : f32
    %h = arith.truncf %d : f32 to f16
    memref.store %h, %y[%t] : memref<?xf16>
    %f = math.exp %d : f32
    memref.store %f, %x[%t] : memref<?xf32>
    %w = memref.load %z[%t] : memref<?xf64>
    %g = math.exp %w fastmath<afn> : f64
    memref.store %g, %z[%t] : memref<?xf64>
    gpu.return
  }
}

// -----

gpu.module @sigmoid {
  // A sum with a positive constant keeps the relative error, a sum with another number does not.
  // CHECK-LABEL: gpu.func @sigmoid
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
  // CHECK: math.exp
  // PTX-LABEL: .entry sigmoid(
  gpu.func @sigmoid(%x: memref<?xf32>, %y: memref<?xf16>, %z: memref<?xf16>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %one = arith.constant 1.0 : f32
    %v = memref.load %x[%t] : memref<?xf32>
    %e = math.exp %v : f32
    %s = arith.addf %e, %one : f32
    %q = arith.divf %v, %s : f32
    %h = arith.truncf %q : f32 to f16
    memref.store %h, %y[%t] : memref<?xf16>
    %f = math.exp %v : f32
    %p = arith.addf %f, %v : f32
    %g = arith.truncf %p : f32 to f16
    memref.store %g, %z[%t] : memref<?xf16>
    gpu.return
  }
}

// -----

gpu.module @narrow {
  // The flushed numbers are below the range of float16, but not of bfloat16.
  // CHECK-LABEL: gpu.func @narrow
  // CHECK: arith.constant 1.44269502 : f32
  // CHECK: %[[E:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
  // CHECK: arith.truncf %[[E]] : f32 to f16
  // CHECK: arith.constant 0.721347{{[0-9]+}} : f32
  // CHECK: %[[H:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
  // CHECK: %[[S:.*]] = arith.mulf %[[H]], %[[H]] : f32
  // CHECK: arith.truncf %[[S]] : f32 to bf16
  // PTX-LABEL: .entry narrow(
  gpu.func @narrow(%x: memref<?xf32>, %y: memref<?xf16>, %z: memref<?xbf16>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf32>
    %e = math.exp %v : f32
    %h = arith.truncf %e : f32 to f16
    memref.store %h, %y[%t] : memref<?xf16>
    %f = math.exp %v : f32
    %g = arith.truncf %f : f32 to bf16
    memref.store %g, %z[%t] : memref<?xbf16>
    gpu.return
  }
}

// -----

gpu.module @differences {
  // A constant minus a value is scaled in one multiply-add; a select keeps the relative error.
  // CHECK-LABEL: gpu.func @differences
  // CHECK: %[[X:.*]] = memref.load
  // CHECK: %[[K:.*]] = arith.constant -1.44269502 : f32
  // CHECK: %[[C:.*]] = arith.constant -2.885390e+00 : f32
  // CHECK: %[[P:.*]] = math.fma %[[X]], %[[K]], %[[C]] : f32
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%[[P]])
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
  // CHECK: arith.select
  // The difference from a large constant is computed first, as it is more precise than the two products.
  // CHECK: arith.subf
  // CHECK: arith.mulf
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
  // PTX-LABEL: .entry differences(
  gpu.func @differences(%x: memref<?xf32>, %y: memref<?xf16>, %z: memref<?xbf16>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %less = arith.constant -2.0 : f32
    %v = memref.load %x[%t] : memref<?xf32>
    %d = arith.subf %less, %v : f32
    %e = math.exp %d : f32
    %h = arith.truncf %e : f32 to f16
    memref.store %h, %y[%t] : memref<?xf16>
    %f = math.exp %v : f32
    %c = arith.cmpf olt, %v, %less : f32
    %s = arith.select %c, %f, %less : f32
    %g = arith.truncf %s : f32 to bf16
    memref.store %g, %z[%t] : memref<?xbf16>
    %large = arith.constant 1000.0 : f32
    %w = arith.subf %large, %v : f32
    %p = math.exp %w : f32
    %q = arith.truncf %p : f32 to f16
    memref.store %q, %y[%t] : memref<?xf16>
    gpu.return
  }
}
