// RUN: mlirfuse-opt --fuse-join-kernels --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#vector = affine_map<(d0) -> (d0)>
#number = affine_map<(d0) -> (0)>

// Sums of rows nest in a loop of the grid, which adds them up and finds the largest one.
// CHECK-LABEL: func.func private @losses_0(%arg0: tensor<?x1024xf32>) -> (tensor<1xf32>, tensor<1xf32>)
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: iterator_types = ["reduction"]
// CHECK: arith.addf
// CHECK: iterator_types = ["reduction"]
// CHECK: arith.maximumf
// CHECK-LABEL: func.func @losses(
// CHECK: %[[R:.*]]:2 = call @losses_0(%arg0) : (tensor<?x1024xf32>) -> (tensor<1xf32>, tensor<1xf32>)
// CHECK-NOT: call
// CHECK: return %[[R]]#0, %[[R]]#1
func.func private @losses_0(%x: tensor<?x1024xf32>) -> tensor<?xf32> attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x1024xf32>
  %e = tensor.empty(%rows) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%x : tensor<?x1024xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %sum : tensor<?xf32>
}
func.func private @losses_1(%s: tensor<?xf32>) -> tensor<1xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %start = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %init = linalg.fill ins(%start : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %sum = linalg.generic {indexing_maps = [#vector, #number], iterator_types = ["reduction"]}
         ins(%s : tensor<?xf32>) outs(%init : tensor<1xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  return %sum : tensor<1xf32>
}
func.func private @losses_2(%s: tensor<?xf32>) -> tensor<1xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %start = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1xf32>
  %init = linalg.fill ins(%start : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %sum = linalg.generic {indexing_maps = [#vector, #number], iterator_types = ["reduction"]}
         ins(%s : tensor<?xf32>) outs(%init : tensor<1xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.maximumf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  return %sum : tensor<1xf32>
}
func.func @losses(%x: tensor<?x1024xf32>) -> (tensor<1xf32>, tensor<1xf32>) {
  %0 = call @losses_0(%x) : (tensor<?x1024xf32>) -> tensor<?xf32>
  // expected-remark @below {{losses_0 and losses_1, which reads its results, are one kernel}}
  %1 = call @losses_1(%0) : (tensor<?xf32>) -> tensor<1xf32>
  // expected-remark @below {{losses_0 and losses_2, which reads its results, are one kernel}}
  %2 = call @losses_2(%0) : (tensor<?xf32>) -> tensor<1xf32>
  return %1, %2 : tensor<1xf32>, tensor<1xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#vector = affine_map<(d0) -> (d0)>
#number = affine_map<(d0) -> (0)>

// Not where the caller wants reductions in different orders apart.
// CHECK-LABEL: func.func @split(
// CHECK-COUNT-2: call @split_
func.func private @split_0(%x: tensor<?x1024xf32>) -> tensor<?xf32> attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x1024xf32>
  %e = tensor.empty(%rows) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%x : tensor<?x1024xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %sum : tensor<?xf32>
}
func.func private @split_1(%s: tensor<?xf32>) -> tensor<1xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %start = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %init = linalg.fill ins(%start : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %sum = linalg.generic {indexing_maps = [#vector, #number], iterator_types = ["reduction"]}
         ins(%s : tensor<?xf32>) outs(%init : tensor<1xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  return %sum : tensor<1xf32>
}
func.func @split(%x: tensor<?x1024xf32>) -> tensor<1xf32> attributes {fuse.mix_order = "split"} {
  %0 = call @split_0(%x) : (tensor<?x1024xf32>) -> tensor<?xf32>
  // expected-remark @below {{in one loop of the grid, the caller asked for separate kernels (split)}}
  %1 = call @split_1(%0) : (tensor<?xf32>) -> tensor<1xf32>
  return %1 : tensor<1xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#vector = affine_map<(d0) -> (d0)>
#number = affine_map<(d0) -> (0)>

// Rows that take a cluster each in a loop are faster in blocks of their own, and a second kernel is not dear.
// CHECK-LABEL: func.func @long(
// CHECK-COUNT-2: call @long_
func.func private @long_0(%x: tensor<4096x65536xf32>) -> tensor<4096xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%x : tensor<4096x65536xf32>) outs(%init : tensor<4096xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<4096xf32>
  return %sum : tensor<4096xf32>
}
func.func private @long_1(%s: tensor<4096xf32>) -> tensor<1xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %start = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %init = linalg.fill ins(%start : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %sum = linalg.generic {indexing_maps = [#vector, #number], iterator_types = ["reduction"]}
         ins(%s : tensor<4096xf32>) outs(%init : tensor<1xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  return %sum : tensor<1xf32>
}
func.func @long(%x: tensor<4096x65536xf32>) -> tensor<1xf32> {
  %0 = call @long_0(%x) : (tensor<4096x65536xf32>) -> tensor<4096xf32>
  // expected-remark @below {{stay apart: one kernel is predicted to take}}
  %1 = call @long_1(%0) : (tensor<4096xf32>) -> tensor<1xf32>
  return %1 : tensor<1xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#vector = affine_map<(d0) -> (d0)>
#number = affine_map<(d0) -> (0)>

// A pair would take longer than two kernels, and three kernels take longer than one: each pays for a launch.
// CHECK-LABEL: func.func @three(
// CHECK: %[[R:.*]]:3 = call @three_0(%arg0) : (tensor<1024x1024xf32>) -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>)
// CHECK-NOT: call
// CHECK-LABEL: func.func @two(
// CHECK-COUNT-2: call @two_
func.func private @three_0(%x: tensor<1024x1024xf32>) -> tensor<1024xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%x : tensor<1024x1024xf32>) outs(%init : tensor<1024xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<1024xf32>
  return %sum : tensor<1024xf32>
}
func.func private @three_1(%s: tensor<1024xf32>) -> tensor<1xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %start = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %init = linalg.fill ins(%start : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %sum = linalg.generic {indexing_maps = [#vector, #number], iterator_types = ["reduction"]}
         ins(%s : tensor<1024xf32>) outs(%init : tensor<1xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  return %sum : tensor<1xf32>
}
func.func private @three_2(%s: tensor<1024xf32>) -> tensor<1xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %start = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1xf32>
  %init = linalg.fill ins(%start : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %sum = linalg.generic {indexing_maps = [#vector, #number], iterator_types = ["reduction"]}
         ins(%s : tensor<1024xf32>) outs(%init : tensor<1xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.maximumf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  return %sum : tensor<1xf32>
}
func.func private @three_3(%s: tensor<1024xf32>) -> tensor<1xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %start = arith.constant 0x7F800000 : f32
  %e = tensor.empty() : tensor<1xf32>
  %init = linalg.fill ins(%start : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %sum = linalg.generic {indexing_maps = [#vector, #number], iterator_types = ["reduction"]}
         ins(%s : tensor<1024xf32>) outs(%init : tensor<1xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.minimumf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  return %sum : tensor<1xf32>
}
func.func private @two_0(%x: tensor<1024x1024xf32>) -> tensor<1024xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%x : tensor<1024x1024xf32>) outs(%init : tensor<1024xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<1024xf32>
  return %sum : tensor<1024xf32>
}
func.func private @two_1(%s: tensor<1024xf32>) -> tensor<1xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %start = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %init = linalg.fill ins(%start : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %sum = linalg.generic {indexing_maps = [#vector, #number], iterator_types = ["reduction"]}
         ins(%s : tensor<1024xf32>) outs(%init : tensor<1xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  return %sum : tensor<1xf32>
}
func.func @three(%x: tensor<1024x1024xf32>) -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) {
  %0 = call @three_0(%x) : (tensor<1024x1024xf32>) -> tensor<1024xf32>
  // expected-remark @below {{three_0 and three_1, which reads its results, are one kernel}}
  %1 = call @three_1(%0) : (tensor<1024xf32>) -> tensor<1xf32>
  // expected-remark @below {{three_0 and three_2, which reads its results, are one kernel}}
  %2 = call @three_2(%0) : (tensor<1024xf32>) -> tensor<1xf32>
  // expected-remark @below {{three_0 and three_3, which reads its results, are one kernel}}
  %3 = call @three_3(%0) : (tensor<1024xf32>) -> tensor<1xf32>
  return %1, %2, %3 : tensor<1xf32>, tensor<1xf32>, tensor<1xf32>
}
func.func @two(%x: tensor<1024x1024xf32>) -> tensor<1xf32> {
  %0 = call @two_0(%x) : (tensor<1024x1024xf32>) -> tensor<1024xf32>
  // expected-remark @below {{two_0 and two_1, which reads its results, stay apart: one kernel is predicted to take}}
  %1 = call @two_1(%0) : (tensor<1024xf32>) -> tensor<1xf32>
  return %1 : tensor<1xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#vector = affine_map<(d0) -> (d0)>
#number = affine_map<(d0) -> (0)>

// Of unknown rows so many are assumed for both kernels as fit the one: a vector of their sums is short.
// CHECK-LABEL: func.func @unknown(
// CHECK-COUNT-2: call @unknown_
func.func private @unknown_0(%x: tensor<?x65536xf32>) -> tensor<?xf32> attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x65536xf32>
  %e = tensor.empty(%rows) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%x : tensor<?x65536xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %sum : tensor<?xf32>
}
func.func private @unknown_1(%s: tensor<?xf32>) -> tensor<1xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %start = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %init = linalg.fill ins(%start : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %sum = linalg.generic {indexing_maps = [#vector, #number], iterator_types = ["reduction"]}
         ins(%s : tensor<?xf32>) outs(%init : tensor<1xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  return %sum : tensor<1xf32>
}
func.func @unknown(%x: tensor<?x65536xf32>) -> tensor<1xf32> {
  %0 = call @unknown_0(%x) : (tensor<?x65536xf32>) -> tensor<?xf32>
  // expected-remark @below {{unknown_0 and unknown_1, which reads its results, stay apart: one kernel is predicted to take}}
  %1 = call @unknown_1(%0) : (tensor<?xf32>) -> tensor<1xf32>
  return %1 : tensor<1xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>

// A loop over the columns knows each column's sum before it adds the column to the sums of rows.
// CHECK-LABEL: func.func @columns(
// CHECK: %[[R:.*]] = call @columns_0(%arg0) : (tensor<64x64xf32>) -> tensor<64xf32>
// CHECK-NOT: call
// CHECK: return %[[R]]
func.func private @columns_0(%x: tensor<64x64xf32>) -> tensor<64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
         ins(%x : tensor<64x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  return %sum : tensor<64xf32>
}
func.func private @columns_1(%x: tensor<64x64xf32>, %s: tensor<64xf32>) -> tensor<64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #column, #row], iterator_types = ["parallel", "reduction"]}
         ins(%x, %s : tensor<64x64xf32>, tensor<64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%v: f32, %w: f32, %out: f32):
    %d = arith.subf %v, %w : f32
    %r = arith.addf %out, %d : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  return %sum : tensor<64xf32>
}
func.func @columns(%x: tensor<64x64xf32>) -> tensor<64xf32> {
  %0 = call @columns_0(%x) : (tensor<64x64xf32>) -> tensor<64xf32>
  %1 = call @columns_1(%x, %0) : (tensor<64x64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %1 : tensor<64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>

// Only a loop over the rows takes unknown ones: sums of columns are known behind the last
// row, and what every row needs of them is another kernel.
// CHECK-LABEL: func.func @late(
// CHECK-COUNT-2: call @late_
func.func private @late_0(%x: tensor<?x64xf32>) -> tensor<64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
         ins(%x : tensor<?x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  return %sum : tensor<64xf32>
}
func.func private @late_1(%x: tensor<?x64xf32>, %s: tensor<64xf32>) -> tensor<?xf32> attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%rows) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#id, #column, #row], iterator_types = ["parallel", "reduction"]}
         ins(%x, %s : tensor<?x64xf32>, tensor<64xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%v: f32, %w: f32, %out: f32):
    %d = arith.subf %v, %w : f32
    %r = arith.addf %out, %d : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %sum : tensor<?xf32>
}
func.func @late(%x: tensor<?x64xf32>) -> tensor<?xf32> {
  %0 = call @late_0(%x) : (tensor<?x64xf32>) -> tensor<64xf32>
  // expected-remark @below {{stay apart: it reduces other dimensions than its producers do; in one loop of the grid, it reduces a value that depends on a reduction over the grid, known at its end}}
  %1 = call @late_1(%x, %0) : (tensor<?x64xf32>, tensor<64xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
