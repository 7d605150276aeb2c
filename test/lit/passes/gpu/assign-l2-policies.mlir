// RUN: mlirfuse-opt --fuse-assign-l2-policies --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks
// RUN: mlirfuse-opt --fuse-assign-l2-policies --fuse-assign-l2-policies --split-input-file %s | FileCheck %s
// RUN: mlirfuse-opt --fuse-assign-l2-policies --target=sm_80 --split-input-file %s | FileCheck %s --check-prefix=SM80
// RUN: mlirfuse-opt --fuse-assign-l2-policies --sms=8 --split-input-file --show-remarks %s 2>&1 | FileCheck %s --check-prefix=SMALL

#shared = #gpu.address_space<workgroup>

// Data that all blocks read are evicted last, except arrays that are written, are workspaces or have dynamic extents, and
// ordered loads.
// REMARK: applied: row evicts 1 loads last, and 1 first up to 25 MB
// CHECK-LABEL: gpu.func @row(
// CHECK-SAME: fuse.evict_first_up_to = 26214400 : i64
// SM80: fuse.evict_first_up_to = 20971520 : i64
// CHECK: vector.load %arg0[%{{.*}}] {alignment = 4 : i64, nontemporal = true} :
// CHECK: vector.load %arg1[%{{.*}}] {alignment = 4 : i64, fuse.evict_last} :
// CHECK: vector.load %arg2[%{{.*}}] {alignment = 4 : i64} :
// CHECK: vector.load %arg3[%{{.*}}] {alignment = 4 : i64} :
// CHECK: vector.load %arg1[%{{.*}}] {alignment = 4 : i64, fuse.in_order} :
// CHECK: vector.load %arg4[%{{.*}}] {alignment = 4 : i64} :
// CHECK: vector.load %{{.*}}[%{{.*}}] {alignment = 4 : i64} : memref<128xf32, #gpu.address_space<workgroup>>
gpu.module @row {
  gpu.func @row(%x: memref<?x128xf32>, %w: memref<128xf32>, %n: memref<?xf32>, %y: memref<128xf32>,
      %parts: memref<128xf32> {fuse.workspace = "scratch"}) workgroup(%s : memref<128xf32, #shared>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %x0 = vector.load %x[%b, %t] {alignment = 4 : i64, nontemporal = true} : memref<?x128xf32>, vector<1xf32>
    %w0 = vector.load %w[%t] {alignment = 4 : i64} : memref<128xf32>, vector<1xf32>
    %n0 = vector.load %n[%t] {alignment = 4 : i64} : memref<?xf32>, vector<1xf32>
    %y0 = vector.load %y[%t] {alignment = 4 : i64} : memref<128xf32>, vector<1xf32>
    %w1 = vector.load %w[%t] {alignment = 4 : i64, fuse.in_order} : memref<128xf32>, vector<1xf32>
    %p0 = vector.load %parts[%t] {alignment = 4 : i64} : memref<128xf32>, vector<1xf32>
    gpu.barrier
    %s0 = vector.load %s[%t] {alignment = 4 : i64} : memref<128xf32, #shared>, vector<1xf32>
    vector.store %s0, %y[%t] {alignment = 4 : i64} : memref<128xf32>, vector<1xf32>
    gpu.return
  }
}

// -----

