// RUN: mlirfuse-opt --fuse-exchange-stores --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

gpu.module @triples [#nvvm.target<chip = "sm_90a">] {
  // Three elements a thread, 96 of a warp: 24 of its lanes store four each. The first of a warp is a multiple of 96.
  // CHECK-LABEL: gpu.func @triples
  // CHECK-SAME: %[[Y:.*]]: memref<3072xf32>
  // CHECK-SAME: workgroup(%[[SHARED:.*]] : memref<192xf32, #gpu.address_space<workgroup>> {
  // CHECK-COUNT-3: vector.store %{{.*}}, %[[SHARED]][%{{.*}}] {alignment = 4 : i64}
  // CHECK: nvvm.bar.warp.sync
  // CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %c24
  // CHECK: scf.if %[[INSIDE]] {
  // CHECK: %[[AT:.*]] = arith.muli %{{.*}}, %c4
  // CHECK: %[[V:.*]] = vector.load %[[SHARED]]{{.*}} : {{.*}}, vector<4xf32>
  // CHECK: vector.store %[[V]], %[[Y]]{{.*}} {alignment = 16 : i64} : memref<3072xf32>, vector<4xf32>
  // CHECK: }
  // CHECK: nvvm.bar.warp.sync
  // CHECK-NOT: memref.store
  // REMARK: fuse-exchange-stores: applied: 3 stores of triples are of whole warps
  gpu.func @triples(%y: memref<3072xf32>, %a: f32, %b: f32, %c: f32) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c32 = arith.constant 32 : index
    %c192 = arith.constant 192 : index
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %lane = arith.remui %thread, %c32 : index
    %warp = arith.divui %thread, %c32 : index
    %of = arith.muli %warp, %c32 : index
    %row = arith.addi %of, %lane : index
    %inner = arith.muli %row, %c3 : index
    %outer = arith.muli %block, %c192 : index
    %i = arith.addi %outer, %inner : index
    %j = arith.addi %i, %c1 : index
    %k = arith.addi %i, %c2 : index
    memref.store %a, %y[%i] : memref<3072xf32>
    memref.store %b, %y[%j] : memref<3072xf32>
    memref.store %c, %y[%k] : memref<3072xf32>
    gpu.return
  }
}

// -----

gpu.module @inside [#nvvm.target<chip = "sm_90a">] {
  // Warps with all lanes inside exchange, and others store as they did.
  // CHECK-LABEL: gpu.func @inside
  // CHECK: arith.cmpi ult
  // CHECK: %[[FIRST:.*]] = arith.cmpi ult, %{{.*}}, %c1000
  // CHECK: %[[LAST:.*]] = arith.cmpi ult, %{{.*}}, %c1000
  // CHECK: %[[ALL:.*]] = arith.andi %[[FIRST]], %[[LAST]]
  // CHECK: scf.if %[[ALL]] {
  // CHECK: nvvm.bar.warp.sync
  // CHECK: } else {
  // CHECK-COUNT-2: memref.store
  // REMARK: fuse-exchange-stores: applied: 2 stores of inside are of whole warps
  gpu.func @inside(%y: memref<2000xf32>, %a: f32, %b: f32) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %c1000 = arith.constant 1000 : index
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %first = arith.muli %block, %c64 : index
    %row = arith.addi %first, %thread : index
    %in = arith.cmpi ult, %row, %c1000 : index
    scf.if %in {
      %i = arith.muli %row, %c2 : index
      %j = arith.addi %i, %c1 : index
      memref.store %a, %y[%i] : memref<2000xf32>
      memref.store %b, %y[%j] : memref<2000xf32>
    }
    gpu.return
  }
}

// -----

gpu.module @apart [#nvvm.target<chip = "sm_90a">] {
  // A gap lies between the runs of two lanes.
  // CHECK-LABEL: gpu.func @apart
  // CHECK-NOT: nvvm.bar.warp.sync
  // CHECK-COUNT-2: memref.store
  // REMARK: fuse-exchange-stores: declined: no runs of a warp's threads lie one beside the other
  gpu.func @apart(%y: memref<4096xf32>, %a: f32, %b: f32) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %thread = gpu.thread_id x
    %i = arith.muli %thread, %c3 : index
    %j = arith.addi %i, %c1 : index
    memref.store %a, %y[%i] : memref<4096xf32>
    memref.store %b, %y[%j] : memref<4096xf32>
    gpu.return
  }
}

