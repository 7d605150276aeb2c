// RUN: mlirfuse-opt --target=sm_90a --sms=132 --fuse-split-reductions --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#one = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> (0)>
// A sum of 2^26 numbers scales them. One cluster that reads them twice would leave the other SMs idle.
// CHECK-LABEL: func.func @f(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<67108864xf32>
// CHECK: %[[S:.*]] = call @f_0_reductions(%[[X]]) : (tensor<67108864xf32>) -> tensor<1xf32>
// CHECK: call @f_0(%[[X]], %[[S]]) : (tensor<67108864xf32>, tensor<1xf32>) -> tensor<67108864xf32>
// CHECK-LABEL: func.func private @f_0_reductions(
// CHECK: linalg.generic {{.*}}["reduction"]
// CHECK-NOT: linalg.generic
// CHECK-LABEL: func.func private @f_0(
// CHECK-NOT: ["reduction"]
func.func @f(%x: tensor<67108864xf32>) -> tensor<67108864xf32> {
  %0 = call @f_0(%x) : (tensor<67108864xf32>) -> tensor<67108864xf32>
  return %0 : tensor<67108864xf32>
}
// expected-remark @below {{f_0_reductions reduces what f_0 uses}}
// expected-remark @below {{nothing along what it reduces waits for a reduction}}
func.func private @f_0(%x: tensor<67108864xf32>) -> tensor<67108864xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %sum = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%x : tensor<67108864xf32>) outs(%init : tensor<1xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<1xf32>
  %empty = tensor.empty() : tensor<67108864xf32>
  %y = linalg.generic {indexing_maps = [#one, #none, #one], iterator_types = ["parallel"]}
      ins(%x, %sum : tensor<67108864xf32>, tensor<1xf32>) outs(%empty : tensor<67108864xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<67108864xf32>
  return %y : tensor<67108864xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// Declined: rows that blocks hold in registers are read once.
// CHECK-LABEL: func.func @g(
// CHECK-COUNT-1: call @
func.func @g(%x: tensor<8192x1024xf32>) -> tensor<8192x1024xf32> {
  %0 = call @g_0(%x) : (tensor<8192x1024xf32>) -> tensor<8192x1024xf32>
  return %0 : tensor<8192x1024xf32>
}
// expected-remark @below {{one kernel is predicted to take}}
func.func private @g_0(%x: tensor<8192x1024xf32>) -> tensor<8192x1024xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8192xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8192xf32>) -> tensor<8192xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8192x1024xf32>) outs(%init : tensor<8192xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8192xf32>
  %empty = tensor.empty() : tensor<8192x1024xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<8192x1024xf32>, tensor<8192xf32>) outs(%empty : tensor<8192x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<8192x1024xf32>
  return %y : tensor<8192x1024xf32>
}

// -----

#one = affine_map<(d0) -> (d0)>
// No match: nothing waits for a reduction.
// CHECK-LABEL: func.func @h(
// CHECK-COUNT-1: call @
func.func @h(%x: tensor<512xf32>) -> tensor<512xf32> {
  %0 = call @h_0(%x) : (tensor<512xf32>) -> tensor<512xf32>
  return %0 : tensor<512xf32>
}
// expected-remark @below {{nothing along what it reduces waits for a reduction}}
func.func private @h_0(%x: tensor<512xf32>) -> tensor<512xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %empty = tensor.empty() : tensor<512xf32>
  %y = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%x : tensor<512xf32>) outs(%empty : tensor<512xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.mulf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<512xf32>
  return %y : tensor<512xf32>
}

// -----

#one = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> (0)>
// The sums of two arrays have no loop in common without what reads both arrays, so each is a kernel of its own.
// CHECK-LABEL: func.func @two(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<268435456xf32>, %[[Y:[a-z0-9]+]]: tensor<268435456xf32>
// CHECK: %[[A:.*]] = call @two_0_reductions(%[[X]]) : (tensor<268435456xf32>) -> tensor<1xf32>
// CHECK: %[[B:.*]] = call @two_0_reductions1(%[[Y]]) : (tensor<268435456xf32>) -> tensor<1xf32>
// CHECK: call @two_0(%[[X]], %[[Y]], %[[A]], %[[B]])
// CHECK-LABEL: func.func private @two_0(
// CHECK-NOT: ["reduction"]
func.func @two(%x: tensor<268435456xf32>, %y: tensor<268435456xf32>) -> tensor<268435456xf32> {
  %0 = call @two_0(%x, %y) : (tensor<268435456xf32>, tensor<268435456xf32>) -> tensor<268435456xf32>
  return %0 : tensor<268435456xf32>
}
// expected-remark @below {{two_0_reductions reduces what two_0 uses}}
// expected-remark @below {{two_0_reductions1 reduces what two_0 uses}}
// expected-remark @below {{nothing along what it reduces waits for a reduction}}
func.func private @two_0(%x: tensor<268435456xf32>, %y: tensor<268435456xf32>) -> tensor<268435456xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %a = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%x : tensor<268435456xf32>) outs(%init : tensor<1xf32>) {
  ^bb0(%u: f32, %out: f32):
    %v = arith.addf %out, %u : f32
    linalg.yield %v : f32
  } -> tensor<1xf32>
  %b = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%y : tensor<268435456xf32>) outs(%init : tensor<1xf32>) {
  ^bb0(%u: f32, %out: f32):
    %v = arith.addf %out, %u : f32
    linalg.yield %v : f32
  } -> tensor<1xf32>
  %empty = tensor.empty() : tensor<268435456xf32>
  %z = linalg.generic {indexing_maps = [#one, #one, #none, #none, #one], iterator_types = ["parallel"]}
      ins(%x, %y, %a, %b : tensor<268435456xf32>, tensor<268435456xf32>, tensor<1xf32>, tensor<1xf32>)
      outs(%empty : tensor<268435456xf32>) {
  ^bb0(%p: f32, %q: f32, %s: f32, %t: f32, %out: f32):
    %v = arith.mulf %p, %s : f32
    %w = arith.mulf %q, %t : f32
    %r = arith.addf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<268435456xf32>
  return %z : tensor<268435456xf32>
}

// -----

#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (0, d1, 0)>
#map2 = affine_map<(d0, d1, d2) -> ()>
// No schedule fits the kernel, nor what is left of it behind its first sum, which is split again.
// CHECK-LABEL: func.func @deep(
// CHECK: %[[SUM:.*]] = call @deep_0_reductions(
// CHECK: %[[SPREAD:.*]] = call @deep_0_reductions1(%{{.*}}, %{{.*}}, %[[SUM]])
// CHECK: call @deep_0(%{{.*}}, %{{.*}}, %[[SPREAD]])
func.func @deep(%arg0: tensor<732x16x2048xf32>, %arg1: tensor<1x16x1xf32>) -> tensor<732x16x2048xf32> attributes {fuse.results = "single"} {
  %0 = call @deep_0(%arg0, %arg1) : (tensor<732x16x2048xf32>, tensor<1x16x1xf32>) -> tensor<732x16x2048xf32>
  return %0 : tensor<732x16x2048xf32>
}
// expected-remark @below {{deep_0_reductions reduces what deep_0 uses}}
// expected-remark @below {{deep_0_reductions1 reduces what deep_0 uses}}
func.func private @deep_0(%arg0: tensor<732x16x2048xf32>, %arg1: tensor<1x16x1xf32>) -> tensor<732x16x2048xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %0 = tensor.empty() : tensor<732x16x2048xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %arg1 : tensor<732x16x2048xf32>, tensor<1x16x1xf32>) outs(%0 : tensor<732x16x2048xf32>) {
  ^bb0(%in: f32, %in_1: f32, %out: f32):
    %12 = arith.addf %in, %in_1 : f32
    linalg.yield %12 : f32
  } -> tensor<732x16x2048xf32>
  %cst = arith.constant 0.000000e+00 : f32
  %2 = tensor.empty() : tensor<f32>
  %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<f32>) -> tensor<f32>
  %4 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["reduction", "reduction", "reduction"]} ins(%1 : tensor<732x16x2048xf32>) outs(%3 : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %12 = arith.addf %out, %in : f32
    linalg.yield %12 : f32
  } -> tensor<f32>
  %5 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %4 : tensor<732x16x2048xf32>, tensor<f32>) outs(%0 : tensor<732x16x2048xf32>) {
  ^bb0(%in: f32, %in_1: f32, %out: f32):
    %12 = arith.subf %in, %in_1 : f32
    linalg.yield %12 : f32
  } -> tensor<732x16x2048xf32>
  %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5 : tensor<732x16x2048xf32>) outs(%0 : tensor<732x16x2048xf32>) {
  ^bb0(%in: f32, %out: f32):
    %12 = math.absf %in : f32
    linalg.yield %12 : f32
  } -> tensor<732x16x2048xf32>
  %7 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["reduction", "reduction", "reduction"]} ins(%6 : tensor<732x16x2048xf32>) outs(%3 : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %12 = arith.addf %out, %in : f32
    linalg.yield %12 : f32
  } -> tensor<f32>
  %8 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %7 : tensor<732x16x2048xf32>, tensor<f32>) outs(%0 : tensor<732x16x2048xf32>) {
  ^bb0(%in: f32, %in_1: f32, %out: f32):
    %12 = arith.mulf %in, %in_1 : f32
    linalg.yield %12 : f32
  } -> tensor<732x16x2048xf32>
  %cst_0 = arith.constant 0xFF800000 : f32
  %9 = linalg.fill ins(%cst_0 : f32) outs(%2 : tensor<f32>) -> tensor<f32>
  %10 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["reduction", "reduction", "reduction"]} ins(%8 : tensor<732x16x2048xf32>) outs(%9 : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %12 = arith.maximumf %out, %in : f32
    linalg.yield %12 : f32
  } -> tensor<f32>
  %11 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %10 : tensor<732x16x2048xf32>, tensor<f32>) outs(%0 : tensor<732x16x2048xf32>) {
  ^bb0(%in: f32, %in_1: f32, %out: f32):
    %12 = arith.mulf %in, %in_1 : f32
    linalg.yield %12 : f32
  } -> tensor<732x16x2048xf32>
  return %11 : tensor<732x16x2048xf32>
}

