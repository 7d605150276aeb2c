// RUN: mlirfuse-opt %s --fuse-copy-results --split-input-file --verify-diagnostics=only-expected | FileCheck %s
// RUN: mlirfuse-opt %s --split-input-file --fuse-copy-results --fuse-fold-empty | FileCheck %s --check-prefix=FOLDED

// Copies of one array are told apart by the result's number, so that they stay two.
// CHECK-LABEL: func.func @twice
// CHECK-NOT: fuse.copied_results
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%arg0
// CHECK-SAME: fuse.copied = 0
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%arg0
// CHECK-SAME: fuse.copied = 2
// CHECK: return %[[A]], %arg0, %[[B]]
// expected-remark @below {{copies result 0}}
// expected-remark @below {{copies result 2}}
func.func @twice(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
    attributes {fuse.copied_results = array<i64: 0, 2>} {
  return %x, %x, %x : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// Nothing is asked for: results that are arguments stay views.
// CHECK-LABEL: func.func @views
// CHECK-NOT: linalg.generic
// CHECK: return %arg0
func.func @views(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  return %x : tensor<?x8xf32>
}

// -----

// A copy without elements is left to `fuse-fold-empty`: no kernel writes it.
// CHECK-LABEL: func.func @empty
// CHECK: linalg.generic
// FOLDED-LABEL: func.func @empty
// FOLDED-NOT: linalg.generic
// FOLDED: %[[E:.*]] = tensor.empty
// FOLDED: return %[[E]]
// expected-remark @below {{copies result 0}}
func.func @empty(%x: tensor<0x8xf32>) -> tensor<0x8xf32> attributes {fuse.copied_results = array<i64: 0>} {
  return %x : tensor<0x8xf32>
}
