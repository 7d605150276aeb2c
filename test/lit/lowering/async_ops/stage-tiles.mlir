// RUN: mlirfuse-opt --lower-stage-tiles --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#shared = #gpu.address_space<workgroup>
gpu.module @half [#nvvm.target<chip = "sm_90a">] {
  // 64 columns of 16 bits are four matrices of 8x8, four times; lane l names row l % 16, and chunks alternate.
  // CHECK-LABEL: gpu.func @half
  // CHECK: %[[C7:.*]] = arith.constant 7 : i32
  // CHECK: arith.xori %{{.*}}, %{{.*}} : i32
  // CHECK: %[[R0:.*]] = llvm.bitcast %{{.*}} : vector<2xbf16> to i32
  // CHECK-COUNT-4: nvvm.stmatrix %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>
  // CHECK-NOT: nvvm.stmatrix
  // CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
  gpu.func @half(%stage: index, %v: vector<2xbf16>) workgroup(%ring : memref<2x128x64xbf16, #shared>) kernel {
    "fuse.stage_tile"(%ring, %stage, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v) {offset = 0 : i64}
        : (memref<2x128x64xbf16, #shared>, index, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>,
           vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>,
           vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>) -> ()
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @single [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @single
  // CHECK-COUNT-8: llvm.store %{{.*}}, %{{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<3>
  // CHECK: nvvm.fence.proxy
  gpu.func @single(%stage: index, %v: vector<2xf32>) workgroup(%ring : memref<2x64x32xf32, #shared>) kernel {
    "fuse.stage_tile"(%ring, %stage, %v, %v, %v, %v, %v, %v, %v, %v) {offset = 0 : i64}
        : (memref<2x64x32xf32, #shared>, index, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>,
           vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>) -> ()
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @transposed_half [#nvvm.target<chip = "sm_90a">] {
  // Eight rows of 24 columns and the eight below them, by two warpgroups: the last two matrices go by themselves. Lane l
  // names column l % 8, the stage's row; the second warpgroup's 64 rows are the stage's second swizzle atom, 24 * 128 bytes on.
  // CHECK-LABEL: gpu.func @transposed_half
  // CHECK-DAG: %[[ATOM:.*]] = arith.constant 3072 : i32
  // CHECK: arith.muli %{{.*}}, %[[ATOM]] : i32
  // CHECK: nvvm.stmatrix %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<col>
  // CHECK: nvvm.stmatrix %{{.*}}, %{{.*}}, %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<col>
  // CHECK-NOT: nvvm.stmatrix
  // CHECK: nvvm.fence.proxy
  gpu.func @transposed_half(%stage: index, %v: vector<2xbf16>) workgroup(%ring : memref<2x24x128xbf16, #shared>) kernel {
    "fuse.stage_tile"(%ring, %stage, %v, %v, %v, %v, %v, %v) {offset = 0 : i64, transposed}
        : (memref<2x24x128xbf16, #shared>, index, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>,
           vector<2xbf16>, vector<2xbf16>) -> ()
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @read [#nvvm.target<chip = "sm_90a">] {
  // The inverse: loads from the same addresses, without a fence.
  // CHECK-LABEL: gpu.func @read
  // CHECK: %[[FOUR:.*]] = nvvm.ldmatrix %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32
  // CHECK: %[[FIRST:.*]] = llvm.extractvalue %[[FOUR]][0]
  // CHECK: %[[V:.*]] = llvm.bitcast %[[FIRST]] : i32 to vector<2xbf16>
  // CHECK-COUNT-3: nvvm.ldmatrix
  // CHECK-NOT: nvvm.ldmatrix
  // CHECK-NOT: nvvm.fence.proxy
  // CHECK: vector.store %[[V]]
  gpu.func @read(%stage: index, %out: memref<2xbf16>) workgroup(%ring : memref<2x64x64xbf16, #shared>) kernel {
    %c0 = arith.constant 0 : index
    %0:16 = "fuse.staged_tile"(%ring, %stage) {offsets = array<i64: 0>} : (memref<2x64x64xbf16, #shared>, index)
        -> (vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>,
            vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>)
    vector.store %0#0, %out[%c0] : memref<2xbf16>, vector<2xbf16>
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @transposed_single [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @transposed_single
  // CHECK-COUNT-4: llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
  // CHECK-NOT: llvm.store
  // CHECK: nvvm.fence.proxy
  gpu.func @transposed_single(%stage: index, %v: vector<2xf32>) workgroup(%ring : memref<2x8x64xf32, #shared>) kernel {
    "fuse.stage_tile"(%ring, %stage, %v, %v) {offset = 0 : i64, transposed}
        : (memref<2x8x64xf32, #shared>, index, vector<2xf32>, vector<2xf32>) -> ()
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @read_single [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @read_single
  // CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
  gpu.func @read_single(%stage: index) workgroup(%ring : memref<2x64x32xf32, #shared>) kernel {
    %0:8 = "fuse.staged_tile"(%ring, %stage) {offsets = array<i64: 0>} : (memref<2x64x32xf32, #shared>, index)
        -> (vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>)
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @read_transposed [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @read_transposed
  // CHECK: nvvm.ldmatrix %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<col>, num = 4 : i32
  // CHECK: nvvm.ldmatrix %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<col>, num = 2 : i32
  // CHECK-NOT: nvvm.ldmatrix
  // CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> f32
  // CHECK-NOT: llvm.load
  gpu.func @read_transposed(%stage: index) workgroup(%ring : memref<2x24x128xbf16, #shared>, %wide : memref<2x8x64xf32, #shared>) kernel {
    %0:6 = "fuse.staged_tile"(%ring, %stage) {offsets = array<i64: 0>, transposed} : (memref<2x24x128xbf16, #shared>, index)
        -> (vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>)
    %1:2 = "fuse.staged_tile"(%wide, %stage) {offsets = array<i64: 0>, transposed} : (memref<2x8x64xf32, #shared>, index)
        -> (vector<2xf32>, vector<2xf32>)
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @two_atoms [#nvvm.target<chip = "sm_90a">] {
  gpu.func @two_atoms(%stage: index, %v: vector<2xf32>) workgroup(%ring : memref<2x64x64xf32, #shared>) kernel {
    // expected-error @below {{1 vectors do not fill a swizzle atom of memref<2x64x64xf32}}
    "fuse.stage_tile"(%ring, %stage, %v) {offset = 0 : i64} : (memref<2x64x64xf32, #shared>, index, vector<2xf32>) -> ()
    gpu.return
  }
}

// -----

gpu.module @alone [#nvvm.target<chip = "sm_80">] {
  // CHECK-LABEL: gpu.func @alone
  gpu.func @alone() kernel {
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @columns [#nvvm.target<chip = "sm_90a">] {
  // 16 columns from a column that is known when the kernel runs: chunks of 8 columns before it, which the swizzle includes.
  // CHECK-LABEL: gpu.func @columns
  // CHECK-SAME: %{{[a-z0-9]+}}: index, %[[COLUMN:[a-z0-9]+]]: index
  // CHECK: %[[WIDE:.*]] = arith.index_cast %[[COLUMN]] : index to i32
  // CHECK: %[[BEFORE:.*]] = arith.divui %[[WIDE]], %{{.*}} : i32
  // CHECK: %[[CHUNK:.*]] = arith.addi %{{.*}}, %[[BEFORE]] : i32
  // CHECK: arith.xori %[[CHUNK]], %{{.*}} : i32
  // CHECK: nvvm.stmatrix %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>
  // CHECK-NOT: nvvm.stmatrix
  // CHECK: nvvm.fence.proxy
  gpu.func @columns(%stage: index, %column: index, %v: vector<2xbf16>) workgroup(%ring : memref<2x64x64xbf16, #shared>) kernel {
    "fuse.stage_columns"(%ring, %stage, %column, %v, %v, %v, %v) {columns = 16 : i64}
        : (memref<2x64x64xbf16, #shared>, index, index, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>) -> ()
    gpu.return
  }

  // Rows of a transposed stage are 128 bytes.
  // CHECK-LABEL: gpu.func @transposed_columns
  // CHECK-SAME: %{{[a-z0-9]+}}: index, %[[COLUMN:[a-z0-9]+]]: index
  // CHECK: %[[LINE:.*]] = arith.constant 128 : index
  // CHECK: arith.muli %[[COLUMN]], %[[LINE]] : index
  // CHECK-COUNT-4: llvm.store %{{.*}} : f32, !llvm.ptr<3>
  // CHECK-NOT: llvm.store
  // CHECK: nvvm.fence.proxy
  gpu.func @transposed_columns(%stage: index, %column: index, %v: vector<2xf32>)
      workgroup(%ring : memref<2x24x64xf32, #shared>) kernel {
    "fuse.stage_columns"(%ring, %stage, %column, %v, %v) {columns = 8 : i64, transposed}
        : (memref<2x24x64xf32, #shared>, index, index, vector<2xf32>, vector<2xf32>) -> ()
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @some_columns [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @some_columns
  // CHECK-COUNT-1: nvvm.ldmatrix %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32
  // CHECK-COUNT-1: nvvm.ldmatrix %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<col>, num = 4 : i32
  // CHECK-NOT: nvvm.ldmatrix
  gpu.func @some_columns(%stage: index) workgroup(%ring : memref<2x64x64xbf16, #shared>) kernel {
    %0:4 = "fuse.staged_tile"(%ring, %stage) {offsets = array<i64: 0>, first = 32 : i64, columns = 16 : i64} : (memref<2x64x64xbf16, #shared>, index)
        -> (vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>)
    %1:4 = "fuse.staged_tile"(%ring, %stage) {offsets = array<i64: 0>, first = 32 : i64, columns = 16 : i64, transposed} : (memref<2x64x64xbf16, #shared>, index)
        -> (vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>)
    gpu.return
  }
}
