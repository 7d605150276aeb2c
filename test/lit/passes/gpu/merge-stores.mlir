// RUN: mlirfuse-opt --fuse-merge-stores --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

gpu.module @pairs [#nvvm.target<chip = "sm_90a">] {
  // Four elements from an index that 4 divides are one store, at the last of theirs.
  // CHECK-LABEL: gpu.func @pairs
  // CHECK-SAME: %[[Y:.*]]: memref<64x512xf32>{{.*}}, %[[I:.*]]: index, %[[J:.*]]: index, %[[A:.*]]: f32, %[[B:.*]]: f32
  // CHECK: %[[FIRST:.*]] = arith.muli %[[J]], %c4
  // CHECK: %[[SUM:.*]] = arith.addf
  // CHECK-NOT: memref.store
  // CHECK: %[[ALL:.*]] = vector.from_elements %[[A]], %[[B]], %[[SUM]], %[[B]] : vector<4xf32>
  // CHECK: vector.store %[[ALL]], %[[Y]][%[[I]], %[[FIRST]]] {alignment = 16 : i64} : memref<64x512xf32>, vector<4xf32>
  // CHECK-NOT: memref.store
  // REMARK: fuse-merge-stores: applied: 4 stores of pairs are 1
  gpu.func @pairs(%y: memref<64x512xf32> {fuse.align = 16 : i64}, %i: index, %j: index, %a: f32, %b: f32) kernel {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %first = arith.muli %j, %c4 : index
    %second = arith.addi %first, %c1 : index
    %third = arith.addi %first, %c2 : index
    %fourth = arith.addi %first, %c3 : index
    memref.store %a, %y[%i, %first] : memref<64x512xf32>
    memref.store %b, %y[%i, %fourth] : memref<64x512xf32>
    %s = arith.addf %a, %b : f32
    memref.store %b, %y[%i, %second] : memref<64x512xf32>
    memref.store %s, %y[%i, %third] : memref<64x512xf32>
    gpu.return
  }
}

// -----

gpu.module @odd [#nvvm.target<chip = "sm_90a">] {
  // Nothing is known of the index, or a load stands between the stores.
  // CHECK-LABEL: gpu.func @odd
  // CHECK-COUNT-4: memref.store
  // CHECK-NOT: vector.store
  // REMARK: fuse-merge-stores: declined: no stores fill an aligned piece together
  gpu.func @odd(%y: memref<64x512xf32> {fuse.align = 16 : i64}, %i: index, %j: index, %a: f32) kernel {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %second = arith.addi %j, %c1 : index
    memref.store %a, %y[%i, %j] : memref<64x512xf32>
    memref.store %a, %y[%i, %second] : memref<64x512xf32>
    %first = arith.muli %j, %c4 : index
    %next = arith.addi %first, %c1 : index
    memref.store %a, %y[%i, %first] : memref<64x512xf32>
    %b = memref.load %y[%i, %c1] : memref<64x512xf32>
    memref.store %b, %y[%i, %next] : memref<64x512xf32>
    gpu.return
  }
}

// -----

gpu.module @none [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @none
  // REMARK: fuse-merge-stores: declined: no stores fill an aligned piece together
  gpu.func @none(%y: memref<64xf32>) kernel {
    gpu.return
  }
}
