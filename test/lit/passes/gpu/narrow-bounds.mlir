// RUN: mlirfuse-opt --fuse-narrow-bounds --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// Four rows of a thread, clamped to the last row: the position is compared once, and each offset in 32 bits.
// CHECK-LABEL: gpu.func @rows
// CHECK: %[[EXTENT:.+]] = memref.dim %arg0
// CHECK: %[[LAST:.+]] = arith.addi %[[EXTENT]], %{{.*}} : index
// CHECK: %[[AT:.+]] = arith.minui %[[POSITION:.+]], %[[LAST]] : index
// CHECK: %[[LEFT:.+]] = arith.subi %[[LAST]], %[[AT]] : index
// CHECK: %[[FEW:.+]] = arith.minui %[[LEFT]], %{{.*}} : index
// CHECK: %[[LIMIT:.+]] = arith.index_castui %[[FEW]] : index to i32
// CHECK: %[[THREAD:.+]] = arith.index_castui %thread_id_x : index to i32
// CHECK: %[[FIRST:.+]] = arith.minui %[[THREAD]], %[[LIMIT]] : i32
// CHECK: %[[WIDE:.+]] = arith.index_castui %[[FIRST]] : i32 to index
// CHECK: %[[ROW:.+]] = arith.addi %[[AT]], %[[WIDE]] : index
// CHECK: memref.load %arg0[%[[ROW]]]
// CHECK-COUNT-3: arith.minui %{{.*}}, %[[LIMIT]] : i32
// CHECK-NOT: arith.minui
// REMARK: applied: 4 of 4 bounds are of offsets in 32 bits
gpu.module @rows {
  gpu.func @rows(%x: memref<?xf32>) kernel {
    %c-1 = arith.constant -1 : index
    %c0 = arith.constant 0 : index
    %c1024 = arith.constant 1024 : index
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %position = arith.muli %block, %c1024 : index
    %extent = memref.dim %x, %c0 : memref<?xf32>
    %last = arith.addi %extent, %c-1 : index
    %i0 = arith.addi %position, %thread : index
    %r0 = arith.minui %i0, %last : index
    %v0 = memref.load %x[%r0] : memref<?xf32>
    %c256 = arith.constant 256 : index
    %t1 = arith.addi %thread, %c256 : index
    %i1 = arith.addi %position, %t1 : index
    %r1 = arith.minui %i1, %last : index
    %v1 = memref.load %x[%r1] : memref<?xf32>
    %c512 = arith.constant 512 : index
    %t2 = arith.addi %thread, %c512 : index
    %i2 = arith.addi %position, %t2 : index
    %r2 = arith.minui %i2, %last : index
    %v2 = memref.load %x[%r2] : memref<?xf32>
    %c768 = arith.constant 768 : index
    %t3 = arith.addi %thread, %c768 : index
    %i3 = arith.addi %position, %t3 : index
    %r3 = arith.minui %i3, %last : index
    %v3 = memref.load %x[%r3] : memref<?xf32>
    gpu.return
  }
}

// -----

// Extents that are equal are read once, so that the checks of all arrays share what they are compared with.
// CHECK-LABEL: gpu.func @arrays
// CHECK: memref.dim %arg0
// CHECK-NOT: memref.dim
// CHECK: %[[LIMIT:.+]] = arith.index_castui %{{.*}} : index to i32
// CHECK-COUNT-4: arith.cmpi ult, %{{.*}}, %[[LIMIT]] : i32
gpu.module @arrays {
  gpu.func @arrays(%x: memref<?xf32>, %y: memref<?xf32>) kernel attributes {fuse.equal_extents = [array<i64: 0, 0, 1, 0>]} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %one = arith.constant 1.0 : f32
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %position = arith.muli %block, %c64 : index
    %i0 = arith.addi %position, %thread : index
    %t1 = arith.addi %thread, %c64 : index
    %i1 = arith.addi %position, %t1 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %m = memref.dim %y, %c0 : memref<?xf32>
    %b0 = arith.cmpi ult, %i0, %n : index
    scf.if %b0 { memref.store %one, %x[%i0] : memref<?xf32> }
    %b1 = arith.cmpi ult, %i1, %n : index
    scf.if %b1 { memref.store %one, %x[%i1] : memref<?xf32> }
    %b2 = arith.cmpi ult, %i0, %m : index
    scf.if %b2 { memref.store %one, %y[%i0] : memref<?xf32> }
    %b3 = arith.cmpi ult, %i1, %m : index
    scf.if %b3 { memref.store %one, %y[%i1] : memref<?xf32> }
    gpu.return
  }
}

// -----

// Few bounds do not pay for what they would share, and of a number that is read nothing is known.
// CHECK-LABEL: gpu.func @few
// CHECK-COUNT-5: arith.minui %{{.*}}, %{{.*}} : index
// REMARK: declined: no 4 indices have small offsets from one position
gpu.module @few {
  gpu.func @few(%x: memref<?xf32>, %places: memref<4xindex>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %n = memref.dim %x, %c0 : memref<?xf32>
    %i = arith.addi %block, %thread : index
    %r = arith.minui %i, %n : index
    %a = memref.load %places[%c0] : memref<4xindex>
    %b = memref.load %places[%c1] : memref<4xindex>
    %c = memref.load %places[%c2] : memref<4xindex>
    %d = memref.load %places[%c3] : memref<4xindex>
    %p = arith.minui %a, %n : index
    %q = arith.minui %b, %n : index
    %s = arith.minui %c, %n : index
    %t = arith.minui %d, %n : index
    %v0 = memref.load %x[%r] : memref<?xf32>
    %v1 = memref.load %x[%p] : memref<?xf32>
    %v2 = memref.load %x[%q] : memref<?xf32>
    %v3 = memref.load %x[%s] : memref<?xf32>
    %v4 = memref.load %x[%t] : memref<?xf32>
    gpu.return
  }
}

