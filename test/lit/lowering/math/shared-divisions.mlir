// RUN: mlirfuse-opt --lower-shared-divisions --split-input-file %s | FileCheck %s

// Two fragments over one sum, rounded to half precision: one reciprocal, no correction.
gpu.module @rounded {
  // CHECK-LABEL: gpu.func @rounded
  // CHECK-SAME: (%[[X:.*]]: vector<8xf32>, %[[Y:.*]]: vector<8xf32>, %[[S:.*]]: f32
  gpu.func @rounded(%x: vector<8xf32>, %y: vector<8xf32>, %s: f32, %out: memref<16xf16>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %b = vector.broadcast %s : f32 to vector<8xf32>
    // CHECK: %[[BITS:.*]] = arith.bitcast %[[S]] : f32 to i32
    // CHECK: %[[EXPONENT:.*]] = arith.andi %[[BITS]]
    // CHECK: %[[INVERSE:.*]] = arith.subi %{{.*}}, %[[EXPONENT]]
    // CHECK: %[[RAISED:.*]] = arith.addi %[[INVERSE]]
    // CHECK: %[[ONE:.*]] = arith.minsi %[[RAISED]]
    // CHECK: %[[POWER:.*]] = arith.maxsi %[[INVERSE]], %[[ONE]]
    // CHECK: %[[SIZE:.*]] = arith.bitcast %[[POWER]] : i32 to f32
    // CHECK: %[[OPPOSITE:.*]] = arith.negf %[[S]]
    // CHECK: %[[K:.*]] = math.copysign %[[SIZE]], %[[OPPOSITE]]
    // CHECK: %[[SK:.*]] = arith.mulf %[[S]], %[[K]]
    // CHECK: %[[R0:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[SK]]) : (f32) -> f32
    // CHECK: %[[E:.*]] = math.fma %[[SK]], %[[R0]], %{{.*}} : f32
    // CHECK: %[[N:.*]] = arith.negf %[[E]] : f32
    // CHECK: %[[R1:.*]] = math.fma %[[R0]], %[[N]], %[[R0]] : f32
    // CHECK: %[[NUMBER:.*]] = arith.cmpf ord, %[[E]], %[[E]]
    // CHECK: arith.select %[[NUMBER]], %[[R1]], %[[R0]]
    // CHECK-NOT: arith.divf
    // CHECK-NOT: math.fma
    // CHECK: %[[XK:.*]] = arith.mulf %[[X]], %{{.*}} : vector<8xf32>
    // CHECK: %[[Q:.*]] = arith.mulf %[[XK]], %{{.*}} : vector<8xf32>
    // CHECK: arith.truncf %[[Q]]
    // CHECK: arith.mulf %[[Y]]
    // CHECK-NOT: arith.divf
    // CHECK-NOT: math.fma
    // CHECK: gpu.return
    %q = arith.divf %x, %b : vector<8xf32>
    %h = arith.truncf %q : vector<8xf32> to vector<8xf16>
    %p = arith.divf %y, %b : vector<8xf32>
    %g = arith.truncf %p : vector<8xf32> to vector<8xf16>
    vector.store %h, %out[%c0] : memref<16xf16>, vector<8xf16>
    vector.store %g, %out[%c8] : memref<16xf16>, vector<8xf16>
    gpu.return
  }
}

// -----

