// RUN: mlirfuse-opt --split-input-file --verify-diagnostics %s
// What comes from outside is checked before any pass reads it.

// expected-error @below {{f: fuse.kernel is 3 : i64, and must be a unit attribute}}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {fuse.kernel = 3 : i64} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{f: fuse.grid_reduction is "soon", and must be one of 'grid_sync', 'last_block', 'second_kernel', 'atomics'}}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {fuse.grid_reduction = "soon"} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{f: fuse.align of argument 1 is 3 : i64, and must be 1, 2, 4, 8 or 16}}
func.func @f(%x: tensor<4xf32> {fuse.align = 16 : i64}, %y: tensor<4xf32> {fuse.align = 3 : i64}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{f: fuse.strides of argument 0 has 1 entries for tensor<4x4xf32>}}
func.func @f(%x: tensor<4x4xf32> {fuse.strides = [1]}) -> tensor<4x4xf32> {
  return %x : tensor<4x4xf32>
}

// -----

// Attributes that are as they must be.
func.func @f(%x: tensor<?x4xf32> {fuse.name = "x", fuse.align = 4 : i64, fuse.strides = ["?", 1]}) -> tensor<?x4xf32>
    attributes {fuse.results = "single", fuse.mix_order = "split"} {
  return %x : tensor<?x4xf32>
}

// -----

// expected-error @below {{f_0 launches @f_0_kernel, which is not in the module}}
func.func private @f_0(tensor<4xf32>) -> tensor<4xf32> attributes {fuse.launch = @f_0_kernel}
gpu.module @f_0_kernel {
  gpu.func @f_1_kernel(%x: memref<4xf32>, %y: memref<4xf32>) kernel {
    gpu.return
  }
}

// -----

func.func private @f_0(tensor<4xf32>) -> tensor<4xf32> attributes {fuse.launch = @f_0_kernel}
gpu.module @f_0_kernel {
  gpu.func @f_0_kernel(%x: memref<4xf32>, %y: memref<4xf32>) kernel {
    gpu.return
  }
}
