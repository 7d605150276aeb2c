// RUN: mlirfuse-opt --fuse-roll-stores --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks
// RUN: mlirfuse-opt --fuse-roll-stores --fuse-roll-stores --split-input-file %s | FileCheck %s

#shared = #gpu.address_space<workgroup>

// Four steps of 16 columns: accumulators move on by one place, indices grow by 16, what all fragments share stays outside.
// Few registers of loads are held, too.
// REMARK: fuse-roll-stores: applied: a loop of 4 steps of some 892 instructions, which moves 32 registers
// CHECK-LABEL: gpu.func @columns
// CHECK-SAME: %[[RING:[a-z0-9]+]] : memref<2x64x64xbf16, #gpu.address_space<workgroup>>
// CHECK: %[[SCALE:.*]] = arith.constant dense<5.000000e-01> : vector<2xf32>
// CHECK: %[[W:.*]]:16 = "fuse.warpgroup_wait"
// CHECK: %[[BIAS:.*]] = vector.load
// CHECK: %[[LOOP:.*]]:{{.*}} = scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[X:.*]] = %[[W]]#0, %[[NEXT:.*]] = %[[W]]#4,
// CHECK: math.powf %[[X]], %[[SCALE]] : vector<2xf32>
// CHECK: %[[STEP:.*]] = arith.muli %[[I]], %{{.*}} : index
// CHECK: "fuse.stage_columns"(%[[RING]], %{{.*}}, %[[STEP]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {columns = 16 : i64}
// CHECK: scf.yield %[[NEXT]],
// CHECK: llvm.loop_annotation = #loop_annotation
// CHECK-NOT: math.powf
// CHECK-NOT: fuse.stage_tile
gpu.module @columns {
  gpu.func @columns(%a: vector<2xf32>, %bias: memref<64xf32>) workgroup(%ring : memref<2x64x64xbf16, #shared>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %half = arith.constant dense<0.5> : vector<2xf32>
    %w:16 = "fuse.warpgroup_wait"(%a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a) {pending = 0 : i64}
        : (vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>)
        -> (vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>)
    %b = vector.load %bias[%c0] : memref<64xf32>, vector<2xf32>
    %p0 = math.powf %w#0, %half : vector<2xf32>
    %q0 = arith.addf %p0, %b : vector<2xf32>
    %r0 = arith.truncf %q0 : vector<2xf32> to vector<2xbf16>
    %p1 = math.powf %w#1, %half : vector<2xf32>
    %q1 = arith.addf %p1, %b : vector<2xf32>
    %r1 = arith.truncf %q1 : vector<2xf32> to vector<2xbf16>
    %p2 = math.powf %w#2, %half : vector<2xf32>
    %r2 = arith.truncf %p2 : vector<2xf32> to vector<2xbf16>
    %p3 = math.powf %w#3, %half : vector<2xf32>
    %r3 = arith.truncf %p3 : vector<2xf32> to vector<2xbf16>
    %p4 = math.powf %w#4, %half : vector<2xf32>
    %q4 = arith.addf %p4, %b : vector<2xf32>
    %r4 = arith.truncf %q4 : vector<2xf32> to vector<2xbf16>
    %p5 = math.powf %w#5, %half : vector<2xf32>
    %q5 = arith.addf %p5, %b : vector<2xf32>
    %r5 = arith.truncf %q5 : vector<2xf32> to vector<2xbf16>
    %p6 = math.powf %w#6, %half : vector<2xf32>
    %r6 = arith.truncf %p6 : vector<2xf32> to vector<2xbf16>
    %p7 = math.powf %w#7, %half : vector<2xf32>
    %r7 = arith.truncf %p7 : vector<2xf32> to vector<2xbf16>
    %p8 = math.powf %w#8, %half : vector<2xf32>
    %q8 = arith.addf %p8, %b : vector<2xf32>
    %r8 = arith.truncf %q8 : vector<2xf32> to vector<2xbf16>
    %p9 = math.powf %w#9, %half : vector<2xf32>
    %q9 = arith.addf %p9, %b : vector<2xf32>
    %r9 = arith.truncf %q9 : vector<2xf32> to vector<2xbf16>
    %p10 = math.powf %w#10, %half : vector<2xf32>
    %r10 = arith.truncf %p10 : vector<2xf32> to vector<2xbf16>
    %p11 = math.powf %w#11, %half : vector<2xf32>
    %r11 = arith.truncf %p11 : vector<2xf32> to vector<2xbf16>
    %p12 = math.powf %w#12, %half : vector<2xf32>
    %q12 = arith.addf %p12, %b : vector<2xf32>
    %r12 = arith.truncf %q12 : vector<2xf32> to vector<2xbf16>
    %p13 = math.powf %w#13, %half : vector<2xf32>
    %q13 = arith.addf %p13, %b : vector<2xf32>
    %r13 = arith.truncf %q13 : vector<2xf32> to vector<2xbf16>
    %p14 = math.powf %w#14, %half : vector<2xf32>
    %r14 = arith.truncf %p14 : vector<2xf32> to vector<2xbf16>
    %p15 = math.powf %w#15, %half : vector<2xf32>
    %r15 = arith.truncf %p15 : vector<2xf32> to vector<2xbf16>
    "fuse.stage_tile"(%ring, %c0, %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11, %r12, %r13, %r14, %r15) {offset = 0 : i64}
        : (memref<2x64x64xbf16, #shared>, index, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>) -> ()
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>

// Short code stays unrolled.
// CHECK-LABEL: gpu.func @short
// CHECK-NOT: scf.for
// CHECK: fuse.stage_tile
gpu.module @short {
  gpu.func @short(%v: vector<2xf32>, %w: vector<2xf32>) workgroup(%ring : memref<2x64x32xf32, #shared>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %a = arith.addf %v, %w : vector<2xf32>
    %b = arith.addf %w, %v : vector<2xf32>
    "fuse.stage_tile"(%ring, %c0, %a, %b, %a, %b, %a, %b, %a, %b) {offset = 0 : i64}
        : (memref<2x64x32xf32, #shared>, index, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>,
           vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>) -> ()
    gpu.return
  }
}
