// RUN: mlirfuse-opt --fuse-store-operands --target=sm_90a --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks
// RUN: mlirfuse-opt --fuse-store-operands="always=true" --target=sm_90a --split-input-file %s | FileCheck %s --check-prefix=ALWAYS
// RUN: mlirfuse-opt --fuse-store-operands --fuse-segment --target=sm_90a --split-input-file %s | FileCheck %s --check-prefix=KERNELS

#rows = affine_map<(i, k) -> (i, k)>
#first = affine_map<(i, j, k) -> (i, k)>
#second = affine_map<(i, j, k) -> (j, k)>
#pairs = affine_map<(i, j, k) -> (i, j, k)>
#result = affine_map<(i, j, k) -> (i, j)>
// Logarithms of scaled rows, whose differences all pairs of rows add up: two ops for each operand are stored.
// CHECK-LABEL: func.func @divergences
// CHECK: linalg.generic {{.*}} attrs = {fuse.stored}
// CHECK: arith.mulf
// CHECK: linalg.generic {{.*}} attrs = {fuse.stored}
// CHECK: math.log
// CHECK: linalg.generic {{.*}} attrs = {fuse.stored}
// CHECK: math.log
// CHECK-NOT: fuse.stored
// KERNELS-LABEL: func.func @divergences
// KERNELS: %[[P:.*]] = call @divergences_0(
// KERNELS: %[[Q:.*]] = call @divergences_1(
// KERNELS: call @divergences_2(%[[P]], %[[Q]])
// REMARK: fuse-store-operands: applied: 3 op(s) on what iterations share are predicted to take {{.*}} us stored, {{.*}} us where they are read
func.func @divergences(%p: tensor<512x1000xf32>, %q: tensor<512x1000xf32>) -> tensor<512x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x1000xf32>
  %scaled = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<512x1000xf32>) outs(%e : tensor<512x1000xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.mulf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<512x1000xf32>
  %lp = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%scaled : tensor<512x1000xf32>) outs(%e : tensor<512x1000xf32>) {
  ^bb0(%a: f32, %out: f32):
    %l = math.log %a : f32
    linalg.yield %l : f32
  } -> tensor<512x1000xf32>
  %lq = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<512x1000xf32>) outs(%e : tensor<512x1000xf32>) {
  ^bb0(%a: f32, %out: f32):
    %l = math.log %a : f32
    linalg.yield %l : f32
  } -> tensor<512x1000xf32>
  %e1 = tensor.empty() : tensor<512x512x1000xf32>
  %d = linalg.generic {indexing_maps = [#first, #second, #pairs], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%lp, %lq : tensor<512x1000xf32>, tensor<512x1000xf32>) outs(%e1 : tensor<512x512x1000xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.subf %a, %b : f32
    %t = math.absf %s : f32
    linalg.yield %t : f32
  } -> tensor<512x512x1000xf32>
  %e2 = tensor.empty() : tensor<512x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e2 : tensor<512x512xf32>) -> tensor<512x512xf32>
  %sum = linalg.generic {indexing_maps = [#pairs, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%d : tensor<512x512x1000xf32>) outs(%init : tensor<512x512xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %out, %a : f32
    linalg.yield %s : f32
  } -> tensor<512x512xf32>
  return %sum : tensor<512x512xf32>
}

// -----

