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

// -----

#shared = #gpu.address_space<workgroup>

// Loads of many registers are issued an iteration ahead.
// CHECK-LABEL: gpu.func @ahead
// CHECK: vector.load
// CHECK: scf.for
// CHECK: vector.load
// CHECK: math.powf
// CHECK: scf.yield
gpu.module @m {
  gpu.func @ahead(%a: vector<2xf32>, %row: index, %y0_0: memref<64xf32> {llvm.readonly}, %y0_1: memref<64xf32> {llvm.readonly}, %y1_0: memref<64xf32> {llvm.readonly}, %y1_1: memref<64xf32> {llvm.readonly}, %y2_0: memref<64xf32> {llvm.readonly}, %y2_1: memref<64xf32> {llvm.readonly}) workgroup(%ring : memref<2x64x32xf32, #shared>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c24 = arith.constant 24 : index
    %w:8 = "fuse.warpgroup_wait"(%a, %a, %a, %a, %a, %a, %a, %a) {pending = 0 : i64} : (vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>) -> (vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>)
    %i0 = arith.addi %row, %c0 : index
    %l0_0 = vector.load %y0_0[%i0] : memref<64xf32>, vector<2xf32>
    %l0_1 = vector.load %y1_0[%i0] : memref<64xf32>, vector<2xf32>
    %l0_2 = vector.load %y2_0[%i0] : memref<64xf32>, vector<2xf32>
    %p0 = math.powf %w#0, %l0_0 : vector<2xf32>
    %q0 = math.powf %p0, %l0_1 : vector<2xf32>
    %r0 = math.powf %q0, %l0_2 : vector<2xf32>
    %l1_0 = vector.load %y0_1[%i0] : memref<64xf32>, vector<2xf32>
    %l1_1 = vector.load %y1_1[%i0] : memref<64xf32>, vector<2xf32>
    %l1_2 = vector.load %y2_1[%i0] : memref<64xf32>, vector<2xf32>
    %p1 = math.powf %w#1, %l1_0 : vector<2xf32>
    %q1 = math.powf %p1, %l1_1 : vector<2xf32>
    %r1 = math.powf %q1, %l1_2 : vector<2xf32>
    %i2 = arith.addi %row, %c8 : index
    %l2_0 = vector.load %y0_0[%i2] : memref<64xf32>, vector<2xf32>
    %l2_1 = vector.load %y1_0[%i2] : memref<64xf32>, vector<2xf32>
    %l2_2 = vector.load %y2_0[%i2] : memref<64xf32>, vector<2xf32>
    %p2 = math.powf %w#2, %l2_0 : vector<2xf32>
    %q2 = math.powf %p2, %l2_1 : vector<2xf32>
    %r2 = math.powf %q2, %l2_2 : vector<2xf32>
    %l3_0 = vector.load %y0_1[%i2] : memref<64xf32>, vector<2xf32>
    %l3_1 = vector.load %y1_1[%i2] : memref<64xf32>, vector<2xf32>
    %l3_2 = vector.load %y2_1[%i2] : memref<64xf32>, vector<2xf32>
    %p3 = math.powf %w#3, %l3_0 : vector<2xf32>
    %q3 = math.powf %p3, %l3_1 : vector<2xf32>
    %r3 = math.powf %q3, %l3_2 : vector<2xf32>
    %i4 = arith.addi %row, %c16 : index
    %l4_0 = vector.load %y0_0[%i4] : memref<64xf32>, vector<2xf32>
    %l4_1 = vector.load %y1_0[%i4] : memref<64xf32>, vector<2xf32>
    %l4_2 = vector.load %y2_0[%i4] : memref<64xf32>, vector<2xf32>
    %p4 = math.powf %w#4, %l4_0 : vector<2xf32>
    %q4 = math.powf %p4, %l4_1 : vector<2xf32>
    %r4 = math.powf %q4, %l4_2 : vector<2xf32>
    %l5_0 = vector.load %y0_1[%i4] : memref<64xf32>, vector<2xf32>
    %l5_1 = vector.load %y1_1[%i4] : memref<64xf32>, vector<2xf32>
    %l5_2 = vector.load %y2_1[%i4] : memref<64xf32>, vector<2xf32>
    %p5 = math.powf %w#5, %l5_0 : vector<2xf32>
    %q5 = math.powf %p5, %l5_1 : vector<2xf32>
    %r5 = math.powf %q5, %l5_2 : vector<2xf32>
    %i6 = arith.addi %row, %c24 : index
    %l6_0 = vector.load %y0_0[%i6] : memref<64xf32>, vector<2xf32>
    %l6_1 = vector.load %y1_0[%i6] : memref<64xf32>, vector<2xf32>
    %l6_2 = vector.load %y2_0[%i6] : memref<64xf32>, vector<2xf32>
    %p6 = math.powf %w#6, %l6_0 : vector<2xf32>
    %q6 = math.powf %p6, %l6_1 : vector<2xf32>
    %r6 = math.powf %q6, %l6_2 : vector<2xf32>
    %l7_0 = vector.load %y0_1[%i6] : memref<64xf32>, vector<2xf32>
    %l7_1 = vector.load %y1_1[%i6] : memref<64xf32>, vector<2xf32>
    %l7_2 = vector.load %y2_1[%i6] : memref<64xf32>, vector<2xf32>
    %p7 = math.powf %w#7, %l7_0 : vector<2xf32>
    %q7 = math.powf %p7, %l7_1 : vector<2xf32>
    %r7 = math.powf %q7, %l7_2 : vector<2xf32>
    "fuse.stage_tile"(%ring, %c0, %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7) {offset = 0 : i64}
        : (memref<2x64x32xf32, #shared>, index, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>) -> ()
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>

// Or in the iteration that uses them.
// CHECK-LABEL: gpu.func @in_turn
// CHECK-NOT: vector.load
// CHECK: scf.for
// CHECK: vector.load
// CHECK: math.powf
// CHECK: scf.yield
gpu.module @m {
  gpu.func @in_turn(%a: vector<2xf32>, %row: index, %y0_0: memref<64xf32> {llvm.readonly}, %y0_1: memref<64xf32> {llvm.readonly}, %y1_0: memref<64xf32> {llvm.readonly}, %y1_1: memref<64xf32> {llvm.readonly}, %y2_0: memref<64xf32> {llvm.readonly}, %y2_1: memref<64xf32> {llvm.readonly}) workgroup(%ring : memref<2x64x32xf32, #shared>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c24 = arith.constant 24 : index
    %w:8 = "fuse.warpgroup_wait"(%a, %a, %a, %a, %a, %a, %a, %a) {pending = 0 : i64} : (vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>) -> (vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>)
    %i0 = arith.addi %row, %c0 : index
    %l0_0 = vector.load %y0_0[%i0] : memref<64xf32>, vector<2xf32>
    %l0_1 = vector.load %y1_0[%i0] : memref<64xf32>, vector<2xf32>
    %l0_2 = vector.load %y2_0[%i0] : memref<64xf32>, vector<2xf32>
    %p0 = math.powf %w#0, %l0_0 : vector<2xf32>
    %q0 = math.powf %p0, %l0_1 : vector<2xf32>
    %r0 = math.powf %q0, %l0_2 : vector<2xf32>
    %l1_0 = vector.load %y0_1[%i0] : memref<64xf32>, vector<2xf32>
    %l1_1 = vector.load %y1_1[%i0] : memref<64xf32>, vector<2xf32>
    %l1_2 = vector.load %y2_1[%i0] : memref<64xf32>, vector<2xf32>
    %p1 = math.powf %w#1, %l1_0 : vector<2xf32>
    %q1 = math.powf %p1, %l1_1 : vector<2xf32>
    %r1 = math.powf %q1, %l1_2 : vector<2xf32>
    %i2 = arith.addi %row, %c8 : index
    %l2_0 = vector.load %y0_0[%i2] : memref<64xf32>, vector<2xf32>
    %l2_1 = vector.load %y1_0[%i2] : memref<64xf32>, vector<2xf32>
    %l2_2 = vector.load %y2_0[%i2] : memref<64xf32>, vector<2xf32>
    %p2 = math.powf %w#2, %l2_0 : vector<2xf32>
    %q2 = math.powf %p2, %l2_1 : vector<2xf32>
    %r2 = math.powf %q2, %l2_2 : vector<2xf32>
    %l3_0 = vector.load %y0_1[%i2] : memref<64xf32>, vector<2xf32>
    %l3_1 = vector.load %y1_1[%i2] : memref<64xf32>, vector<2xf32>
    %l3_2 = vector.load %y2_1[%i2] : memref<64xf32>, vector<2xf32>
    %p3 = math.powf %w#3, %l3_0 : vector<2xf32>
    %q3 = math.powf %p3, %l3_1 : vector<2xf32>
    %r3 = math.powf %q3, %l3_2 : vector<2xf32>
    %i4 = arith.addi %row, %c16 : index
    %l4_0 = vector.load %y0_0[%i4] : memref<64xf32>, vector<2xf32>
    %l4_1 = vector.load %y1_0[%i4] : memref<64xf32>, vector<2xf32>
    %l4_2 = vector.load %y2_0[%i4] : memref<64xf32>, vector<2xf32>
    %p4 = math.powf %w#4, %l4_0 : vector<2xf32>
    %q4 = math.powf %p4, %l4_1 : vector<2xf32>
    %r4 = math.powf %q4, %l4_2 : vector<2xf32>
    %l5_0 = vector.load %y0_1[%i4] : memref<64xf32>, vector<2xf32>
    %l5_1 = vector.load %y1_1[%i4] : memref<64xf32>, vector<2xf32>
    %l5_2 = vector.load %y2_1[%i4] : memref<64xf32>, vector<2xf32>
    %p5 = math.powf %w#5, %l5_0 : vector<2xf32>
    %q5 = math.powf %p5, %l5_1 : vector<2xf32>
    %r5 = math.powf %q5, %l5_2 : vector<2xf32>
    %i6 = arith.addi %row, %c24 : index
    %l6_0 = vector.load %y0_0[%i6] : memref<64xf32>, vector<2xf32>
    %l6_1 = vector.load %y1_0[%i6] : memref<64xf32>, vector<2xf32>
    %l6_2 = vector.load %y2_0[%i6] : memref<64xf32>, vector<2xf32>
    %p6 = math.powf %w#6, %l6_0 : vector<2xf32>
    %q6 = math.powf %p6, %l6_1 : vector<2xf32>
    %r6 = math.powf %q6, %l6_2 : vector<2xf32>
    %l7_0 = vector.load %y0_1[%i6] : memref<64xf32>, vector<2xf32>
    %l7_1 = vector.load %y1_1[%i6] : memref<64xf32>, vector<2xf32>
    %l7_2 = vector.load %y2_1[%i6] : memref<64xf32>, vector<2xf32>
    %p7 = math.powf %w#7, %l7_0 : vector<2xf32>
    %q7 = math.powf %p7, %l7_1 : vector<2xf32>
    %r7 = math.powf %q7, %l7_2 : vector<2xf32>
    "fuse.stage_tile"(%ring, %c0, %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7) {loads_in_turn, offset = 0 : i64}
        : (memref<2x64x32xf32, #shared>, index, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<2xf32>) -> ()
    gpu.return
  }
}
