// RUN: mlirfuse-opt --lower-warpgroup-mma --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#shared = #gpu.address_space<workgroup>
gpu.module @k_major [#nvvm.target<chip = "sm_90a">] {
  // Two warpgroups of 64 rows, 8 columns: a thread has two pairs. 64 elements of k are four instructions, 32 bytes apart.
  // CHECK-LABEL: gpu.func @k_major
  gpu.func @k_major(%stage: index, %p: vector<2xf32>, %q: vector<2xf32>, %out: memref<4xf32>)
      workgroup(%a : memref<3x128x64xbf16, #shared>, %b : memref<3x8x64xbf16, #shared>) kernel {
    %c0 = arith.constant 0 : index
    // The warpgroup's number goes through a shuffle, and its rows begin 8192 bytes on.
    // CHECK: nvvm.shfl.sync idx
    // CHECK: %[[ROWS:.*]] = arith.constant 8192 : index
    // CHECK: %[[BITS:.*]] = arith.constant 4611686293372403712 : i64
    // CHECK: %[[A:.*]] = arith.ori %{{.*}}, %[[BITS]] : i64
    // CHECK: %[[BITS_B:.*]] = arith.constant 4611686293309489152 : i64
    // CHECK: %[[B:.*]] = arith.ori %{{.*}}, %[[BITS_B]] : i64
    // CHECK: nvvm.wgmma.fence.aligned
    // CHECK: %[[S0:.*]] = nvvm.wgmma.mma_async %[[A]], %[[B]], %{{.*}}, <m = 64, n = 8, k = 16>, D[<f32>, <one>], A[<bf16>, <one>, <row>], B[<bf16>, <one>, <col>]
    // CHECK: %[[TWO:.*]] = arith.constant 2 : i64
    // CHECK: %[[B1:.*]] = arith.addi %[[B]], %[[TWO]] : i64
    // CHECK: %[[A1:.*]] = arith.addi %[[A]], %{{.*}} : i64
    // CHECK: nvvm.wgmma.mma_async %[[A1]], %[[B1]], %[[S0]]
    // CHECK-COUNT-2: nvvm.wgmma.mma_async
    // CHECK: nvvm.wgmma.commit.group.sync.aligned
    %r:2 = "fuse.warpgroup_mma"(%a, %b, %stage, %p, %q) {a_major = "k", b_major = "k"}
        : (memref<3x128x64xbf16, #shared>, memref<3x8x64xbf16, #shared>, index, vector<2xf32>, vector<2xf32>)
        -> (vector<2xf32>, vector<2xf32>)
    // CHECK: %[[W:.*]] = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,0,1,2,3"
    // CHECK: llvm.extractvalue %[[W]][0]
    %w:2 = "fuse.warpgroup_wait"(%r#0, %r#1) {pending = 0 : i64} : (vector<2xf32>, vector<2xf32>) -> (vector<2xf32>, vector<2xf32>)
    vector.store %w#0, %out[%c0] : memref<4xf32>, vector<2xf32>
    vector.store %w#1, %out[%c0] : memref<4xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @mn_major [#nvvm.target<chip = "sm_90a">] {
  // One warpgroup; along k, 16 rows of 128 bytes are 2048 bytes, and 64 more rows or columns are the next swizzle atom.
  // CHECK-LABEL: gpu.func @mn_major
  // CHECK-NOT: nvvm.shfl.sync
  // CHECK: <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <col>], B[<f16>, <one>, <row>]
  // CHECK: arith.constant 128 : i64
  // CHECK-COUNT-1: nvvm.wgmma.mma_async
  // CHECK: nvvm.wgmma.commit.group.sync.aligned
  gpu.func @mn_major(%stage: index, %p: vector<2xf32>)
      workgroup(%a : memref<2x32x64xf16, #shared>, %b : memref<2x32x64xf16, #shared>) kernel {
    %r:16 = "fuse.warpgroup_mma"(%a, %b, %stage, %p, %p, %p, %p, %p, %p, %p, %p, %p, %p, %p, %p, %p, %p, %p, %p) {a_major = "mn", b_major = "mn"}
        : (memref<2x32x64xf16, #shared>, memref<2x32x64xf16, #shared>, index,
           vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>,
           vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>)
        -> (vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>,
            vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>)
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @float8 [#nvvm.target<chip = "sm_90a">] {
  // 128 elements of k are four instructions; zeros are not read, so the first one starts the sums.
  // CHECK-LABEL: gpu.func @float8
  // CHECK: nvvm.wgmma.mma_async {{.*}}, <m = 64, n = 8, k = 32>, D[<f32>, <zero>], A[<e4m3>, <one>, <row>], B[<e5m2>, <one>, <col>]
  // CHECK-COUNT-3: nvvm.wgmma.mma_async {{.*}} D[<f32>, <one>]
  // CHECK: nvvm.wgmma.commit.group.sync.aligned
  gpu.func @float8(%stage: index)
      workgroup(%a : memref<2x64x128xf8E4M3FN, #shared>, %b : memref<2x8x128xf8E5M2, #shared>) kernel {
    %zero = arith.constant dense<0.0> : vector<2xf32>
    %r:2 = "fuse.warpgroup_mma"(%a, %b, %stage, %zero, %zero) {a_major = "k", b_major = "k"}
        : (memref<2x64x128xf8E4M3FN, #shared>, memref<2x8x128xf8E5M2, #shared>, index, vector<2xf32>, vector<2xf32>)
        -> (vector<2xf32>, vector<2xf32>)
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @tf32 [#nvvm.target<chip = "sm_90a">] {
  // f32 is read as tf32. Accumulators of negative zeros are read.
  // CHECK-LABEL: gpu.func @tf32
  // CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}}, <m = 64, n = 8, k = 8>, D[<f32>, <one>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>]
  // CHECK: nvvm.wgmma.commit.group.sync.aligned
  gpu.func @tf32(%stage: index)
      workgroup(%a : memref<2x64x32xf32, #shared>, %b : memref<2x8x32xf32, #shared>) kernel {
    %zero = arith.constant dense<-0.0> : vector<2xf32>
    %r:2 = "fuse.warpgroup_mma"(%a, %b, %stage, %zero, %zero) {a_major = "k", b_major = "k"}
        : (memref<2x64x32xf32, #shared>, memref<2x8x32xf32, #shared>, index, vector<2xf32>, vector<2xf32>)
        -> (vector<2xf32>, vector<2xf32>)
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @no_such_type [#nvvm.target<chip = "sm_90a">] {
  gpu.func @no_such_type(%stage: index, %p: vector<2xf32>)
      workgroup(%a : memref<2x64x16xf64, #shared>, %b : memref<2x8x16xf64, #shared>) kernel {
    // expected-error @below {{wgmma has no 64x8 product of f64 with 2 accumulators of vector<2xf32> a thread}}
    %r:2 = "fuse.warpgroup_mma"(%a, %b, %stage, %p, %p) {a_major = "k", b_major = "k"}
        : (memref<2x64x16xf64, #shared>, memref<2x8x16xf64, #shared>, index, vector<2xf32>, vector<2xf32>)
        -> (vector<2xf32>, vector<2xf32>)
    gpu.return
  }
}

// -----

gpu.module @alone [#nvvm.target<chip = "sm_80">] {
  // CHECK-LABEL: gpu.func @alone
  gpu.func @alone() kernel {
    gpu.return
  }
}