#one = affine_map<(i) -> (i)>
#first = affine_map<(i, j) -> (i)>
#second = affine_map<(i, j) -> (j)>
#pairs = affine_map<(i, j) -> (i, j)>
// A few pairs are one kernel, whatever their roots take: a launch takes longer.
// CHECK-LABEL: func.func @few
// CHECK-NOT: fuse.stored
// ALWAYS-LABEL: func.func @few
// ALWAYS: linalg.generic {{.*}} attrs = {fuse.stored}
// ALWAYS: math.sqrt
// ALWAYS-NOT: fuse.stored
// REMARK: fuse-store-operands: declined: 1 op(s) on what iterations share are predicted to take {{.*}} us stored, {{.*}} us where they are read
func.func @few(%x: tensor<8xf32>, %y: tensor<16xf32>) -> tensor<8x16xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = math.sqrt %a : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %e1 = tensor.empty() : tensor<8x16xf32>
  %p = linalg.generic {indexing_maps = [#first, #second, #pairs], iterator_types = ["parallel", "parallel"]}
      ins(%r, %y : tensor<8xf32>, tensor<16xf32>) outs(%e1 : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<8x16xf32>
  return %p : tensor<8x16xf32>
}

// -----

#rows = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#one = affine_map<(i) -> (i)>
// Rows that are scaled by roots are no pairs, and a sum of two takes no longer than a load.
// CHECK-LABEL: func.func @scaled
// CHECK-NOT: fuse.stored
// ALWAYS-LABEL: func.func @scaled
// ALWAYS-NOT: fuse.stored
// REMARK: fuse-store-operands: declined: no iterations share what takes longer to compute than to load
func.func @scaled(%x: tensor<512x512xf32>, %s: tensor<512xf32>, %t: tensor<512xf32>) -> (tensor<512x512xf32>, tensor<512x512xf32>) {
  %e = tensor.empty() : tensor<512xf32>
  %r = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%s : tensor<512xf32>) outs(%e : tensor<512xf32>) {
  ^bb0(%a: f32, %out: f32):
    %l = math.log %a : f32
    linalg.yield %l : f32
  } -> tensor<512xf32>
  %e1 = tensor.empty() : tensor<512x512xf32>
  %y = linalg.generic {indexing_maps = [#rows, #row, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%x, %r : tensor<512x512xf32>, tensor<512xf32>) outs(%e1 : tensor<512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<512x512xf32>
  %u = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%t : tensor<512xf32>) outs(%e : tensor<512xf32>) {
  ^bb0(%a: f32, %out: f32):
    %d = arith.addf %a, %a : f32
    linalg.yield %d : f32
  } -> tensor<512xf32>
  %z = linalg.generic {indexing_maps = [#row, affine_map<(i, j) -> (j)>, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%u, %s : tensor<512xf32>, tensor<512xf32>) outs(%e1 : tensor<512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.addf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<512x512xf32>
  return %y, %z : tensor<512x512xf32>, tensor<512x512xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#rows = affine_map<(i, j) -> (i, j)>
// Where a product's operand is computed, `fuse-prologues` decides.
// CHECK-LABEL: func.func @product
// CHECK-NOT: fuse.stored
// ALWAYS-LABEL: func.func @product
// ALWAYS-NOT: fuse.stored
// REMARK: fuse-store-operands: declined: no iterations share what takes longer to compute than to load
func.func @product(%x: tensor<512x512xf32>, %y: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %l = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = math.log %a : f32
    linalg.yield %s : f32
  } -> tensor<512x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %p = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%l, %y : tensor<512x512xf32>, tensor<512x512xf32>) outs(%init : tensor<512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<512x512xf32>
  return %p : tensor<512x512xf32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#one = affine_map<(j) -> (j)>
// The cosines of one row are computed once for all rows, of which there are many: fewer take less time than a launch.
// ALWAYS-LABEL: func.func @many
// CHECK-LABEL: func.func @many
// CHECK: linalg.generic {{.*}} attrs = {fuse.stored}
// CHECK: math.cos
// CHECK: arith.mulf
// CHECK-LABEL: func.func @few
// CHECK-NOT: fuse.stored
// REMARK: fuse-store-operands: applied: 1 op(s) on what iterations share are predicted to take {{.*}} us stored, {{.*}} us where they are read
// REMARK: fuse-store-operands: declined: no iterations share what takes longer to compute than to load
func.func @many(%x: tensor<100000x365xf32>, %a: tensor<365xf32>) -> tensor<100000x365xf32> {
  %e = tensor.empty() : tensor<365xf32>
  %c = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%a : tensor<365xf32>) outs(%e : tensor<365xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.cos %in : f32
    %1 = math.sin %0 : f32
    %2 = math.cos %1 : f32
    linalg.yield %2 : f32
  } -> tensor<365xf32>
  %f = tensor.empty() : tensor<100000x365xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %c : tensor<100000x365xf32>, tensor<365xf32>) outs(%f : tensor<100000x365xf32>) {
  ^bb0(%in: f32, %w: f32, %out: f32):
    %0 = arith.mulf %in, %w : f32
    linalg.yield %0 : f32
  } -> tensor<100000x365xf32>
  return %y : tensor<100000x365xf32>
}
func.func @few(%x: tensor<10x365xf32>, %a: tensor<365xf32>) -> tensor<10x365xf32> {
  %e = tensor.empty() : tensor<365xf32>
  %c = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%a : tensor<365xf32>) outs(%e : tensor<365xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.cos %in : f32
    %1 = math.sin %0 : f32
    %2 = math.cos %1 : f32
    linalg.yield %2 : f32
  } -> tensor<365xf32>
  %f = tensor.empty() : tensor<10x365xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %c : tensor<10x365xf32>, tensor<365xf32>) outs(%f : tensor<10x365xf32>) {
  ^bb0(%in: f32, %w: f32, %out: f32):
    %0 = arith.mulf %in, %w : f32
    linalg.yield %0 : f32
  } -> tensor<10x365xf32>
  return %y : tensor<10x365xf32>
}

// -----

#point = affine_map<(i, j) -> (i, j)>
#position = affine_map<(i, j) -> (i)>
#frequency = affine_map<(i, j) -> (j)>
#head = affine_map<(h, i, j) -> (h, i, j)>
#angle = affine_map<(h, i, j) -> (i, j)>
// Cosines and sines of one array of angles, by which all heads are multiplied: they are stored together, and the angles
// are computed in their kernel. Here, a thread that has an element of several heads computes them once.
// CHECK-LABEL: func.func @rotated
// CHECK-NOT: fuse.stored
// ALWAYS-LABEL: func.func @rotated
// ALWAYS: linalg.generic {{.*}} attrs = {fuse.stored}
// ALWAYS: arith.mulf
// ALWAYS: linalg.generic {{.*}} attrs = {fuse.stored}
// ALWAYS: math.cos
// ALWAYS: linalg.generic {{.*}} attrs = {fuse.stored}
// ALWAYS: math.sin
// ALWAYS-NOT: fuse.stored
// REMARK: fuse-store-operands: declined: 3 op(s) on what iterations share are predicted to take {{.*}} us stored, {{.*}} us where they are read
func.func @rotated(%x: tensor<2048x1024x64xbf16>, %p: tensor<1024xf32>, %f: tensor<64xf32>) -> tensor<2048x1024x64xbf16> {
  %e = tensor.empty() : tensor<1024x64xf32>
  %a = linalg.generic {indexing_maps = [#position, #frequency, #point], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<1024xf32>, tensor<64xf32>) outs(%e : tensor<1024x64xf32>) {
  ^bb0(%u: f32, %v: f32, %out: f32):
    %m = arith.mulf %u, %v : f32
    linalg.yield %m : f32
  } -> tensor<1024x64xf32>
  %c = linalg.generic {indexing_maps = [#point, #point], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<1024x64xf32>) outs(%e : tensor<1024x64xf32>) {
  ^bb0(%u: f32, %out: f32):
    %m = math.cos %u : f32
    linalg.yield %m : f32
  } -> tensor<1024x64xf32>
  %s = linalg.generic {indexing_maps = [#point, #point], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<1024x64xf32>) outs(%e : tensor<1024x64xf32>) {
  ^bb0(%u: f32, %out: f32):
    %m = math.sin %u : f32
    linalg.yield %m : f32
  } -> tensor<1024x64xf32>
  %r = tensor.empty() : tensor<2048x1024x64xbf16>
  %y = linalg.generic {indexing_maps = [#head, #angle, #angle, #head], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %c, %s : tensor<2048x1024x64xbf16>, tensor<1024x64xf32>, tensor<1024x64xf32>)
      outs(%r : tensor<2048x1024x64xbf16>) {
  ^bb0(%w: bf16, %u: f32, %v: f32, %out: bf16):
    %wide = arith.extf %w : bf16 to f32
    %m = arith.mulf %wide, %u : f32
    %t = arith.addf %m, %v : f32
    %n = arith.truncf %t : f32 to bf16
    linalg.yield %n : bf16
  } -> tensor<2048x1024x64xbf16>
  return %y : tensor<2048x1024x64xbf16>
}
