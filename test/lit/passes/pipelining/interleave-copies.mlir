// RUN: mlirfuse-opt --show-remarks --fuse-interleave-copies --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

// Four products of vectors of 48, and three copies. By half of the products they would be 32 multiply-adds apart, which
// is too close; by nine tenths there is one for each 1.2 products.
// CHECK-LABEL: gpu.func @three_copies(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<128x48xf32>, %{{.*}} : memref<2x4x48xf32
// CHECK: scf.for
// CHECK: gpu.barrier
// CHECK: %[[MORE:.*]] = arith.cmpi ult
// CHECK: %[[FREE:.*]] = arith.remui
// CHECK: %[[SLOT:.*]] = memref.subview %{{.*}}[%[[FREE]], 0, 0]
// CHECK: vector.load
// CHECK: scf.if %[[MORE]] {
// CHECK-NEXT: nvgpu.device_async_copy %[[X]]{{.*}}, %[[SLOT]]
// CHECK-NEXT: }
// CHECK-NEXT: math.fma
// CHECK: scf.if %[[MORE]] {
// CHECK-NEXT: nvgpu.device_async_copy
// CHECK-NEXT: }
// CHECK-NEXT: math.fma
// CHECK-NEXT: scf.if %[[MORE]] {
// A copy under a condition keeps its own branch.
// CHECK-NEXT: scf.if
// CHECK-NEXT: nvgpu.device_async_copy
// CHECK: math.fma
// CHECK-NEXT: nvvm.cp.async.commit.group
// CHECK-NEXT: math.fma
// CHECK-NEXT: scf.yield
gpu.module @kernels {
  gpu.func @three_copies(%x: memref<128x48xf32>, %some: i1, %y: memref<48xf32>)
      workgroup(%ring: memref<2x4x48xf32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant dense<0.0> : vector<48xf32>
    %sums = scf.for %k = %c0 to %c128 step %c4 iter_args(%sum = %zero) -> (vector<48xf32>) {
      nvvm.cp.async.wait.group 0
      gpu.barrier
      %later = arith.addi %k, %c4 : index
      %more = arith.cmpi ult, %later, %c128 : index
      scf.if %more {
        %free = arith.remui %later, %c2 : index
        %slot = memref.subview %ring[%free, 0, 0] [1, 4, 48] [1, 1, 1]
            : memref<2x4x48xf32, #gpu.address_space<workgroup>> to memref<4x48xf32, strided<[48, 1], offset: ?>, #gpu.address_space<workgroup>>
        %0 = nvgpu.device_async_copy %x[%later, %c0], %slot[%c0, %c0], 4 : memref<128x48xf32> to memref<4x48xf32, strided<[48, 1], offset: ?>, #gpu.address_space<workgroup>>
        %1 = nvgpu.device_async_copy %x[%later, %c1], %slot[%c1, %c0], 4 : memref<128x48xf32> to memref<4x48xf32, strided<[48, 1], offset: ?>, #gpu.address_space<workgroup>>
        scf.if %some {
          %2 = nvgpu.device_async_copy %x[%later, %c2], %slot[%c2, %c0], 4 : memref<128x48xf32> to memref<4x48xf32, strided<[48, 1], offset: ?>, #gpu.address_space<workgroup>>
        }
      }
      nvvm.cp.async.commit.group
      %a = vector.load %ring[%c0, %c0, %c0] : memref<2x4x48xf32, #gpu.address_space<workgroup>>, vector<48xf32>
      %s0 = math.fma %a, %a, %sum : vector<48xf32>
      %b = vector.load %ring[%c0, %c1, %c0] : memref<2x4x48xf32, #gpu.address_space<workgroup>>, vector<48xf32>
      %s1 = math.fma %a, %b, %s0 : vector<48xf32>
      %s2 = math.fma %b, %b, %s1 : vector<48xf32>
      %s3 = math.fma %b, %a, %s2 : vector<48xf32>
      scf.yield %s3 : vector<48xf32>
    }
    vector.store %sums, %y[%c0] : memref<48xf32>, vector<48xf32>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @through_registers(
// CHECK: scf.if
// CHECK: memref.load
// CHECK: nvgpu.device_async_copy
// CHECK: nvvm.cp.async.commit.group
// CHECK-NEXT: math.fma
gpu.module @kernels {
  gpu.func @through_registers(%x: memref<128xf32>, %y: memref<1xf32>)
      workgroup(%ring: memref<2xf32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : f32
    // expected-remark @below {{memref.load stands between the copies}}
    %sums = scf.for %k = %c0 to %c128 step %c1 iter_args(%sum = %zero) -> (f32) {
      %more = arith.cmpi ult, %k, %c128 : index
      scf.if %more {
        %value = memref.load %x[%k] : memref<128xf32>
        memref.store %value, %ring[%c0] : memref<2xf32, #gpu.address_space<workgroup>>
        %copy = nvgpu.device_async_copy %x[%k], %ring[%c1], 1 : memref<128xf32> to memref<2xf32, #gpu.address_space<workgroup>>
      }
      nvvm.cp.async.commit.group
      %next = math.fma %sum, %sum, %sum : f32
      scf.yield %next : f32
    }
    memref.store %sums, %y[%c0] : memref<1xf32>
    gpu.return
  }
}

// -----

// Products behind a barrier of the same step may read data of the copies before it.
// CHECK-LABEL: gpu.func @synchronised(
// CHECK: scf.if
// CHECK: nvgpu.device_async_copy
// CHECK: nvvm.cp.async.commit.group
// CHECK: gpu.barrier
// CHECK-NEXT: math.fma
gpu.module @kernels {
  gpu.func @synchronised(%x: memref<128xf32>, %y: memref<1xf32>)
      workgroup(%ring: memref<2xf32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : f32
    // expected-remark @below {{the block synchronises between the copies and the last product}}
    %sums = scf.for %k = %c0 to %c128 step %c1 iter_args(%sum = %zero) -> (f32) {
      %more = arith.cmpi ult, %k, %c128 : index
      scf.if %more {
        %copy = nvgpu.device_async_copy %x[%k], %ring[%c1], 1 : memref<128xf32> to memref<2xf32, #gpu.address_space<workgroup>>
      }
      nvvm.cp.async.commit.group
      gpu.barrier
      %next = math.fma %sum, %sum, %sum : f32
      scf.yield %next : f32
    }
    memref.store %sums, %y[%c0] : memref<1xf32>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @always(
// CHECK: nvgpu.device_async_copy
// CHECK-NEXT: nvvm.cp.async.commit.group
// CHECK-NEXT: math.fma
gpu.module @kernels {
  gpu.func @always(%x: memref<128xf32>, %y: memref<1xf32>)
      workgroup(%ring: memref<2xf32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : f32
    // expected-remark @below {{its copies are not issued together, in one branch}}
    %sums = scf.for %k = %c0 to %c128 step %c1 iter_args(%sum = %zero) -> (f32) {
      %copy = nvgpu.device_async_copy %x[%k], %ring[%c1], 1 : memref<128xf32> to memref<2xf32, #gpu.address_space<workgroup>>
      nvvm.cp.async.commit.group
      %next = math.fma %sum, %sum, %sum : f32
      scf.yield %next : f32
    }
    memref.store %sums, %y[%c0] : memref<1xf32>
    gpu.return
  }
}
