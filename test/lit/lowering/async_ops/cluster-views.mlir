// RUN: mlirfuse-opt --lower-cluster-views --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#shared = #gpu.address_space<workgroup>
gpu.module @read [#nvvm.target<chip = "sm_90">] {
  // CHECK-LABEL: gpu.func @read(
  // CHECK-SAME: %[[RANK:[a-z0-9]+]]: index, %[[I:[a-z0-9]+]]: index, %[[OUT:[a-z0-9]+]]: memref<4xf32>) workgroup(%[[BUFFER:[a-z0-9]+]] :
  gpu.func @read(%rank: index, %i: index, %out: memref<4xf32>) workgroup(%buffer : memref<8x36xf32, #shared>)
      kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : index
    // CHECK: memref.extract_aligned_pointer_as_index %[[BUFFER]]
    // CHECK: %[[RANK32:.*]] = arith.index_cast %[[RANK]] : index to i32
    // CHECK: %[[REMOTE:.*]] = nvvm.mapa %{{.*}}, %[[RANK32]] : !llvm.ptr<3> -> !llvm.ptr<7>
    // CHECK: %[[BASE:.*]] = llvm.ptrtoint %[[REMOTE]]
    %peer = "fuse.cluster_view"(%buffer, %rank) : (memref<8x36xf32, #shared>, index) -> memref<8x36xf32, 7>
    // CHECK: %[[ROW:.*]] = arith.constant 36 : index
    // CHECK: arith.muli %[[I]], %[[ROW]] : index
    // CHECK: %[[ADDRESS:.*]] = arith.addi %[[BASE]], %{{.*}} : i64
    // CHECK: %[[POINTER:.*]] = llvm.inttoptr %[[ADDRESS]] : i64 to !llvm.ptr<7>
    // CHECK: %[[V:.*]] = llvm.load %[[POINTER]] {alignment = 16 : i64} : !llvm.ptr<7> -> vector<4xf32>
    %v = vector.load %peer[%i, %c0] {alignment = 16 : i64} : memref<8x36xf32, 7>, vector<4xf32>
    // CHECK: vector.store %[[V]], %[[OUT]]
    vector.store %v, %out[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

gpu.module @alone [#nvvm.target<chip = "sm_90">] {
  // CHECK-LABEL: gpu.func @alone
  // CHECK-NEXT: gpu.return
  gpu.func @alone() kernel {
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @written [#nvvm.target<chip = "sm_90">] {
  gpu.func @written(%rank: index, %v: f32) workgroup(%buffer : memref<8xf32, #shared>) kernel {
    %peer = "fuse.cluster_view"(%buffer, %rank) : (memref<8xf32, #shared>, index) -> memref<8xf32, 7>
    // expected-error @below {{memref.store cannot access another block's shared memory, only loads can}}
    memref.store %v, %peer[%rank] : memref<8xf32, 7>
    gpu.return
  }
}
