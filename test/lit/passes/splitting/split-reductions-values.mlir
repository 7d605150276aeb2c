// RUN: mlirfuse-opt --target=sm_90a --sms=132 --fuse-split-reductions --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#rows = affine_map<(a, b) -> (a, b)>
#row = affine_map<(a, b) -> (a, 0)>
// What takes long to compute is stored once, where two kernels would each compute it.
// CHECK-LABEL: func.func @heavy(
// CHECK: %[[Y:.*]] = call @heavy_0_values(%arg0) : (tensor<4096x1024xf32>) -> tensor<4096x1024xf32>
// CHECK: call @heavy_0(%[[Y]]) : (tensor<4096x1024xf32>) -> tensor<4096x1024xf32>
// CHECK-LABEL: func.func private @heavy_0(
// CHECK-NOT: math.sin
// CHECK: return
func.func @heavy(%x: tensor<4096x1024xf32>) -> tensor<4096x1024xf32> attributes {fuse.split_kernels = ["heavy_0"]} {
  %0 = call @heavy_0(%x) : (tensor<4096x1024xf32>) -> tensor<4096x1024xf32>
  return %0 : tensor<4096x1024xf32>
}
// expected-remark @below {{heavy_0_values stores what heavy_0 needs twice}}
func.func private @heavy_0(%x: tensor<4096x1024xf32>) -> tensor<4096x1024xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %full = tensor.empty() : tensor<4096x1024xf32>
  %e = tensor.empty() : tensor<4096x1xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x1xf32>) -> tensor<4096x1xf32>
  %y = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4096x1024xf32>) outs(%full : tensor<4096x1024xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.sin %in : f32
    %1 = math.cos %0 : f32
    %2 = math.sin %1 : f32
    %3 = math.cos %2 : f32
    %4 = math.sin %3 : f32
    %5 = math.cos %4 : f32
    %6 = math.sin %5 : f32
    %7 = math.cos %6 : f32
    %8 = math.sin %7 : f32
    %9 = math.cos %8 : f32
    %10 = math.sin %9 : f32
    %11 = math.cos %10 : f32
    %12 = math.sin %11 : f32
    %13 = math.cos %12 : f32
    %14 = math.sin %13 : f32
    %15 = math.cos %14 : f32
    %16 = math.sin %15 : f32
    %17 = math.cos %16 : f32
    %18 = math.sin %17 : f32
    %19 = math.cos %18 : f32
    %20 = math.sin %19 : f32
    %21 = math.cos %20 : f32
    %22 = math.sin %21 : f32
    %23 = math.cos %22 : f32
    linalg.yield %23 : f32
  } -> tensor<4096x1024xf32>
  %sum = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]} ins(%y : tensor<4096x1024xf32>) outs(%init : tensor<4096x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %out, %in : f32
    linalg.yield %v : f32
  } -> tensor<4096x1xf32>
  %q = linalg.generic {indexing_maps = [#rows, #row, #rows], iterator_types = ["parallel", "parallel"]} ins(%y, %sum : tensor<4096x1024xf32>, tensor<4096x1xf32>) outs(%full : tensor<4096x1024xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %v = arith.mulf %in, %s : f32
    linalg.yield %v : f32
  } -> tensor<4096x1024xf32>
  return %q : tensor<4096x1024xf32>
}

// -----

#rows = affine_map<(a, b) -> (a, b)>
#row = affine_map<(a, b) -> (a, 0)>
// One addition is computed by both: it takes less time than the bytes of its result.
// CHECK-LABEL: func.func @light(
// CHECK: %[[S:.*]] = call @light_0_reductions(%arg0) : (tensor<4096x1024xf32>) -> tensor<4096x1xf32>
// CHECK: call @light_0(%arg0, %[[S]])
func.func @light(%x: tensor<4096x1024xf32>) -> tensor<4096x1024xf32> attributes {fuse.split_kernels = ["light_0"]} {
  %0 = call @light_0(%x) : (tensor<4096x1024xf32>) -> tensor<4096x1024xf32>
  return %0 : tensor<4096x1024xf32>
}
// expected-remark @below {{light_0_reductions reduces what light_0 uses}}
func.func private @light_0(%x: tensor<4096x1024xf32>) -> tensor<4096x1024xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %full = tensor.empty() : tensor<4096x1024xf32>
  %e = tensor.empty() : tensor<4096x1xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x1xf32>) -> tensor<4096x1xf32>
  %y = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4096x1024xf32>) outs(%full : tensor<4096x1024xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %in : f32
    linalg.yield %0 : f32
  } -> tensor<4096x1024xf32>
  %sum = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]} ins(%y : tensor<4096x1024xf32>) outs(%init : tensor<4096x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %out, %in : f32
    linalg.yield %v : f32
  } -> tensor<4096x1xf32>
  %q = linalg.generic {indexing_maps = [#rows, #row, #rows], iterator_types = ["parallel", "parallel"]} ins(%y, %sum : tensor<4096x1024xf32>, tensor<4096x1xf32>) outs(%full : tensor<4096x1024xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %v = arith.mulf %in, %s : f32
    linalg.yield %v : f32
  } -> tensor<4096x1024xf32>
  return %q : tensor<4096x1024xf32>
}
