// RUN: mlirfuse-opt --fuse-join-kernels --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// The sum of a row and what divides the row by it read the row once.
// CHECK-LABEL: func.func private @rows_0(%arg0: tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: arith.divf
// CHECK-LABEL: func.func @rows(
// CHECK: call @rows_0(%arg0) : (tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
// CHECK-NOT: call
func.func private @rows_0(%x: tensor<4096x2048xf32>) -> tensor<4096xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%x : tensor<4096x2048xf32>) outs(%init : tensor<4096xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<4096xf32>
  return %sum : tensor<4096xf32>
}
func.func private @rows_1(%x: tensor<4096x2048xf32>, %s: tensor<4096xf32>) -> tensor<4096x2048xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<4096x2048xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %s : tensor<4096x2048xf32>, tensor<4096xf32>) outs(%e : tensor<4096x2048xf32>) {
  ^bb0(%v: f32, %w: f32, %out: f32):
    %r = arith.divf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<4096x2048xf32>
  return %0 : tensor<4096x2048xf32>
}
func.func @rows(%x: tensor<4096x2048xf32>) -> tensor<4096x2048xf32> {
  %0 = call @rows_0(%x) : (tensor<4096x2048xf32>) -> tensor<4096xf32>
  // expected-remark @below {{rows_0 and rows_1, which reads its results, are one kernel}}
  %1 = call @rows_1(%x, %0) : (tensor<4096x2048xf32>, tensor<4096xf32>) -> tensor<4096x2048xf32>
  return %1 : tensor<4096x2048xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// Kernels that read nothing of each other are none of this pass's.
// CHECK-LABEL: func.func @unrelated(
// CHECK-COUNT-2: call @unrelated_0
func.func private @unrelated_0(%x: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<64x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
func.func @unrelated(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = call @unrelated_0(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = call @unrelated_0(%y) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0, %1 : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>

// A mean over any number of rows and the variance about it are one reduction, of one visit of the tiles; with what needs
// both, a grid visits its tiles twice.
// CHECK-LABEL: func.func private @norm_0(%arg0: tensor<?x64xf32>) -> tensor<?x64xf32>
// CHECK: "fuse.moments"
// CHECK-NOT: "reduction"
// CHECK-LABEL: func.func @norm(
// CHECK: call @norm_0(%arg0) : (tensor<?x64xf32>) -> tensor<?x64xf32>
// CHECK-NOT: call
func.func private @norm_0(%x: tensor<?x64xf32>) -> tensor<64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
         ins(%x : tensor<?x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  %mean = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
          ins(%sum : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %i = arith.index_cast %rows : index to i64
    %n = arith.sitofp %i : i64 to f32
    %r = arith.divf %v, %n : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  return %mean : tensor<64xf32>
}
func.func private @norm_1(%x: tensor<?x64xf32>, %mean: tensor<64xf32>) -> tensor<64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%rows) : tensor<?x64xf32>
  %d = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %mean : tensor<?x64xf32>, tensor<64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%v: f32, %m: f32, %out: f32):
    %r = arith.subf %v, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x64xf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%d : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.mulf %v, %v : f32
    linalg.yield %r : f32
  } -> tensor<?x64xf32>
  %se = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%se : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
         ins(%q : tensor<?x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  return %sum : tensor<64xf32>
}
func.func private @norm_2(%x: tensor<?x64xf32>, %mean: tensor<64xf32>, %m2: tensor<64xf32>) -> tensor<?x64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%rows) : tensor<?x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #col, #col, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %mean, %m2 : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%v: f32, %m: f32, %s: f32, %out: f32):
    %d = arith.subf %v, %m : f32
    %r = arith.mulf %d, %s : f32
    linalg.yield %r : f32
  } -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
func.func @norm(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %mean = call @norm_0(%x) : (tensor<?x64xf32>) -> tensor<64xf32>
  // expected-remark @below {{norm_0 and norm_1, which reads its results, are one kernel}}
  %m2 = call @norm_1(%x, %mean) : (tensor<?x64xf32>, tensor<64xf32>) -> tensor<64xf32>
  // expected-remark @below {{norm_0 and norm_2, which reads its results, are one kernel}}
  %y = call @norm_2(%x, %mean, %m2) : (tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>

// Rows that no cache holds are read twice by one kernel as by two, and two demand less of a device.
// CHECK-LABEL: func.func @many(
// CHECK-COUNT-2: call @many_
func.func private @many_0(%x: tensor<?x64xf32> {fuse.extent_hints = array<i64: 4000000, 0>}) -> tensor<64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
         ins(%x : tensor<?x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  return %sum : tensor<64xf32>
}
func.func private @many_1(%x: tensor<?x64xf32> {fuse.extent_hints = array<i64: 4000000, 0>}, %sum: tensor<64xf32>) -> tensor<?x64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%rows) : tensor<?x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %sum : tensor<?x64xf32>, tensor<64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%v: f32, %m: f32, %out: f32):
    %r = arith.subf %v, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
func.func @many(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %sum = call @many_0(%x) : (tensor<?x64xf32>) -> tensor<64xf32>
  // expected-remark @below {{many_0 and many_1, which reads its results, stay apart: one kernel is predicted to take}}
  %y = call @many_1(%x, %sum) : (tensor<?x64xf32>, tensor<64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
