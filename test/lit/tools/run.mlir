// `mlirfuse run`: IR on the CPU, inputs from the command line, results as files; and what it refuses.

// RUN: mlirfuse run %s --function shift --input arange:f32[2,3] --input 10 --print --save %t | FileCheck %s
// RUN: %python -c "import numpy as np; print(np.load('%t/result_0.npy').sum())" | FileCheck %s --check-prefix=SAVED
// RUN: not mlirfuse run %s --input ones:f32[2,3] 2>&1 | FileCheck %s --check-prefix=FUNCTION
// RUN: not mlirfuse run %s --function shift --input ones:f16[2,3] --input 1 2>&1 | FileCheck %s --check-prefix=DTYPE

// At the gpu stage, declarations of kernels are no host functions.
// RUN: %python %S/Inputs/row_sums.py | mlirfuse run - --input ones:f32[2,64] --print | FileCheck %s --check-prefix=STAGE

// The grid of a kernel whose blocks wait for each other depends on the device, which must hold all of it.
// RUN: mlirfuse run %S/../../../tests/support/protocols/grid_barrier.mlir --input ones:f32[9,128] --sms 2 --order random | FileCheck %s --check-prefix=GRID
// RUN: not mlirfuse run %S/../../../tests/support/protocols/grid_barrier.mlir --input ones:f32[9,128] --sms 2 --resident 3 2>&1 | FileCheck %s --check-prefix=WHOLE

// GRID:  result 0: float32[9,128], min 64, mean 64, max 64
// WHOLE: @grid_barrier_kernel needs all of its 4 blocks resident at once, and only 3 may be

// CHECK:      result 0: float32[2,3], min 10, mean 12.5, max 15
// CHECK-NEXT: {{\[\[}}10. 11. 12.]
// SAVED:      75.0
// STAGE:      result 0: float32[2], min 64, mean 64, max 64

// FUNCTION:      mlirfuse: error: --function: the file has 2 host functions
// FUNCTION-NEXT: hint: name one of shift, identity
// DTYPE:         mlirfuse: error: {{.*}}expected dtype float32, got float16

#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @shift(%x: tensor<?x3xf32>, %by: f64) -> tensor<?x3xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<?x3xf32>) outs(%x : tensor<?x3xf32>) {
  ^bb0(%a: f32, %out: f32):
    %narrow = arith.truncf %by : f64 to f32
    %sum = arith.addf %a, %narrow : f32
    linalg.yield %sum : f32
  } -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
func.func @identity(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  return %x : tensor<?x3xf32>
}
