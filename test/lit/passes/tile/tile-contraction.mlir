// RUN: mlirfuse-opt --fuse-tile-contraction --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 32, 32>, layout = #layout, contraction = {k = 32, instruction = "mma"}}

// Operands are read in the order of memory; of the dimensions that do not divide, each read may overrun its own.
// CHECK-DAG: #[[MK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[NK:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func private @f_0_kernel(
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<32x32xf32>
// CHECK: %[[SUM:.*]] = scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[ACC:.*]] = %[[ZERO]]) -> (vector<32x32xf32>)
// Rows past the end are undefined; elements past the end of k are zero.
// CHECK: %[[A:.*]] = vector.transfer_read %{{.*}}[%[[M:.*]], %[[K]]], %{{.*}} {fuse.undefined = array<i64: 0>} : memref<?x80xbf16>, vector<32x32xbf16>
// CHECK: %[[B:.*]] = vector.transfer_read %{{.*}}[%[[N:.*]], %[[K]]], %{{.*}} {in_bounds = [true, false]} : memref<64x80xbf16>, vector<32x32xbf16>
// CHECK: vector.contract {indexing_maps = [#[[MK]], #[[NK]], #[[MN]]]
// CHECK-SAME: %[[A]], %[[B]], %[[ACC]] {fuse.instruction = "mma"} : vector<32x32xbf16>, vector<32x32xbf16> into vector<32x32xf32>
// The epilogue works on the tile of accumulators.
// CHECK: arith.truncf %[[SUM]] : vector<32x32xf32> to vector<32x32xbf16>
// CHECK: vector.transfer_read %{{.*}}[%[[N]]]{{.*}} : memref<64xbf16>, vector<1x32xbf16>
// CHECK: arith.addf %{{.*}} : vector<32x32xbf16>
// CHECK: vector.transfer_write %{{.*}}[%[[M]], %[[N]]] {{.*}}in_bounds = [false, true]{{.*}} : vector<32x32xbf16>, memref<?x64xbf16>
func.func private @f_0(%x: tensor<?x80xbf16>, %w: tensor<64x80xbf16>, %b: tensor<64xbf16>) -> tensor<?x64xbf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x80xbf16>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<?x80xbf16>, tensor<64x80xbf16>) outs(%init : tensor<?x64xf32>) {
  ^bb0(%p: bf16, %q: bf16, %sum: f32):
    %pe = arith.extf %p : bf16 to f32
    %qe = arith.extf %q : bf16 to f32
    %pq = arith.mulf %pe, %qe : f32
    %s = arith.addf %sum, %pq : f32
    linalg.yield %s : f32
  } -> tensor<?x64xf32>
  %h = tensor.empty(%m) : tensor<?x64xbf16>
  %1 = linalg.generic {indexing_maps = [#id, #n, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0, %b : tensor<?x64xf32>, tensor<64xbf16>) outs(%h : tensor<?x64xbf16>) {
  ^bb0(%p: f32, %q: bf16, %out: bf16):
    %t = arith.truncf %p : f32 to bf16
    %s = arith.addf %t, %q : bf16
    linalg.yield %s : bf16
  } -> tensor<?x64xbf16>
  return %1 : tensor<?x64xbf16>
}

// -----

#bmk = affine_map<(b, m, n, k) -> (b, m, k)>
#kn = affine_map<(b, m, n, k) -> (k, n)>
#bmn = affine_map<(b, m, n, k) -> (b, m, n)>
#layout = {vector = array<i64: 1, 1, 4>, lanes = array<i64: 1, 4, 8>, warps = array<i64: 1, 2, 1>, repeats = array<i64: 1, 1, 1>,
           blocks = array<i64: 1, 1, 1>}
#schedule = {tile = array<i64: 1, 8, 32>, layout = #layout, contraction = {k = 16, instruction = "fma"}}

