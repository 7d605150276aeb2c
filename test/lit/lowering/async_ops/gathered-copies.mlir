// RUN: mlirfuse-opt %s --target=sm_90a --lower-attach-target --lower-async-copies --split-input-file | FileCheck %s

// Windows of images: an im2col map with corners -1 and -2 and steps of 2; coordinates of pixel and tap from the tile's.
// CHECK-LABEL: gpu.func @windows
// CHECK-SAME: !llvm.ptr {fuse.tensor_map = {arg = 0 : i64, box = array<i64: 64, 64>, dims = array<i64: 3, 2, 1, 0>, im2col = array<i64: -1, -1, -2, -2, 2, 2>}}
// CHECK-NOT: gathered_view
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %arg5, %{{.*}}, box[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] im2col[%{{.*}}, %{{.*}}]
gpu.module @windows {
  gpu.func @windows(%x: memref<2x8x8x64xf16>, %stage: index, %m: index, %k: index, %more: index)
      workgroup(%ring: memref<2x64x64xf16, #gpu.address_space<workgroup>>, %full: memref<2xi64, #gpu.address_space<workgroup>>) kernel {
    %view = "fuse.gathered_view"(%x) {basis = array<i64: 2, 4, 4, 3, 3, 64>, ranks = array<i64: 3, 3>,
        map = affine_map<(n, p, q, r, s, c) -> (n, p * 2 + r - 1, q * 2 + s - 1, c)>}
        : (memref<2x8x8x64xf16>) -> memref<32x576xf16, strided<[64, 1]>>
    "fuse.async_load"(%view, %ring, %stage, %full, %m, %k) {dims = array<i64: 0, 1>}
        : (memref<32x576xf16, strided<[64, 1]>>, memref<2x64x64xf16, #gpu.address_space<workgroup>>, index,
           memref<2xi64, #gpu.address_space<workgroup>>, index, index) -> ()
    gpu.return
  }
}

// -----

// Windows of groups of 48 channels, of which a copy has 64: the tile's group says at which channel they begin.
// CHECK-LABEL: gpu.func @groups
// CHECK-SAME: !llvm.ptr {fuse.tensor_map = {arg = 0 : i64, box = array<i64: 64, 64>, dims = array<i64: 3, 2, 1, 0>, im2col = array<i64: -1, -1, -1, -1, 1, 1>}}
// CHECK: %[[GROUP:.*]] = arith.index_cast %arg2 : index to i32
// CHECK: %[[FIRST:.*]] = arith.muli %[[GROUP]], %c48_i32
// CHECK: %[[CHANNEL:.*]] = arith.addi %[[FIRST]], %{{.*}} : i32
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %{{.*}}, %{{.*}}, box[%[[CHANNEL]], %{{.*}}, %{{.*}}, %{{.*}}] im2col[%{{.*}}, %{{.*}}]
gpu.module @groups {
  gpu.func @groups(%x: memref<2x8x8x96xf16>, %stage: index, %g: index, %m: index, %k: index)
      workgroup(%ring: memref<2x64x64xf16, #gpu.address_space<workgroup>>, %full: memref<2xi64, #gpu.address_space<workgroup>>) kernel {
    %view = "fuse.gathered_view"(%x) {basis = array<i64: 2, 2, 8, 8, 3, 3, 64>, ranks = array<i64: 1, 3, 3>,
        map = affine_map<(g, n, p, q, r, s, c) -> (n, p + r - 1, q + s - 1, g * 48 + c)>}
        : (memref<2x8x8x96xf16>) -> memref<2x128x576xf16, strided<[16, 16, 1]>>
    "fuse.async_load"(%view, %ring, %stage, %full, %g, %m, %k) {dims = array<i64: 1, 2>}
        : (memref<2x128x576xf16, strided<[16, 16, 1]>>, memref<2x64x64xf16, #gpu.address_space<workgroup>>, index,
           memref<2xi64, #gpu.address_space<workgroup>>, index, index, index) -> ()
    gpu.return
  }
}

// -----

// Filters by taps and filters: boxes of an ordinary map of four dimensions.
// CHECK-LABEL: gpu.func @filters
// CHECK-SAME: box = array<i64: 64, 64, 1, 1>, dims = array<i64: 3, 0, 2, 1>
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}} box[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] :
gpu.module @filters {
  gpu.func @filters(%w: memref<128x3x3x64xf16>, %stage: index, %k: index, %c: index, %more: index)
      workgroup(%ring: memref<2x64x64xf16, #gpu.address_space<workgroup>>, %full: memref<2xi64, #gpu.address_space<workgroup>>) kernel {
    %view = "fuse.gathered_view"(%w) {basis = array<i64: 3, 3, 128, 64>, ranks = array<i64: 3, 1>,
        map = affine_map<(r, s, k, c) -> (k, r, s, c)>}
        : (memref<128x3x3x64xf16>) -> memref<1152x64xf16, strided<[64, 1]>>
    "fuse.async_load"(%view, %ring, %stage, %full, %k, %c) {dims = array<i64: 0, 1>}
        : (memref<1152x64xf16, strided<[64, 1]>>, memref<2x64x64xf16, #gpu.address_space<workgroup>>, index,
           memref<2xi64, #gpu.address_space<workgroup>>, index, index) -> ()
    gpu.return
  }
}

// -----

// A column for each residue class and channel: the second 64 columns are those of the next class, at the next tap.
// CHECK-LABEL: gpu.func @classes
// CHECK-SAME: box = array<i64: 64, 64, 1, 1>, dims = array<i64: 3, 0, 2, 1>
// CHECK: %[[K:.*]] = arith.remui %{{.*}}, %c128_i32
// CHECK: %[[I:.*]] = arith.muli %{{.*}}, %c2_i32
// CHECK: %[[S:.*]] = arith.addi %[[I]], %{{.*}} : i32
// CHECK: %[[J:.*]] = arith.muli %{{.*}}, %c2_i32
// CHECK: %[[R:.*]] = arith.addi %[[J]], %{{.*}} : i32
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}} box[%{{.*}}, %{{.*}}, %[[S]], %[[R]]] :
// CHECK: arith.addi %arg3, %c64
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
gpu.module @classes {
  gpu.func @classes(%w: memref<128x3x3x64xf16>, %stage: index, %k: index, %c: index, %more: index)
      workgroup(%ring: memref<2x64x128xf16, #gpu.address_space<workgroup>>, %full: memref<2xi64, #gpu.address_space<workgroup>>) kernel {
    %view = "fuse.gathered_view"(%w) {basis = array<i64: 2, 2, 128, 2, 2, 64>, ranks = array<i64: 3, 3>,
        map = affine_map<(j, i, k, a, b, c) -> (k, j * 2 + a, i * 2 + b, c)>}
        : (memref<128x3x3x64xf16>) -> memref<512x256xf16, strided<[64, 1]>>
    "fuse.async_load"(%view, %ring, %stage, %full, %k, %c) {dims = array<i64: 0, 1>}
        : (memref<512x256xf16, strided<[64, 1]>>, memref<2x64x128xf16, #gpu.address_space<workgroup>>, index,
           memref<2xi64, #gpu.address_space<workgroup>>, index, index) -> ()
    gpu.return
  }
}
