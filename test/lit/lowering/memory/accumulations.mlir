// RUN: mlirfuse-opt --lower-attach-target --target=sm_90a --lower-accumulations --split-input-file %s | FileCheck %s
// RUN: mlirfuse-opt --lower-attach-target --target=sm_90a --lower-accumulations --lower-kernel-abi --split-input-file --emit=ptx %s | FileCheck %s --check-prefix=PTX
// RUN: mlirfuse-opt --lower-attach-target --target=sm_80 --lower-accumulations --lower-kernel-abi --split-input-file --emit=ptx %s | FileCheck %s --check-prefix=OLD

// Four numbers at once if they are aligned; the second four are 16 bytes after the first.
gpu.module @vectors {
  // CHECK-LABEL: gpu.func @vectors(
  // PTX-LABEL: .entry vectors(
  // OLD-LABEL: .entry vectors(
  gpu.func @vectors(%value: vector<8xf32>, %sums: memref<1x64xf32>, %i: index, %j: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    // CHECK: %[[X:.*]]:8 = vector.to_elements
    // CHECK: llvm.inline_asm has_side_effects{{.*}}"red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};", "l,f,f,f,f" %{{.*}}, %[[X]]#0, %[[X]]#1, %[[X]]#2, %[[X]]#3
    // CHECK: llvm.inline_asm has_side_effects{{.*}}"red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};", "l,f,f,f,f" %{{.*}}, %[[X]]#4, %[[X]]#5, %[[X]]#6, %[[X]]#7
    // CHECK-NOT: fuse.accumulate
    // PTX-COUNT-2: red.relaxed.gpu.global.add.v4.f32
    // OLD-COUNT-8: red.relaxed.gpu.global.add.f32
    "fuse.accumulate"(%value, %sums, %i, %j) {alignment = 16 : i64} : (vector<8xf32>, memref<1x64xf32>, index, index) -> ()
    gpu.return
  }
}

// -----

// Two at once with an alignment of 8 bytes, one by one without a known alignment.
gpu.module @narrow {
  // CHECK-LABEL: gpu.func @narrow(
  // PTX-LABEL: .entry narrow(
  gpu.func @narrow(%value: vector<2xf32>, %x: f32, %sums: memref<62xf32>, %i: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    // CHECK: llvm.inline_asm has_side_effects{{.*}}"red.relaxed.gpu.global.add.v2.f32 [$0], {$1, $2};"
    // CHECK-COUNT-3: llvm.inline_asm has_side_effects{{.*}}"red.relaxed.gpu.global.add.f32 [$0], $1;"
    // PTX: red.relaxed.gpu.global.add.v2.f32
    // PTX-COUNT-3: red.relaxed.gpu.global.add.f32
    "fuse.accumulate"(%value, %sums, %i) {alignment = 8 : i64} : (vector<2xf32>, memref<62xf32>, index) -> ()
    "fuse.accumulate"(%value, %sums, %i) : (vector<2xf32>, memref<62xf32>, index) -> ()
    "fuse.accumulate"(%x, %sums, %i) {alignment = 4 : i64} : (f32, memref<62xf32>, index) -> ()
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
