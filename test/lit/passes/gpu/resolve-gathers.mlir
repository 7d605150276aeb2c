// RUN: mlirfuse-opt %s --fuse-resolve-gathers --split-input-file --show-remarks 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// A copy of 8 elements stays inside one tap; only the spatial index can be out of bounds.
// CHECK-LABEL: gpu.func @copies
// REMARK: fuse-resolve-gathers: applied: 1 accesses of copies to 1 gathered views
// CHECK-NOT: gathered_view
// CHECK: %[[M:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[P:.*]] = arith.remui %[[M]], %c8_i32
// CHECK: %[[N:.*]] = arith.divui %[[M]], %c8_i32
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %c8_i32
// CHECK-NOT: arith.cmpi
// CHECK: %[[COUNT:.*]] = arith.select %[[INSIDE]], %c8{{.*}}, %c0
// CHECK: %[[ROW:.*]] = memref.reinterpret_cast %arg0 to offset: [0], sizes: [256], strides: [1]
// CHECK: %[[PLACE:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: nvgpu.device_async_copy %[[ROW]][%[[PLACE]]], %arg1[%{{.*}}, %{{.*}}], 8, %[[COUNT]] {bypassL1}
gpu.module @copies {
  gpu.func @copies(%x: memref<2x8x16xf16>) workgroup(%slot: memref<16x48xf16, #gpu.address_space<workgroup>>) kernel {
    %t = gpu.thread_id x
    %c8 = arith.constant 8 : index
    %view = "fuse.gathered_view"(%x) {basis = array<i64: 2, 8, 3, 16>, ranks = array<i64: 2, 2>,
        map = affine_map<(n, p, r, c) -> (n, p + r - 1, c)>} : (memref<2x8x16xf16>) -> memref<16x48xf16, strided<[16, 1]>>
    %0 = nvgpu.device_async_copy %view[%t, %c8], %slot[%t, %c8], 8 {bypassL1}
        : memref<16x48xf16, strided<[16, 1]>> to memref<16x48xf16, #gpu.address_space<workgroup>>
    gpu.return
  }
}

// -----

// A load through a transpose: a division that may be of a negative number rounds down, and zeros are selected.
// CHECK-LABEL: gpu.func @loads
// CHECK-NOT: gathered_view
// CHECK: arith.addi %{{.*}}, %c2_i32
// CHECK: arith.divui
// CHECK: arith.subi %{{.*}}, %c1_i32
// CHECK: %[[IN:.*]] = arith.cmpi ult
// CHECK: %[[V:.*]] = memref.load %arg0
// CHECK: arith.select %[[IN]], %[[V]], %{{.*}} : f32
gpu.module @loads {
  gpu.func @loads(%x: memref<4xf32>, %y: memref<8xf32>) kernel {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %view = "fuse.gathered_view"(%x) {basis = array<i64: 8, 1>, ranks = array<i64: 1, 1>,
        map = affine_map<(i, j) -> ((i - 1) floordiv 2)>} : (memref<4xf32>) -> memref<8x1xf32, strided<[3, 3]>>
    %turned = memref.transpose %view (i, j) -> (j, i) : memref<8x1xf32, strided<[3, 3]>> to memref<1x8xf32, strided<[3, 3]>>
    %v = memref.load %turned[%c0, %t] : memref<1x8xf32, strided<[3, 3]>>
    memref.store %v, %y[%t] : memref<8xf32>
    gpu.return
  }
}

// -----

