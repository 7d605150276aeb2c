// RUN: mlirfuse-opt --fuse-segment --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#keep = affine_map<(d0, d1) -> (d0, 0)>
// A reduction and the use of its result along the same rows are one kernel; the shared producer is computed once.
// CHECK-LABEL: func.func @f(
// CHECK: call @f_0(
// CHECK-NOT: linalg.generic
// CHECK-LABEL: func.func private @f_0(%{{.*}}: tensor<?x64xf32>
// CHECK-SAME: fuse.kernel, fuse.result_extents = array<i64: 0, 0>
// CHECK-COUNT-1: math.exp
// CHECK-NOT: math.exp
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<?x64xf32>
  %er = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%0 : tensor<?x64xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  %2 = tensor.expand_shape %1 [[0, 1]] output_shape [%m, 1] : tensor<?xf32> into tensor<?x1xf32>
  %3 = linalg.generic {indexing_maps = [#id, #keep, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0, %2 : tensor<?x64xf32>, tensor<?x1xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.divf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<?x64xf32>
  return %3 : tensor<?x64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @both(
// CHECK: call @both_0
// CHECK: call @both_1
func.func @both(%x: tensor<32x64xf32>) -> (tensor<32xf32>, tensor<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<32xf32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<32xf32>) -> tensor<32xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<32x64xf32>) outs(%i0 : tensor<32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<32xf32>
  %e1 = tensor.empty() : tensor<64xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64xf32>) -> tensor<64xf32>
  // expected-remark @below {{linalg.generic starts a kernel of its own: it reduces other dimensions than its producers do}}
  %1 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<32x64xf32>) outs(%i1 : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %0, %1 : tensor<32xf32>, tensor<64xf32>
}

// -----

#id2 = affine_map<(d0, d1) -> (d0, d1)>
#id = affine_map<(d0) -> (d0)>
// A reshape that merges extents is a view on the host, between two kernels.
// CHECK-LABEL: func.func @reshape(
// CHECK: %[[A:.*]] = call @reshape_0
// CHECK: %[[B:.*]] = tensor.collapse_shape %[[A]]
// CHECK: call @reshape_1(%[[B]])
func.func @reshape(%x: tensor<32x64xf32>) -> tensor<2048xf32> {
  %e = tensor.empty() : tensor<32x64xf32>
  %0 = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<32x64xf32>
  %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<32x64xf32> into tensor<2048xf32>
  %e1 = tensor.empty() : tensor<2048xf32>
  // expected-remark @below {{it reads its producer's result reshaped to other dimensions, which takes the result in memory}}
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
       ins(%1 : tensor<2048xf32>) outs(%e1 : tensor<2048xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.log %a : f32
    linalg.yield %v : f32
  } -> tensor<2048xf32>
  return %2 : tensor<2048xf32>
}

// -----

// Named ops stay where they are; upstream has a pass that makes them generic.
// CHECK-LABEL: func.func @named(
// CHECK: linalg.add
// expected-remark @below {{no op to put into a kernel}}
func.func @named(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  // expected-remark @below {{linalg.add is a named op, without indexing maps: run linalg-generalize-named-ops before}}
  %0 = linalg.add ins(%x, %x : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// expected-remark @below {{no op to put into a kernel}}
func.func @identity(%x: tensor<32xf32>) -> tensor<32xf32> {
  return %x : tensor<32xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>
// expected-error @below {{a schedule is given for g_7, which is no kernel}}
func.func @g(%x: tensor<32xf32>) -> tensor<32xf32> attributes {fuse.schedules = {g_7 = {}}} {
  %e = tensor.empty() : tensor<32xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
       ins(%x : tensor<32xf32>) outs(%e : tensor<32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<32xf32>
  return %0 : tensor<32xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// What is only returned transposed, or with a dimension of extent 1, is a view: the kernels write what they compute.
// A reshape of a transposed value needs a kernel that writes the transposed value.
// CHECK-LABEL: func.func @final_views
// CHECK: %[[K:.*]]:2 = call @final_views_0(
// CHECK-DAG: linalg.transpose ins(%[[K]]#0
// CHECK-DAG: tensor.expand_shape %[[K]]#1
// CHECK: return
// CHECK-LABEL: func.func @no_view
// CHECK: %[[T:.*]] = call @no_view_0(%{{.*}}) : (tensor<4x8xf32>) -> tensor<8x4xf32>
// CHECK: tensor.collapse_shape %[[T]]
func.func @final_views(%x: tensor<4x8xf32>) -> (tensor<8x4xf32>, tensor<4x1xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %r = tensor.empty() : tensor<4xf32>
  %t = tensor.empty() : tensor<8x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%r : tensor<4xf32>) -> tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%0 : tensor<4x8xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %v = arith.addf %sum, %a : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %2 = linalg.transpose ins(%0 : tensor<4x8xf32>) outs(%t : tensor<8x4xf32>) permutation = [1, 0]
  %3 = tensor.expand_shape %1 [[0, 1]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
  return %2, %3 : tensor<8x4xf32>, tensor<4x1xf32>
}
func.func @no_view(%x: tensor<4x8xf32>) -> tensor<32xf32> {
  %t = tensor.empty() : tensor<8x4xf32>
  %0 = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%t : tensor<8x4xf32>) permutation = [1, 0]
  %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<8x4xf32> into tensor<32xf32>
  return %1 : tensor<32xf32>
}

// -----

// Casts of two arguments start segments apart; the sum that reads both, and what follows it, makes them one.
// CHECK-LABEL: func.func @residual(
// CHECK: call @residual_0(
// CHECK-NOT: call
// CHECK: return
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @residual(%x: tensor<?x64xf16>, %r: tensor<?x64xf16>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xf16>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<?x64xf16>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%a: f16, %out: f32):
    %w = arith.extf %a : f16 to f32
    linalg.yield %w : f32
  } -> tensor<?x64xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%r : tensor<?x64xf16>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%a: f16, %out: f32):
    %w = arith.extf %a : f16 to f32
    linalg.yield %w : f32
  } -> tensor<?x64xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0, %1 : tensor<?x64xf32>, tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x64xf32>
  %zero = arith.constant 0.0 : f32
  %t = tensor.empty(%m) : tensor<?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%t : tensor<?xf32>) -> tensor<?xf32>
  %3 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%2 : tensor<?x64xf32>) outs(%z : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %3 : tensor<?xf32>
}

