// RUN: mlirfuse-opt --fuse-merge-moments --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

// CHECK-LABEL: func.func private @merged
// CHECK: %[[M:.*]]:2 = "fuse.moments"(%{{.*}}) {dims = array<i64: 1>}
// CHECK-NOT: linalg.generic
// CHECK: return %[[M]]#0, %[[M]]#1
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#one = affine_map<(d0) -> (d0)>
func.func private @merged(%x: tensor<8x64xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 64.0 : f32
  %e1 = tensor.empty() : tensor<8xf32>
  %e2 = tensor.empty() : tensor<8x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%x : tensor<8x64xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
          ins(%sum : tensor<8xf32>) outs(%e1 : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.divf %a, %n : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %mean : tensor<8x64xf32>, tensor<8xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  %sq = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%d : tensor<8x64xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.mulf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  %m2 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%sq : tensor<8x64xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %sum, %m2 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Divided by another number than the rows have elements, it is no mean.
// CHECK-LABEL: func.func private @no_mean
// CHECK-NOT: fuse.moments
// CHECK-COUNT-5: linalg.generic
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#one = affine_map<(d0) -> (d0)>
// expected-remark @below {{no sum of squared deviations from a mean}}
func.func private @no_mean(%x: tensor<8x64xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 63.0 : f32
  %e1 = tensor.empty() : tensor<8xf32>
  %e2 = tensor.empty() : tensor<8x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%x : tensor<8x64xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
          ins(%sum : tensor<8xf32>) outs(%e1 : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.divf %a, %n : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %mean : tensor<8x64xf32>, tensor<8xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  %sq = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%d : tensor<8x64xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.mulf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  %m2 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%sq : tensor<8x64xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %sum, %m2 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Products of values that are no tensors (a captured scalar, a constant) are no squares either.
// CHECK-LABEL: func.func private @no_square
// CHECK-NOT: fuse.moments
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// expected-remark @below {{no sum of squared deviations from a mean}}
func.func private @no_square(%x: tensor<8x64xf32>, %s: f32) -> (tensor<8xf32>, tensor<8xf32>) attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %e1 = tensor.empty() : tensor<8xf32>
  %e2 = tensor.empty() : tensor<8x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %scaled = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
            ins(%x : tensor<8x64xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.mulf %s, %two : f32
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  %half = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<8x64xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.mulf %a, %s : f32
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%scaled : tensor<8x64xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%half : tensor<8x64xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// The square is of the transposed difference, so that the second sum runs over the other dimension.
// CHECK-LABEL: func.func private @other_rows
// CHECK-NOT: fuse.moments
// CHECK-COUNT-5: linalg.generic
#id = affine_map<(d0, d1) -> (d0, d1)>
#across = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d0)>
#one = affine_map<(d0) -> (d0)>
// expected-remark @below {{no sum of squared deviations from a mean}}
func.func private @other_rows(%x: tensor<64x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 64.0 : f32
  %e1 = tensor.empty() : tensor<64xf32>
  %e2 = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%x : tensor<64x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
          ins(%sum : tensor<64xf32>) outs(%e1 : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.divf %a, %n : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %mean : tensor<64x64xf32>, tensor<64xf32>) outs(%e2 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<64x64xf32>
  %sq = linalg.generic {indexing_maps = [#across, #id], iterator_types = ["parallel", "parallel"]}
        ins(%d : tensor<64x64xf32>) outs(%e2 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.mulf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<64x64xf32>
  %m2 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%sq : tensor<64x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %sum, %m2 : tensor<64xf32>, tensor<64xf32>
}

// -----

// The square is of differences whose outer dimensions have changed places: the second sum's rows are the same, and its
// result is the transpose of what one op would give.
// CHECK-LABEL: func.func private @other_order
// CHECK-NOT: fuse.moments
// CHECK-COUNT-5: linalg.generic
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#across = affine_map<(d0, d1, d2) -> (d2, d1, d0)>
#row = affine_map<(d0, d1, d2) -> (d0, d2)>
#two = affine_map<(d0, d1) -> (d0, d1)>
// expected-remark @below {{no sum of squared deviations from a mean}}
func.func private @other_order(%x: tensor<4x64x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 64.0 : f32
  %e1 = tensor.empty() : tensor<4x4xf32>
  %e2 = tensor.empty() : tensor<4x64x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4x4xf32>) -> tensor<4x4xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction", "parallel"]}
         ins(%x : tensor<4x64x4xf32>) outs(%init : tensor<4x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  %mean = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]}
          ins(%sum : tensor<4x4xf32>) outs(%e1 : tensor<4x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.divf %a, %n : f32
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x, %mean : tensor<4x64x4xf32>, tensor<4x4xf32>) outs(%e2 : tensor<4x64x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<4x64x4xf32>
  %sq = linalg.generic {indexing_maps = [#across, #id], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%d : tensor<4x64x4xf32>) outs(%e2 : tensor<4x64x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.mulf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<4x64x4xf32>
  %m2 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%sq : tensor<4x64x4xf32>) outs(%init : tensor<4x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  return %sum, %m2 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A sum of cubes waits for the mean too. Its pass over the rows serves the sum of squares.
// CHECK-LABEL: func.func private @third_moment
// CHECK-NOT: fuse.moments
// CHECK-COUNT-3: ["parallel", "reduction"]
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#one = affine_map<(d0) -> (d0)>
// expected-remark @below {{another reduction waits for the mean alone, and shares its pass}}
func.func private @third_moment(%x: tensor<4x64xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 64.0 : f32
  %e1 = tensor.empty() : tensor<4xf32>
  %e2 = tensor.empty() : tensor<4x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%x : tensor<4x64xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
          ins(%sum : tensor<4xf32>) outs(%e1 : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.divf %a, %n : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %mean : tensor<4x64xf32>, tensor<4xf32>) outs(%e2 : tensor<4x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<4x64xf32>
  %sq = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%d : tensor<4x64xf32>) outs(%e2 : tensor<4x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.mulf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<4x64xf32>
  %cube = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%sq, %d : tensor<4x64xf32>, tensor<4x64xf32>) outs(%e2 : tensor<4x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<4x64xf32>
  %m2 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%sq : tensor<4x64xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %m3 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%cube : tensor<4x64xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %m2, %m3 : tensor<4xf32>, tensor<4xf32>
}
