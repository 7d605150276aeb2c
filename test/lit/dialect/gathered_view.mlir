// RUN: mlirfuse-opt %s --fuse-verify --split-input-file --verify-diagnostics

func.func @right(%x: tensor<2x8xf32>) -> tensor<2x24xf32> {
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 2, 8, 3>, ranks = array<i64: 1, 2>,
      map = affine_map<(n, p, r) -> (n, p + r - 1)>} : (tensor<2x8xf32>) -> tensor<2x24xf32>
  return %v : tensor<2x24xf32>
}

// -----

func.func @shape(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // expected-error@+1 {{the view's shape must be (2, 24), not [2, 8]}}
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 2, 8, 3>, ranks = array<i64: 1, 2>,
      map = affine_map<(n, p, r) -> (n, p + r - 1)>} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %v : tensor<2x8xf32>
}

// -----

func.func @indices(%x: tensor<2x8xf32>) -> tensor<2x24xf32> {
  // expected-error@+1 {{to 2 indices}}
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 2, 8, 3>, ranks = array<i64: 1, 2>,
      map = affine_map<(n, p, r) -> (n)>} : (tensor<2x8xf32>) -> tensor<2x24xf32>
  return %v : tensor<2x24xf32>
}
