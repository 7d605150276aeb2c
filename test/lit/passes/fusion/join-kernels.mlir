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
#column = affine_map<(d0, d1) -> (d1)>

// Sums of columns are known behind the last row, and what every row needs of them is another kernel.
// CHECK-LABEL: func.func @columns(
// CHECK-COUNT-2: call @columns_
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
  // expected-remark @below {{stay apart: it reduces other dimensions than its producers do; in one loop of the grid, it reduces a value that depends on a reduction over the grid, known at its end}}
  %1 = call @columns_1(%x, %0) : (tensor<64x64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %1 : tensor<64xf32>
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
