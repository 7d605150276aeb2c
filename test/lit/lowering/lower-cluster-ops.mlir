// RUN: mlirfuse-opt --lower-cluster-ops --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#shared = #gpu.address_space<workgroup>
gpu.module @exchange [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @exchange(
  // CHECK-SAME: %[[VALUE:[a-z0-9]+]]: f32, %[[INDEX:[a-z0-9]+]]: index) workgroup(%[[BUFFER:[a-z0-9]+]] : memref<64xf32, #gpu.address_space<workgroup>>)
  gpu.func @exchange(%value: f32, %index: index) workgroup(%buffer : memref<64xf32, #shared>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 4, 1, 1>} {
    %rank = gpu.cluster_block_id x
    // CHECK: %[[RANK:.*]] = gpu.cluster_block_id x
    // CHECK: %[[OFFSET:.*]] = arith.muli %[[INDEX]], %{{.*}} : index
    // CHECK: %[[BASE:.*]] = memref.extract_aligned_pointer_as_index %[[BUFFER]]
    // CHECK: %[[ADDRESS:.*]] = arith.addi %[[BASE]], %[[OFFSET]] : index
    // CHECK: %[[INTEGER:.*]] = arith.index_cast %[[ADDRESS]] : index to i64
    // CHECK: %[[OWN:.*]] = llvm.inttoptr %[[INTEGER]] : i64 to !llvm.ptr<3>
    // CHECK: %[[RANK32:.*]] = arith.index_cast %[[RANK]] : index to i32
    // CHECK: %[[REMOTE:.*]] = nvvm.mapa %[[OWN]], %[[RANK32]] : !llvm.ptr<3> -> !llvm.ptr<7>
    // CHECK: llvm.store %[[VALUE]], %[[REMOTE]] {alignment = 4 : i64} : f32, !llvm.ptr<7>
    "fuse.cluster_store"(%value, %buffer, %index, %rank) : (f32, memref<64xf32, #shared>, index, index) -> ()
    // CHECK: nvvm.cluster.arrive {aligned}
    // CHECK: nvvm.cluster.wait {aligned}
    "fuse.cluster_barrier"() : () -> ()
    gpu.return
  }
}

// -----

gpu.module @alone {
  // CHECK-LABEL: gpu.func @alone
  // CHECK-NEXT: gpu.return
  gpu.func @alone() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    gpu.return
  }
}

// -----

gpu.module @too_old [#nvvm.target<chip = "sm_80">] {
  // expected-error @below {{kernel "too_old" uses thread-block clusters, and sm_80 has none}}
  gpu.func @too_old() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    gpu.return
  }
}

// -----

gpu.module @no_cluster [#nvvm.target<chip = "sm_90">] {
  // expected-error @below {{kernel "no_cluster" has cluster ops but no known_cluster_size}}
  gpu.func @no_cluster() kernel {
    "fuse.cluster_barrier"() : () -> ()
    gpu.return
  }
}

// -----

gpu.module @no_target {
  // expected-error @below {{kernel "no_target" has no NVVM target}}
  gpu.func @no_target() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    gpu.return
  }
}
