// RUN: mlirfuse-opt %s --fuse-contract-sums --split-input-file --show-remarks 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// The loops are the sum's, whose order differs from the product's.
// CHECK-DAG: #[[A:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[Y:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @outer
// REMARK: fuse-contract-sums: applied: a product and its sum became a contraction
// CHECK-NOT: linalg.generic {{.*}} -> tensor<?x16x64xf32>
// CHECK: linalg.generic {indexing_maps = [#[[A]], #[[B]], #[[Y]]], iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK-SAME: ins(%arg0, %arg1 : tensor<?x64xf32>, tensor<64x16xf32>)
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %[[W:.*]]: f32, %[[SUM:.*]]: f32)
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[X]], %[[W]] : f32
// CHECK-NEXT: arith.addf %[[SUM]], %[[P]] : f32
func.func @outer(%x: tensor<?x64xf32>, %w: tensor<64x16xf32>) -> tensor<16x?xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %rows = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%rows) : tensor<?x16x64xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                                        affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %w : tensor<?x64xf32>, tensor<64x16xf32>) outs(%e : tensor<?x16x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<?x16x64xf32>
  %t = tensor.empty(%rows) : tensor<16x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%t : tensor<16x?xf32>) -> tensor<16x?xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(j, i, k) -> (i, j, k)>, affine_map<(j, i, k) -> (j, i)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p : tensor<?x16x64xf32>) outs(%f : tensor<16x?xf32>) {
  ^bb0(%v: f32, %sum: f32):
    %s = arith.addf %sum, %v : f32
    linalg.yield %s : f32
  } -> tensor<16x?xf32>
  return %y : tensor<16x?xf32>
}

// -----

// A maximum is no sum, and what it reads no product.
// CHECK-LABEL: func.func @maximum
// REMARK: fuse-contract-sums: declined: no sum reads a product of two values
// CHECK: arith.addf
// CHECK: arith.maximumf
func.func @maximum(%x: tensor<32x64xf32>, %w: tensor<16x64xf32>, %start: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %e = tensor.empty() : tensor<32x16x64xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>,
                                        affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %w : tensor<32x64xf32>, tensor<16x64xf32>) outs(%e : tensor<32x16x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.addf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<32x16x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p : tensor<32x16x64xf32>) outs(%start : tensor<32x16xf32>) {
  ^bb0(%v: f32, %sum: f32):
    %s = arith.maximumf %sum, %v : f32
    linalg.yield %s : f32
  } -> tensor<32x16xf32>
  return %y : tensor<32x16xf32>
}

// -----

// The second factor has no rows that the first one lacks: a product of a matrix and a vector.
// CHECK-LABEL: func.func @vector
// REMARK: fuse-contract-sums: declined: a factor has 1 rows of its own, fewer than 8
// CHECK-COUNT-2: linalg.generic
func.func @vector(%x: tensor<32x64xf32>, %w: tensor<64xf32>, %start: tensor<32xf32>) -> tensor<32xf32> {
  %e = tensor.empty() : tensor<32x64xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (k)>,
                                        affine_map<(i, k) -> (i, k)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %w : tensor<32x64xf32>, tensor<64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<32x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%p : tensor<32x64xf32>) outs(%start : tensor<32xf32>) {
  ^bb0(%v: f32, %sum: f32):
    %s = arith.addf %sum, %v : f32
    linalg.yield %s : f32
  } -> tensor<32xf32>
  return %y : tensor<32xf32>
}

// -----

// The product is a result too.
// CHECK-LABEL: func.func @read_twice
// REMARK: fuse-contract-sums: declined: the product is read elsewhere as well
// CHECK-COUNT-2: linalg.generic
func.func @read_twice(%x: tensor<32x64xf32>, %w: tensor<16x64xf32>, %start: tensor<32x16xf32>)
    -> (tensor<32x16x64xf32>, tensor<32x16xf32>) {
  %e = tensor.empty() : tensor<32x16x64xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>,
                                        affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %w : tensor<32x64xf32>, tensor<16x64xf32>) outs(%e : tensor<32x16x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<32x16x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p : tensor<32x16x64xf32>) outs(%start : tensor<32x16xf32>) {
  ^bb0(%v: f32, %sum: f32):
    %s = arith.addf %sum, %v : f32
    linalg.yield %s : f32
  } -> tensor<32x16xf32>
  return %p, %y : tensor<32x16x64xf32>, tensor<32x16xf32>
}

// -----

// Products in half precision are rounded before they are added.
// CHECK-LABEL: func.func @rounded
// REMARK: fuse-contract-sums: declined: the product is rounded to half precision
// CHECK-COUNT-2: linalg.generic
func.func @rounded(%x: tensor<32x64xf16>, %w: tensor<16x64xf16>, %start: tensor<32x16xf16>) -> tensor<32x16xf16> {
  %e = tensor.empty() : tensor<32x16x64xf16>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>,
                                        affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %w : tensor<32x64xf16>, tensor<16x64xf16>) outs(%e : tensor<32x16x64xf16>) {
  ^bb0(%a: f16, %b: f16, %out: f16):
    %v = arith.mulf %a, %b : f16
    linalg.yield %v : f16
  } -> tensor<32x16x64xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p : tensor<32x16x64xf16>) outs(%start : tensor<32x16xf16>) {
  ^bb0(%v: f16, %sum: f16):
    %s = arith.addf %sum, %v : f16
    linalg.yield %s : f16
  } -> tensor<32x16xf16>
  return %y : tensor<32x16xf16>
}
