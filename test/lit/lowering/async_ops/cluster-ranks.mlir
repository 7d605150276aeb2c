// RUN: mlirfuse-opt --lower-cluster-ranks --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

gpu.module @rank {
  // CHECK-LABEL: gpu.func @rank(
  gpu.func @rank(%y: memref<?xindex>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 4, 1, 1>} {
    // CHECK: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank range <i32, 0, 4> : i32
    // CHECK: %[[INDEX:.*]] = arith.index_castui %[[RANK]] : i32 to index
    %rank = gpu.cluster_block_id x
    // CHECK: memref.store %{{.*}}, %{{.*}}[%[[INDEX]]]
    memref.store %rank, %y[%rank] : memref<?xindex>
    gpu.return
  }
}

// -----

// Along another dimension a block id is not the rank.
gpu.module @other {
  // CHECK-LABEL: gpu.func @other(
  gpu.func @other(%y: memref<?xindex>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 4, 1, 1>} {
    // CHECK: gpu.cluster_block_id y
    %number = gpu.cluster_block_id y
    memref.store %number, %y[%number] : memref<?xindex>
    gpu.return
  }
}

// -----

// In a cluster of more dimensions the block id is not the rank either.
gpu.module @square {
  // CHECK-LABEL: gpu.func @square(
  // expected-remark @below {{the kernel's clusters are not known to be one-dimensional: [2, 2, 1]}}
  gpu.func @square(%y: memref<?xindex>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 2, 2, 1>} {
    // CHECK: gpu.cluster_block_id x
    %number = gpu.cluster_block_id x
    memref.store %number, %y[%number] : memref<?xindex>
    gpu.return
  }
}
