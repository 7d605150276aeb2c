// RUN: mlirfuse-opt --lower-semaphores --split-input-file %s | FileCheck %s
// RUN: mlirfuse-opt --lower-semaphores --lower-kernel-abi --split-input-file --emit=ptx --target=sm_90a %s | FileCheck %s --check-prefix=PTX
// RUN: mlirfuse-opt --lower-semaphores --lower-kernel-abi --split-input-file --emit=ptx --target=sm_80 %s | FileCheck %s --check-prefix=PTX

gpu.module @last {
  // CHECK-LABEL: gpu.func @last(
  // CHECK-SAME: memref<?xi32>, %[[S:[a-z0-9]+]]: memref<?xi32>, %[[SLOT:[a-z0-9]+]]: index, %[[LIMIT:[a-z0-9]+]]: i32
  // PTX-LABEL: .entry last(
  gpu.func @last(%y: memref<?xi32>, %semaphores: memref<?xi32>, %slot: index, %limit: i32) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    memref.store %limit, %y[%t] : memref<?xi32>
    // PTX: st.global
    gpu.barrier
    // PTX: bar.sync
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {
      // CHECK: %[[BASE:.*]] = memref.extract_aligned_pointer_as_index %[[S]]
      // CHECK: %[[ADDRESS:.*]] = arith.addi %[[BASE]]
      // CHECK: %[[INTEGER:.*]] = arith.index_cast %[[ADDRESS]] : index to i64
      // CHECK: %[[P:.*]] = llvm.inttoptr %[[INTEGER]] : i64 to !llvm.ptr<1>
      // CHECK: %[[OLD:.*]] = nvvm.inline_ptx "atom.acq_rel.gpu.global.inc.u32 $0, [$1], $2;" ro(%[[P]], %[[LIMIT]] : !llvm.ptr<1>, i32) -> i32
      // CHECK: memref.store %[[OLD]]
      // PTX: atom.acq_rel.gpu.global.inc.u32 [[OLD:%r[0-9]+]], [%rd{{[0-9]+}}], %r{{[0-9]+}};
      // PTX: st.global.b32 [%rd{{[0-9]+}}], [[OLD]];
      %old = "fuse.semaphore_arrive"(%semaphores, %slot, %limit) : (memref<?xi32>, index, i32) -> i32
      memref.store %old, %y[%c0] : memref<?xi32>
    }
    gpu.return
  }
}

// -----

// Data written before the wait are read after it, and not through the read-only path.
gpu.module @wait {
  // CHECK-LABEL: gpu.func @wait(
  // PTX-LABEL: .entry wait(
  gpu.func @wait(%y: memref<?xi32>, %count: i32, %semaphores: memref<4xi32> {fuse.workspace = "semaphores"},
                 %scratch: memref<4xi32> {fuse.workspace = "scratch"})
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {
      // CHECK: scf.while
      // CHECK-NEXT: %[[SEEN:.*]] = nvvm.inline_ptx "ld.acquire.gpu.global.u32 $0, [$1];" ro(%{{.*}} : !llvm.ptr<1>) -> i32
      // CHECK-NEXT: %[[EARLY:.*]] = arith.cmpi ult, %[[SEEN]], %{{.*}} : i32
      // CHECK-NEXT: scf.condition(%[[EARLY]])
      // PTX: [[AGAIN:\$L.*]]:
      // PTX: ld.acquire.gpu.global.u32 [[SEEN:%r[0-9]+]], [%rd{{[0-9]+}}];
      // PTX: setp.lt.u32 [[EARLY:%p[0-9]+]], [[SEEN]],
      // PTX: @[[EARLY]] bra [[AGAIN]];
      "fuse.semaphore_wait"(%semaphores, %c0, %count) : (memref<4xi32>, index, i32) -> ()
    }
    // PTX: bar.sync
    gpu.barrier
    // PTX: ld.global.b32
    %v = memref.load %scratch[%c0] : memref<4xi32>
    memref.store %v, %y[%t] : memref<?xi32>
    gpu.return
  }
}

// -----

// A ticket does not order memory.
gpu.module @ticket {
  // CHECK-LABEL: gpu.func @ticket(
  // PTX-LABEL: .entry ticket(
  gpu.func @ticket(%semaphores: memref<8xi32>, %slot: index, %limit: i32, %y: memref<8xi32>) kernel
      attributes {known_block_size = array<i32: 1, 1, 1>} {
    // CHECK: nvvm.inline_ptx "atom.relaxed.gpu.global.inc.u32 $0, [$1], $2;"
    // PTX: atom.relaxed.gpu.global.inc.u32
    %old = "fuse.semaphore_arrive"(%semaphores, %slot, %limit) {relaxed} : (memref<8xi32>, index, i32) -> i32
    memref.store %old, %y[%slot] : memref<8xi32>
    gpu.return
  }
}

// -----

// An arrival whose result is unused does not wait: it releases, or orders nothing.
gpu.module @unasked {
  // CHECK-LABEL: gpu.func @unasked(
  // PTX-LABEL: .entry unasked(
  gpu.func @unasked(%semaphores: memref<8xi32>, %slot: index, %limit: i32) kernel
      attributes {known_block_size = array<i32: 1, 1, 1>} {
    // CHECK: nvvm.inline_ptx "red.release.gpu.global.inc.u32 [$0], $1;" ro(%{{.*}}, %{{.*}} : !llvm.ptr<1>, i32)
    // PTX: red.release.gpu.global.inc.u32 [%rd{{[0-9]+}}], %r{{[0-9]+}};
    %0 = "fuse.semaphore_arrive"(%semaphores, %slot, %limit) : (memref<8xi32>, index, i32) -> i32
    // CHECK: nvvm.inline_ptx "red.relaxed.gpu.global.inc.u32 [$0], $1;"
    // PTX: red.relaxed.gpu.global.inc.u32
    %1 = "fuse.semaphore_arrive"(%semaphores, %slot, %limit) {relaxed} : (memref<8xi32>, index, i32) -> i32
    gpu.return
  }
}

// -----

gpu.module @none {
  // CHECK-LABEL: gpu.func @none
  // CHECK-NEXT: gpu.return
  gpu.func @none() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    gpu.return
  }
}