// -----

// Offsets that are clamped themselves, to the tile, before the tile's position is added. LLVM knows all of these clamps.
// CHECK-LABEL: gpu.func @twice
// CHECK-COUNT-4: arith.minui %{{.*}}, %c192 : index
// CHECK-COUNT-4: arith.minui %{{.*}}, %{{.*}} : i32
// REMARK: applied: 4 of 8 bounds are of offsets in 32 bits
gpu.module @twice {
  gpu.func @twice(%x: memref<?xf32>, %most: index) kernel {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %c192 = arith.constant 192 : index
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %position = arith.muli %block, %c192 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %t1 = arith.addi %thread, %c64 : index
    %t2 = arith.addi %thread, %c128 : index
    %t3 = arith.addi %thread, %c192 : index
    %l0 = arith.minui %thread, %c192 : index
    %l1 = arith.minui %t1, %c192 : index
    %l2 = arith.minui %t2, %c192 : index
    %l3 = arith.minui %t3, %c192 : index
    %i0 = arith.addi %position, %l0 : index
    %i1 = arith.addi %position, %l1 : index
    %i2 = arith.addi %position, %l2 : index
    %i3 = arith.addi %position, %l3 : index
    %r0 = arith.minui %i0, %n : index
    %r1 = arith.minui %i1, %n : index
    %r2 = arith.minui %i2, %n : index
    %r3 = arith.minui %i3, %n : index
    %v0 = memref.load %x[%r0] : memref<?xf32>
    %v1 = memref.load %x[%r1] : memref<?xf32>
    %v2 = memref.load %x[%r2] : memref<?xf32>
    %v3 = memref.load %x[%r3] : memref<?xf32>
    gpu.return
  }
}

// -----

// The first window begins in front of the array, at a position that is the largest unsigned number.
// CHECK-LABEL: gpu.func @padded
// CHECK-COUNT-4: arith.minui %{{.*}}, %{{.*}} : index
// CHECK-NOT: i32
// REMARK: declined: no 4 indices have small offsets from one position
gpu.module @padded {
  gpu.func @padded(%x: memref<?xf32>) kernel {
    %c-1 = arith.constant -1 : index
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %extent = memref.dim %x, %c0 : memref<?xf32>
    %last = arith.addi %extent, %c-1 : index
    %begin = arith.muli %block, %c256 : index
    %position = arith.addi %begin, %c-1 : index
    %k0 = arith.constant 0 : index
    %t0 = arith.addi %thread, %k0 : index
    %i0 = arith.addi %position, %t0 : index
    %r0 = arith.minui %i0, %last : index
    %v0 = memref.load %x[%r0] : memref<?xf32>
    %k1 = arith.constant 64 : index
    %t1 = arith.addi %thread, %k1 : index
    %i1 = arith.addi %position, %t1 : index
    %r1 = arith.minui %i1, %last : index
    %v1 = memref.load %x[%r1] : memref<?xf32>
    %k2 = arith.constant 128 : index
    %t2 = arith.addi %thread, %k2 : index
    %i2 = arith.addi %position, %t2 : index
    %r2 = arith.minui %i2, %last : index
    %v2 = memref.load %x[%r2] : memref<?xf32>
    %k3 = arith.constant 192 : index
    %t3 = arith.addi %thread, %k3 : index
    %i3 = arith.addi %position, %t3 : index
    %r3 = arith.minui %i3, %last : index
    %v3 = memref.load %x[%r3] : memref<?xf32>
    gpu.return
  }
}

// -----

// What a remainder is of may have more than 32 bits: it is computed in 64.
// CHECK-LABEL: gpu.func @remainders
// CHECK: arith.remui %{{.*}} : index
// CHECK-NOT: arith.remui %{{.*}} : i32
// CHECK-COUNT-4: arith.minui %{{.*}} : i32
// REMARK: applied: 4 of 4 bounds are of offsets in 32 bits
gpu.module @remainders {
  gpu.func @remainders(%x: memref<?xf32>) kernel {
    %c-1 = arith.constant -1 : index
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %extent = memref.dim %x, %c0 : memref<?xf32>
    %last = arith.addi %extent, %c-1 : index
    %c31 = arith.constant 31 : index
    %begin = arith.muli %block, %c256 : index
    %element = arith.addi %begin, %thread : index
    %part = arith.remui %element, %c31 : index
    %k0 = arith.constant 0 : index
    %i0 = arith.addi %part, %k0 : index
    %r0 = arith.minui %i0, %last : index
    %v0 = memref.load %x[%r0] : memref<?xf32>
    %k1 = arith.constant 64 : index
    %i1 = arith.addi %part, %k1 : index
    %r1 = arith.minui %i1, %last : index
    %v1 = memref.load %x[%r1] : memref<?xf32>
    %k2 = arith.constant 128 : index
    %i2 = arith.addi %part, %k2 : index
    %r2 = arith.minui %i2, %last : index
    %v2 = memref.load %x[%r2] : memref<?xf32>
    %k3 = arith.constant 192 : index
    %i3 = arith.addi %part, %k3 : index
    %r3 = arith.minui %i3, %last : index
    %v3 = memref.load %x[%r3] : memref<?xf32>
    gpu.return
  }
}