// Rows of more than 2^31 windows are numbered in 64 bits.
// CHECK-LABEL: gpu.func @many_rows
// CHECK: %[[ROW:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK: arith.remui %[[ROW]], %{{.*}} : i64
// CHECK: arith.cmpi ult, %{{.*}}, %{{.*}} : i64
gpu.module @many_rows {
  gpu.func @many_rows(%x: memref<3x1073741824xi8>, %i: index, %y: memref<8xi8>) kernel {
    %c0 = arith.constant 0 : index
    %view = "fuse.gathered_view"(%x) {basis = array<i64: 3, 1073741824, 3>, ranks = array<i64: 2, 1>,
        map = affine_map<(n, p, r) -> (n, p + r - 1)>}
        : (memref<3x1073741824xi8>) -> memref<3221225472x3xi8, strided<[1, 1]>>
    %v = memref.load %view[%i, %c0] : memref<3221225472x3xi8, strided<[1, 1]>>
    memref.store %v, %y[%c0] : memref<8xi8>
    gpu.return
  }
}

// -----

// A load of checks reads no memory.
// CHECK-LABEL: gpu.func @checks
// CHECK-NOT: gathered_view
// CHECK-NOT: load
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %c8_i32
// CHECK-NOT: load
// CHECK: vector.broadcast %[[INSIDE]] : i1 to vector<8xi1>
gpu.module @checks {
  gpu.func @checks(%x: memref<2x8x16xf16>, %y: memref<16x48xi1>) kernel {
    %t = gpu.thread_id x
    %c8 = arith.constant 8 : index
    %view = "fuse.gathered_view"(%x) {basis = array<i64: 2, 8, 3, 16>, ranks = array<i64: 2, 2>, inside = array<i64: 2, 8, 16>,
        map = affine_map<(n, p, r, c) -> (n, p + r - 1, c)>} : (memref<2x8x16xf16>) -> memref<16x48xi1, strided<[16, 1]>>
    %v = vector.load %view[%t, %c8] {alignment = 8 : i64} : memref<16x48xi1, strided<[16, 1]>>, vector<8xi1>
    vector.store %v, %y[%t, %c8] : memref<16x48xi1>, vector<8xi1>
    gpu.return
  }
}

// -----

// Where one view reads what lies beside an index, another access has that index, which is inside: no check, and one load
// for both.
// CHECK-LABEL: gpu.func @neighbours
// CHECK-NOT: arith.cmpi
// CHECK: %[[I:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: %[[V:.*]] = memref.load %arg0[%[[I]]]
// CHECK-NOT: memref.load
// CHECK: arith.addi %{{.*}}, %c2_i32
// CHECK: arith.cmpi ult
// CHECK: memref.load %arg0
// CHECK: arith.select
// CHECK-NOT: memref.load
// CHECK: arith.addf %[[V]], %[[V]]
gpu.module @neighbours {
  gpu.func @neighbours(%x: memref<8xf32>, %y: memref<8xf32>, %z: memref<8xf32>) kernel {
    %t = gpu.thread_id x
    %c1 = arith.constant 1 : index
    %next = arith.addi %t, %c1 : index
    %here = "fuse.gathered_view"(%x) {basis = array<i64: 8>, ranks = array<i64: 1>, map = affine_map<(i) -> (i)>}
        : (memref<8xf32>) -> memref<8xf32, strided<[1]>>
    %before = "fuse.gathered_view"(%x) {basis = array<i64: 8>, ranks = array<i64: 1>, map = affine_map<(i) -> (i - 1)>}
        : (memref<8xf32>) -> memref<8xf32, strided<[1]>>
    %after = "fuse.gathered_view"(%x) {basis = array<i64: 8>, ranks = array<i64: 1>, map = affine_map<(i) -> (i + 1)>}
        : (memref<8xf32>) -> memref<8xf32, strided<[1]>>
    %a = memref.load %here[%t] : memref<8xf32, strided<[1]>>
    %b = memref.load %before[%next] : memref<8xf32, strided<[1]>>
    %c = memref.load %after[%next] : memref<8xf32, strided<[1]>>
    %d = arith.addf %a, %b : f32
    %e = arith.addf %d, %c : f32
    memref.store %e, %y[%t] : memref<8xf32>
    gpu.return
  }
}

// -----

