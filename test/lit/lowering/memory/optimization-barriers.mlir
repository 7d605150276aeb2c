// RUN: mlirfuse-opt --lower-optimization-barriers --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

gpu.module @fragment {
  // CHECK-LABEL: gpu.func @fragment
  // CHECK-SAME: (%[[X:.*]]: vector<4xf16>, %[[AFTER:.*]]: f32
  gpu.func @fragment(%x: vector<4xf16>, %after: f32, %out: memref<4xf16>) kernel {
    %c0 = arith.constant 0 : index
    // CHECK: %[[Y:.*]] = gpu.block_id y
    // CHECK: %[[ROW:.*]] = arith.index_cast %[[Y]] : index to i32
    // CHECK: %[[BITS:.*]] = arith.bitcast %[[AFTER]] : f32 to i32
    // CHECK: %[[ZERO:.*]] = arith.andi %[[BITS]], %[[ROW]] : i32
    // CHECK: %[[WORDS:.*]] = vector.bitcast %[[X]] : vector<4xf16> to vector<2xi32>
    // CHECK: arith.xori %[[WORDS]], %{{.*}} : vector<2xi32>
    // CHECK-NOT: fuse.optimization_barrier
    %0 = "fuse.optimization_barrier"(%x, %after) : (vector<4xf16>, f32) -> vector<4xf16>
    vector.store %0, %out[%c0] : memref<4xf16>, vector<4xf16>
    gpu.return
  }
}

// -----

gpu.module @no_barrier {
  // CHECK-LABEL: gpu.func @no_barrier
  // CHECK-NOT: gpu.block_id y
  gpu.func @no_barrier(%x: f32, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    memref.store %x, %out[%c0] : memref<4xf32>
    gpu.return
  }
}

// -----

gpu.module @half_a_register {
  // CHECK-LABEL: gpu.func @half_a_register
  // CHECK-SAME: (%[[X:.*]]: vector<3xf16>
  gpu.func @half_a_register(%x: vector<3xf16>, %after: f32, %out: memref<3xf16>) kernel {
    %c0 = arith.constant 0 : index
    // expected-remark @below {{vector<3xf16> does not fill 32-bit registers, so its barrier is dropped}}
    %0 = "fuse.optimization_barrier"(%x, %after) : (vector<3xf16>, f32) -> vector<3xf16>
    // CHECK: vector.store %[[X]]
    vector.store %0, %out[%c0] : memref<3xf16>, vector<3xf16>
    gpu.return
  }
}

// -----

// Four bools are four bits in registers, though a byte each in memory.
gpu.module @predicates {
  // CHECK-LABEL: gpu.func @predicates
  // CHECK-SAME: (%[[X:.*]]: vector<4xi1>
  gpu.func @predicates(%x: vector<4xi1>, %after: f32, %out: memref<4xi8>) kernel {
    %c0 = arith.constant 0 : index
    // expected-remark @below {{vector<4xi1> does not fill 32-bit registers, so its barrier is dropped}}
    %0 = "fuse.optimization_barrier"(%x, %after) : (vector<4xi1>, f32) -> vector<4xi1>
    // CHECK: arith.extui %[[X]]
    %1 = arith.extui %0 : vector<4xi1> to vector<4xi8>
    vector.store %1, %out[%c0] : memref<4xi8>, vector<4xi8>
    gpu.return
  }
}
