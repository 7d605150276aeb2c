// RUN: mlirfuse-opt --lower-prefetches --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

// One thread prefetches, if all rows exist. Addresses and sizes are multiples of 16 bytes.
gpu.module @rows [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @rows(
  // CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x5140xf16>, %[[ROW:[a-z0-9]+]]: index)
  gpu.func @rows(%x: memref<?x5140xf16>, %row: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // CHECK: %[[THREAD:.*]] = gpu.thread_id x
    // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[THREAD]], %c0{{.*}} : index
    // CHECK: %[[END:.*]] = arith.addi %[[ROW]], %c2{{.*}} : index
    // CHECK: %[[ROWS:.*]] = memref.dim %[[X]], %c0
    // CHECK: %[[EXIST:.*]] = arith.cmpi ule, %[[END]], %[[ROWS]] : index
    // CHECK: %[[ASKS:.*]] = arith.andi %[[FIRST]], %[[EXIST]] : i1
    // CHECK: scf.if %[[ASKS]] {
    // CHECK: arith.muli %[[ROW]], %c5140{{.*}} : index
    // CHECK: %[[START:.*]] = llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<1>
    // CHECK: %[[P:.*]] = llvm.intr.ptrmask %[[START]], %c-16_i64
    // CHECK: %[[SIZE:.*]] = arith.constant 20560 : i32
    // CHECK: nvvm.cp.async.bulk.prefetch %[[P]], %[[SIZE]] : <1>
    // CHECK-NOT: fuse.prefetch_rows
    "fuse.prefetch_rows"(%x, %row) {rows = 2 : i64} : (memref<?x5140xf16>, index) -> ()
    gpu.return
  }
}

// -----

// Each block of a cluster prefetches its share.
gpu.module @shared [#nvvm.target<chip = "sm_90">] {
  // CHECK-LABEL: gpu.func @shared(
  gpu.func @shared(%x: memref<?x4096xf32>, %row: index)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 4, 1, 1>} {
    // CHECK: %[[RANK:.*]] = gpu.cluster_block_id x
    // CHECK: %[[SHARE:.*]] = arith.muli %[[RANK]], %c4096{{.*}} : index
    // CHECK: %[[BYTES:.*]] = arith.index_cast %[[SHARE]] : index to i64
    // CHECK: %[[START:.*]] = llvm.getelementptr %{{.*}}[%[[BYTES]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    // CHECK: llvm.intr.ptrmask %[[START]], %c-16_i64
    // CHECK: arith.constant 4096 : i32
    // CHECK-NEXT: nvvm.cp.async.bulk.prefetch
    "fuse.prefetch_rows"(%x, %row) {rows = 1 : i64} : (memref<?x4096xf32>, index) -> ()
    gpu.return
  }
}

// -----

// Less than 16 bytes are not prefetched.
gpu.module @short [#nvvm.target<chip = "sm_90">] {
  // CHECK-LABEL: gpu.func @short(
  // CHECK-NEXT: gpu.return
  gpu.func @short(%x: memref<?x3xf32>, %row: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    "fuse.prefetch_rows"(%x, %row) {rows = 1 : i64} : (memref<?x3xf32>, index) -> ()
    gpu.return
  }
}

// -----

gpu.module @old [#nvvm.target<chip = "sm_80">] {
  gpu.func @old(%x: memref<?x4096xf32>, %row: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-error @+1 {{kernel "old" prefetches in bulk, which sm_80 does not support}}
    "fuse.prefetch_rows"(%x, %row) {rows = 1 : i64} : (memref<?x4096xf32>, index) -> ()
    gpu.return
  }
}
