// RUN: mlirfuse-opt --fuse-unroll-loops --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks
// RUN: mlirfuse-opt --fuse-unroll-loops --fuse-unroll-loops --split-input-file --show-remarks %s 2>&1 | FileCheck %s --check-prefix=TWICE

gpu.module @sums [#nvvm.target<chip = "sm_90a">] {
  // One load of an array a step: four steps become one, whose loads come first, and what is left is two steps and one. A
  // loop of three steps is none any more, and one that loads twice from an array makes two steps at once.
  // CHECK-LABEL: gpu.func @sums
  // CHECK-SAME: %[[X:.*]]: memref<?xf32>, %{{.*}}: memref<?xf32>, %[[N:.*]]: index
  // CHECK: %[[LENGTH:.*]] = arith.maxsi
  // CHECK: %[[STEPS:.*]] = arith.ceildivui %[[LENGTH]], %c256
  // CHECK: %[[LEFT:.*]] = arith.remui %[[STEPS]], %c4
  // CHECK: %[[DONE:.*]] = arith.subi %[[STEPS]], %[[LEFT]]
  // CHECK: %[[PLACE:.*]] = arith.muli %[[DONE]], %c256
  // CHECK: %[[END:.*]] = arith.addi %c0, %[[PLACE]]
  // CHECK: %[[MOST:.*]] = scf.for %[[I:.*]] = %c0 to %[[END]] step %c1024 iter_args(%[[SUM:.*]] = %{{.*}})
  // CHECK: %[[I1:.*]] = arith.addi %[[I]], %c256
  // CHECK: %[[I2:.*]] = arith.addi %[[I]], %c512
  // CHECK: %[[I3:.*]] = arith.addi %[[I]], %c768
  // CHECK: %[[V0:.*]] = vector.load %[[X]][%[[I]]]
  // CHECK-NEXT: %[[V1:.*]] = vector.load %[[X]][%[[I1]]]
  // CHECK-NEXT: %[[V2:.*]] = vector.load %[[X]][%[[I2]]]
  // CHECK-NEXT: %[[V3:.*]] = vector.load %[[X]][%[[I3]]]
  // CHECK-NEXT: %[[S0:.*]] = arith.addf %[[SUM]], %[[V0]]
  // CHECK-NEXT: %[[S1:.*]] = arith.addf %[[S0]], %[[V1]]
  // CHECK-NEXT: %[[S2:.*]] = arith.addf %[[S1]], %[[V2]]
  // CHECK-NEXT: %[[S3:.*]] = arith.addf %[[S2]], %[[V3]]
  // CHECK-NEXT: scf.yield %[[S3]]
  // CHECK: } {llvm.loop_annotation = #{{.*}}}
  // CHECK: %[[TWO:.*]] = scf.if
  // CHECK-COUNT-2: vector.load %[[X]]
  // CHECK: else
  // CHECK-NEXT: scf.yield %[[MOST]]
  // CHECK: %[[ONE:.*]] = scf.if
  // CHECK: vector.load %[[X]]
  // CHECK: else
  // CHECK-NEXT: scf.yield %[[TWO]]
  // CHECK-NOT: scf.for
  // CHECK-COUNT-3: vector.load %[[X]]
  // CHECK-NEXT: arith.addf %[[ONE]]
  // CHECK: scf.for %{{.*}} step %c512
  // CHECK-COUNT-4: vector.load %[[X]]
  // CHECK-NEXT: arith.mulf
  // CHECK: } {llvm.loop_annotation = #{{.*}}}
  // CHECK: scf.if
  // CHECK-COUNT-2: vector.load %[[X]]
  // REMARK: fuse-unroll-loops: applied: 4 steps are one, whose loads are under way together
  // TWICE: fuse-unroll-loops: declined: the loop says how it is to be unrolled
  gpu.func @sums(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %c768 = arith.constant 768 : index
    %zero = arith.constant dense<0.0> : vector<4xf32>
    %a = scf.for %i = %c0 to %n step %c256 iter_args(%sum = %zero) -> (vector<4xf32>) {
      %v = vector.load %x[%i] : memref<?xf32>, vector<4xf32>
      %next = arith.addf %sum, %v : vector<4xf32>
      scf.yield %next : vector<4xf32>
    }
    %b = scf.for %i = %c0 to %c768 step %c256 iter_args(%sum = %a) -> (vector<4xf32>) {
      %v = vector.load %x[%i] : memref<?xf32>, vector<4xf32>
      %next = arith.addf %sum, %v : vector<4xf32>
      scf.yield %next : vector<4xf32>
    }
    %c = scf.for %i = %c0 to %n step %c256 iter_args(%sum = %b) -> (vector<4xf32>) {
      %v = vector.load %x[%i] : memref<?xf32>, vector<4xf32>
      %j = arith.addi %i, %c768 : index
      %w = vector.load %x[%j] : memref<?xf32>, vector<4xf32>
      %vw = arith.mulf %v, %w : vector<4xf32>
      %next = arith.addf %sum, %vw : vector<4xf32>
      scf.yield %next : vector<4xf32>
    }
    vector.store %c, %y[%c0] : memref<?xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

gpu.module @stores [#nvvm.target<chip = "sm_90a">] {
  // Four steps load before any of them stores, one of them only where it may. What all of them read is loaded before.
  // CHECK-LABEL: gpu.func @stores
  // CHECK-SAME: %[[X:.*]]: memref<?xf32>, %[[Y:.*]]: memref<?xf32>, %[[MAY:.*]]: i1
  // CHECK: memref.load %[[X]][%c1]
  // CHECK: scf.for %{{.*}} step %c1024
  // CHECK-COUNT-4: vector.load %[[X]]
  // CHECK-NOT: load %[[X]]
  // CHECK: vector.store %{{.*}}, %[[Y]]
  // CHECK: scf.if %[[MAY]]
  // CHECK: vector.store %{{.*}}, %[[Y]]
  // CHECK: llvm.loop_annotation
  // REMARK: fuse-unroll-loops: applied: 4 steps are one, whose loads are under way together
  gpu.func @stores(%x: memref<?xf32>, %y: memref<?xf32>, %may: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %c256 = arith.constant 256 : index
    %c2048 = arith.constant 2048 : index
    scf.for %i = %c0 to %c2048 step %c256 {
      %scale = memref.load %x[%c1] : memref<?xf32>
      %scales = vector.broadcast %scale : f32 to vector<4xf32>
      %v = vector.load %x[%i] : memref<?xf32>, vector<4xf32>
      %scaled = arith.mulf %v, %scales : vector<4xf32>
      vector.store %scaled, %y[%i] : memref<?xf32>, vector<4xf32>
      scf.if %may {
        %j = arith.addi %i, %c128 : index
        vector.store %v, %y[%j] : memref<?xf32>, vector<4xf32>
      }
    }
    gpu.return
  }
}

// -----

gpu.module @tiles [#nvvm.target<chip = "sm_90a">] {
  // Each load feeds four operations, in whatever form: LLVM unrolls the loop. What no step changes is loaded before
  // the loop, and does not count. Four loads that one operation each takes are enough by themselves.
  // CHECK-DAG: #[[FOUR_TIMES:.*]] = #llvm.loop_unroll<count = 4 : i32>
  // CHECK-DAG: #[[BY_LLVM:.*]] = #llvm.loop_annotation<unroll = #[[FOUR_TIMES]]>
  // CHECK-LABEL: gpu.func @tiles
  // CHECK: scf.for %{{.*}} step %c256
  // CHECK: } {llvm.loop_annotation = #[[BY_LLVM]]}
  // CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c256 iter_args
  // CHECK-COUNT-4: memref.load
  // CHECK-NOT: memref.load
  // CHECK-NOT: llvm.loop_annotation
  // REMARK: fuse-unroll-loops: applied: 4 steps are one, whose loads are under way together
  // REMARK: fuse-unroll-loops: declined: the loads of a step are many, or its code is long
  gpu.func @tiles(%x: memref<?xbf16>, %y: memref<?xf32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
    %zeros = arith.constant dense<0.0> : vector<4xf32>
    %o:5 = scf.for %i = %c0 to %n step %c256 iter_args(%a0 = %zeros, %a1 = %zeros, %a2 = %zeros, %a3 = %zeros, %a4 = %zeros)
        -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>) {
      %once = memref.load %x[%c1] : memref<?xbf16>
      %row = vector.load %y[%i] : memref<?xf32>, vector<4xf32>
      %h0 = memref.load %x[%i] : memref<?xbf16>
      %w0 = arith.extf %h0 : bf16 to f32
      %b0 = vector.broadcast %w0 : f32 to vector<4xf32>
      %p0 = arith.mulf %b0, %row : vector<4xf32>
      %q0 = arith.addf %b0, %row : vector<4xf32>
      %r0 = arith.subf %b0, %row : vector<4xf32>
      %s0 = arith.maximumf %b0, %row : vector<4xf32>
      %t0 = arith.addf %p0, %q0 : vector<4xf32>
      %n0 = arith.addf %a0, %t0 : vector<4xf32>
      %n1 = arith.addf %a1, %r0 : vector<4xf32>
      %n2 = arith.addf %a2, %s0 : vector<4xf32>
      %wide = arith.extf %once : bf16 to f32
      %bs = vector.broadcast %wide : f32 to vector<4xf32>
      %n3 = arith.addf %a3, %bs : vector<4xf32>
      %n4 = arith.mulf %a4, %n3 : vector<4xf32>
      scf.yield %n0, %n1, %n2, %n3, %n4 : vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>
    }
    %s = arith.addf %o#0, %o#1 : vector<4xf32>
    %u:4 = scf.for %i = %c0 to %n step %c256 iter_args(%a0 = %zero, %a1 = %zero, %a2 = %zero, %a3 = %zero)
        -> (f32, f32, f32, f32) {
      %i1 = arith.addi %i, %c1 : index
      %i2 = arith.addi %i1, %c1 : index
      %i3 = arith.addi %i2, %c1 : index
      %v0 = memref.load %y[%i] : memref<?xf32>
      %v1 = memref.load %y[%i1] : memref<?xf32>
      %v2 = memref.load %y[%i2] : memref<?xf32>
      %v3 = memref.load %y[%i3] : memref<?xf32>
      %n0 = arith.addf %a0, %v0 : f32
      %n1 = arith.addf %a1, %v1 : f32
      %n2 = arith.addf %a2, %v2 : f32
      %n3 = arith.addf %a3, %v3 : f32
      scf.yield %n0, %n1, %n2, %n3 : f32, f32, f32, f32
    }
    vector.store %s, %y[%c0] : memref<?xf32>, vector<4xf32>
    memref.store %u#0, %y[%c1] : memref<?xf32>
    gpu.return
  }
}

// -----

gpu.module @none [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @none
  // REMARK: fuse-unroll-loops: declined: none has no loop
  gpu.func @none(%x: memref<?xf32>) kernel {
    gpu.return
  }
}

// -----

gpu.module @others [#nvvm.target<chip = "sm_90a">] {
  // A loop that stores where it loads, one that loads enough, and one that only reads shared memory.
  // CHECK-LABEL: gpu.func @others
  // CHECK-NOT: llvm.loop_annotation
  // REMARK: fuse-unroll-loops: declined: a step has a memref.store
  // REMARK: fuse-unroll-loops: declined: the loads of a step are many, or its code is long
  // REMARK: fuse-unroll-loops: declined: a step loads nothing from device memory
  gpu.func @others(%x: memref<?xf32>, %y: memref<?xf32>, %n: index)
      workgroup(%shared : memref<1024xf32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    scf.for %i = %c0 to %n step %c1 {
      %v = memref.load %x[%i] : memref<?xf32>
      memref.store %v, %x[%i] : memref<?xf32>
    }
    %a = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (f32) {
      %v = memref.load %x[%i] : memref<?xf32>
      %j = arith.addi %i, %c1 : index
      %k = arith.addi %j, %c1 : index
      %w = memref.load %x[%j] : memref<?xf32>
      %t = memref.load %x[%k] : memref<?xf32>
      %vw = arith.mulf %v, %w : f32
      %vwt = arith.mulf %vw, %t : f32
      %next = arith.addf %sum, %vwt : f32
      scf.yield %next : f32
    }
    %b = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %a) -> (f32) {
      %v = memref.load %shared[%i] : memref<1024xf32, #gpu.address_space<workgroup>>
      %next = arith.addf %sum, %v : f32
      scf.yield %next : f32
    }
    memref.store %b, %y[%c0] : memref<?xf32>
    gpu.return
  }
}
