// RUN: mlirfuse-opt --fuse-defer-epilogues --target=sm_90a --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks
// RUN: mlirfuse-opt --fuse-defer-epilogues="always=true" --target=sm_90a --split-input-file %s | FileCheck %s --check-prefix=ALWAYS
// RUN: mlirfuse-opt --fuse-defer-epilogues --fuse-segment --target=sm_90a --split-input-file %s | FileCheck %s --check-prefix=KERNELS

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#one = affine_map<(i) -> (i)>
// Rows of a product and a residual less their mean: the kernel that subtracts the mean reads whole rows, and adds them up
// itself.
// CHECK-LABEL: func.func @centred
// CHECK-NOT: fuse.deferred
// CHECK: arith.truncf
// CHECK: linalg.generic {{.*}}["parallel", "reduction"]{{.*}} attrs = {fuse.deferred}
// KERNELS-LABEL: func.func @centred
// KERNELS: %[[P:.*]] = call @centred_0(%arg0, %arg1, %arg2) {{.*}} -> tensor<4096x2048xf32>
// KERNELS: call @centred_1(%[[P]]) {{.*}} -> tensor<4096x2048xf16>
// REMARK: fuse-defer-epilogues: applied: 1 reduction(s) of a product's result are predicted to take {{.*}} us behind it, {{.*}} us in its kernel
func.func @centred(%x: tensor<4096x64xf16> {fuse.align = 16 : i64}, %w: tensor<64x2048xf16> {fuse.align = 16 : i64}, %residual: tensor<4096x2048xf16> {fuse.align = 16 : i64}) -> tensor<4096x2048xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x2048xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4096x64xf16>, tensor<64x2048xf16>) outs(%init : tensor<4096x2048xf32>) {
  ^bb0(%l: f16, %r: f16, %out: f32):
    %0 = arith.extf %l : f16 to f32
    %1 = arith.extf %r : f16 to f32
    %2 = arith.mulf %0, %1 fastmath<contract> : f32
    %3 = arith.addf %out, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<4096x2048xf32>
  %h = tensor.empty() : tensor<4096x2048xf16>
  %half = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<4096x2048xf32>) outs(%h : tensor<4096x2048xf16>) {
  ^bb0(%v: f32, %out: f16):
    %0 = arith.truncf %v : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<4096x2048xf16>
  %wide = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%half, %residual : tensor<4096x2048xf16>, tensor<4096x2048xf16>) outs(%e : tensor<4096x2048xf32>) {
  ^bb0(%v: f16, %u: f16, %out: f32):
    %0 = arith.extf %v : f16 to f32
    %1 = arith.extf %u : f16 to f32
    %2 = arith.addf %0, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<4096x2048xf32>
  %s = tensor.empty() : tensor<4096xf32>
  %none = linalg.fill ins(%zero : f32) outs(%s : tensor<4096xf32>) -> tensor<4096xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%wide : tensor<4096x2048xf32>) outs(%none : tensor<4096xf32>) {
  ^bb0(%v: f32, %out: f32):
    %0 = arith.addf %out, %v : f32
    linalg.yield %0 : f32
  } -> tensor<4096xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%sum : tensor<4096xf32>) outs(%s : tensor<4096xf32>) {
  ^bb0(%v: f32, %out: f32):
    %n = arith.constant 2.048000e+03 : f32
    %0 = arith.divf %v, %n : f32
    linalg.yield %0 : f32
  } -> tensor<4096xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%wide, %mean : tensor<4096x2048xf32>, tensor<4096xf32>) outs(%h : tensor<4096x2048xf16>) {
  ^bb0(%v: f32, %total: f32, %out: f16):
    %0 = arith.subf %v, %total : f32
    %1 = arith.truncf %0 : f32 to f16
    linalg.yield %1 : f16
  } -> tensor<4096x2048xf16>
  return %y : tensor<4096x2048xf16>
}

// -----

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
// Nothing along the rows needs their sums, and few tiles share one: the kernel of the product makes them.
// CHECK-LABEL: func.func @squares
// CHECK-NOT: fuse.deferred
// ALWAYS-LABEL: func.func @squares
// ALWAYS: attrs = {fuse.deferred}
// REMARK: fuse-defer-epilogues: declined: 1 reduction(s) of a product's result are predicted to take {{.*}} us behind it, {{.*}} us in its kernel
func.func @squares(%x: tensor<512x64xf16>, %w: tensor<64x512xf16>) -> (tensor<512x512xf32>, tensor<512xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<512x64xf16>, tensor<64x512xf16>) outs(%init : tensor<512x512xf32>) {
  ^bb0(%l: f16, %r: f16, %out: f32):
    %0 = arith.extf %l : f16 to f32
    %1 = arith.extf %r : f16 to f32
    %2 = arith.mulf %0, %1 fastmath<contract> : f32
    %3 = arith.addf %out, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<512x512xf32>
  %s = tensor.empty() : tensor<512xf32>
  %none = linalg.fill ins(%zero : f32) outs(%s : tensor<512xf32>) -> tensor<512xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<512x512xf32>) outs(%none : tensor<512xf32>) {
  ^bb0(%v: f32, %out: f32):
    %0 = arith.mulf %v, %v : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<512xf32>
  return %p, %sum : tensor<512x512xf32>, tensor<512xf32>
}

