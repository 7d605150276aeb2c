// RUN: mlirfuse-opt --lower-mma --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

gpu.module @bf16 [#nvvm.target<chip = "sm_80">] {
  // NVVM takes pairs of bf16 as 32-bit integers.
  // CHECK-LABEL: gpu.func @bf16(
  // CHECK-SAME: %[[A:[a-z0-9]+]]: vector<8xbf16>, %[[B:[a-z0-9]+]]: vector<4xbf16>, %[[C:[a-z0-9]+]]: vector<4xf32>
  // CHECK: %[[C3:.*]] = vector.extract %[[C]][3]
  // CHECK: vector.bitcast %[[A]] : vector<8xbf16> to vector<4xi32>
  // CHECK: vector.bitcast %[[B]] : vector<4xbf16> to vector<2xi32>
  // CHECK: %[[D:.*]] = nvvm.mma.sync A[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] B[%{{.*}}, %{{.*}}] C[%{{.*}}, %{{.*}}, %{{.*}}, %[[C3]]]
  // CHECK-SAME: layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>
  // CHECK-SAME: multiplicandAPtxType = #nvvm.mma_type<bf16>{{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 16>
  // CHECK: llvm.extractvalue %[[D]][0]
  // CHECK: %[[R:.*]] = vector.from_elements
  // CHECK: vector.store %[[R]]
  gpu.func @bf16(%a: vector<8xbf16>, %b: vector<4xbf16>, %c: vector<4xf32>, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %d = "fuse.mma"(%a, %b, %c) : (vector<8xbf16>, vector<4xbf16>, vector<4xf32>) -> vector<4xf32>
    vector.store %d, %out[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

gpu.module @f16 [#nvvm.target<chip = "sm_80">] {
  // CHECK-LABEL: gpu.func @f16(
  // CHECK: vector.extract_strided_slice %{{.*}} {offsets = [6], sizes = [2], strides = [1]} : vector<8xf16> to vector<2xf16>
  // CHECK: nvvm.mma.sync {{.*}} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  gpu.func @f16(%a: vector<8xf16>, %b: vector<4xf16>, %c: vector<4xf32>, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %d = "fuse.mma"(%a, %b, %c) : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
    vector.store %d, %out[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

gpu.module @none [#nvvm.target<chip = "sm_80">] {
  // CHECK-LABEL: gpu.func @none
  // CHECK-NEXT: gpu.return
  gpu.func @none() kernel {
    gpu.return
  }
}

// -----

gpu.module @tf32 [#nvvm.target<chip = "sm_80">] {
  // A tf32 number has the bits of an f32: the cast to tf32 rounds, and the cast back does nothing.
  // CHECK-LABEL: gpu.func @tf32(
  // CHECK-SAME: %[[X:[a-z0-9]+]]: vector<4xf32>, %[[B:[a-z0-9]+]]: vector<2xf32>
  // CHECK: %[[E:.*]]:4 = vector.to_elements %[[X]]
  // CHECK: %[[A0:.*]] = nvvm.convert.float.to.tf32 %[[E]]#0 {{.*}}<rna>
  // CHECK: %[[W0:.*]] = llvm.bitcast %[[A0]] : i32 to f32
  // CHECK: vector.from_elements %[[W0]], %{{.*}} : vector<4xf32>
  // CHECK: nvvm.mma.sync A[%[[A0]], %{{.*}}, %{{.*}}, %{{.*}}] B[%{{.*}}, %{{.*}}]
  // CHECK-SAME: multiplicandAPtxType = #nvvm.mma_type<tf32>{{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 8>
  gpu.func @tf32(%x: vector<4xf32>, %b: vector<2xf32>, %c: vector<4xf32>, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %ta = arith.truncf %x to_nearest_away : vector<4xf32> to vector<4xtf32>
    %tb = arith.truncf %b to_nearest_away : vector<2xf32> to vector<2xtf32>
    %w = arith.extf %ta : vector<4xtf32> to vector<4xf32>
    vector.store %w, %out[%c0] : memref<4xf32>, vector<4xf32>
    %d = "fuse.mma"(%ta, %tb, %c) : (vector<4xtf32>, vector<2xtf32>, vector<4xf32>) -> vector<4xf32>
    vector.store %d, %out[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

gpu.module @to_even [#nvvm.target<chip = "sm_80">] {
  gpu.func @to_even(%x: vector<4xf32>, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    // expected-error @below {{arith.truncf of tf32 has no lowering: tf32 may only be multiplied, and extended to f32}}
    %t = arith.truncf %x : vector<4xf32> to vector<4xtf32>
    %w = arith.extf %t : vector<4xtf32> to vector<4xf32>
    vector.store %w, %out[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

gpu.module @int8 [#nvvm.target<chip = "sm_80">] {
  // 32 bytes of k at once; sums of int32 wrap around.
  // CHECK-LABEL: gpu.func @int8(
  // CHECK-SAME: %[[A:[a-z0-9]+]]: vector<16xi8>, %[[B:[a-z0-9]+]]: vector<8xi8>
  // CHECK: vector.bitcast %[[A]] : vector<16xi8> to vector<4xi32>
  // CHECK: vector.bitcast %[[B]] : vector<8xi8> to vector<2xi32>
  // CHECK: nvvm.mma.sync A[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] B[%{{.*}}, %{{.*}}] C[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}]
  // CHECK-SAME: intOverflowBehavior = #nvvm.mma_int_overflow<wrapped>
  // CHECK-SAME: multiplicandAPtxType = #nvvm.mma_type<s8>{{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 32>
  // CHECK-SAME: !llvm.struct<(i32, i32, i32, i32)>
  gpu.func @int8(%a: vector<16xi8>, %b: vector<8xi8>, %c: vector<4xi32>, %out: memref<4xi32>) kernel {
    %c0 = arith.constant 0 : index
    %d = "fuse.mma"(%a, %b, %c) : (vector<16xi8>, vector<8xi8>, vector<4xi32>) -> vector<4xi32>
    vector.store %d, %out[%c0] : memref<4xi32>, vector<4xi32>
    gpu.return
  }
}