// A quotient in single precision is corrected by its remainder. The truncated product is never infinite, and a NaN, the
// remainder of an infinite x, is replaced by a number.
gpu.module @corrected {
  // CHECK-LABEL: gpu.func @corrected
  // CHECK-SAME: (%[[X:.*]]: vector<4xf32>, %[[S:.*]]: f32
  gpu.func @corrected(%x: vector<4xf32>, %s: f32, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %b = vector.broadcast %s : f32 to vector<4xf32>
    // CHECK: %[[SK:.*]] = arith.mulf %[[S]]
    // CHECK: %[[R0:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
    // CHECK: %[[E:.*]] = math.fma %[[SK]], %[[R0]], %{{.*}} : f32
    // CHECK: %[[N:.*]] = arith.negf %[[E]] : f32
    // CHECK: %[[R1:.*]] = math.fma %[[R0]], %[[N]], %[[R0]] : f32
    // CHECK: %[[NUDGED:.*]] = arith.subf %{{.*}}, %[[E]] : f32
    // CHECK: %[[A1:.*]] = math.fma %[[R0]], %[[NUDGED]], %[[R0]] : f32
    // CHECK: %[[NUMBER:.*]] = arith.cmpf ord, %[[E]], %[[E]]
    // CHECK: %[[ABOVE:.*]] = arith.select %[[NUMBER]], %[[A1]], %[[R0]]
    // CHECK: %[[R:.*]] = arith.select %[[NUMBER]], %[[R1]], %{{.*}}
    // CHECK-NOT: arith.divf
    // CHECK: %[[XK:.*]] = arith.mulf %[[X]], %{{.*}} : vector<4xf32>
    // CHECK: %[[MINUS:.*]] = arith.negf %[[SK]]
    // CHECK: vector.broadcast %[[ABOVE]]
    // CHECK: %[[MINUSES:.*]] = vector.broadcast %[[MINUS]]
    // CHECK: %[[RS:.*]] = vector.broadcast %[[R]]
    // CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.mul.rz.f"
    // CHECK: %[[Q:.*]] = vector.from_elements
    // CHECK: %[[REST:.*]] = math.fma %[[Q]], %[[MINUSES]], %[[XK]] : vector<4xf32>
    // CHECK: %[[FINITE:.*]] = arith.minnumf %[[REST]]
    // CHECK: %[[FIXED:.*]] = math.fma %[[FINITE]], %[[RS]], %[[Q]] : vector<4xf32>
    // CHECK: vector.store %[[FIXED]]
    %q = arith.divf %x, %b : vector<4xf32>
    vector.store %q, %out[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

// A single element is left alone, and so are constants (lower-divisions), f64, and elementwise divisors.
gpu.module @left_alone {
  // CHECK-LABEL: gpu.func @left_alone
  gpu.func @left_alone(%x: vector<4xf32>, %y: vector<4xf32>, %a: f32, %s: f32, %d: vector<4xf64>, %t: f64,
                       %out: memref<4xf32>, %outd: memref<4xf64>) kernel {
    %c0 = arith.constant 0 : index
    %c = arith.constant 3.0 : f32
    %cs = vector.broadcast %c : f32 to vector<4xf32>
    %ts = vector.broadcast %t : f64 to vector<4xf64>
    // CHECK-NOT: arith.mulf
    // CHECK: arith.divf %{{.*}} : f32
    // CHECK-COUNT-2: arith.divf %{{.*}} : vector<4xf32>
    // CHECK: arith.divf %{{.*}} : vector<4xf64>
    // CHECK-NOT: arith.mulf
    %0 = arith.divf %a, %s : f32
    %1 = arith.divf %x, %cs : vector<4xf32>
    %2 = arith.divf %1, %y : vector<4xf32>
    %3 = arith.divf %d, %ts : vector<4xf64>
    memref.store %0, %out[%c0] : memref<4xf32>
    vector.store %2, %out[%c0] : memref<4xf32>, vector<4xf32>
    vector.store %3, %outd[%c0] : memref<4xf64>, vector<4xf64>
    gpu.return
  }
}

// -----

// Divisions in different blocks share no reciprocal, as none dominates the others.
gpu.module @branches {
  // CHECK-LABEL: gpu.func @branches
  gpu.func @branches(%x: vector<4xf32>, %s: f32, %p: i1, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %b = vector.broadcast %s : f32 to vector<4xf32>
    // CHECK: arith.divf %{{.*}} : vector<4xf32>
    // CHECK: else
    // CHECK: arith.divf %{{.*}} : vector<4xf32>
    // CHECK-NOT: math.fma
    %q = scf.if %p -> vector<4xf32> {
      %1 = arith.divf %x, %b : vector<4xf32>
      scf.yield %1 : vector<4xf32>
    } else {
      %n = arith.negf %x : vector<4xf32>
      %2 = arith.divf %n, %b : vector<4xf32>
      scf.yield %2 : vector<4xf32>
    }
    vector.store %q, %out[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

// A divisor that is itself a replaced quotient is the new value.
gpu.module @quotients_by_quotients {
  // CHECK-LABEL: gpu.func @quotients_by_quotients
  gpu.func @quotients_by_quotients(%x: f32, %s: f32, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    // CHECK-NOT: arith.divf
    // CHECK-COUNT-2: arith.minnumf
    // CHECK-NEXT: %[[R:.*]] = math.fma
    // CHECK: arith.bitcast %[[R]] : f32 to i32
    // CHECK: llvm.nvvm.rcp.approx.ftz.f
    // CHECK-NOT: arith.divf
    %one = arith.constant 1.0 : f32
    %q = arith.divf %x, %s : f32
    %r = arith.divf %one, %s : f32
    %a = arith.divf %x, %r : f32
    %b = arith.divf %q, %r : f32
    memref.store %q, %out[%c0] : memref<4xf32>
    memref.store %r, %out[%c1] : memref<4xf32>
    memref.store %a, %out[%c2] : memref<4xf32>
    memref.store %b, %out[%c3] : memref<4xf32>
    gpu.return
  }
}

// -----

// Vectors of other ranks are flattened where the instruction takes numbers.
gpu.module @ranks {
  // CHECK-LABEL: gpu.func @ranks
  gpu.func @ranks(%x: vector<2x4xf32>, %y: vector<1x4xf32>, %z: vector<f32>, %s: f32, %out: memref<8xf32>) kernel {
    %c0 = arith.constant 0 : index
    // CHECK-NOT: arith.divf
    // CHECK: %[[X:.*]] = vector.shape_cast %{{.*}} : vector<2x4xf32> to vector<8xf32>
    // CHECK: vector.to_elements %[[X]] : vector<8xf32>
    // CHECK-COUNT-8: llvm.call_intrinsic "llvm.nvvm.mul.rz.f"
    // CHECK: %[[P:.*]] = vector.from_elements
    // CHECK: vector.shape_cast %[[P]] : vector<8xf32> to vector<2x4xf32>
    // CHECK: vector.shape_cast %{{.*}} : vector<1x4xf32> to vector<4xf32>
    // CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.mul.rz.f"
    // CHECK: vector.shape_cast %{{.*}} : vector<4xf32> to vector<1x4xf32>
    // CHECK: vector.shape_cast %{{.*}} : vector<f32> to vector<1xf32>
    // CHECK: llvm.call_intrinsic "llvm.nvvm.mul.rz.f"
    // CHECK: vector.shape_cast %{{.*}} : vector<1xf32> to vector<f32>
    // CHECK-NOT: arith.divf
    %xs = vector.broadcast %s : f32 to vector<2x4xf32>
    %ys = vector.broadcast %s : f32 to vector<1x4xf32>
    %zs = vector.broadcast %s : f32 to vector<f32>
    %0 = arith.divf %x, %xs : vector<2x4xf32>
    %1 = arith.divf %y, %ys : vector<1x4xf32>
    %2 = arith.divf %z, %zs : vector<f32>
    %3 = vector.shape_cast %0 : vector<2x4xf32> to vector<8xf32>
    %4 = vector.shape_cast %1 : vector<1x4xf32> to vector<4xf32>
    %5 = vector.shape_cast %2 : vector<f32> to vector<1xf32>
    vector.store %3, %out[%c0] : memref<8xf32>, vector<8xf32>
    vector.store %4, %out[%c0] : memref<8xf32>, vector<4xf32>
    vector.store %5, %out[%c0] : memref<8xf32>, vector<1xf32>
    gpu.return
  }
}

// -----

// No step of the loop changes the divisors, so their reciprocals are computed in front of it.
gpu.module @loop {
  // CHECK-LABEL: gpu.func @loop
  // CHECK: llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
  // CHECK: scf.for
  // CHECK-NOT: rcp.approx
  // CHECK-NOT: arith.divf
  // CHECK: "llvm.nvvm.mul.rz.f"
  // CHECK: scf.yield
  gpu.func @loop(%x: memref<?xf32>, %s: vector<2xf32>, %n: index, %out: memref<2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant dense<0.0> : vector<2xf32>
    %sum = scf.for %i = %c0 to %n step %c2 iter_args(%before = %zero) -> vector<2xf32> {
      %v = vector.load %x[%i] : memref<?xf32>, vector<2xf32>
      %q = arith.divf %v, %s : vector<2xf32>
      %after = arith.addf %before, %q : vector<2xf32>
      scf.yield %after : vector<2xf32>
    }
    vector.store %sum, %out[%c0] : memref<2xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

// Two fragments over one vector; the loop's own numbers, and bounded ones (lower-bounded-divisions), are left.
gpu.module @vectors {
  // CHECK-LABEL: gpu.func @vectors
  // CHECK-COUNT-2: rcp.approx
  // CHECK-NOT: rcp.approx
  // CHECK: scf.for
  // CHECK: arith.divf
  // CHECK: arith.divf
  // CHECK: scf.yield
  gpu.func @vectors(%x: vector<2xf32>, %y: vector<2xf32>, %s: vector<2xf32>, %n: index, %in: memref<?xf32>, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %ones = arith.constant dense<1.0> : vector<2xf32>
    %p = arith.divf %x, %s : vector<2xf32>
    %q = arith.divf %y, %s : vector<2xf32>
    %size = math.absf %s : vector<2xf32>
    %bounded = arith.addf %size, %ones : vector<2xf32>
    %sum = scf.for %i = %c0 to %n step %c2 iter_args(%before = %p) -> vector<2xf32> {
      %v = vector.load %in[%i] : memref<?xf32>, vector<2xf32>
      %r = arith.divf %before, %v : vector<2xf32>
      %t = arith.divf %r, %bounded : vector<2xf32>
      scf.yield %t : vector<2xf32>
    }
    vector.store %sum, %out[%c0] : memref<4xf32>, vector<2xf32>
    vector.store %q, %out[%c2] : memref<4xf32>, vector<2xf32>
    gpu.return
  }
}
