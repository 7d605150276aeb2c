// RUN: mlirfuse-opt --fuse-verify --split-input-file --verify-diagnostics %s

func.func @statistics_of_rows(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %max, %sum = "fuse.exp_sum"(%x) {dims = array<i64: 1>} : (tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %max, %sum : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @half_precision(%x: tensor<4x8xf16>) {
  // expected-error @below {{'fuse.exp_sum' op elements must be f32 or f64, not f16}}
  %max, %sum = "fuse.exp_sum"(%x) {dims = array<i64: 1>} : (tensor<4x8xf16>) -> (tensor<4xf16>, tensor<4xf16>)
  return
}

// -----

func.func @repeated_dimension(%x: tensor<4x8xf32>) {
  // expected-error @below {{'fuse.exp_sum' op dims [1, 1] must be ascending dimensions of tensor<4x8xf32>}}
  %max, %sum = "fuse.exp_sum"(%x) {dims = array<i64: 1, 1>} : (tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}