// The asynchronous copies of a persistent loop are streams, evicted first up to a smaller limit. Partials in scratch memory
// are evicted last when stored, and first when loaded. Weights and results are left alone.
// REMARK: applied: copies evicts 1 stores last, and 1 loads first; and 1 copies up to 20 MB
// CHECK-LABEL: gpu.func @copies(
// CHECK-SAME: fuse.evict_first_up_to = 20971520 : i64
// SM80: fuse.evict_first_up_to = 16777216 : i64
// CHECK: vector.load %arg1[%{{.*}}] {alignment = 4 : i64} :
// CHECK: nvgpu.device_async_copy %arg0{{.*}} {fuse.evict_first, nontemporal = true} :
// CHECK: nvgpu.device_async_copy %arg1{{.*}}, 1 :
// CHECK: vector.store %{{.*}}, %arg2[%{{.*}}] {alignment = 4 : i64, nontemporal = true} :
// CHECK: vector.store %{{.*}}, %arg3[%{{.*}}] {alignment = 4 : i64, fuse.evict_last} :
// CHECK: vector.load %{{.*}}[%{{.*}}] {alignment = 4 : i64, fuse.evict_first} : memref<?x128xf32, strided
// CHECK: vector.load %arg4[%{{.*}}] {alignment = 4 : i64} :
#shared = #gpu.address_space<workgroup>
gpu.module @copies {
  gpu.func @copies(%x: memref<?x128xf32>, %w: memref<128xf32>, %y: memref<?x128xf32>,
      %parts: memref<?x128xf32> {fuse.workspace = "scratch"}, %sums: memref<128xf32> {fuse.workspace = "semaphores"}, %rows: index)
      workgroup(%s : memref<128xf32, #shared>, %v : memref<128xf32, #shared>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %w0 = vector.load %w[%t] {alignment = 4 : i64} : memref<128xf32>, vector<1xf32>
    scf.for %i = %c0 to %rows step %c1 {
      %0 = nvgpu.device_async_copy %x[%i, %t], %s[%t], 1 {fuse.evict_first, nontemporal = true} : memref<?x128xf32> to memref<128xf32, #shared>
      %1 = nvgpu.device_async_copy %w[%t], %v[%t], 1 : memref<128xf32> to memref<128xf32, #shared>
      vector.store %w0, %y[%i, %t] {alignment = 4 : i64, nontemporal = true} : memref<?x128xf32>, vector<1xf32>
    }
    vector.store %w0, %parts[%b, %t] {alignment = 4 : i64} : memref<?x128xf32>, vector<1xf32>
    gpu.barrier
    %all = memref.subview %parts[0, 0] [%rows, 128] [1, 1] : memref<?x128xf32> to memref<?x128xf32, strided<[128, 1]>>
    %p0 = vector.load %all[%b, %t] {alignment = 4 : i64} : memref<?x128xf32, strided<[128, 1]>>, vector<1xf32>
    %a0 = vector.load %sums[%t] {alignment = 4 : i64} : memref<128xf32>, vector<1xf32>
    gpu.return
  }
}

// -----

// Copies without `streamed` are left alone; partials in scratch memory are marked.
// REMARK: applied: stay evicts 1 stores last, and 0 loads first
// CHECK-LABEL: gpu.func @stay(
// CHECK-NOT: fuse.evict_first
// CHECK: vector.store %{{.*}}, %arg1[%{{.*}}] {alignment = 4 : i64, fuse.evict_last} :
#shared = #gpu.address_space<workgroup>
gpu.module @stay {
  gpu.func @stay(%x: memref<?x128xf32>, %parts: memref<?x128xf32> {fuse.workspace = "scratch"}, %rows: index)
      workgroup(%s : memref<128xf32, #shared>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = gpu.block_id x
    %t = gpu.thread_id x
    scf.for %i = %c0 to %rows step %c1 {
      %0 = nvgpu.device_async_copy %x[%i, %t], %s[%t], 1 {nontemporal = true} : memref<?x128xf32> to memref<128xf32, #shared>
    }
    %s0 = vector.load %s[%t] {alignment = 4 : i64} : memref<128xf32, #shared>, vector<1xf32>
    vector.store %s0, %parts[%b, %t] {alignment = 4 : i64} : memref<?x128xf32>, vector<1xf32>
    gpu.return
  }
}

// -----

// REMARK: declined: blocks of loop run a persistent loop without asynchronous copies
// CHECK-LABEL: gpu.func @loop(
// CHECK-NOT: fuse.evict
gpu.module @loop {
  gpu.func @loop(%x: memref<?x128xf32>, %w: memref<128xf32>, %rows: index)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = gpu.thread_id x
    scf.for %i = %c0 to %rows step %c1 {
      %x0 = vector.load %x[%i, %t] {alignment = 4 : i64, nontemporal = true} : memref<?x128xf32>, vector<1xf32>
      gpu.barrier
    }
    gpu.return
  }
}

// -----

