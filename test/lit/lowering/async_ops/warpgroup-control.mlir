// RUN: mlirfuse-opt --lower-warpgroup-control --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

gpu.module @roles [#nvvm.target<chip = "sm_90a">] {
  // ptxas must know how many registers a thread starts with.
  // CHECK-LABEL: gpu.func @roles
  // CHECK-SAME: nvvm.minctasm = 1 : i32
  gpu.func @roles(%out: memref<i1>) kernel {
    // CHECK: nvvm.setmaxregister decrease 40
    "fuse.set_registers"() {count = 40 : i64, action = "decrease"} : () -> ()
    // CHECK: nvvm.setmaxregister increase 232
    "fuse.set_registers"() {count = 232 : i64, action = "increase"} : () -> ()
    // CHECK: %[[CHOSEN:.*]] = nvvm.elect.sync -> i1
    %chosen = "fuse.elect_one"() : () -> i1
    // CHECK: memref.store %[[CHOSEN]]
    memref.store %chosen, %out[] : memref<i1>
    // Barrier 0 is the whole block's.
    // CHECK: %[[ID:.*]] = arith.constant 1 : i32
    // CHECK: %[[THREADS:.*]] = arith.constant 256 : i32
    // CHECK: nvvm.barrier id = %[[ID]] number_of_threads = %[[THREADS]]
    "fuse.group_barrier"() {warpgroups = 2 : i64} : () -> ()
    // Other warpgroups use another barrier.
    // CHECK: %[[THIRD:.*]] = arith.constant 3 : i32
    // CHECK: %[[ALONE:.*]] = arith.constant 128 : i32
    // CHECK: nvvm.barrier id = %[[THIRD]] number_of_threads = %[[ALONE]]
    "fuse.group_barrier"() {warpgroups = 1 : i64, first = 2 : i64} : () -> ()
    gpu.return
  }
}

// -----

gpu.module @no_registers [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @no_registers
  // CHECK-NOT: nvvm.minctasm
  // CHECK: gpu.return
  gpu.func @no_registers() kernel {
    "fuse.group_barrier"() {warpgroups = 1 : i64} : () -> ()
    gpu.return
  }
}

// -----

gpu.module @too_old [#nvvm.target<chip = "sm_90">] {
  // expected-error @below {{kernel "too_old" uses fuse.set_registers, which sm_90 does not have}}
  gpu.func @too_old() kernel {
    "fuse.set_registers"() {count = 40 : i64, action = "decrease"} : () -> ()
    gpu.return
  }
}