// A load of whole registers is masked, at an index that need not be one of the source; its number is added last.
// CHECK-LABEL: gpu.func @masked
// CHECK: %[[I:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[P:.*]] = arith.addi %[[I]], %c-1_i32
// CHECK: %[[IN:.*]] = arith.cmpi ult, %[[P]], %c8_i32
// CHECK: %[[ROW:.*]] = arith.index_cast %[[I]] : i32 to index
// CHECK: %[[AT:.*]] = arith.addi %[[ROW]], %c-1
// CHECK-NOT: arith.select
// CHECK: %[[MASK:.*]] = vector.broadcast %[[IN]] : i1 to vector<8xi1>
// CHECK: %[[V:.*]] = vector.maskedload %arg0[%[[AT]], %c0{{.*}}], %[[MASK]], %{{.*}} {alignment = 16 : i64} : memref<8x8xf16>
// CHECK-NOT: arith.select
// CHECK: vector.store %[[V]]
gpu.module @masked {
  gpu.func @masked(%x: memref<8x8xf16>, %y: memref<8x8xf16>) kernel {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %view = "fuse.gathered_view"(%x) {basis = array<i64: 8, 8>, ranks = array<i64: 1, 1>,
        map = affine_map<(p, c) -> (p - 1, c)>} : (memref<8x8xf16>) -> memref<8x8xf16, strided<[8, 1]>>
    %v = vector.load %view[%t, %c0] {alignment = 16 : i64} : memref<8x8xf16, strided<[8, 1]>>, vector<8xf16>
    vector.store %v, %y[%t, %c0] : memref<8x8xf16>, vector<8xf16>
    gpu.return
  }
}

// -----

// Loads that are no whole registers, and of what is read once, select zeros.
// CHECK-LABEL: gpu.func @selected
// CHECK-NOT: vector.maskedload
// CHECK-COUNT-2: arith.select %{{.*}}, %{{.*}}, %{{.*}} : vector
// CHECK-NOT: vector.maskedload
gpu.module @selected {
  gpu.func @selected(%x: memref<8x8xf16>, %y: memref<8x8xf16>) kernel {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %view = "fuse.gathered_view"(%x) {basis = array<i64: 8, 8>, ranks = array<i64: 1, 1>,
        map = affine_map<(p, c) -> (p - 1, c)>} : (memref<8x8xf16>) -> memref<8x8xf16, strided<[8, 1]>>
    %v = vector.load %view[%t, %c0] {alignment = 2 : i64} : memref<8x8xf16, strided<[8, 1]>>, vector<4xf16>
    %w = vector.load %view[%t, %c4] {alignment = 8 : i64, nontemporal = true} : memref<8x8xf16, strided<[8, 1]>>, vector<4xf16>
    vector.store %v, %y[%t, %c0] : memref<8x8xf16>, vector<4xf16>
    vector.store %w, %y[%t, %c4] : memref<8x8xf16>, vector<4xf16>
    gpu.return
  }
}

// -----

// Neighbours bound one another: t and t + 3 are indices below 4 rows, so that t is 0, and of windows at 2 t + 2 the
// elements that are read are inside of the source.
// CHECK-LABEL: gpu.func @bounded
// CHECK-NOT: arith.cmpi
// CHECK-NOT: vector.maskedload
// CHECK-COUNT-2: vector.load
// CHECK-NOT: vector.maskedload
gpu.module @bounded {
  gpu.func @bounded(%x: memref<9x8xf16>, %y: memref<8xf16>, %z: memref<8xf16>) kernel {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %last = arith.addi %t, %c3 : index
    %view = "fuse.gathered_view"(%x) {basis = array<i64: 4, 4, 8>, ranks = array<i64: 1, 1, 1>,
        map = affine_map<(p, r, c) -> (p * 2 + r, c)>} : (memref<9x8xf16>) -> memref<4x4x8xf16, strided<[16, 8, 1]>>
    %v = vector.load %view[%t, %c3, %c0] {alignment = 16 : i64} : memref<4x4x8xf16, strided<[16, 8, 1]>>, vector<8xf16>
    %w = vector.load %view[%last, %c2, %c0] {alignment = 16 : i64} : memref<4x4x8xf16, strided<[16, 8, 1]>>, vector<8xf16>
    vector.store %v, %y[%c0] : memref<8xf16>, vector<8xf16>
    vector.store %w, %z[%c0] : memref<8xf16>, vector<8xf16>
    gpu.return
  }
}

