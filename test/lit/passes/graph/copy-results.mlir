// RUN: mlirfuse-opt %s --fuse-copy-results --split-input-file --verify-diagnostics=only-expected | FileCheck %s

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

// An array without elements is one of its own.
// CHECK-LABEL: func.func @empty
// CHECK-NOT: linalg.generic
func.func @empty() -> tensor<0x8xf32> attributes {fuse.copied_results = array<i64: 0>} {
  %e = tensor.empty() : tensor<0x8xf32>
  return %e : tensor<0x8xf32>
}