// -----

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
// Sums over 262144 rows, of which the last block would add up one for each of thousands of tiles.
// CHECK-LABEL: func.func @columns
// CHECK: linalg.generic {{.*}}["reduction", "parallel"]{{.*}} attrs = {fuse.deferred}
// ALWAYS-LABEL: func.func @columns
// ALWAYS: attrs = {fuse.deferred}
// REMARK: fuse-defer-epilogues: applied: 1 reduction(s) of a product's result are predicted to take {{.*}} us behind it, {{.*}} us in its kernel
func.func @columns(%x: tensor<262144x64xf16>, %w: tensor<64x16xf16>) -> (tensor<262144x16xf32>, tensor<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<262144x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<262144x16xf32>) -> tensor<262144x16xf32>
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<262144x64xf16>, tensor<64x16xf16>) outs(%init : tensor<262144x16xf32>) {
  ^bb0(%l: f16, %r: f16, %out: f32):
    %0 = arith.extf %l : f16 to f32
    %1 = arith.extf %r : f16 to f32
    %2 = arith.mulf %0, %1 fastmath<contract> : f32
    %3 = arith.addf %out, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<262144x16xf32>
  %s = tensor.empty() : tensor<16xf32>
  %none = linalg.fill ins(%zero : f32) outs(%s : tensor<16xf32>) -> tensor<16xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["reduction", "parallel"]} ins(%p : tensor<262144x16xf32>) outs(%none : tensor<16xf32>) {
  ^bb0(%v: f32, %out: f32):
    %0 = arith.mulf %v, %v : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<16xf32>
  return %p, %sum : tensor<262144x16xf32>, tensor<16xf32>
}

// -----

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
// All that the second kernel reads is what the first one computes, and is as wide: it adds up rows itself in any case.
// CHECK-LABEL: func.func @shares
// CHECK-NOT: fuse.deferred
// ALWAYS-LABEL: func.func @shares
// ALWAYS: linalg.generic {{.*}}["parallel", "reduction"]{{.*}} attrs = {fuse.deferred}
// REMARK: fuse-defer-epilogues: declined: 1 reduction(s) of a product's result are predicted to take {{.*}} us behind it, {{.*}} us in its kernel
func.func @shares(%x: tensor<512x64xf16>, %w: tensor<64x512xf16>) -> tensor<512x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<512x64xf16>, tensor<64x512xf16>) outs(%init : tensor<512x512xf32>) {
  ^bb0(%l: f16, %r: f16, %out: f32):
    %0 = arith.extf %l : f16 to f32
    %1 = arith.extf %r : f16 to f32
    %2 = arith.mulf %0, %1 fastmath<contract> : f32
    %3 = arith.addf %out, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<512x512xf32>
  %s = tensor.empty() : tensor<512xf32>
  %none = linalg.fill ins(%zero : f32) outs(%s : tensor<512xf32>) -> tensor<512xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<512x512xf32>) outs(%none : tensor<512xf32>) {
  ^bb0(%v: f32, %out: f32):
    %0 = arith.addf %out, %v : f32
    linalg.yield %0 : f32
  } -> tensor<512xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %sum : tensor<512x512xf32>, tensor<512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%v: f32, %total: f32, %out: f32):
    %0 = arith.divf %v, %total : f32
    linalg.yield %0 : f32
  } -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
// CHECK-LABEL: func.func @alone
// REMARK: fuse-defer-epilogues: declined: nothing reduces what is computed of a product's result
func.func @alone(%x: tensor<512x64xf16>, %w: tensor<64x512xf16>) -> tensor<512x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<512x64xf16>, tensor<64x512xf16>) outs(%init : tensor<512x512xf32>) {
  ^bb0(%l: f16, %r: f16, %out: f32):
    %0 = arith.extf %l : f16 to f32
    %1 = arith.extf %r : f16 to f32
    %2 = arith.mulf %0, %1 fastmath<contract> : f32
    %3 = arith.addf %out, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<512x512xf32>
  return %p : tensor<512x512xf32>
}
