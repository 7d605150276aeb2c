// RUN: mlirfuse-opt --lower-mbarriers --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#shared = #gpu.address_space<workgroup>
gpu.module @ring [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @ring(
  // CHECK-SAME: %[[STAGE:[a-z0-9]+]]: index, %[[PARITY:[a-z0-9]+]]: i32) workgroup(%[[FULL:[a-z0-9]+]] :
  gpu.func @ring(%stage: index, %parity: i32) workgroup(%full : memref<2xi64, #shared>) kernel {
    // Thread 0 initialises each barrier, and a fence makes them visible to the asynchronous proxy.
    // CHECK: %[[FIRST:.*]] = arith.cmpi eq
    // CHECK-NEXT: scf.if %[[FIRST]] {
    // CHECK: %[[COUNT:.*]] = arith.constant 3 : i32
    // CHECK: nvvm.mbarrier.init %{{.*}}, %[[COUNT]] : !llvm.ptr<3>, i32
    // CHECK: nvvm.mbarrier.init %{{.*}}, %[[COUNT]] : !llvm.ptr<3>, i32
    // CHECK-NEXT: nvvm.fence.mbarrier.init
    "fuse.mbarrier_init"(%full) {arrivals = 3 : i64} : (memref<2xi64, #shared>) -> ()
    // One thread of each warpgroup arrives.
    // CHECK: %[[MASK:.*]] = arith.constant 127 : i32
    // CHECK: %[[NUMBER:.*]] = arith.andi %{{.*}}, %[[MASK]] : i32
    // CHECK: %[[LEADS:.*]] = arith.cmpi ult, %[[NUMBER]], %c1_i32
    // CHECK: scf.if %[[LEADS]] {
    // CHECK: nvvm.mbarrier.arrive %{{.*}} : !llvm.ptr<3>
    "fuse.mbarrier_arrive"(%full, %stage) {warpgroups = 2 : i64} : (memref<2xi64, #shared>, index) -> ()
    // CHECK: %[[BYTES:.*]] = arith.constant 4096 : i32
    // CHECK: %[[BASE:.*]] = memref.extract_aligned_pointer_as_index %[[FULL]]
    // CHECK: %[[EIGHT:.*]] = arith.constant 8 : index
    // CHECK: %[[OFFSET:.*]] = arith.muli %[[STAGE]], %[[EIGHT]] : index
    // CHECK: arith.addi %[[BASE]], %[[OFFSET]] : index
    // CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %[[BYTES]] : !llvm.ptr<3>, i32
    "fuse.mbarrier_expect"(%full, %stage) {bytes = 4096 : i64} : (memref<2xi64, #shared>, index) -> ()
    // CHECK: scf.while : () -> () {
    // CHECK-NEXT: %[[DONE:.*]] = nvvm.mbarrier.try_wait %{{.*}}, %[[PARITY]] : !llvm.ptr<3>, i32 -> i1
    // CHECK: %[[AGAIN:.*]] = arith.xori %[[DONE]]
    // CHECK-NEXT: scf.condition(%[[AGAIN]])
    "fuse.mbarrier_wait"(%full, %stage, %parity) : (memref<2xi64, #shared>, index, i32) -> ()
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @peers [#nvvm.target<chip = "sm_90a">] {
  // The first threads of a warpgroup arrive at one block's barrier each.
  // CHECK-LABEL: gpu.func @peers
  // CHECK: %[[NUMBER:.*]] = arith.andi
  // CHECK: %[[TWO:.*]] = arith.constant 2 : i32
  // CHECK: %[[ONE_OF:.*]] = arith.cmpi ult, %[[NUMBER]], %[[TWO]]
  // CHECK: scf.if %[[ONE_OF]] {
  // CHECK: %[[REMOTE:.*]] = nvvm.mapa %{{.*}}, %[[NUMBER]] : !llvm.ptr<3> -> !llvm.ptr<7>
  // CHECK: nvvm.mbarrier.arrive %[[REMOTE]] : !llvm.ptr<7>
  gpu.func @peers(%stage: index) workgroup(%empty : memref<2xi64, #shared>) kernel {
    "fuse.mbarrier_arrive"(%empty, %stage) {warpgroups = 2 : i64, peers = 2 : i64} : (memref<2xi64, #shared>, index) -> ()
    gpu.return
  }
}

// -----

// Data that other blocks send is acquired at cluster scope, on any architecture with clusters.
#shared = #gpu.address_space<workgroup>
gpu.module @sent [#nvvm.target<chip = "sm_120">] {
  // CHECK-LABEL: gpu.func @sent
  // CHECK: nvvm.mbarrier.try_wait %{{.*}} {scope = #nvvm.mem_scope<cluster>}
  gpu.func @sent(%number: index, %parity: i32) workgroup(%barriers : memref<2xi64, #shared>) kernel {
    "fuse.mbarrier_wait"(%barriers, %number, %parity) {cluster} : (memref<2xi64, #shared>, index, i32) -> ()
    gpu.return
  }
}

// -----

gpu.module @alone [#nvvm.target<chip = "sm_80">] {
  // CHECK-LABEL: gpu.func @alone
  // CHECK-NEXT: gpu.return
  gpu.func @alone() kernel {
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @too_old [#nvvm.target<chip = "sm_80">] {
  // expected-error @below {{kernel "too_old" uses fuse.mbarrier_init, which sm_80 does not have}}
  gpu.func @too_old() workgroup(%full : memref<2xi64, #shared>) kernel {
    "fuse.mbarrier_init"(%full) {arrivals = 1 : i64} : (memref<2xi64, #shared>) -> ()
    gpu.return
  }
}