// -----

// Either result starts from an argument of its own; in the end both read all of %x, which one kernel reads once.
// CHECK-LABEL: func.func @shared(
// CHECK: %[[BOTH:.*]]:2 = call @shared_0(
// CHECK-NOT: call
// CHECK: return %[[BOTH]]#0, %[[BOTH]]#1
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @shared(%a: tensor<32x64xf32>, %b: tensor<32x64xf32>, %x: tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<32x64xf32>) {
  %e = tensor.empty() : tensor<32x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%a : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %out: f32):
    %s = math.exp %v0 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0, %x : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %v1: f32, %out: f32):
    %s = arith.addf %v0, %v1 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%b : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %out: f32):
    %s = math.exp %v0 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%2, %x : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %v1: f32, %out: f32):
    %s = arith.addf %v0, %v1 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %1, %3 : tensor<32x64xf32>, tensor<32x64xf32>
}

// -----

// A shared vector is no reason to share a kernel, as reading it twice is cheap.
// CHECK-LABEL: func.func @vector(
// CHECK: call @vector_0(
// CHECK: call @vector_1(
#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
func.func @vector(%a: tensor<32x64xf32>, %b: tensor<32x64xf32>, %w: tensor<64xf32>) -> (tensor<32x64xf32>, tensor<32x64xf32>) {
  %e = tensor.empty() : tensor<32x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%a : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %out: f32):
    %s = math.exp %v0 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %1 = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0, %w : tensor<32x64xf32>, tensor<64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %v1: f32, %out: f32):
    %s = arith.addf %v0, %v1 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%b : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %out: f32):
    %s = math.exp %v0 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %3 = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
       ins(%2, %w : tensor<32x64xf32>, tensor<64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %v1: f32, %out: f32):
    %s = arith.addf %v0, %v1 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %1, %3 : tensor<32x64xf32>, tensor<32x64xf32>
}

