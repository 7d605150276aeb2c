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

// Nothing is asked for: results that are arguments stay views.
// CHECK-LABEL: func.func @views
// CHECK-NOT: linalg.generic
// CHECK: return %arg0
func.func @views(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  return %x : tensor<?x8xf32>
}

// -----

// An array without elements that is one of its own: no kernel writes it.
// CHECK-LABEL: func.func @empty
// CHECK-NOT: linalg.generic
// CHECK: %[[E:.*]] = tensor.empty(%{{.*}}) : tensor<?x0xf32>
// CHECK: return %[[E]]
// expected-remark @below {{copies result 0}}
func.func @empty(%x: tensor<?x0xf32>) -> tensor<?x0xf32> attributes {fuse.copied_results = array<i64: 0>} {
  return %x : tensor<?x0xf32>
}