// -----

// Two neighbours from a multiple of the divisor on read the same element: the number leaves the division.
// CHECK-LABEL: gpu.func @divided
// CHECK-NOT: arith.remui
// CHECK: %[[HALF:.*]] = arith.divui %[[FIRST:.*]], %c2_i32
// CHECK: %[[INDEX:.*]] = arith.index_cast %[[HALF]] : i32 to index
// CHECK: %[[AT:.*]] = arith.addi %[[INDEX]], %c1{{.*}} : index
// CHECK: memref.load %arg0[%[[AT]], %c0{{.*}}]
// CHECK-NOT: arith.remui
// CHECK-NOT: arith.divui
// CHECK: memref.load %arg0[%[[AT]], %c1{{.*}}]
gpu.module @divided {
  gpu.func @divided(%x: memref<9x2xf32>, %y: memref<16xf32>) kernel {
    %t = gpu.thread_id x
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %first = arith.muli %t, %c4 : index
    %a = arith.addi %first, %c1 : index
    %b = arith.addi %first, %c2 : index
    %view = "fuse.gathered_view"(%x) {basis = array<i64: 16>, ranks = array<i64: 1>,
        map = affine_map<(h) -> ((h + 1) floordiv 2, (h + 1) mod 2)>} : (memref<9x2xf32>) -> memref<16xf32, strided<[3]>>
    %0 = memref.load %view[%a] : memref<16xf32, strided<[3]>>
    %1 = memref.load %view[%b] : memref<16xf32, strided<[3]>>
    memref.store %0, %y[%a] : memref<16xf32>
    memref.store %1, %y[%b] : memref<16xf32>
    gpu.return
  }
}

// -----

// Overlapping windows of one block share their loads up to a store, which may write what they read, and nothing with
// other blocks.
// CHECK-LABEL: gpu.func @windows
// CHECK: %[[I:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: %[[AT:.*]] = arith.addi %[[I]], %c1{{.*}} : index
// CHECK: %[[V:.*]] = memref.load %arg0[%[[AT]]]
// CHECK-NOT: load
// CHECK: memref.store %[[V]], %arg1
// CHECK-NOT: arith.index_cast
// CHECK: %[[W:.*]] = memref.load %arg0[%[[AT]]]
// CHECK-NEXT: memref.store %[[W]], %arg1
// CHECK: scf.if
// CHECK: arith.index_cast
// CHECK: memref.load %arg0
gpu.module @windows {
  gpu.func @windows(%x: memref<8xf32>, %y: memref<8xf32>, %b: i1) kernel {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %view = "fuse.gathered_view"(%x) {basis = array<i64: 4, 4>, ranks = array<i64: 1, 1>, map = affine_map<(p, r) -> (p + r)>}
        : (memref<8xf32>) -> memref<4x4xf32, strided<[3, 3]>>
    %next = arith.addi %t, %c1 : index
    %0 = memref.load %view[%t, %c1] : memref<4x4xf32, strided<[3, 3]>>
    %1 = memref.load %view[%next, %c0] : memref<4x4xf32, strided<[3, 3]>>
    memref.store %1, %y[%t] : memref<8xf32>
    %2 = memref.load %view[%next, %c0] : memref<4x4xf32, strided<[3, 3]>>
    memref.store %2, %y[%next] : memref<8xf32>
    scf.if %b {
      %3 = memref.load %view[%next, %c0] : memref<4x4xf32, strided<[3, 3]>>
      memref.store %3, %y[%t] : memref<8xf32>
    }
    gpu.return
  }
}

