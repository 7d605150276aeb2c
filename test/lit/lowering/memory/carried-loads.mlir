// RUN: mlirfuse-opt --lower-carried-loads --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

// The mean of the next row: one address for all threads, and no other use in this step.
gpu.module @uniform {
  // CHECK-LABEL: gpu.func @uniform
  // CHECK-SAME: (%[[MEANS:.*]]: memref<?x1xf32>
  gpu.func @uniform(%means: memref<?x1xf32>, %first: f32, %rows: index, %out: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // CHECK: %[[MASK:.*]] = nvvm.read.ptx.sreg.lanemask.eq : i32
    // CHECK: %[[ONES:.*]] = math.ctpop %[[MASK]] : i32
    // CHECK: %[[ZERO:.*]] = arith.subi %[[ONES]], %{{.*}} : i32
    // CHECK: scf.for {{.*}} iter_args(%[[MEAN:.*]] = %{{.*}}) -> (f32)
    %r = scf.for %row = %c0 to %rows step %c1 iter_args(%mean = %first) -> (f32) {
      %following = arith.addi %row, %c1 : index
      // CHECK: %[[NEXT:.*]] = memref.load %[[MEANS]]
      %next = memref.load %means[%following, %c0] : memref<?x1xf32>
      // CHECK: memref.store %[[MEAN]]
      memref.store %mean, %out[%row] : memref<?xf32>
      // CHECK: %[[BITS:.*]] = arith.bitcast %[[NEXT]] : f32 to i32
      // CHECK: %[[MIXED:.*]] = arith.xori %[[BITS]], %[[ZERO]] : i32
      // CHECK: %[[OWN:.*]] = arith.bitcast %[[MIXED]] : i32 to f32
      // CHECK: scf.yield %[[OWN]] : f32
      scf.yield %next : f32
    }
    gpu.return
  }
}

// -----

// Numbers of other widths: half a register, two, and integers.
gpu.module @widths {
  // CHECK-LABEL: gpu.func @widths
  gpu.func @widths(%h: memref<?xbf16>, %i: memref<?xi32>, %d: memref<?xf64>, %rows: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = arith.constant 0.0 : bf16
    %z = arith.constant 0 : i32
    %w = arith.constant 0.0 : f64
    // CHECK: %[[ZERO:.*]] = arith.subi
    %r:3 = scf.for %row = %c0 to %rows step %c1 iter_args(%x = %b, %y = %z, %v = %w) -> (bf16, i32, f64) {
      %nx = memref.load %h[%row] : memref<?xbf16>
      // CHECK: %[[INT:.*]] = memref.load %{{.*}} : memref<?xi32>
      %ny = memref.load %i[%row] : memref<?xi32>
      %nv = memref.load %d[%row] : memref<?xf64>
      // CHECK: %[[HALF:.*]] = arith.trunci %[[ZERO]] : i32 to i16
      // CHECK: arith.xori %{{.*}}, %[[HALF]] : i16
      // CHECK: arith.xori %[[INT]], %[[ZERO]] : i32
      // CHECK: %[[TWICE:.*]] = arith.extui %[[ZERO]] : i32 to i64
      // CHECK: arith.xori %{{.*}}, %[[TWICE]] : i64
      scf.yield %nx, %ny, %nv : bf16, i32, f64
    }
    gpu.return
  }
}

// -----

// A load with a use in its own step is waited for there anyway; so is none outside of a loop.
gpu.module @used_at_once {
  // CHECK-LABEL: gpu.func @used_at_once
  // CHECK-NOT: lanemask
  gpu.func @used_at_once(%means: memref<?xf32>, %rows: index, %out: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %first = memref.load %means[%c0] : memref<?xf32>
    %r = scf.for %row = %c0 to %rows step %c1 iter_args(%mean = %first) -> (f32) {
      %next = memref.load %means[%row] : memref<?xf32>
      memref.store %next, %out[%row] : memref<?xf32>
      scf.yield %next : f32
    }
    gpu.return
  }
}

// -----

gpu.module @own_addresses {
  // CHECK-LABEL: gpu.func @own_addresses
  // CHECK-NOT: lanemask
  gpu.func @own_addresses(%x: memref<?x128xf32>, %first: f32, %rows: index, %out: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %thread = gpu.thread_id x
    %r = scf.for %row = %c0 to %rows step %c1 iter_args(%held = %first) -> (f32) {
      // expected-remark @below {{threads load from addresses of their own}}
      %next = memref.load %x[%row, %thread] : memref<?x128xf32>
      memref.store %held, %out[%row] : memref<?xf32>
      scf.yield %next : f32
    }
    gpu.return
  }
}

// -----

// Shared memory answers before a step is over.
gpu.module @shared {
  // CHECK-LABEL: gpu.func @shared
  // CHECK-NOT: lanemask
  gpu.func @shared(%x: memref<8xf32, #gpu.address_space<workgroup>>, %first: f32, %out: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = scf.for %row = %c0 to %c8 step %c1 iter_args(%held = %first) -> (f32) {
      %next = memref.load %x[%row] : memref<8xf32, #gpu.address_space<workgroup>>
      memref.store %held, %out[%row] : memref<?xf32>
      scf.yield %next : f32
    }
    gpu.return
  }
}
