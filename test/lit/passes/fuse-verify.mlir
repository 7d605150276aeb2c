// RUN: mlirfuse-opt --fuse-verify --split-input-file --verify-diagnostics %s

func.func @moments(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %sum, %m2 = "fuse.moments"(%x) {dims = array<i64: 1>} : (tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %m2 : tensor<4xf32>
}

// -----

func.func @dimension_out_of_range(%x: tensor<4x8xf32>) {
  // expected-error @below {{'fuse.moments' op dims [2] must be ascending dimensions of tensor<4x8xf32>}}
  %sum, %m2 = "fuse.moments"(%x) {dims = array<i64: 2>} : (tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @wrong_result_shape(%x: tensor<4x8xf32>) {
  // expected-error @below {{result tensor<8xf32> must have the shape [4] that dims [1] leave of tensor<4x8xf32>}}
  %sum, %m2 = "fuse.moments"(%x) {dims = array<i64: 1>} : (tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @global_buffer(%value: f32, %buffer: memref<64xf32>, %i: index) {
  // expected-error @below {{'fuse.cluster_store' op buffer memref<64xf32> must be}}
  "fuse.cluster_store"(%value, %buffer, %i, %i) : (f32, memref<64xf32>, index, index) -> ()
  return
}

// -----

func.func @irdl_checks_counts_itself(%x: tensor<4x8xf32>) {
  // expected-error @below {{expects exactly 1 operands, but got 2}}
  %sum, %m2 = "fuse.moments"(%x, %x) {dims = array<i64: 1>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}
