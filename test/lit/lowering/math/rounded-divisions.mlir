// RUN: mlirfuse-opt --lower-rounded-divisions --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s
// RUN: mlirfuse-opt --lower-attach-target --lower-kernel-abi --lower-rounded-divisions --split-input-file --emit=ptx %s | FileCheck %s --check-prefix=PTX

gpu.module @rounded {
  // Through a product to half precision, element by element.
  // CHECK-LABEL: gpu.func @rounded
  // CHECK: %[[X:.*]] = vector.load
  // CHECK: %[[Y:.*]] = vector.load
  // CHECK: %[[XS:.*]]:2 = vector.to_elements %[[X]]
  // CHECK: %[[YS:.*]]:2 = vector.to_elements %[[Y]]
  // CHECK: %[[Q0:.*]] = llvm.call_intrinsic "llvm.nvvm.div.full"(%[[XS]]#0, %[[YS]]#0) : (f32, f32) -> f32
  // CHECK: %[[Q1:.*]] = llvm.call_intrinsic "llvm.nvvm.div.full"(%[[XS]]#1, %[[YS]]#1) : (f32, f32) -> f32
  // CHECK: vector.from_elements %[[Q0]], %[[Q1]]
  // CHECK-NOT: arith.divf
  // PTX-LABEL: .entry rounded(
  // PTX-COUNT-2: div.full.f32
  // expected-remark @below {{1 quotients are rounded to half precision}}
  gpu.func @rounded(%x: memref<?xf32>, %y: memref<?xbf16>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %u = arith.addi %t, %c64 : index
    %v = vector.load %x[%t] : memref<?xf32>, vector<2xf32>
    %w = vector.load %x[%u] : memref<?xf32>, vector<2xf32>
    %q = arith.divf %v, %w : vector<2xf32>
    %p = arith.mulf %q, %v : vector<2xf32>
    %h = arith.truncf %p : vector<2xf32> to vector<2xbf16>
    vector.store %h, %y[%t] : memref<?xbf16>, vector<2xbf16>
    gpu.return
  }
}

// -----

gpu.module @exact {
  // Single precision shows the error, in a sum all else may cancel, and double precision has no such instruction.
  // CHECK-LABEL: gpu.func @exact
  // CHECK-COUNT-3: arith.divf
  // PTX-LABEL: .entry exact(
  // PTX-NOT: div.full
  // expected-remark @below {{2 quotients must be exact in single precision}}
  gpu.func @exact(%x: memref<?xf32>, %y: memref<?xf16>, %z: memref<?xf64>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf32>
    %w = memref.load %z[%t] : memref<?xf64>
    %s = arith.addf %v, %v : f32
    %q = arith.divf %v, %s : f32
    memref.store %q, %x[%t] : memref<?xf32>
    %r = arith.divf %s, %q : f32
    %d = arith.subf %r, %v : f32
    %h = arith.truncf %d : f32 to f16
    memref.store %h, %y[%t] : memref<?xf16>
    %g = arith.divf %w, %w : f64
    memref.store %g, %z[%t] : memref<?xf64>
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