// -----

#rows = affine_map<(a, b) -> (a, b)>
#row = affine_map<(a, b) -> (a, 0)>
// Rows that blocks hold stay whole by prediction; a kernel that is named is split once.
// CHECK-LABEL: func.func @named(
// CHECK-NOT: fuse.split_kernels
// CHECK: call @named_0_reductions(
// CHECK: call @named_0(
func.func @named(%x: tensor<4096x1024xf32>) -> tensor<4096x1024xf32> attributes {fuse.split_kernels = ["named_0"]} {
  %0 = call @named_0(%x) : (tensor<4096x1024xf32>) -> tensor<4096x1024xf32>
  return %0 : tensor<4096x1024xf32>
}
// expected-remark @below {{named_0_reductions reduces what named_0 uses}}
// expected-remark @below {{nothing along what it reduces waits for a reduction}}
func.func private @named_0(%x: tensor<4096x1024xf32>) -> tensor<4096x1024xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x1xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x1xf32>) -> tensor<4096x1xf32>
  %sum = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4096x1024xf32>) outs(%init : tensor<4096x1xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<4096x1xf32>
  %f = tensor.empty() : tensor<4096x1024xf32>
  %y = linalg.generic {indexing_maps = [#rows, #row, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<4096x1024xf32>, tensor<4096x1xf32>) outs(%f : tensor<4096x1024xf32>) {
  ^bb0(%a: f32, %s: f32, %out: f32):
    %v = arith.mulf %a, %s : f32
    linalg.yield %v : f32
  } -> tensor<4096x1024xf32>
  return %y : tensor<4096x1024xf32>
}

// -----

#ab = affine_map<(a, b) -> (a, b)>
#a = affine_map<(a, b) -> (a)>
#b = affine_map<(a, b) -> (b)>
#v = affine_map<(c) -> (c)>
// What only the reductions had loops in common with is a kernel of its own: its loops would be nested in the others.
// CHECK-LABEL: func.func @unrelated(
// CHECK: call @unrelated_0_reductions(
// CHECK: %[[Q:.*]] = call @unrelated_0_part(%{{.*}}) : (tensor<16xf32>) -> tensor<16xf32>
// CHECK: %[[Y:.*]] = call @unrelated_0(
// CHECK-SAME: -> tensor<64x32xf32>
// CHECK: return %[[Y]], %[[Q]]
func.func @unrelated(%x: tensor<64x32xf32>, %m: tensor<64x16xf32>, %w: tensor<16xf32>)
    -> (tensor<64x32xf32>, tensor<16xf32>) attributes {fuse.split_kernels = ["unrelated_0"]} {
  %0:2 = call @unrelated_0(%x, %m, %w) : (tensor<64x32xf32>, tensor<64x16xf32>, tensor<16xf32>)
      -> (tensor<64x32xf32>, tensor<16xf32>)
  return %0#0, %0#1 : tensor<64x32xf32>, tensor<16xf32>
}
// expected-remark @below {{unrelated_0_reductions reduces what unrelated_0 uses}}
// expected-remark @below {{unrelated_0_part has no loops in common with unrelated_0}}
// expected-remark @below {{nothing along what it reduces waits for a reduction}}
func.func private @unrelated_0(%x: tensor<64x32xf32>, %m: tensor<64x16xf32>, %w: tensor<16xf32>)
    -> (tensor<64x32xf32>, tensor<16xf32>) attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#ab, #a], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x32xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%i: f32, %out: f32):
    %s = arith.addf %out, %i : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %weighted = linalg.generic {indexing_maps = [#ab, #b, #a], iterator_types = ["parallel", "reduction"]}
      ins(%m, %w : tensor<64x16xf32>, tensor<16xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%i: f32, %j: f32, %out: f32):
    %p = arith.subf %i, %j : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %f = tensor.empty() : tensor<64x32xf32>
  %y = linalg.generic {indexing_maps = [#ab, #a, #a, #ab], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum, %weighted : tensor<64x32xf32>, tensor<64xf32>, tensor<64xf32>) outs(%f : tensor<64x32xf32>) {
  ^bb0(%i: f32, %j: f32, %k: f32, %out: f32):
    %p = arith.mulf %i, %j : f32
    %s = arith.addf %p, %k : f32
    linalg.yield %s : f32
  } -> tensor<64x32xf32>
  %g = tensor.empty() : tensor<16xf32>
  %q = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%w : tensor<16xf32>) outs(%g : tensor<16xf32>) {
  ^bb0(%i: f32, %out: f32):
    %s = arith.negf %i : f32
    linalg.yield %s : f32
  } -> tensor<16xf32>
  return %y, %q : tensor<64x32xf32>, tensor<16xf32>
}

// -----

#rows = affine_map<(a, b) -> (a, b)>
#none = affine_map<(a, b) -> ()>
// Nothing waits for the sum: what is summed is stored by the first kernel, as a result that is returned anyway, and its
// cast is computed by the second.
// CHECK-LABEL: func.func @last(
// CHECK: %[[Y:.*]] = call @last_0_values(%arg0) : (tensor<1027x999xf32>) -> tensor<1027x999xf16>
// CHECK: %[[S:.*]] = call @last_0(%[[Y]]) : (tensor<1027x999xf16>) -> tensor<f32>
// CHECK: return %[[Y]], %[[S]]
func.func @last(%x: tensor<1027x999xf32>) -> (tensor<1027x999xf16>, tensor<f32>) attributes {fuse.split_kernels = ["last_0"]} {
  %0:2 = call @last_0(%x) : (tensor<1027x999xf32>) -> (tensor<1027x999xf16>, tensor<f32>)
  return %0#0, %0#1 : tensor<1027x999xf16>, tensor<f32>
}
// expected-remark @below {{last_0_values stores what last_0 reduces}}
// expected-remark @below {{nothing along what it reduces waits for a reduction}}
func.func private @last_0(%x: tensor<1027x999xf32>) -> (tensor<1027x999xf16>, tensor<f32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e16 = tensor.empty() : tensor<1027x999xf16>
  %e32 = tensor.empty() : tensor<1027x999xf32>
  %e = tensor.empty() : tensor<f32>
  %y = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<1027x999xf32>) outs(%e16 : tensor<1027x999xf16>) {
  ^bb0(%in: f32, %out: f16):
    %t = math.exp %in : f32
    %h = arith.truncf %t : f32 to f16
    linalg.yield %h : f16
  } -> tensor<1027x999xf16>
  %w = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<1027x999xf16>) outs(%e32 : tensor<1027x999xf32>) {
  ^bb0(%in: f16, %out: f32):
    %t = arith.extf %in : f16 to f32
    linalg.yield %t : f32
  } -> tensor<1027x999xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [#rows, #none], iterator_types = ["reduction", "reduction"]}
      ins(%w : tensor<1027x999xf32>) outs(%init : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %t = arith.addf %out, %in : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %y, %s : tensor<1027x999xf16>, tensor<f32>
}
