// RUN: mlirfuse-opt --lower-mailboxes --split-input-file %s | FileCheck %s
// RUN: mlirfuse-opt --lower-mailboxes --lower-kernel-abi --split-input-file --emit=ptx --target=sm_90a %s | FileCheck %s --check-prefix=PTX
// RUN: mlirfuse-opt --lower-mailboxes --lower-kernel-abi --split-input-file --emit=ptx --target=sm_80 %s | FileCheck %s --check-prefix=PTX

// A number is its complement; the one pattern of NaN that would be an empty word is another one.
gpu.module @post {
  // CHECK-LABEL: gpu.func @post(
  // PTX-LABEL: .entry post(
  gpu.func @post(%value: vector<2xf32>, %mail: memref<?x64xf32>, %i: index, %j: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    // CHECK: %[[X:.*]]:2 = vector.to_elements
    // CHECK: %[[BITS:.*]] = arith.bitcast %[[X]]#0 : f32 to i32
    // CHECK: %[[WORD:.*]] = arith.xori %[[BITS]], %{{.*}} : i32
    // CHECK: arith.maxui %[[WORD]], %{{.*}} : i32
    // CHECK: nvvm.inline_ptx "{ .reg .b64 h; mov.b64 h, 0x14F0000000000000; st.relaxed.gpu.global.L2::cache_hint.v2.b32 [$0], {$1, $2}, h; }"
    // PTX: st.relaxed.gpu.global.L2::cache_hint.v2.b32
    "fuse.post"(%value, %mail, %i, %j) : (vector<2xf32>, memref<?x64xf32>, index, index) -> ()
    gpu.return
  }
}

// -----

// Two places, two parts each: all loads before the first decision, and those that have come are not loaded again.
gpu.module @collect {
  // CHECK-LABEL: gpu.func @collect(
  // PTX-LABEL: .entry collect(
  gpu.func @collect(%y: memref<?xf32>, %i: index, %j: index, %k: index, %mail: memref<2x64xf32> {fuse.workspace = "semaphores"}) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    // CHECK: %[[WORDS:.*]]:4 = scf.while
    // CHECK-COUNT-4: @p ld.relaxed.gpu.global.L2::cache_hint.b32 $0, [$1], h;
    // CHECK-COUNT-2: arith.minui
    // CHECK: %[[LEAST:.*]] = arith.minui
    // CHECK: %[[MISSING:.*]] = arith.cmpi eq, %[[LEAST]]
    // CHECK: scf.condition(%[[MISSING]])
    // CHECK-COUNT-4: st.relaxed.gpu.global.L2::cache_hint.b32 [$0], $1, h;
    // CHECK: arith.xori %[[WORDS]]#0
    // PTX: [[AGAIN:\$L.*]]:
    // PTX-COUNT-4: @p ld.relaxed.gpu.global.L2::cache_hint.b32
    // PTX: @%p{{[0-9]+}} bra [[AGAIN]];
    %0:4 = "fuse.collect"(%mail, %i, %j, %i, %k) {parts = 2 : i64} : (memref<2x64xf32>, index, index, index, index) -> (f32, f32, f32, f32)
    %1 = arith.addf %0#0, %0#1 : f32
    %2 = arith.addf %0#2, %0#3 : f32
    memref.store %1, %y[%j] : memref<?xf32>
    memref.store %2, %y[%k] : memref<?xf32>
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