// REMARK: declined: all has no streaming loads
// CHECK-LABEL: gpu.func @all(
// CHECK-NOT: fuse.evict
gpu.module @all {
  gpu.func @all(%w: memref<128xf32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %t = gpu.thread_id x
    %w0 = vector.load %w[%t] {alignment = 4 : i64} : memref<128xf32>, vector<1xf32>
    gpu.barrier
    gpu.return
  }
}

// -----

// REMARK: declined: threads of map exchange no data
// CHECK-LABEL: gpu.func @map(
// CHECK-NOT: fuse.evict
gpu.module @map {
  gpu.func @map(%x: memref<?xf32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %t = gpu.thread_id x
    %x0 = vector.load %x[%t] {alignment = 4 : i64, nontemporal = true} : memref<?xf32>, vector<1xf32>
    gpu.return
  }
}

// -----

// 8 loads of 16 bytes of 512 threads, two blocks an SM: a third of the L2, but little of it on 8 of them.
// REMARK: declined: a wave reads 16 MB at once, too much for the L2 of 50 MB
// SMALL: applied: wide evicts 0 loads last, and 8 first up to 25 MB
// CHECK-LABEL: gpu.func @wide(
// CHECK-NOT: fuse.evict
gpu.module @wide {
  gpu.func @wide(%x: memref<?x32768xf16>)
      kernel attributes {known_block_size = array<i32: 512, 1, 1>, nvvm.minctasm = 2 : i32} {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %0 = vector.load %x[%b, %t] {alignment = 16 : i64, nontemporal = true} : memref<?x32768xf16>, vector<8xf16>
    %1 = vector.load %x[%b, %t] {alignment = 16 : i64, nontemporal = true} : memref<?x32768xf16>, vector<8xf16>
    %2 = vector.load %x[%b, %t] {alignment = 16 : i64, nontemporal = true} : memref<?x32768xf16>, vector<8xf16>
    %3 = vector.load %x[%b, %t] {alignment = 16 : i64, nontemporal = true} : memref<?x32768xf16>, vector<8xf16>
    %4 = vector.load %x[%b, %t] {alignment = 16 : i64, nontemporal = true} : memref<?x32768xf16>, vector<8xf16>
    %5 = vector.load %x[%b, %t] {alignment = 16 : i64, nontemporal = true} : memref<?x32768xf16>, vector<8xf16>
    %6 = vector.load %x[%b, %t] {alignment = 16 : i64, nontemporal = true} : memref<?x32768xf16>, vector<8xf16>
    %7 = vector.load %x[%b, %t] {alignment = 16 : i64, nontemporal = true} : memref<?x32768xf16>, vector<8xf16>
    gpu.barrier
    gpu.return
  }
}

// -----

// Two arrays of 1 MB: lines that are evicted last would fill too much of the L2.
// REMARK: declined: all blocks read 2 MB, too much for the L2 of 50 MB
// CHECK-LABEL: gpu.func @tables(
// CHECK-NOT: fuse.evict
gpu.module @tables {
  gpu.func @tables(%x: memref<?x262144xf32>, %v: memref<262144xf32>, %w: memref<262144xf32>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %x0 = vector.load %x[%b, %t] {alignment = 4 : i64, nontemporal = true} : memref<?x262144xf32>, vector<1xf32>
    %v0 = vector.load %v[%t] {alignment = 4 : i64} : memref<262144xf32>, vector<1xf32>
    %w0 = vector.load %w[%t] {alignment = 4 : i64} : memref<262144xf32>, vector<1xf32>
    gpu.barrier
    gpu.return
  }
}

// -----

// Without a block size, the bytes of a wave are unknown.
// REMARK: declined: the block size of unsized is unknown
// CHECK-LABEL: gpu.func @unsized(
// CHECK-NOT: fuse.evict
gpu.module @unsized {
  gpu.func @unsized(%x: memref<?x128xf32>, %w: memref<128xf32>) kernel {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %x0 = vector.load %x[%b, %t] {alignment = 4 : i64, nontemporal = true} : memref<?x128xf32>, vector<1xf32>
    %w0 = vector.load %w[%t] {alignment = 4 : i64} : memref<128xf32>, vector<1xf32>
    gpu.barrier
    gpu.return
  }
}
