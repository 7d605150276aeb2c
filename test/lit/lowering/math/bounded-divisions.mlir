// RUN: mlirfuse-opt --lower-bounded-divisions --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s
// RUN: mlirfuse-opt --lower-attach-target --lower-kernel-abi --lower-bounded-divisions --split-input-file --emit=ptx %s | FileCheck %s --check-prefix=PTX

gpu.module @reciprocal {
  // A sigmoid's divisor is 1 at least, and may be infinite.
  // CHECK-LABEL: gpu.func @reciprocal
  // CHECK: %[[S:.*]] = arith.addf
  // CHECK: %[[SCALED:.*]] = arith.mulf %[[S]], %{{.*}} : f32
  // CHECK: %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[SCALED]])
  // CHECK: %[[E:.*]] = math.fma %[[SCALED]], %[[R]]
  // CHECK: %[[N:.*]] = arith.negf %[[E]]
  // CHECK: %[[M:.*]] = arith.minnumf %[[N]]
  // CHECK: %[[BETTER:.*]] = math.fma %[[R]], %[[M]], %[[R]]
  // CHECK: arith.mulf %[[BETTER]]
  // CHECK-NOT: arith.divf
  // PTX-LABEL: .entry reciprocal(
  // PTX: rcp.approx.ftz.f32
  // PTX-NOT: div.
  // expected-remark @below {{1 divisors are 5e-20 at least}}
  gpu.func @reciprocal(%x: memref<?xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %one = arith.constant 1.0 : f32
    %v = memref.load %x[%t] : memref<?xf32>
    %e = math.exp %v : f32
    %s = arith.addf %e, %one : f32
    %q = arith.divf %one, %s : f32
    memref.store %q, %x[%t] : memref<?xf32>
    gpu.return
  }
}

// -----

gpu.module @finite {
  // Nothing is scaled where the divisor is 3 at most; the quotient is corrected by its remainder.
  // CHECK-LABEL: gpu.func @finite
  // CHECK: %[[S:.*]] = arith.addf
  // CHECK: arith.negf
  // CHECK: %[[MINUS:.*]] = arith.negf %[[S]] : vector<2xf32>
  // CHECK: vector.to_elements %[[MINUS]]
  // CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
  // CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.mul.rz.f"
  // CHECK-NOT: arith.divf
  // PTX-LABEL: .entry finite(
  // PTX-NOT: div.
  // expected-remark @below {{1 divisors are 5e-20 at least}}
  gpu.func @finite(%x: memref<?xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %two = arith.constant dense<2.0> : vector<2xf32>
    %v = vector.load %x[%t] : memref<?xf32>, vector<2xf32>
    %h = math.tanh %v : vector<2xf32>
    %s = arith.addf %two, %h : vector<2xf32>
    %q = arith.divf %v, %s : vector<2xf32>
    vector.store %q, %x[%t] : memref<?xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

gpu.module @rounded {
  // In half precision the unit's reciprocal is enough.
  // CHECK-LABEL: gpu.func @rounded
  // CHECK: %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
  // CHECK-NEXT: arith.mulf %{{.*}}, %[[R]] : f32
  // CHECK-NEXT: arith.truncf
  // PTX-LABEL: .entry rounded(
  // PTX-NOT: div.
  // expected-remark @below {{1 divisors are 5e-20 at least}}
  gpu.func @rounded(%x: memref<?xf32>, %y: memref<?xbf16>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %eps = arith.constant 1.0e-5 : f32
    %v = memref.load %x[%t] : memref<?xf32>
    %w = arith.mulf %v, %v : f32
    %s = arith.addf %w, %eps : f32
    %q = arith.divf %v, %s : f32
    %h = arith.truncf %q : f32 to bf16
    memref.store %h, %y[%t] : memref<?xbf16>
    gpu.return
  }
}

// -----

gpu.module @unknown {
  // A product of two numbers may be negative, a square 0, and a difference anything; double precision has no unit.
  // CHECK-LABEL: gpu.func @unknown
  // CHECK-COUNT-4: arith.divf
  // PTX-LABEL: .entry unknown(
  // PTX: div.rn.f32
  // PTX: rcp.rn.f32
  // PTX: div.rn.f32
  // PTX: div.rn.f64
  // expected-remark @below {{3 divisors may be tiny or negative}}
  gpu.func @unknown(%x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf64>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %one = arith.constant 1.0 : f32
    %two = arith.constant 2.0 : f64
    %v = memref.load %x[%t] : memref<?xf32>
    %w = memref.load %y[%t] : memref<?xf32>
    %d = memref.load %z[%t] : memref<?xf64>
    %p = arith.mulf %v, %w : f32
    %s = arith.addf %p, %one : f32
    %q = arith.divf %v, %s : f32
    %pp = arith.mulf %q, %q : f32
    %r = arith.divf %one, %pp : f32
    %a = math.absf %r : f32
    %m = arith.subf %one, %a : f32
    %u = arith.divf %w, %m : f32
    memref.store %u, %x[%t] : memref<?xf32>
    %dd = arith.mulf %d, %d : f64
    %ds = arith.addf %dd, %two : f64
    %dq = arith.divf %d, %ds : f64
    memref.store %dq, %z[%t] : memref<?xf64>
    gpu.return
  }
}

// -----

gpu.module @nothing {
  // CHECK-LABEL: gpu.func @nothing
  gpu.func @nothing(%x: memref<?xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    gpu.return
  }
}

// -----

// Dividend and divisor are scaled where the divisor is large: a small one leaves a subnormal dividend its bits.
gpu.module @any {
  // CHECK-LABEL: gpu.func @any
  // CHECK: %[[S:.*]] = arith.maximumf
  // CHECK: %[[LARGE:.*]] = arith.cmpf ogt, %[[S]], %{{.*}} : f32
  // CHECK: %[[SCALE:.*]] = arith.select %[[LARGE]], %{{.*}}, %{{.*}} : f32
  // CHECK-DAG: arith.mulf %{{.*}}, %[[SCALE]] : f32
  // CHECK-DAG: arith.mulf %[[S]], %[[SCALE]] : f32
  // CHECK-NOT: arith.divf
  gpu.func @any(%x: f32, %y: f32, %out: memref<1xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %least = arith.constant 1.0e-5 : f32
    %s = arith.maximumf %y, %least : f32
    %q = arith.divf %x, %s : f32
    memref.store %q, %out[%c0] : memref<1xf32>
    gpu.return
  }
}
