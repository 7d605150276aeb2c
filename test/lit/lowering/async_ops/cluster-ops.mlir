// RUN: mlirfuse-opt --lower-cluster-ops --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#shared = #gpu.address_space<workgroup>
gpu.module @exchange [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @exchange(
  // CHECK-SAME: %[[VALUE:[a-z0-9]+]]: f32, %[[INDEX:[a-z0-9]+]]: index) workgroup(%[[BUFFER:[a-z0-9]+]] : memref<64xf32, #gpu.address_space<workgroup>>)
  gpu.func @exchange(%value: f32, %index: index) workgroup(%buffer : memref<64xf32, #shared>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 4, 1, 1>} {
    %rank = gpu.cluster_block_id x
    // CHECK: %[[RANK:.*]] = gpu.cluster_block_id x
    // CHECK: %[[RANK32:.*]] = arith.index_cast %[[RANK]] : index to i32
    // CHECK: %[[BASE:.*]] = memref.extract_aligned_pointer_as_index %[[BUFFER]]
    // CHECK: %[[OFFSET:.*]] = arith.muli %[[INDEX]], %{{.*}} : index
    // CHECK: %[[ADDRESS:.*]] = arith.addi %[[BASE]], %[[OFFSET]] : index
    // CHECK: %[[INTEGER:.*]] = arith.index_cast %[[ADDRESS]] : index to i64
    // CHECK: %[[OWN:.*]] = llvm.inttoptr %[[INTEGER]] : i64 to !llvm.ptr<3>
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

// The sending lanes release the earlier accesses of all lanes of the warp. Values and barriers have the same addresses in
// the other block.
#shared = #gpu.address_space<workgroup>
gpu.module @sends [#nvvm.target<chip = "sm_90">] {
  // CHECK-LABEL: gpu.func @sends(
  // CHECK-SAME: %[[VALUE:[a-z0-9]+]]: f32, %[[INDEX:[a-z0-9]+]]: index, %[[RANK:[a-z0-9]+]]: index
  gpu.func @sends(%value: f32, %index: index, %rank: index, %number: index)
      workgroup(%buffer : memref<64xf32, #shared>, %barriers : memref<2xi64, #shared>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 4, 1, 1>} {
    // CHECK: %[[ALL:.*]] = arith.constant -1 : i32
    // CHECK: nvvm.bar.warp.sync %[[ALL]]
    // CHECK: %[[PEERS:.*]] = arith.constant 4 : index
    // CHECK: %[[SENDS:.*]] = arith.cmpi ult, %[[RANK]], %[[PEERS]] : index
    // CHECK: scf.if %[[SENDS]] {
    // CHECK: %[[BLOCK:.*]] = arith.index_cast %[[RANK]] : index to i32
    // CHECK: %[[PLACE:.*]] = nvvm.mapa %{{.*}}, %[[BLOCK]] : !llvm.ptr<3> -> !llvm.ptr<7>
    // CHECK: %[[BARRIER:.*]] = nvvm.mapa %{{.*}}, %[[BLOCK]] : !llvm.ptr<3> -> !llvm.ptr<7>
    // CHECK: %[[WORD:.*]] = arith.bitcast %[[VALUE]] : f32 to i32
    // CHECK: nvvm.inline_ptx "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [$0], $1, [$2];" ro(%[[PLACE]], %[[WORD]], %[[BARRIER]] : !llvm.ptr<7>, i32, !llvm.ptr<7>)
    "fuse.cluster_send"(%value, %buffer, %index, %rank, %barriers, %number) {peers = 4 : i64}
        : (f32, memref<64xf32, #shared>, index, index, memref<2xi64, #shared>, index) -> ()
    gpu.return
  }
}

// -----

// Booleans are bytes in memory.
#shared = #gpu.address_space<workgroup>
gpu.module @bools [#nvvm.target<chip = "sm_90">] {
  // CHECK-LABEL: gpu.func @bools(
  // CHECK-SAME: %[[VALUE:[a-z0-9]+]]: i1
  gpu.func @bools(%value: i1, %index: index, %rank: index) workgroup(%buffer : memref<64xi1, #shared>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 4, 1, 1>} {
    // CHECK: %[[BYTE:.*]] = arith.extui %[[VALUE]] : i1 to i8
    // CHECK: llvm.store %[[BYTE]], %{{.*}} {alignment = 1 : i64} : i8, !llvm.ptr<7>
    "fuse.cluster_store"(%value, %buffer, %index, %rank) : (i1, memref<64xi1, #shared>, index, index) -> ()
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