// -----

// Where one of them reduces, they stay apart.
// CHECK-LABEL: func.func @reduced(
// CHECK: call @reduced_0(
// CHECK: call @reduced_1(
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @reduced(%a: tensor<32x64xf32>, %b: tensor<32x64xf32>, %x: tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<32xf32>) {
  %e = tensor.empty() : tensor<32x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%a : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %out: f32):
    %s = math.exp %v0 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0, %x : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %v1: f32, %out: f32):
    %s = arith.addf %v0, %v1 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%b : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %out: f32):
    %s = math.exp %v0 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%2, %x : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v0: f32, %v1: f32, %out: f32):
    %s = arith.addf %v0, %v1 : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  %zero = arith.constant 0.0 : f32
  %t = tensor.empty() : tensor<32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%t : tensor<32xf32>) -> tensor<32xf32>
  %4 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%3 : tensor<32x64xf32>) outs(%z : tensor<32xf32>) {
  ^bb0(%v0: f32, %out: f32):
    %s = arith.addf %out, %v0 : f32
    linalg.yield %s : f32
  } -> tensor<32xf32>
  return %1, %4 : tensor<32x64xf32>, tensor<32xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>
func.func @strided(%x: tensor<4x8xf32> {fuse.strides = array<i64: -1, 1>}) -> tensor<32xf32> {
  // expected-error @below {{a reshape of an argument that is not contiguous would need a copy}}
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  %e = tensor.empty() : tensor<32xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
       ins(%0 : tensor<32xf32>) outs(%e : tensor<32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<32xf32>
  return %1 : tensor<32xf32>
}

// -----

// The kernel of a split argument gets its strides where they are static; those of a dynamic extent are packed.
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-LABEL: func.func private @heads_0
// CHECK-SAME: tensor<?x2x4xf16> {fuse.align = 16 : i64, fuse.strides = array<i64: -2, 4, 1>}
func.func @heads(%x: tensor<?x8xf16> {fuse.strides = array<i64: -2, 1>}, %e: tensor<?x2x4xf16>) -> tensor<?x2x4xf16> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x8xf16>
  %0 = tensor.expand_shape %x [[0], [1, 2]] output_shape [%m, 2, 4] : tensor<?x8xf16> into tensor<?x2x4xf16>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%0 : tensor<?x2x4xf16>) outs(%e : tensor<?x2x4xf16>) {
  ^bb0(%a: f16, %out: f16):
    %v = math.exp %a : f16
    linalg.yield %v : f16
  } -> tensor<?x2x4xf16>
  return %1 : tensor<?x2x4xf16>
}

// -----