// A batch dimension that one operand lacks; operand A is a transposed array, whose stride 1 is that of m.
// CHECK: #[[SWAP:.*]] = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
// CHECK-DAG: #[[BKM:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1)>
// CHECK-DAG: #[[KN:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d2)>
// CHECK-DAG: #[[BMN:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: func.func private @batch_0_kernel(
// CHECK: vector.transfer_read {{.*}}permutation_map = #[[SWAP]]} : memref<5x8x64xf32, strided<[512, 1, 8]>>, vector<1x16x8xf32>
// CHECK: vector.transfer_read {{.*}} : memref<64x32xf32>, vector<16x32xf32>
// CHECK: vector.contract {indexing_maps = [#[[BKM]], #[[KN]], #[[BMN]]]{{.*}} into vector<1x8x32xf32>
func.func private @batch_0(%x: tensor<5x8x64xf32> {fuse.strides = [512, 1, 8]}, %w: tensor<64x32xf32>) -> tensor<5x8x32xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = #schedule} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x8x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<5x8x32xf32>) -> tensor<5x8x32xf32>
  %0 = linalg.generic {indexing_maps = [#bmk, #kn, #bmn], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<5x8x64xf32>, tensor<64x32xf32>) outs(%init : tensor<5x8x32xf32>) {
  ^bb0(%p: f32, %q: f32, %sum: f32):
    %pq = arith.mulf %p, %q : f32
    %s = arith.addf %sum, %pq : f32
    linalg.yield %s : f32
  } -> tensor<5x8x32xf32>
  return %0 : tensor<5x8x32xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// expected-remark @below {{scheduled without a contraction}}
func.func private @sum_0(%x: tensor<8x256xf32>, %init: tensor<8xf32>) -> tensor<8xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<8x256xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
// expected-error @below {{the schedule is illegal: 9 splits of 8 steps along k leave blocks without work}}
func.func private @split_0(%x: tensor<64x256xf16>, %w: tensor<64x256xf16>, %init: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout,
                contraction = {k = 32, instruction = "mma", split = 9}}} {
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<64x256xf16>, tensor<64x256xf16>) outs(%init : tensor<64x64xf32>) {
  ^bb0(%p: f16, %q: f16, %sum: f32):
    %pe = arith.extf %p : f16 to f32
    %qe = arith.extf %q : f16 to f32
    %pq = arith.mulf %pe, %qe : f32
    %s = arith.addf %sum, %pq : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 32, 32>, layout = #layout, contraction = {k = 64, instruction = "mma"}}

// A contraction has one type for both operands: both kinds of float8 are cast to f16, which holds them. The precision of the
// multiplication is the contraction's.
// CHECK-LABEL: func.func private @float8_0_kernel(
// CHECK: %[[A:.*]] = vector.transfer_read %{{.*}} : memref<32x64xf8E4M3FN>, vector<32x64xf8E4M3FN>
// CHECK: %[[B:.*]] = vector.transfer_read %{{.*}} : memref<32x64xf8E5M2>, vector<32x64xf8E5M2>
// CHECK: %[[WA:.*]] = arith.extf %[[A]] : vector<32x64xf8E4M3FN> to vector<32x64xf16>
// CHECK: %[[WB:.*]] = arith.extf %[[B]] : vector<32x64xf8E5M2> to vector<32x64xf16>
// CHECK: vector.contract {{.*}} %[[WA]], %[[WB]], %{{.*}} {fuse.instruction = "mma", fuse.precision = "fast_accum"}
func.func private @float8_0(%x: tensor<32x64xf8E4M3FN>, %w: tensor<32x64xf8E5M2>) -> tensor<32x32xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = #schedule} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<32x64xf8E4M3FN>, tensor<32x64xf8E5M2>) outs(%init : tensor<32x32xf32>) {
  ^bb0(%p: f8E4M3FN, %q: f8E5M2, %sum: f32):
    %pe = arith.extf %p : f8E4M3FN to f32
    %qe = arith.extf %q : f8E5M2 to f32
    %pq = arith.mulf %pe, %qe {fuse.precision = "fast_accum"} : f32
    %s = arith.addf %sum, %pq : f32
    linalg.yield %s : f32
  } -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#id = affine_map<(d0, d1) -> (d0, d1)>
// expected-error @below {{the schedule is a contraction's, and the kernel has none}}
func.func private @no_product_0(%x: tensor<64x64xf16>) -> tensor<64x64xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout,
                contraction = {k = 32, instruction = "mma"}}} {
  %e = tensor.empty() : tensor<64x64xf16>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<64x64xf16>) outs(%e : tensor<64x64xf16>) {
  ^bb0(%a: f16, %out: f16):
    %v = math.exp %a : f16
    linalg.yield %v : f16
  } -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
