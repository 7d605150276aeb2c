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

// A sum over batches of a product: a tile is of one batch, and would leave all of its elements as partial results.
// CHECK-LABEL: func.func @batches(
// CHECK: call @batches_0
// CHECK: call @batches_1
func.func @batches(%a: tensor<4x32x16xf16>, %b: tensor<4x16x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4x32x64xf32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(g, m, n, k) -> (g, m, k)>, affine_map<(g, m, n, k) -> (g, k, n)>,
                                        affine_map<(g, m, n, k) -> (g, m, n)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4x32x16xf16>, tensor<4x16x64xf16>) outs(%i0 : tensor<4x32x64xf32>) {
  ^bb0(%l: f16, %r: f16, %out: f32):
    %x = arith.extf %l : f16 to f32
    %y = arith.extf %r : f16 to f32
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x32x64xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(g, m, n) -> (g, m, n)>, affine_map<(g, m, n) -> (g, m, n)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0 : tensor<4x32x64xf32>) outs(%e0 : tensor<4x32x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %q = math.exp %v : f32
    linalg.yield %q : f32
  } -> tensor<4x32x64xf32>
  %e1 = tensor.empty() : tensor<32x64xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<32x64xf32>) -> tensor<32x64xf32>
  // expected-remark @below {{it reduces batches, of which a tile has one: it would leave as many partial results}}
  %2 = linalg.generic {indexing_maps = [affine_map<(g, m, n) -> (g, m, n)>, affine_map<(g, m, n) -> (m, n)>],
                       iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%1 : tensor<4x32x64xf32>) outs(%i1 : tensor<32x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %s = arith.addf %out, %v : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %2 : tensor<32x64xf32>
}
