// RUN: mlirfuse-opt %s --fuse-fold-empty --split-input-file --verify-diagnostics=only-expected | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>

// A sum over no rows is its initial value; an elementwise result without rows is an array that no kernel writes.

// CHECK-LABEL: func.func @rows
// CHECK-DAG: %[[NONE:.*]] = tensor.empty() : tensor<0x8xf32>
// CHECK-DAG: %[[SUMS:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<8xf32>)
// CHECK: linalg.yield %{{.*}} : f32
// CHECK-NOT: linalg
// CHECK: return %[[NONE]], %[[SUMS]]
func.func @rows(%x: tensor<0x8xf32>) -> (tensor<0x8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<0x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<0x8xf32>) outs(%e : tensor<0x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<0x8xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%y : tensor<0x8xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %y, %sum : tensor<0x8xf32>, tensor<8xf32>
}

// -----

// Reshapes and transposes of empty tensors, and their extents.

// CHECK-LABEL: func.func @views
// CHECK-SAME: (%[[X:.*]]: tensor<0x?x8xf32>)
// CHECK: %[[N:.*]] = tensor.dim %[[X]]
// CHECK-NOT: collapse_shape
// CHECK-NOT: expand_shape
// CHECK-NOT: linalg
// CHECK: tensor.empty(%{{.*}}) : tensor<0x?xf32>
// CHECK: return
func.func @views(%x: tensor<0x?x8xf32>) -> (tensor<0x?xf32>, tensor<?x0xf32>) {
  %c1 = arith.constant 1 : index
  %y = tensor.collapse_shape %x [[0], [1, 2]] : tensor<0x?x8xf32> into tensor<0x?xf32>
  %n = tensor.dim %y, %c1 : tensor<0x?xf32>
  %e = tensor.empty(%n) : tensor<?x0xf32>
  %t = linalg.transpose ins(%y : tensor<0x?xf32>) outs(%e : tensor<?x0xf32>) permutation = [1, 0]
  return %y, %t : tensor<0x?xf32>, tensor<?x0xf32>
}

// -----

// Schedules and other requests for removed kernels are dropped.

// CHECK-LABEL: func.func @requests
// CHECK-NOT: fuse.schedules
// CHECK-NOT: fuse.mix_order
// CHECK: return
func.func @requests(%x: tensor<0x8xf32>) -> tensor<0x8xf32> attributes {fuse.schedules = {requests_0 = {}}} {
  %e = tensor.empty() : tensor<0x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<0x8xf32>) outs(%e : tensor<0x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<0x8xf32>
  return %y : tensor<0x8xf32>
}

// -----

// CHECK-LABEL: func.func @full
// CHECK: linalg.transpose
func.func @full(%x: tensor<?x8xf32>, %e: tensor<8x?xf32>) -> tensor<8x?xf32> {
  %t = linalg.transpose ins(%x : tensor<?x8xf32>) outs(%e : tensor<8x?xf32>) permutation = [1, 0]
  return %t : tensor<8x?xf32>
}

// -----

func.func @moments(%x: tensor<0x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // expected-error @below {{fuse.moments of a tensor without elements}}
  %s:2 = "fuse.moments"(%x) {dims = array<i64: 0>} : (tensor<0x8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %s#0, %s#1 : tensor<8xf32>, tensor<8xf32>
}
