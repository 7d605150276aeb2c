// RUN: mlirfuse-opt --lower-shared-memory --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#shared = #gpu.address_space<workgroup>
gpu.module @static [#nvvm.target<chip = "sm_90a">] {
  // 48 KiB are still static; buffers are aligned for 16-byte accesses.
  // CHECK-LABEL: gpu.func @static
  // CHECK-SAME: workgroup(%{{.*}} : memref<12284xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64},
  // CHECK-SAME: %{{.*}} : memref<4xi32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
  gpu.func @static() workgroup(%a : memref<12284xf32, #shared>, %b : memref<4xi32, #shared>) kernel {
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @dynamic [#nvvm.target<chip = "sm_90a">] {
  // CHECK: memref.global @dynamic_shared : memref<0xi8, #gpu.address_space<workgroup>> {alignment = 16 : i64}
  // CHECK-LABEL: gpu.func @dynamic(
  // CHECK-SAME: %[[VALUE:.*]]: f32)
  // CHECK-NOT: workgroup(
  // CHECK-SAME: fuse.dynamic_shared_bytes = 80016 : i64
  // CHECK: %[[POOL:.*]] = memref.get_global @dynamic_shared
  // CHECK: %[[C0:.*]] = arith.constant 0 : index
  // CHECK: memref.view %[[POOL]][%[[C0]]][] : {{.*}} to memref<3xf16, #gpu.address_space<workgroup>>
  // CHECK: %[[C16:.*]] = arith.constant 16 : index
  // CHECK: %[[BIG:.*]] = memref.view %[[POOL]][%[[C16]]][] : {{.*}} to memref<20000xf32, #gpu.address_space<workgroup>>
  // expected-remark @below {{80016 bytes of shared memory are allocated at launch}}
  gpu.func @dynamic(%value: f32) workgroup(%a : memref<3xf16, #shared>, %b : memref<20000xf32, #shared>) kernel {
    %t = gpu.thread_id x
    // CHECK: memref.store %[[VALUE]], %[[BIG]]
    memref.store %value, %b[%t] : memref<20000xf32, #shared>
    gpu.return
  }
}

// -----

gpu.module @none [#nvvm.target<chip = "sm_90a">] {
  // expected-remark @below {{the kernel has no shared memory}}
  gpu.func @none() kernel {
    gpu.return
  }
}

// -----

gpu.module @too_much [#nvvm.target<chip = "sm_120">] {
  // expected-error @below {{kernel "too_much" needs 120000 bytes of shared memory, sm_120 has 101376 a block}}
  gpu.func @too_much() workgroup(%a : memref<30000xf32, #gpu.address_space<workgroup>>) kernel {
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @phases [#nvvm.target<chip = "sm_90a">] {
  // Both phases' buffers begin at 0; a buffer without a phase follows the larger phase.
  // CHECK-LABEL: gpu.func @phases
  // CHECK-SAME: fuse.dynamic_shared_bytes = 65552 : i64
  // CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
  // CHECK-DAG: memref.view %{{.*}}[%[[C0]]][] : {{.*}} to memref<16384xf32
  // CHECK-DAG: %[[C65536:.*]] = arith.constant 65536 : index
  // CHECK-DAG: memref.view %{{.*}}[%[[C65536]]][] : {{.*}} to memref<2xi64
  // CHECK-DAG: memref.view %{{.*}}[%{{.*}}][] : {{.*}} to memref<8192xf32
  // expected-remark @below {{65552 bytes of shared memory are allocated at launch}}
  gpu.func @phases() workgroup(%a : memref<16384xf32, #shared> {fuse.phase = 0 : i64}, %b : memref<2xi64, #shared>,
                               %c : memref<8192xf32, #shared> {fuse.phase = 1 : i64}) kernel {
    gpu.return
  }
}
