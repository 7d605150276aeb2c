// RUN: mlirfuse-opt --fuse-prefetch-fragments --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

// Two groups of products. The first fragments are loaded by the previous step; the barrier stands in front of the last products.
// CHECK-LABEL: gpu.func @two_groups(
// CHECK-SAME: %[[RING:[a-z0-9]+]] : memref<3x16x40xf16
// CHECK: nvvm.cp.async.wait.group 1
// CHECK-NEXT: gpu.barrier
// CHECK: %[[START:.*]] = nvgpu.ldmatrix
// CHECK: scf.for %[[K:.*]] = %[[LOWER:.*]] to %[[UPPER:.*]] step %[[STEP:.*]] iter_args(%[[SUM:.*]] = %{{.*}}, %[[A:.*]] = %[[START]])
// CHECK-NOT: gpu.barrier
// CHECK: %[[FLAT:.*]] = vector.shape_cast %[[A]]
// CHECK: %[[B:.*]] = nvgpu.ldmatrix
// CHECK: %[[HALF:.*]] = "fuse.mma"(%[[FLAT]], %{{.*}}, %[[SUM]])
// CHECK: %[[SECOND:.*]] = vector.shape_cast %[[B]]
// CHECK: scf.if
// CHECK: nvvm.cp.async.commit.group
// CHECK: %[[NEXT:.*]] = arith.addi %[[K]], %[[STEP]]
// CHECK: %[[MORE:.*]] = arith.cmpi ult, %[[NEXT]], %[[UPPER]]
// CHECK: %[[THERE:.*]] = arith.select %[[MORE]], %[[NEXT]], %[[K]]
// CHECK: nvvm.cp.async.wait.group 1
// CHECK-NEXT: gpu.barrier
// CHECK: arith.divui %[[THERE]], %[[STEP]]
// CHECK: memref.subview %[[RING]]
// CHECK: %[[AHEAD:.*]] = nvgpu.ldmatrix
// CHECK: %[[WHOLE:.*]] = "fuse.mma"(%[[SECOND]], %{{.*}}, %[[HALF]])
// CHECK: scf.yield %[[WHOLE]], %[[AHEAD]]
gpu.module @kernels {
  gpu.func @two_groups(%x: memref<16x128xf16>, %b: vector<4xf16>, %y: memref<4xf32>)
      workgroup(%ring: memref<3x16x40xf16, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant dense<0.0> : vector<4xf32>
    %sums = scf.for %k = %c0 to %c128 step %c32 iter_args(%sum = %zero) -> (vector<4xf32>) {
      %number = arith.divui %k, %c32 : index
      nvvm.cp.async.wait.group 1
      gpu.barrier
      %later = arith.addi %k, %c64 : index
      %more = arith.cmpi ult, %later, %c128 : index
      scf.if %more {
        %ahead = arith.addi %number, %c2 : index
        %free = arith.remui %ahead, %c3 : index
        %copy = nvgpu.device_async_copy %x[%c0, %later], %ring[%free, %c0, %c0], 8 : memref<16x128xf16> to memref<3x16x40xf16, #gpu.address_space<workgroup>>
      }
      nvvm.cp.async.commit.group
      %full = arith.remui %number, %c3 : index
      %slot = memref.subview %ring[%full, 0, 0] [1, 16, 32] [1, 1, 1]
          : memref<3x16x40xf16, #gpu.address_space<workgroup>> to memref<16x32xf16, strided<[40, 1], offset: ?>, #gpu.address_space<workgroup>>
      %a0 = nvgpu.ldmatrix %slot[%c0, %c0] {numTiles = 4 : i32, transpose = false}
          : memref<16x32xf16, strided<[40, 1], offset: ?>, #gpu.address_space<workgroup>> -> vector<4x2xf16>
      %first = vector.shape_cast %a0 : vector<4x2xf16> to vector<8xf16>
      %half = "fuse.mma"(%first, %b, %sum) : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
      %a1 = nvgpu.ldmatrix %slot[%c0, %c16] {numTiles = 4 : i32, transpose = false}
          : memref<16x32xf16, strided<[40, 1], offset: ?>, #gpu.address_space<workgroup>> -> vector<4x2xf16>
      %second = vector.shape_cast %a1 : vector<4x2xf16> to vector<8xf16>
      %next = "fuse.mma"(%second, %b, %half) : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
      scf.yield %next : vector<4xf32>
    }
    vector.store %sums, %y[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

// One group: its loads are those of the step before, and copies start before the next wait.
// CHECK-LABEL: gpu.func @one_group(
// CHECK: gpu.barrier
// CHECK: nvgpu.ldmatrix
// CHECK: scf.for
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NEXT: gpu.barrier
// CHECK: nvgpu.ldmatrix
// CHECK: "fuse.mma"
gpu.module @kernels {
  gpu.func @one_group(%b: vector<4xf16>, %y: memref<4xf32>)
      workgroup(%ring: memref<2x16x16xf16, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant dense<0.0> : vector<4xf32>
    %sums = scf.for %k = %c0 to %c2 step %c1 iter_args(%sum = %zero) -> (vector<4xf32>) {
      nvvm.cp.async.wait.group 0
      gpu.barrier
      nvvm.cp.async.commit.group
      %a = nvgpu.ldmatrix %ring[%k, %c0, %c0] {numTiles = 4 : i32, transpose = false}
          : memref<2x16x16xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
      %flat = vector.shape_cast %a : vector<4x2xf16> to vector<8xf16>
      %next = "fuse.mma"(%flat, %b, %sum) : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
      scf.yield %next : vector<4xf32>
    }
    vector.store %sums, %y[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

// An operand that is computed in each step needs two barriers.
gpu.module @kernels {
  gpu.func @computed(%b: vector<4xf16>, %y: memref<4xf32>)
      workgroup(%ring: memref<2x16x16xf16, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant dense<0.0> : vector<4xf32>
    // expected-remark @below {{a step waits 1 times for copies, at 2 barriers, not once at one}}
    %sums = scf.for %k = %c0 to %c2 step %c1 iter_args(%sum = %zero) -> (vector<4xf32>) {
      nvvm.cp.async.wait.group 0
      gpu.barrier
      gpu.barrier
      %a = nvgpu.ldmatrix %ring[%k, %c0, %c0] {numTiles = 4 : i32, transpose = false}
          : memref<2x16x16xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
      %flat = vector.shape_cast %a : vector<4x2xf16> to vector<8xf16>
      %next = "fuse.mma"(%flat, %b, %sum) : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
      scf.yield %next : vector<4xf32>
    }
    vector.store %sums, %y[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @elements(%b: vector<4xf16>, %y: memref<4xf32>)
      workgroup(%ring: memref<2x16x16xf16, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant dense<0.0> : vector<4xf32>
    // expected-remark @below {{vector.load reads fragments element by element}}
    %sums = scf.for %k = %c0 to %c2 step %c1 iter_args(%sum = %zero) -> (vector<4xf32>) {
      nvvm.cp.async.wait.group 0
      gpu.barrier
      %a = vector.load %ring[%k, %c0, %c0] : memref<2x16x16xf16, #gpu.address_space<workgroup>>, vector<8xf16>
      %next = "fuse.mma"(%a, %b, %sum) : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
      scf.yield %next : vector<4xf32>
    }
    vector.store %sums, %y[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

// Loads without a barrier before them.
gpu.module @kernels {
  gpu.func @early(%b: vector<4xf16>, %y: memref<4xf32>)
      workgroup(%ring: memref<2x16x16xf16, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant dense<0.0> : vector<4xf32>
    // expected-remark @below {{products do not wait for copies before they load their operands}}
    %sums = scf.for %k = %c0 to %c2 step %c1 iter_args(%sum = %zero) -> (vector<4xf32>) {
      %a = nvgpu.ldmatrix %ring[%k, %c0, %c0] {numTiles = 4 : i32, transpose = false}
          : memref<2x16x16xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
      nvvm.cp.async.wait.group 0
      gpu.barrier
      %flat = vector.shape_cast %a : vector<4x2xf16> to vector<8xf16>
      %next = "fuse.mma"(%flat, %b, %sum) : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
      scf.yield %next : vector<4xf32>
    }
    vector.store %sums, %y[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

// A loop that the pass has rewritten is left alone.
gpu.module @kernels {
  gpu.func @again(%b: vector<4xf16>, %y: memref<4xf32>, %first: vector<4x2xf16>)
      workgroup(%ring: memref<2x16x16xf16, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant dense<0.0> : vector<4xf32>
    // expected-remark @below {{its first fragments are prefetched already}}
    %sums:2 = scf.for %k = %c0 to %c2 step %c1 iter_args(%sum = %zero, %a = %first) -> (vector<4xf32>, vector<4x2xf16>) {
      %flat = vector.shape_cast %a : vector<4x2xf16> to vector<8xf16>
      nvvm.cp.async.wait.group 0
      gpu.barrier
      %ahead = nvgpu.ldmatrix %ring[%k, %c0, %c0] {numTiles = 4 : i32, transpose = false}
          : memref<2x16x16xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
      %next = "fuse.mma"(%flat, %b, %sum) : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
      scf.yield %next, %ahead : vector<4xf32>, vector<4x2xf16>
    }
    vector.store %sums#0, %y[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

// Rows that are not aligned are copied element by element.
gpu.module @kernels {
  gpu.func @copies_through_registers(%x: memref<16x33xf16>, %b: vector<4xf16>, %y: memref<4xf32>)
      workgroup(%ring: memref<2x16x16xf16, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant dense<0.0> : vector<4xf32>
    // expected-remark @below {{copies go through registers, which prefetched fragments would need}}
    %sums = scf.for %k = %c0 to %c2 step %c1 iter_args(%sum = %zero) -> (vector<4xf32>) {
      nvvm.cp.async.wait.group 0
      gpu.barrier
      %more = arith.cmpi ult, %k, %c1 : index
      scf.if %more {
        %copied = memref.load %x[%c0, %k] : memref<16x33xf16>
        memref.store %copied, %ring[%c1, %c0, %c0] : memref<2x16x16xf16, #gpu.address_space<workgroup>>
      }
      nvvm.cp.async.commit.group
      %a = nvgpu.ldmatrix %ring[%k, %c0, %c0] {numTiles = 4 : i32, transpose = false}
          : memref<2x16x16xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
      %flat = vector.shape_cast %a : vector<4x2xf16> to vector<8xf16>
      %next = "fuse.mma"(%flat, %b, %sum) : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
      scf.yield %next : vector<4xf32>
    }
    vector.store %sums, %y[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}
