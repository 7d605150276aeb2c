// RUN: mlirfuse-opt %s --fuse-bubble-reshapes --split-input-file --show-remarks 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// Pairs of a row: the cast and the product run over pairs, and so does what they read of the row's weights.
// CHECK: #[[W:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-LABEL: func.func @pairs
// REMARK: fuse-bubble-reshapes: applied: an elementwise op runs over the dimensions of slices
// CHECK-DAG: %[[X:.*]] = tensor.expand_shape %arg0 {{\[\[0\], \[1, 2\]\]}} output_shape [8, 64, 2] : tensor<8x128xbf16> into tensor<8x64x2xbf16>
// CHECK-DAG: %[[V:.*]] = tensor.expand_shape %arg1 {{\[\[0, 1\]\]}} output_shape [64, 2] : tensor<128xf32> into tensor<64x2xf32>
// CHECK: %[[H:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #[[W]], #{{.*}}], {{.*}} ins(%[[X]], %[[V]] : tensor<8x64x2xbf16>, tensor<64x2xf32>) outs(%{{.*}} : tensor<8x64x2xf32>)
// CHECK: arith.mulf
// CHECK: tensor.extract_slice %[[H]][0, 0, 1] [8, 64, 1] [1, 1, 1]
func.func @pairs(%x: tensor<8x128xbf16>, %w: tensor<128xf32>) -> tensor<8x64x1xf32> {
  %e = tensor.empty() : tensor<8x128xf32>
  %h = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %w : tensor<8x128xbf16>, tensor<128xf32>) outs(%e : tensor<8x128xf32>) {
  ^bb0(%a: bf16, %b: f32, %out: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.mulf %0, %b : f32
    linalg.yield %1 : f32
  } -> tensor<8x128xf32>
  %r = tensor.expand_shape %h [[0], [1, 2]] output_shape [8, 64, 2] : tensor<8x128xf32> into tensor<8x64x2xf32>
  %s = tensor.extract_slice %r[0, 0, 1] [8, 64, 1] [1, 1, 1] : tensor<8x64x2xf32> to tensor<8x64x1xf32>
  return %s : tensor<8x64x1xf32>
}

// -----

// What is computed behind the reshape is sliced: both ops in front of it run over pairs.
// CHECK-LABEL: func.func @behind
// CHECK: %[[X:.*]] = tensor.expand_shape %arg0 {{\[\[}}0], [1, 2]] output_shape [8, 64, 2] : tensor<8x128xf16> into tensor<8x64x2xf16>
// CHECK: %[[H:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<8x64x2xf16>)
// CHECK: %[[G:.*]] = linalg.generic {{.*}} ins(%[[H]] : tensor<8x64x2xf32>)
// CHECK: %[[E:.*]] = linalg.generic {{.*}} ins(%[[G]] : tensor<8x64x2xf32>)
// CHECK: tensor.extract_slice %[[E]]
func.func @behind(%x: tensor<8x128xf16>) -> tensor<8x64x1xf32> {
  %e = tensor.empty() : tensor<8x128xf32>
  %h = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x128xf16>) outs(%e : tensor<8x128xf32>) {
  ^bb0(%a: f16, %out: f32):
    %0 = arith.extf %a : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<8x128xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%h : tensor<8x128xf32>) outs(%e : tensor<8x128xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = arith.mulf %a, %a : f32
    linalg.yield %0 : f32
  } -> tensor<8x128xf32>
  %r = tensor.expand_shape %g [[0], [1, 2]] output_shape [8, 64, 2] : tensor<8x128xf32> into tensor<8x64x2xf32>
  %e2 = tensor.empty() : tensor<8x64x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%r : tensor<8x64x2xf32>) outs(%e2 : tensor<8x64x2xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<8x64x2xf32>
  %s = tensor.extract_slice %y[0, 0, 1] [8, 64, 1] [1, 1, 1] : tensor<8x64x2xf32> to tensor<8x64x1xf32>
  return %s : tensor<8x64x1xf32>
}

// -----