// -----

// Rows of a thread that may lie past the end, and a window two rows below: all are clamped in the source, where the
// first row's window is the third row.
// CHECK-LABEL: gpu.func @rows
// CHECK: %[[FIRST:.*]] = arith.minui %arg2, %c9
// CHECK: memref.load %arg0[%[[FIRST]]] {fuse.clamped}
// CHECK: %[[I2:.*]] = arith.addi %arg2, %c2
// CHECK: %[[THIRD:.*]] = arith.minui %[[I2]], %c9
// CHECK: memref.load %arg0[%[[THIRD]]] {fuse.clamped}
// CHECK: %[[I4:.*]] = arith.addi %arg2, %c4
// CHECK: %[[FIFTH:.*]] = arith.minui %[[I4]], %c9
// CHECK: memref.load %arg0[%[[FIFTH]]] {fuse.clamped}
// CHECK-NOT: memref.load
gpu.module @rows {
  gpu.func @rows(%x: memref<10xf32>, %y: memref<4xf32>, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c7 = arith.constant 7 : index
    %here = "fuse.gathered_view"(%x) {basis = array<i64: 8>, ranks = array<i64: 1>, map = affine_map<(p) -> (p)>}
        : (memref<10xf32>) -> memref<8xf32, strided<[1]>>
    %below = "fuse.gathered_view"(%x) {basis = array<i64: 8>, ranks = array<i64: 1>, map = affine_map<(p) -> (p + 2)>}
        : (memref<10xf32>) -> memref<8xf32, strided<[1]>>
    %i2 = arith.addi %i, %c2 : index
    %first = arith.minui %i, %c7 : index
    %third = arith.minui %i2, %c7 : index
    %0 = memref.load %here[%first] : memref<8xf32, strided<[1]>>
    %1 = memref.load %here[%third] : memref<8xf32, strided<[1]>>
    %2 = memref.load %below[%first] : memref<8xf32, strided<[1]>>
    %3 = memref.load %below[%third] : memref<8xf32, strided<[1]>>
    %4 = vector.from_elements %0, %1, %2, %3 : vector<4xf32>
    vector.store %4, %y[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

// A branch around a load says that its index is inside of the array: no check is left, beside the edge of it.
// CHECK-LABEL: gpu.func @in_a_branch
// CHECK: scf.if
// CHECK-NOT: arith.cmpi
// CHECK: %[[V:.*]] = memref.load %arg0
// CHECK-NOT: arith.select
// CHECK: scf.yield %[[V]]
// CHECK: } else {
// CHECK: %[[IN:.*]] = arith.cmpi ult
// CHECK: %[[E:.*]] = memref.load %arg0
// CHECK: arith.select %[[IN]], %[[E]]
gpu.module @in_a_branch {
  gpu.func @in_a_branch(%x: memref<63xf32>, %y: memref<64xf32>) kernel {
    %t = gpu.thread_id x
    %c1 = arith.constant 1 : index
    %c63 = arith.constant 63 : index
    %view = "fuse.gathered_view"(%x) {basis = array<i64: 64>, ranks = array<i64: 1>, map = affine_map<(i) -> (i - 1)>}
        : (memref<63xf32>) -> memref<64xf32, strided<[3]>>
    %0 = arith.subi %t, %c1 : index
    %whole = arith.cmpi ult, %0, %c63 : index
    %v = scf.if %whole -> (f32) {
      %1 = memref.load %view[%t] : memref<64xf32, strided<[3]>>
      scf.yield %1 : f32
    } else {
      %1 = memref.load %view[%t] : memref<64xf32, strided<[3]>>
      scf.yield %1 : f32
    }
    memref.store %v, %y[%t] : memref<64xf32>
    gpu.return
  }
}
