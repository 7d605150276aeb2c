// RUN: mlirfuse-opt --lower-async-copies --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s
// RUN: mlirfuse-opt --pass-pipeline="builtin.module(lower-async-copies,lower-kernel-abi)" --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s --check-prefix=ABI

#shared = #gpu.address_space<workgroup>
gpu.module @swizzle_atoms [#nvvm.target<chip = "sm_90a">] {
  // A stage of 256 bytes a row is two swizzle atoms; the map's innermost dimension comes first.
  // CHECK-LABEL: gpu.func @swizzle_atoms(
  // CHECK-SAME: %[[MAP:[a-z0-9]+]]: !llvm.ptr {fuse.tensor_map = {arg = 0 : i64, box = array<i64: 64, 64, 1>, dims = array<i64: 2, 1, 0>}})
  // ABI-LABEL: gpu.func @swizzle_atoms(
  // ABI-SAME: !llvm.ptr)
  // ABI-SAME: {arg = 0 : i64, box = array<i64: 64, 64, 1>, dim = 0 : i64, dims = array<i64: 2, 1, 0>, kind = "tensor_map"}
  gpu.func @swizzle_atoms(%x: memref<3x?x512xbf16>, %b: index, %k: index, %m: index, %stage: index)
      workgroup(%ring : memref<2x64x128xbf16, #shared>, %full : memref<2xi64, #shared>) kernel {
    // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAP]], %[[BARRIER:.*]], box[%[[M:.*]], %[[K:.*]], %[[B:.*]]] :
    // CHECK: %[[NEXT:.*]] = arith.constant 64 : index
    // CHECK: arith.addi %{{.*}}, %[[NEXT]] : index
    // CHECK: %[[ATOM:.*]] = arith.constant 8192 : index
    // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAP]], %[[BARRIER]], box[
    "fuse.async_load"(%x, %ring, %stage, %full, %b, %k, %m) {dims = array<i64: 1, 2>}
        : (memref<3x?x512xbf16>, memref<2x64x128xbf16, #shared>, index, memref<2xi64, #shared>, index, index, index) -> ()
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @streamed [#nvvm.target<chip = "sm_90a">] {
  // Streamed data are evicted first from the L2.
  // CHECK-LABEL: gpu.func @streamed(
  // CHECK: %[[FIRST:.*]] = arith.constant 1364590687093260288 : i64
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} l2_cache_hint = %[[FIRST]]
  gpu.func @streamed(%x: memref<?x512xbf16>, %i: index)
      workgroup(%ring : memref<2x64x64xbf16, #shared>, %full : memref<2xi64, #shared>) kernel {
    "fuse.async_load"(%x, %ring, %i, %full, %i, %i) {dims = array<i64: 0, 1>, streamed}
        : (memref<?x512xbf16>, memref<2x64x64xbf16, #shared>, index, memref<2xi64, #shared>, index, index) -> ()
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @same_map [#nvvm.target<chip = "sm_90a">] {
  // Copies of one argument with one box share a tensor map.
  // CHECK-LABEL: gpu.func @same_map(
  // CHECK-SAME: %[[MAP:[a-z0-9]+]]: !llvm.ptr {{{[^}]*}}}})
  // CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAP]]
  gpu.func @same_map(%x: memref<?x512xbf16>, %i: index)
      workgroup(%ring : memref<2x64x64xbf16, #shared>, %full : memref<2xi64, #shared>) kernel {
    "fuse.async_load"(%x, %ring, %i, %full, %i, %i) {dims = array<i64: 0, 1>}
        : (memref<?x512xbf16>, memref<2x64x64xbf16, #shared>, index, memref<2xi64, #shared>, index, index) -> ()
    "fuse.async_load"(%x, %ring, %i, %full, %i, %i) {dims = array<i64: 0, 1>}
        : (memref<?x512xbf16>, memref<2x64x64xbf16, #shared>, index, memref<2xi64, #shared>, index, index) -> ()
    gpu.return
  }
}

// -----

gpu.module @alone [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @alone() kernel
  gpu.func @alone() kernel {
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @some_rows [#nvvm.target<chip = "sm_90a">] {
  // The box has the rows that are copied; the second swizzle atom begins behind all rows of the stage.
  // CHECK-LABEL: gpu.func @some_rows(
  // CHECK-SAME: box = array<i64: 64, 24>
  // CHECK: %[[ATOM:.*]] = arith.constant 8192 : index
  gpu.func @some_rows(%x: memref<24x512xbf16>, %i: index)
      workgroup(%ring : memref<2x64x128xbf16, #shared>, %full : memref<2xi64, #shared>) kernel {
    "fuse.async_load"(%x, %ring, %i, %full, %i, %i) {dims = array<i64: 0, 1>, rows = 24 : i64}
        : (memref<24x512xbf16>, memref<2x64x128xbf16, #shared>, index, memref<2xi64, #shared>, index, index) -> ()
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @too_many_rows [#nvvm.target<chip = "sm_90a">] {
  gpu.func @too_many_rows(%x: memref<?x512xbf16>, %i: index)
      workgroup(%ring : memref<2x264x64xbf16, #shared>, %full : memref<2xi64, #shared>) kernel {
    // expected-error @below {{a tile has 264 rows, and the TMA copies 256 at most}}
    "fuse.async_load"(%x, %ring, %i, %full, %i, %i) {dims = array<i64: 0, 1>}
        : (memref<?x512xbf16>, memref<2x264x64xbf16, #shared>, index, memref<2xi64, #shared>, index, index) -> ()
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @no_argument [#nvvm.target<chip = "sm_90a">] {
  gpu.func @no_argument(%x: memref<?x512xbf16>, %i: index)
      workgroup(%ring : memref<2x64x64xbf16, #shared>, %full : memref<2xi64, #shared>) kernel {
    %view = memref.cast %x : memref<?x512xbf16> to memref<?x?xbf16, strided<[?, 1]>>
    // expected-error @below {{an asynchronous copy needs a kernel argument as its array in global memory}}
    "fuse.async_load"(%view, %ring, %i, %full, %i, %i) {dims = array<i64: 0, 1>}
        : (memref<?x?xbf16, strided<[?, 1]>>, memref<2x64x64xbf16, #shared>, index, memref<2xi64, #shared>, index, index) -> ()
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @back [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @back(
  // CHECK-SAME: %[[MAP:[a-z0-9]+]]: !llvm.ptr {fuse.tensor_map = {arg = 0 : i64, box = array<i64: 64, 64>, dims = array<i64: 1, 0>}})
  // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %[[MAP]], %{{.*}}, box[%{{.*}}, %{{.*}}] : !llvm.ptr, <3>
  // CHECK: nvvm.cp.async.bulk.commit.group
  // CHECK: nvvm.cp.async.bulk.wait_group 1 {read}
  gpu.func @back(%y: memref<?x512xbf16>, %i: index) workgroup(%ring : memref<2x64x64xbf16, #shared>) kernel {
    "fuse.async_store"(%y, %ring, %i, %i, %i) {dims = array<i64: 0, 1>}
        : (memref<?x512xbf16>, memref<2x64x64xbf16, #shared>, index, index, index) -> ()
    "fuse.async_store_wait"() {pending = 1 : i64} : () -> ()
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @multicast [#nvvm.target<chip = "sm_90a">] {
  // Each block of two copies 32 of the 64 rows to both.
  // CHECK-LABEL: gpu.func @multicast(
  // CHECK-SAME: box = array<i64: 64, 32>
  // CHECK: %[[RANK:.*]] = gpu.cluster_block_id x
  // CHECK: %[[ROWS:.*]] = arith.constant 32 : index
  // CHECK: %[[FIRST:.*]] = arith.muli %[[RANK]], %[[ROWS]]
  // CHECK: %[[MASK:.*]] = arith.constant 3 : i16
  // CHECK: arith.addi %{{.*}}, %[[FIRST]]
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} multicast_mask = %[[MASK]]
  gpu.func @multicast(%x: memref<?x512xbf16>, %i: index)
      workgroup(%ring : memref<2x64x64xbf16, #shared>, %full : memref<2xi64, #shared>) kernel {
    "fuse.async_load"(%x, %ring, %i, %full, %i, %i) {dims = array<i64: 0, 1>, peers = 2 : i64}
        : (memref<?x512xbf16>, memref<2x64x64xbf16, #shared>, index, memref<2xi64, #shared>, index, index) -> ()
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @rounded [#nvvm.target<chip = "sm_90a">] {
  // Copies that round to tf32 have another tensor map, with that mark.
  // CHECK-LABEL: gpu.func @rounded(
  // CHECK-SAME: {fuse.tensor_map = {arg = 0 : i64, box = array<i64: 32, 64>, dims = array<i64: 1, 0>, tf32}}
  // CHECK-SAME: {fuse.tensor_map = {arg = 0 : i64, box = array<i64: 32, 64>, dims = array<i64: 1, 0>}}
  // ABI-LABEL: gpu.func @rounded(
  // ABI-SAME: kind = "tensor_map", tf32}
  gpu.func @rounded(%x: memref<?x512xf32>, %i: index)
      workgroup(%ring : memref<2x64x32xf32, #shared>, %full : memref<2xi64, #shared>) kernel {
    "fuse.async_load"(%x, %ring, %i, %full, %i, %i) {dims = array<i64: 0, 1>, tf32}
        : (memref<?x512xf32>, memref<2x64x32xf32, #shared>, index, memref<2xi64, #shared>, index, index) -> ()
    "fuse.async_load"(%x, %ring, %i, %full, %i, %i) {dims = array<i64: 0, 1>}
        : (memref<?x512xf32>, memref<2x64x32xf32, #shared>, index, memref<2xi64, #shared>, index, index) -> ()
    gpu.return
  }
}

// -----

gpu.module @prefetch [#nvvm.target<chip = "sm_90a">] {
  // A tile is prefetched in pieces of 128 bytes a row; rows of fewer bytes are one piece.
  // CHECK-LABEL: gpu.func @prefetch(
  // CHECK-SAME: %[[WIDE:[a-z0-9]+]]: !llvm.ptr {fuse.tensor_map = {arg = 0 : i64, box = array<i64: 32, 128, 1>, dims = array<i64: 2, 1, 0>}}
  // CHECK-SAME: %[[MASK:[a-z0-9]+]]: !llvm.ptr {fuse.tensor_map = {arg = 1 : i64, box = array<i64: 64, 128>, dims = array<i64: 1, 0>}})
  gpu.func @prefetch(%r: memref<3x?x512xf32>, %mask: memref<?x512xi1>, %b: index, %m: index, %n: index) kernel {
    // CHECK: nvvm.cp.async.bulk.tensor.prefetch %[[WIDE]], box[%[[N:.*]], %[[M:.*]], %[[B:.*]]] :
    // CHECK: %[[NEXT:.*]] = arith.constant 32 : index
    // CHECK: arith.addi %{{.*}}, %[[NEXT]] : index
    // CHECK: nvvm.cp.async.bulk.tensor.prefetch %[[WIDE]], box[
    // CHECK: nvvm.cp.async.bulk.tensor.prefetch %[[MASK]], box[
    // CHECK-NOT: prefetch
    "fuse.prefetch_tile"(%r, %b, %m, %n) {dims = array<i64: 1, 2>, tile = array<i64: 128, 64>}
        : (memref<3x?x512xf32>, index, index, index) -> ()
    "fuse.prefetch_tile"(%mask, %m, %n) {dims = array<i64: 0, 1>, tile = array<i64: 128, 64>}
        : (memref<?x512xi1>, index, index) -> ()
    gpu.return
  }
}