// The first half of each row is a slice of the rows as they are.
// CHECK-LABEL: func.func @halves
// REMARK: fuse-bubble-reshapes: declined: no slice of a reshaped value is none of the value
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<8x128xf32>)
func.func @halves(%x: tensor<8x128xf32>) -> tensor<8x1x64xf32> {
  %e = tensor.empty() : tensor<8x128xf32>
  %h = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x128xf32>) outs(%e : tensor<8x128xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<8x128xf32>
  %r = tensor.expand_shape %h [[0], [1, 2]] output_shape [8, 2, 64] : tensor<8x128xf32> into tensor<8x2x64xf32>
  %s = tensor.extract_slice %r[0, 0, 0] [8, 1, 64] [1, 1, 1] : tensor<8x2x64xf32> to tensor<8x1x64xf32>
  return %s : tensor<8x1x64xf32>
}

// -----

// A sum keeps its loops.
// CHECK-LABEL: func.func @sums
// REMARK: fuse-bubble-reshapes: declined: what is reshaped is no result of an elementwise op
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<128xf32>)
func.func @sums(%x: tensor<8x128xf32>) -> tensor<64x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128xf32>) -> tensor<128xf32>
  %h = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x128xf32>) outs(%f : tensor<128xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = arith.addf %a, %out : f32
    linalg.yield %0 : f32
  } -> tensor<128xf32>
  %r = tensor.expand_shape %h [[0, 1]] output_shape [64, 2] : tensor<128xf32> into tensor<64x2xf32>
  %s = tensor.extract_slice %r[0, 1] [64, 1] [1, 1] : tensor<64x2xf32> to tensor<64x1xf32>
  return %s : tensor<64x1xf32>
}

// -----

// Rows are as many as run time says: they are not divided.
// CHECK-LABEL: func.func @groups
// CHECK: %[[N:.*]] = tensor.dim %arg0
// CHECK: tensor.expand_shape %arg0 {{\[\[}}0], [1, 2]] output_shape [%[[N]], 4, 6] : tensor<?x24xi32> into tensor<?x4x6xi32>
// CHECK: %[[H:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?x4x6xi32>)
// CHECK: tensor.extract_slice %[[H]]
func.func @groups(%x: tensor<?x24xi32>, %low: tensor<?xi32>) -> tensor<?x4x1xi32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x24xi32>
  %e = tensor.empty(%n) : tensor<?x24xi32>
  %h = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %low : tensor<?x24xi32>, tensor<?xi32>) outs(%e : tensor<?x24xi32>) {
  ^bb0(%a: i32, %b: i32, %out: i32):
    %0 = arith.subi %a, %b : i32
    linalg.yield %0 : i32
  } -> tensor<?x24xi32>
  %r = tensor.expand_shape %h [[0], [1, 2]] output_shape [%n, 4, 6] : tensor<?x24xi32> into tensor<?x4x6xi32>
  %s = tensor.extract_slice %r[0, 0, 1] [%n, 4, 1] [1, 1, 1] : tensor<?x4x6xi32> to tensor<?x4x1xi32>
  return %s : tensor<?x4x1xi32>
}

// -----

// What is divided is known at run time only.
// CHECK-LABEL: func.func @divided_rows
// REMARK: fuse-bubble-reshapes: declined: extents that are divided are known at run time only
// CHECK: linalg.generic {{.*}} ins(%arg0 : tensor<?x24xi32>)
func.func @divided_rows(%x: tensor<?x24xi32>, %m: index) -> tensor<?x1x24xi32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x24xi32>
  %e = tensor.empty(%n) : tensor<?x24xi32>
  %h = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x24xi32>) outs(%e : tensor<?x24xi32>) {
  ^bb0(%a: i32, %out: i32):
    %0 = arith.addi %a, %a : i32
    linalg.yield %0 : i32
  } -> tensor<?x24xi32>
  %r = tensor.expand_shape %h [[0, 1], [2]] output_shape [%m, 2, 24] : tensor<?x24xi32> into tensor<?x2x24xi32>
  %s = tensor.extract_slice %r[0, 1, 0] [%m, 1, 24] [1, 1, 1] : tensor<?x2x24xi32> to tensor<?x1x24xi32>
  return %s : tensor<?x1x24xi32>
}
