// RUN: mlirfuse-opt --lower-flagged-accesses --split-input-file %s | FileCheck %s
// RUN: mlirfuse-opt --lower-flagged-accesses --lower-kernel-abi --split-input-file --emit=ptx --target=sm_90a %s | FileCheck %s --check-prefix=PTX
// RUN: mlirfuse-opt --lower-flagged-accesses --lower-kernel-abi --split-input-file --emit=ptx --target=sm_80 %s | FileCheck %s --check-prefix=PTX

// A number is sent as its complement; the NaN that would be an empty word is replaced by another NaN.
gpu.module @store {
  // CHECK-LABEL: gpu.func @store(
  // PTX-LABEL: .entry store(
  gpu.func @store(%value: vector<2xf32>, %buf: memref<?x64xf32>, %i: index, %j: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    // CHECK: %[[X:.*]]:2 = vector.to_elements
    // CHECK: %[[BITS:.*]] = arith.bitcast %[[X]]#0 : f32 to i32
    // CHECK: %[[WORD:.*]] = arith.xori %[[BITS]], %{{.*}} : i32
    // CHECK: arith.maxui %[[WORD]], %{{.*}} : i32
    // CHECK: nvvm.inline_ptx "st.relaxed.gpu.global.v2.b32 [$0], {$1, $2};"
    // PTX: st.relaxed.gpu.global.v2.b32
    "fuse.flagged_store"(%value, %buf, %i, %j) : (vector<2xf32>, memref<?x64xf32>, index, index) -> ()
    gpu.return
  }
}

// -----

// Two places with two partials each: all words are loaded before the first test, and words that have arrived are not loaded
// again.
gpu.module @load {
  // CHECK-LABEL: gpu.func @load(
  // PTX-LABEL: .entry load(
  gpu.func @load(%y: memref<?xf32>, %i: index, %j: index, %k: index, %buf: memref<2x64xf32> {fuse.workspace = "semaphores"}) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    // CHECK: %[[WORDS:.*]]:4 = scf.while
    // CHECK-COUNT-4: @p ld.relaxed.gpu.global.b32 $0, [$1];
    // CHECK-COUNT-2: arith.minui
    // CHECK: %[[LEAST:.*]] = arith.minui
    // CHECK: %[[MISSING:.*]] = arith.cmpi eq, %[[LEAST]]
    // CHECK: scf.condition(%[[MISSING]])
    // CHECK-COUNT-4: st.relaxed.gpu.global.b32 [$0], $1;
    // CHECK: arith.xori %[[WORDS]]#0
    // PTX: [[AGAIN:\$L.*]]:
    // PTX-COUNT-4: @p ld.relaxed.gpu.global.b32
    // PTX: @%p{{[0-9]+}} bra [[AGAIN]];
    %0:4 = "fuse.flagged_load"(%buf, %i, %j, %i, %k) {partials = 2 : i64} : (memref<2x64xf32>, index, index, index, index) -> (f32, f32, f32, f32)
    %1 = arith.addf %0#0, %0#1 : f32
    %2 = arith.addf %0#2, %0#3 : f32
    memref.store %1, %y[%j] : memref<?xf32>
    memref.store %2, %y[%k] : memref<?xf32>
    gpu.return
  }
}

// -----

// Column tiles have eight columns: row 3, column 10 is word 16 * 8 + 3 * 8 + 2 of a tile of 256, in stores and loads.
gpu.module @column_tiles {
  // PTX-LABEL: .entry column_tiles(
  gpu.func @column_tiles(%value: vector<2xf32>, %y: memref<?xf32>, %buf: memref<2x16x16xf32> {fuse.workspace = "semaphores"}) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c10 = arith.constant 10 : index
    // PTX: add.s64 [[THERE:%rd[0-9]+]], [[BUF:%rd[0-9]+]], 1640;
    // PTX: st.relaxed.gpu.global.v2.b32 {{\[}}[[THERE]]],
    "fuse.flagged_store"(%value, %buf, %c1, %c3, %c10) : (vector<2xf32>, memref<2x16x16xf32>, index, index, index) -> ()
    // PTX: add.s64 [[HERE:%rd[0-9]+]], [[BUF]], 616;
    // PTX: @p ld.relaxed.gpu.global.v2.b32 {{.*}}, {{\[}}[[HERE]]];
    // PTX: @p ld.relaxed.gpu.global.v2.b32 {{.*}}, {{\[}}[[THERE]]];
    %0:2 = "fuse.flagged_load"(%buf, %c0, %c3, %c10) {partials = 2 : i64} : (memref<2x16x16xf32>, index, index, index) -> (vector<2xf32>, vector<2xf32>)
    %1 = arith.addf %0#0, %0#1 : vector<2xf32>
    vector.store %1, %y[%c0] : memref<?xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

// The column tile of a column is its number divided by eight; rows of a tile of 16 are eight words apart. Ten columns, and
// buffers without a dimension for tiles, are stored in row-major order.
gpu.module @places {
  // CHECK-LABEL: gpu.func @places(
  gpu.func @places(%value: f32, %i: index, %j: index, %column_tiles: memref<2x16x24xf32>, %plain: memref<2x16x10xf32>, %rows: memref<2x24xf32>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    // CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
    // CHECK-DAG: %[[TILE:.*]] = arith.divui %{{.*}}, %{{.*}} : index
    // CHECK-DAG: %[[INSIDE:.*]] = arith.remui %{{.*}}, %{{.*}} : index
    // CHECK-DAG: %[[C128:.*]] = arith.constant 128 : index
    // CHECK: arith.muli %[[TILE]], %[[C128]]
    // CHECK: st.relaxed
    "fuse.flagged_store"(%value, %column_tiles, %i, %i, %j) : (f32, memref<2x16x24xf32>, index, index, index) -> ()
    // CHECK-NOT: arith.divui
    // CHECK: st.relaxed
    "fuse.flagged_store"(%value, %plain, %i, %i, %j) : (f32, memref<2x16x10xf32>, index, index, index) -> ()
    // CHECK-NOT: arith.divui
    // CHECK: st.relaxed
    "fuse.flagged_store"(%value, %rows, %i, %j) : (f32, memref<2x24xf32>, index, index) -> ()
    gpu.return
  }
}

// -----

gpu.module @none {
  // CHECK-LABEL: gpu.func @none
  // CHECK-NEXT: gpu.return
  gpu.func @none() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    gpu.return
  }
}