// Indexing maps that repeat a loop, or select some elements, are no accesses of tiles.
#diagonal = affine_map<(d0) -> (d0, d0)>
#one = affine_map<(d0) -> (d0)>
func.func @diagonal(%x: tensor<32x32xf32>) -> tensor<32xf32> {
  %e = tensor.empty() : tensor<32xf32>
  // expected-error @below {{indexing map affine_map<(d0) -> (d0, d0)> is not a projection of its loops}}
  %0 = linalg.generic {indexing_maps = [#diagonal, #one], iterator_types = ["parallel"]}
       ins(%x : tensor<32x32xf32>) outs(%e : tensor<32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<32xf32>
  return %0 : tensor<32xf32>
}

// -----

#first = affine_map<(d0) -> (d0, 0)>
#one = affine_map<(d0) -> (d0)>
func.func @first_column(%x: tensor<8x64xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  // expected-error @below {{only the first element along axis 1 of tensor<8x64xf32> is read}}
  %0 = linalg.generic {indexing_maps = [#first, #one], iterator_types = ["parallel"]}
       ins(%x : tensor<8x64xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// An op that no kernel can be made of, alone as it is, is an error.
func.func @moments_of_run_time_length(%x: tensor<8x?xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // expected-error @below {{no kernel can be made of fuse.moments}}
  %0:2 = "fuse.moments"(%x) {dims = array<i64: 1>} : (tensor<8x?xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @unread(%x: tensor<?x8xf32> {fuse.name = "x"}) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  // expected-error @below {{a result has the dynamic extent of dimension 0 of x, and its kernel reads nothing with that extent}}
  %0 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<?x8xf32>) {
  ^bb0(%out: f32):
    linalg.yield %zero : f32
  } -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
// Only views of an operand join the contraction. The transpose is in another kernel, and an unused op in none.
// CHECK-LABEL: func.func @beside
// CHECK-COUNT-2: call @beside_
// CHECK-NOT: call
// CHECK-LABEL: func.func private @beside_0
// CHECK-NOT: math.exp
// CHECK-LABEL: func.func private @beside_1
// CHECK-NOT: math.exp
func.func @beside(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %t = linalg.transpose ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) permutation = [1, 0]
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %x : tensor<64x64xf32>, tensor<64x64xf32>) outs(%init : tensor<64x64xf32>) {
  ^bb0(%v: f32, %w: f32, %out: f32):
    %m = arith.mulf %v, %w : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  %u = linalg.transpose ins(%t : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) permutation = [1, 0]
  %dead = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%p : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %w = math.exp %v : f32
    linalg.yield %w : f32
  } -> tensor<64x64xf32>
  %log = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
         ins(%u : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %w = math.log %v : f32
    linalg.yield %w : f32
  } -> tensor<64x64xf32>
  return %p, %log : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#scalar = affine_map<(d0) -> ()>
#vector = affine_map<(d0) -> (d0)>
// The generic form of a fill becomes a `linalg.fill` again, in the kernel that starts from it.
// CHECK-LABEL: func.func @generic_fill(
// CHECK: call @generic_fill_0(
// CHECK-NOT: call
// CHECK-LABEL: func.func private @generic_fill_0(
// CHECK: linalg.fill
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
func.func @generic_fill(%x: tensor<32x64xf32>) -> tensor<32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32xf32>
  %init = linalg.generic {indexing_maps = [#scalar, #vector], iterator_types = ["parallel"]}
       ins(%zero : f32) outs(%e : tensor<32xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<32xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<32x64xf32>) outs(%init : tensor<32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<32xf32>
  return %0 : tensor<32xf32>
}

// -----

#id1 = affine_map<(d0) -> (d0)>
// The number of rows was computed, as the product of two extents, and is asked of a value of the kernel; both take it
// from what the kernel reads: it takes no index that the host computed, and returns nothing for its extent alone.
// CHECK-LABEL: func.func @computed(
// CHECK: call @computed_0(%{{[a-z0-9]*}}) : (tensor<?xf32>) -> tensor<?x1xf32>
// CHECK-LABEL: func.func private @computed_0(
// CHECK: %[[ROWS:.*]] = tensor.dim %arg0
// CHECK: %[[NEG:.*]] = linalg.generic
// CHECK: tensor.expand_shape %[[NEG]] {{\[\[}}0, 1]] output_shape [%[[ROWS]], 1]
func.func @computed(%x: tensor<?x?xf32>) -> tensor<?x1xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tensor.dim %x, %c0 : tensor<?x?xf32>
  %b = tensor.dim %x, %c1 : tensor<?x?xf32>
  %n = arith.muli %a, %b : index
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %m = tensor.dim %flat, %c0 : tensor<?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
       ins(%flat : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%v: f32, %out: f32):
    %s = arith.negf %v : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %1 = tensor.expand_shape %0 [[0, 1]] output_shape [%n, 1] : tensor<?xf32> into tensor<?x1xf32>
  %m0 = tensor.dim %0, %c0 : tensor<?xf32>
  %e1 = tensor.empty(%m0) : tensor<?x1xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
                       iterator_types = ["parallel", "parallel"]}
       ins(%1 : tensor<?x1xf32>) outs(%e1 : tensor<?x1xf32>) {
  ^bb0(%v: f32, %out: f32):
    %s = math.exp %v : f32
    linalg.yield %s : f32
  } -> tensor<?x1xf32>
  return %2 : tensor<?x1xf32>
}

// -----

#id1 = affine_map<(d0) -> (d0)>
#one = affine_map<() -> ()>
#all = affine_map<(d0) -> ()>
// The number that a sum is divided by was computed for the size of a view too: the body computes it again, of the array
// whose rows it is.
// CHECK-LABEL: func.func @counted(
// CHECK-NOT: arith.muli
// CHECK: call @counted_0(%{{[a-z0-9]*}}, %arg0) : (tensor<?xf32>, tensor<?x2xf32>) -> tensor<f32>
// CHECK-LABEL: func.func private @counted_0(
// CHECK: %[[ROWS:.*]] = tensor.dim %arg1
// CHECK: ^bb0
// CHECK: %[[COUNT:.*]] = arith.muli %[[ROWS]], %c2 : index
// CHECK: arith.index_cast %[[COUNT]]
func.func @counted(%x: tensor<?x2xf32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %rows = tensor.dim %x, %c0 : tensor<?x2xf32>
  %count = arith.muli %rows, %c2 : index
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<?x2xf32> into tensor<?xf32>
  %e = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %0 = linalg.generic {indexing_maps = [#id1, #all], iterator_types = ["reduction"]}
       ins(%flat : tensor<?xf32>) outs(%init : tensor<f32>) {
  ^bb0(%v: f32, %out: f32):
    %s = arith.addf %v, %out : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %1 = linalg.generic {indexing_maps = [#one, #one], iterator_types = []} ins(%0 : tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%v: f32, %out: f32):
    %i = arith.index_cast %count : index to i64
    %n = arith.sitofp %i : i64 to f32
    %m = arith.divf %v, %n : f32
    linalg.yield %m : f32
  } -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// An op that reads three kernels joins the last of them, and so does what it alone shares with it; the sum has no loops in
// common with that, and stays.
// CHECK-LABEL: func.func @reads_a_later_kernel_too(
// CHECK-COUNT-2: call @reads_a_later_kernel_too_
// CHECK-NOT: call
// CHECK-LABEL: func.func private @reads_a_later_kernel_too_0(
// CHECK-NOT: math.exp
// CHECK: math.log
// CHECK-LABEL: func.func private @reads_a_later_kernel_too_1(
// CHECK: math.exp
#id = affine_map<(d0, d1) -> (d0, d1)>
#all = affine_map<(d0, d1) -> ()>
func.func @reads_a_later_kernel_too(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%n) : tensor<?x64xf32>
  %exp = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
         ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<?x64xf32>
  %log = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
         ins(%y : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.log %v : f32
    linalg.yield %r : f32
  } -> tensor<?x64xf32>
  %t = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%t : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction", "reduction"]}
         ins(%log : tensor<?x64xf32>) outs(%init : tensor<f32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  %scaled = linalg.generic {indexing_maps = [#id, #all, #id], iterator_types = ["parallel", "parallel"]}
            ins(%log, %sum : tensor<?x64xf32>, tensor<f32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%v: f32, %w: f32, %out: f32):
    %r = arith.mulf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<?x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%scaled, %log, %exp : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32, %out: f32):
    %r = math.fma %u, %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

// Of three kernels that an op reads all become its own, whatever kernel is between them.
// CHECK-LABEL: func.func @three_with_another_between(
// CHECK-COUNT-2: call @three_with_another_between_
// CHECK-NOT: call
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @three_with_another_between(%a: tensor<32x64xf32>, %b: tensor<32x64xf32>, %other: tensor<5x7xf32>,
                                      %c: tensor<32x64xf32>) -> (tensor<5x7xf32>, tensor<32x64xf32>) {
  %e = tensor.empty() : tensor<32x64xf32>
  %f = tensor.empty() : tensor<5x7xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%a : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<32x64xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%b : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<32x64xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%other : tensor<5x7xf32>) outs(%f : tensor<5x7xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<5x7xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%c : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<32x64xf32>
  %4 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0, %1, %3 : tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32, %out: f32):
    %r = math.fma %u, %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<32x64xf32>
  return %2, %4 : tensor<5x7xf32>, tensor<32x64xf32>
}

// -----

// A view of a later kernel's result exists only after that kernel: its reader joins no earlier kernel.
// CHECK-LABEL: func.func @reads_a_later_view_too(
// CHECK-COUNT-4: call @reads_a_later_view_too_
// CHECK-NOT: call
#id = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0) -> (d0)>
func.func @reads_a_later_view_too(%x: tensor<32x64xf32>, %y: tensor<32x64xf32>, %z: tensor<2048xf32>)
    -> tensor<32x64xf32> {
  %e = tensor.empty() : tensor<32x64xf32>
  %f = tensor.empty() : tensor<2048xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<32x64xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%y : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<32x64xf32>
  %2 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
       ins(%z : tensor<2048xf32>) outs(%f : tensor<2048xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<2048xf32>
  %view = tensor.expand_shape %2 [[0, 1]] output_shape [32, 64] : tensor<2048xf32> into tensor<32x64xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0, %1, %view : tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32, %out: f32):
    %r = math.fma %u, %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<32x64xf32>
  return %3 : tensor<32x64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// Where fusion is off, ops are numbered by the user's calls, and only those of one call share a kernel: a mean is one, with
// its sum and its quotient, and a reshape of its result is a view of memory.
// CHECK-LABEL: func.func @kernel_an_operation(
// CHECK: %[[EXP:.*]] = call @kernel_an_operation_0(
// CHECK: %[[MEAN:.*]] = call @kernel_an_operation_1(%[[EXP]])
// CHECK: %[[VIEW:.*]] = tensor.expand_shape %[[MEAN]]
// CHECK: call @kernel_an_operation_2(%[[EXP]], %[[VIEW]])
// CHECK-LABEL: func.func private @kernel_an_operation_1(
// CHECK: arith.addf
// CHECK: arith.divf
func.func @kernel_an_operation(%x: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) attrs = {fuse.operation = 0 : i64} {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<32x64xf32>
  %er = tensor.empty() : tensor<32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%er : tensor<32xf32>) -> tensor<32xf32>
  // expected-remark @below {{starts a kernel of its own: fusion is off}}
  %1 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%0 : tensor<32x64xf32>) outs(%init : tensor<32xf32>) attrs = {fuse.operation = 1 : i64} {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<32xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
       ins(%1 : tensor<32xf32>) outs(%er : tensor<32xf32>) attrs = {fuse.operation = 1 : i64} {
  ^bb0(%a: f32, %out: f32):
    %n = arith.constant 64.0 : f32
    %v = arith.divf %a, %n : f32
    linalg.yield %v : f32
  } -> tensor<32xf32>
  %3 = tensor.expand_shape %2 [[0, 1]] output_shape [32, 1] {fuse.operation = 2 : i64} : tensor<32xf32> into tensor<32x1xf32>
  // expected-remark @below {{starts a kernel of its own: fusion is off}}
  %4 = linalg.generic {indexing_maps = [#id, affine_map<(d0, d1) -> (d0, 0)>, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0, %3 : tensor<32x64xf32>, tensor<32x1xf32>) outs(%e : tensor<32x64xf32>) attrs = {fuse.operation = 3 : i64} {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<32x64xf32>
  return %4 : tensor<32x64xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>
// Two calls that read one array are two kernels; an op that a pass made, without a number, is a third.
// CHECK-LABEL: func.func @readers_apart(
// CHECK: call @readers_apart_0(
// CHECK: call @readers_apart_1(
// CHECK: call @readers_apart_2(
func.func @readers_apart(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %e = tensor.empty() : tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
       ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) attrs = {fuse.operation = 0 : i64} {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  // expected-remark @below {{starts a kernel of its own: fusion is off}}
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
       ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) attrs = {fuse.operation = 1 : i64} {
  ^bb0(%a: f32, %out: f32):
    %v = math.tanh %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  // expected-remark @below {{starts a kernel of its own: fusion is off}}
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
       ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.sqrt %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %0, %1, %2 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// -----

#diagonal = affine_map<(d0, d1) -> (d1, d0, d1)>
#id = affine_map<(d0, d1) -> (d0, d1)>

// A diagonal is a view of the host's: its kernel reads it by the sum of the strides.
// CHECK-LABEL: func.func @diagonal(
// CHECK: %[[VIEW:.*]] = linalg.generic
// CHECK: call @diagonal_0(%[[VIEW]]) : (tensor<3x4xf32>) -> tensor<3x4xf32>
// CHECK-LABEL: func.func private @diagonal_0(%{{.*}}: tensor<3x4xf32> {fuse.align = 16 : i64, fuse.strides = array<i64: 4, 13>})
func.func @diagonal(%x: tensor<4x3x4xf32>) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<3x4xf32>
  %0 = linalg.generic {indexing_maps = [#diagonal, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<4x3x4xf32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<3x4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0 : tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}

// -----

#broadcast = affine_map<(d0, d1, d2) -> (d1, d2)>
#cube = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#diagonal = affine_map<(d0) -> (d0, d0)>
#line = affine_map<(d0) -> (d0)>

// Views of an argument, and views of them, have no kernel.
// CHECK-LABEL: func.func @only_views(
// CHECK-NOT: call
// CHECK: return
// CHECK-NOT: func.func private
// expected-remark @below {{no op to put into a kernel}}
func.func @only_views(%x: tensor<8x6xf32>) -> (tensor<3x8xf32>, tensor<2x8x6xf32>, tensor<6xf32>, tensor<2x4x6xf32>) {
  %e0 = tensor.empty() : tensor<6x8xf32>
  %t = linalg.transpose ins(%x : tensor<8x6xf32>) outs(%e0 : tensor<6x8xf32>) permutation = [1, 0]
  %s = tensor.extract_slice %t[5, 0] [3, 8] [-2, 1] : tensor<6x8xf32> to tensor<3x8xf32>
  %e1 = tensor.empty() : tensor<2x8x6xf32>
  %b = linalg.generic {indexing_maps = [#broadcast, #cube], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x : tensor<8x6xf32>) outs(%e1 : tensor<2x8x6xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<2x8x6xf32>
  %part = tensor.extract_slice %x[1, 0] [6, 6] [1, 1] : tensor<8x6xf32> to tensor<6x6xf32>
  %e2 = tensor.empty() : tensor<6xf32>
  %d = linalg.generic {indexing_maps = [#diagonal, #line], iterator_types = ["parallel"]}
       ins(%part : tensor<6x6xf32>) outs(%e2 : tensor<6xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<6xf32>
  %split = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 4, 6] : tensor<8x6xf32> into tensor<2x4x6xf32>
  return %s, %b, %d, %split : tensor<3x8xf32>, tensor<2x8x6xf32>, tensor<6xf32>, tensor<2x4x6xf32>
}

// -----

#line = affine_map<(d0) -> (d0)>

// A kernel reads a slice as a strided argument, whose start lowers the alignment.
// CHECK-LABEL: func.func @sliced(
// CHECK: %[[S:.*]] = tensor.extract_slice %arg0
// CHECK: call @sliced_0(%[[S]])
// CHECK-LABEL: func.func private @sliced_0(%{{.*}}: tensor<10xf32> {fuse.align = 8 : i64, fuse.strides = array<i64: 3>})
func.func @sliced(%x: tensor<40xf32>) -> tensor<10xf32> {
  %s = tensor.extract_slice %x[2] [10] [3] : tensor<40xf32> to tensor<10xf32>
  %e = tensor.empty() : tensor<10xf32>
  %0 = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]} ins(%s : tensor<10xf32>) outs(%e : tensor<10xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<10xf32>
  return %0 : tensor<10xf32>
}