// -----

gpu.module @range [#nvvm.target<chip = "sm_90a">] {
  // Only some lanes come here, and the ends of a warp do not say which.
  // CHECK-LABEL: gpu.func @range
  // CHECK-NOT: nvvm.bar.warp.sync
  gpu.func @range(%y: memref<4096xf32>, %a: f32, %b: f32) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %thread = gpu.thread_id x
    %odd = arith.remui %thread, %c2 : index
    %in = arith.cmpi eq, %odd, %c0 : index
    scf.if %in {
      %i = arith.muli %thread, %c2 : index
      %j = arith.addi %i, %c1 : index
      memref.store %a, %y[%i] : memref<4096xf32>
      memref.store %b, %y[%j] : memref<4096xf32>
    }
    gpu.return
  }
}

// -----

gpu.module @blocks [#nvvm.target<chip = "sm_90a">] {
  // Runs in two blocks of code take turns in one array.
  // CHECK-LABEL: gpu.func @two_blocks
  // CHECK-SAME: workgroup(%[[SHARED:.*]] : memref<128xf32, #gpu.address_space<workgroup>> {
  // CHECK: scf.for
  // CHECK-COUNT-2: vector.store %{{.*}}, %[[SHARED]]
  // CHECK: nvvm.bar.warp.sync
  // CHECK: nvvm.bar.warp.sync
  // CHECK: }
  // CHECK-COUNT-2: vector.store %{{.*}}, %[[SHARED]]
  // CHECK: nvvm.bar.warp.sync
  // CHECK: nvvm.bar.warp.sync
  // CHECK-NOT: memref.store
  // REMARK: fuse-exchange-stores: applied: 4 stores of two_blocks are of whole warps
  gpu.func @two_blocks(%y: memref<1024xf32>, %z: memref<128xf32>, %a: f32, %b: f32) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c128 = arith.constant 128 : index
    %thread = gpu.thread_id x
    %inner = arith.muli %thread, %c2 : index
    scf.for %step = %c0 to %c8 step %c1 {
      %outer = arith.muli %step, %c128 : index
      %i = arith.addi %outer, %inner : index
      %j = arith.addi %i, %c1 : index
      memref.store %a, %y[%i] : memref<1024xf32>
      memref.store %b, %y[%j] : memref<1024xf32>
    }
    %next = arith.addi %inner, %c1 : index
    memref.store %a, %z[%inner] : memref<128xf32>
    memref.store %b, %z[%next] : memref<128xf32>
    gpu.return
  }
}

// -----

gpu.module @rows [#nvvm.target<chip = "sm_90a">] {
  // A warp's 32 indices begin at a multiple of 32: those of a row are one beside the other. Of a row of 48 they are not.
  // CHECK-LABEL: gpu.func @rows
  // CHECK-COUNT-2: vector.store %{{.*}}, %{{.*}} : memref<128xf32, #gpu.address_space<workgroup>>
  // CHECK: nvvm.bar.warp.sync
  // CHECK: vector.store %{{.*}} : memref<2048xf32, strided<[1]>>, vector<2xf32>
  // CHECK: memref.store %{{.*}} : memref<16x96xf32>
  // CHECK: memref.store %{{.*}} : memref<16x96xf32>
  // REMARK: fuse-exchange-stores: applied: 2 stores of rows are of whole warps
  gpu.func @rows(%y: memref<16x128xf32>, %z: memref<16x96xf32>, %a: f32, %b: f32) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c48 = arith.constant 48 : index
    %c64 = arith.constant 64 : index
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %first = arith.muli %block, %c64 : index
    %i = arith.addi %first, %thread : index
    %row = arith.divui %i, %c64 : index
    %column = arith.remui %i, %c64 : index
    %k = arith.muli %column, %c2 : index
    %l = arith.addi %k, %c1 : index
    memref.store %a, %y[%row, %k] : memref<16x128xf32>
    memref.store %b, %y[%row, %l] : memref<16x128xf32>
    %other = arith.divui %i, %c48 : index
    %rest = arith.remui %i, %c48 : index
    %m = arith.muli %rest, %c2 : index
    %n = arith.addi %m, %c1 : index
    memref.store %a, %z[%other, %m] : memref<16x96xf32>
    memref.store %b, %z[%other, %n] : memref<16x96xf32>
    gpu.return
  }
}
