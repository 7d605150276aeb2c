// RUN: mlirfuse-opt --fuse-cse --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#one = affine_map<(d0) -> (d0)>
// Two equal casts that run along the same dimension become one, and so do their results' tensors.
// CHECK-LABEL: func.func private @same(
// CHECK: %[[E:.*]] = tensor.empty() : tensor<64xf32>
// CHECK-NEXT: %[[W:.*]] = linalg.generic {{.*}} outs(%[[E]]
// CHECK-NOT: tensor.empty() : tensor<64xf32>
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[W]], %[[W]] :
// expected-remark @below {{2 op(s) computed what an earlier one does}}
func.func private @same(%x: tensor<64x8xf32>, %s: tensor<64xi8>) -> tensor<64x8xf32> attributes {fuse.kernel} {
  %e0 = tensor.empty() : tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%s : tensor<64xi8>) outs(%e0 : tensor<64xf32>) {
  ^bb0(%a: i8, %out: f32):
    %v = arith.sitofp %a : i8 to f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %e1 = tensor.empty() : tensor<64xf32>
  %1 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%s : tensor<64xi8>) outs(%e1 : tensor<64xf32>) {
  ^bb0(%a: i8, %out: f32):
    %v = arith.sitofp %a : i8 to f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %e2 = tensor.empty() : tensor<64x8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #row, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %0, %1 : tensor<64x8xf32>, tensor<64xf32>, tensor<64xf32>) outs(%e2 : tensor<64x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %v = arith.addf %p, %c : f32
    linalg.yield %v : f32
  } -> tensor<64x8xf32>
  return %2 : tensor<64x8xf32>
}

// -----

#one = affine_map<(d0) -> (d0)>
// No match: the bodies differ in what they read, and in an attribute.
// CHECK-LABEL: func.func private @differ(
// CHECK-COUNT-2: linalg.generic
// expected-remark @below {{no two ops compute the same}}
func.func private @differ(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {fuse.kernel} {
  %e = tensor.empty() : tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %1 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %a fastmath<contract> : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %0, %1 : tensor<64xf32>, tensor<64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
#one = affine_map<(d0) -> (d0)>
// Rejected: one cast runs along the rows of a square, the other along its columns.
// CHECK-LABEL: func.func private @along_both(
// CHECK: %[[ROWS:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<64xi8>)
// CHECK: %[[COLUMNS:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<64xi8>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[ROWS]], %[[COLUMNS]] :
func.func private @along_both(%x: tensor<64x64xf32>, %s: tensor<64xi8>) -> tensor<64x64xf32> attributes {fuse.kernel} {
  %e = tensor.empty() : tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%s : tensor<64xi8>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: i8, %out: f32):
    %v = arith.sitofp %a : i8 to f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  // expected-remark @below {{an equal op computes it along other dimensions, or for another operand}}
  %1 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%s : tensor<64xi8>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: i8, %out: f32):
    %v = arith.sitofp %a : i8 to f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %e2 = tensor.empty() : tensor<64x64xf32>
  %2 = linalg.generic {indexing_maps = [#id, #row, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %0, %1 : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>) outs(%e2 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %v = arith.mulf %p, %c : f32
    linalg.yield %v : f32
  } -> tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}