// The addend of the product is computed by the kernel, and added after the loop, as several blocks may share a loop.
// CHECK-LABEL: func.func private @starts_0_kernel(
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<32x32xf32>
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[ZERO]])
// CHECK: vector.contract
// CHECK: %[[START:.*]] = math.exp
// CHECK: %[[TOTAL:.*]] = arith.addf %[[START]], %[[SUM]]
// CHECK: vector.transfer_write %[[TOTAL]]
func.func private @starts_0(%x: tensor<64x64xbf16>, %w: tensor<64x64xbf16>, %y: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout,
                contraction = {k = 32, instruction = "mma"}}} {
  %e = tensor.empty() : tensor<64x64xf32>
  %init = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%y : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<64x64xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%init : tensor<64x64xf32>) {
  ^bb0(%p: bf16, %q: bf16, %sum: f32):
    %pe = arith.extf %p : bf16 to f32
    %qe = arith.extf %q : bf16 to f32
    %pq = arith.mulf %pe, %qe : f32
    %s = arith.addf %sum, %pq : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 32, 32>, layout = #layout, contraction = {k = 32, instruction = "mma"}}
// Products that share an operand share its tile; the epilogue has both tiles of accumulators.
// CHECK-LABEL: func.func private @gated_kernel(
// CHECK: %[[SUMS:.*]]:2 = scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}}, %[[T:.*]] = %{{.*}}) -> (vector<32x32xf32>, vector<32x32xf32>)
// CHECK: %[[A:.*]] = vector.transfer_read
// CHECK: %[[B:.*]] = vector.transfer_read
// CHECK: %[[C:.*]] = vector.transfer_read
// CHECK-NOT: vector.transfer_read
// CHECK: %[[S2:.*]] = vector.contract {{.*}} %[[A]], %[[B]], %[[S]]
// CHECK: %[[T2:.*]] = vector.contract {{.*}} %[[A]], %[[C]], %[[T]]
// CHECK: scf.yield %[[S2]], %[[T2]]
// CHECK: arith.mulf %[[SUMS]]#0, %[[SUMS]]#1 : vector<32x32xf32>
func.func private @gated(%x: tensor<64x64xbf16>, %g: tensor<64x64xbf16>, %u: tensor<64x64xbf16>) -> tensor<64x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = #schedule} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %0:2 = linalg.generic {indexing_maps = [#mk, #nk, #nk, #mn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %g, %u : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%init, %init : tensor<64x64xf32>, tensor<64x64xf32>) {
  ^bb0(%p: bf16, %q: bf16, %r: bf16, %sum: f32, %other: f32):
    %pe = arith.extf %p : bf16 to f32
    %qe = arith.extf %q : bf16 to f32
    %re = arith.extf %r : bf16 to f32
    %pq = arith.mulf %pe, %qe : f32
    %pr = arith.mulf %pe, %re : f32
    %s = arith.addf %sum, %pq : f32
    %t = arith.addf %other, %pr : f32
    linalg.yield %s, %t : f32, f32
  } -> (tensor<64x64xf32>, tensor<64x64xf32>)
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0#0, %0#1 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %v = arith.mulf %p, %q : f32
    linalg.yield %v : f32
  } -> tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}

// -----

#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
// The loop carries 16 columns of partial sums, which two warps of 8 columns have side by side; a chunk is as long here as
// a step has columns of threads twice. The first tile of a row writes the sums.
// CHECK-LABEL: func.func private @sums_0_kernel(
// CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} -> (vector<32x32xf32>, vector<32x16xf32>)
// CHECK: %[[A:.*]] = vector.transfer_read %arg0
// CHECK: vector.contract
// CHECK: %[[T:.*]] = "fuse.operand_tile"(%[[A]]) {first = 0 : i64, transposed} : (vector<32x32xf16>) -> vector<32x32xf16>
// CHECK: %[[E:.*]] = arith.extf %[[T]]
// CHECK: vector.extract_strided_slice %[[E]] {offsets = [0, 0], sizes = [32, 16]
// CHECK: vector.extract_strided_slice %[[E]] {offsets = [0, 16], sizes = [32, 16]
// CHECK: scf.yield
// CHECK: vector.multi_reduction <add>, %[[LOOP]]#1, %{{.*}} [1] : vector<32x16xf32> to vector<32xf32>
// CHECK: scf.if
// CHECK-NEXT: vector.transfer_write {{.*}} vector<32xf32>, memref<64xf32>
func.func private @sums_0(%dy: tensor<96x64xf16> {fuse.align = 16 : i64}, %x: tensor<96x64xf16> {fuse.align = 16 : i64}) -> (tensor<64x64xf32>, tensor<64xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout,
                contraction = {k = 32, instruction = "mma"}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %0 = linalg.generic {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%dy, %x : tensor<96x64xf16>, tensor<96x64xf16>) outs(%init : tensor<64x64xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  %e1 = tensor.empty() : tensor<64xf32>
  %init1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64xf32>) -> tensor<64xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(k, m) -> (k, m)>, affine_map<(k, m) -> (m)>], iterator_types = ["reduction", "parallel"]}
       ins(%dy : tensor<96x64xf16>) outs(%init1 : tensor<64xf32>) {
  ^bb0(%a: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %s = arith.addf %out, %l : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %0, %1 : tensor<64x64xf32>, tensor<64xf32>
}
