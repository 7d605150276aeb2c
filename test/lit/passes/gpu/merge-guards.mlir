// RUN: mlirfuse-opt --fuse-merge-guards --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

gpu.module @parts [#nvvm.target<chip = "sm_90a">] {
  // Both stores of each condition are in the last branch of it, in order.
  // CHECK-LABEL: gpu.func @parts
  // CHECK-SAME: %[[Y:.*]]: memref<130xf32>, %[[I:.*]]: index, %[[J:.*]]: index, %[[A:.*]]: f32, %[[P:.*]]: i1, %[[Q:.*]]: i1
  // CHECK-NOT: scf.if
  // CHECK: %[[B:.*]] = arith.negf %[[A]]
  // CHECK: scf.if %[[P]] {
  // CHECK-NEXT: memref.store %[[A]], %[[Y]][%[[I]]]
  // CHECK-NEXT: memref.store %[[B]], %[[Y]][%[[J]]]
  // CHECK-NEXT: }
  // CHECK: scf.if %[[Q]] {
  // CHECK-NOT: scf.if
  // REMARK: fuse-merge-guards: applied: 1 branches of parts are parts of others
  gpu.func @parts(%y: memref<130xf32>, %i: index, %j: index, %a: f32, %p: i1, %q: i1) kernel {
    scf.if %p {
      memref.store %a, %y[%i] : memref<130xf32>
    }
    %b = arith.negf %a : f32
    scf.if %p {
      memref.store %b, %y[%j] : memref<130xf32>
    }
    %k = arith.addi %i, %j : index
    scf.if %q {
      memref.store %b, %y[%k] : memref<130xf32>
    }
    gpu.return
  }
}

// -----

gpu.module @read [#nvvm.target<chip = "sm_90a">] {
  // What the first one stores may be loaded before the second one.
  // CHECK-LABEL: gpu.func @read
  // CHECK: scf.if
  // CHECK: memref.load
  // CHECK: scf.if
  // REMARK: fuse-merge-guards: declined: no two branches that only store have one condition
  gpu.func @read(%y: memref<130xf32>, %i: index, %j: index, %a: f32, %p: i1) kernel {
    scf.if %p {
      memref.store %a, %y[%i] : memref<130xf32>
    }
    %b = memref.load %y[%i] : memref<130xf32>
    scf.if %p {
      memref.store %b, %y[%j] : memref<130xf32>
    }
    gpu.return
  }
}

// -----

gpu.module @no_branch [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @no_branch
  // REMARK: fuse-merge-guards: declined: no two branches that only store have one condition
  gpu.func @no_branch(%y: memref<130xf32>, %i: index, %a: f32) kernel {
    memref.store %a, %y[%i] : memref<130xf32>
    gpu.return
  }
}
