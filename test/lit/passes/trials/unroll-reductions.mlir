// RUN: mlirfuse-opt --fuse-unroll-reductions --target=sm_90a --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks
// RUN: mlirfuse-opt --fuse-unroll-reductions="always=true" --target=sm_90a --split-input-file %s | FileCheck %s --check-prefix=ALWAYS

#id = affine_map<(i, j, c) -> (i, j, c)>
#ij = affine_map<(i, j, c) -> (i, j)>
#first = affine_map<(i, j, c) -> (i, c)>
#second = affine_map<(i, j, c) -> (j, c)>
#pairs = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
// Distances of pairs of points, whose sum over the second points is another reduction: each coordinate is a slice.
// CHECK-LABEL: func.func @distances
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8192x3xf32>, %[[Y:[a-z0-9]+]]: tensor<8192x3xf32>
// CHECK-DAG: tensor.extract_slice %[[X]][0, 0] [8192, 1] [1, 1]
// CHECK-DAG: tensor.extract_slice %[[X]][0, 2] [8192, 1] [1, 1]
// CHECK-DAG: tensor.extract_slice %[[Y]][0, 1] [8192, 1] [1, 1]
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<8192x8192x1xf32>, tensor<8192x8192x1xf32>, tensor<8192x8192x1xf32>)
// CHECK: arith.addf %cst
// CHECK: iterator_types = ["parallel", "reduction"]
// REMARK: fuse-unroll-reductions: applied: a reduction of 3 elements is predicted to take {{.*}} us unrolled, {{.*}} us as it is
func.func @distances(%x: tensor<8192x3xf32>, %y: tensor<8192x3xf32>) -> tensor<8192xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8192x8192x3xf32>
  %r = linalg.generic {indexing_maps = [#first, #second, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %y : tensor<8192x3xf32>, tensor<8192x3xf32>) outs(%e : tensor<8192x8192x3xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %s = math.absf %d : f32
    linalg.yield %s : f32
  } -> tensor<8192x8192x3xf32>
  %e1 = tensor.empty() : tensor<8192x8192xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %d = linalg.generic {indexing_maps = [#id, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%r : tensor<8192x8192x3xf32>) outs(%init : tensor<8192x8192xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %out, %a : f32
    linalg.yield %s : f32
  } -> tensor<8192x8192xf32>
  %e2 = tensor.empty() : tensor<8192xf32>
  %init2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8192xf32>) -> tensor<8192xf32>
  %y2 = linalg.generic {indexing_maps = [#pairs, #row], iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<8192x8192xf32>) outs(%init2 : tensor<8192xf32>) {
  ^bb0(%a: f32, %out: f32):
    %q = arith.divf %a, %a : f32
    %s = arith.addf %out, %q : f32
    linalg.yield %s : f32
  } -> tensor<8192xf32>
  return %y2 : tensor<8192xf32>
}

// -----

#id = affine_map<(i, j, c) -> (i, j, c)>
#ij = affine_map<(i, j, c) -> (i, j)>
#first = affine_map<(i, j, c) -> (i, c)>
#second = affine_map<(i, j, c) -> (j, c)>
#pairs = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
// Two distances of each pair, of which one sum needs both: they are unrolled together, on the same slices.
// CHECK-LABEL: func.func @two_distances
// CHECK-COUNT-6: tensor.extract_slice
// CHECK-NOT: tensor.extract_slice
// CHECK: return
// REMARK: fuse-unroll-reductions: applied: 2 reductions of a few elements are predicted to take {{.*}} us unrolled, {{.*}} us as it is
func.func @two_distances(%x: tensor<8192x3xf32>, %y: tensor<8192x3xf32>) -> tensor<8192xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8192x8192x3xf32>
  %r = linalg.generic {indexing_maps = [#first, #second, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %y : tensor<8192x3xf32>, tensor<8192x3xf32>) outs(%e : tensor<8192x8192x3xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %s = math.absf %d : f32
    linalg.yield %s : f32
  } -> tensor<8192x8192x3xf32>
  %e1 = tensor.empty() : tensor<8192x8192xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %d = linalg.generic {indexing_maps = [#id, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%r : tensor<8192x8192x3xf32>) outs(%init : tensor<8192x8192xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %out, %a : f32
    linalg.yield %s : f32
  } -> tensor<8192x8192xf32>
  %m = linalg.generic {indexing_maps = [#id, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%r : tensor<8192x8192x3xf32>) outs(%init : tensor<8192x8192xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.maximumf %out, %a : f32
    linalg.yield %s : f32
  } -> tensor<8192x8192xf32>
  %e2 = tensor.empty() : tensor<8192xf32>
  %init2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8192xf32>) -> tensor<8192xf32>
  %y2 = linalg.generic {indexing_maps = [#pairs, #pairs, #row], iterator_types = ["parallel", "reduction"]}
      ins(%d, %m : tensor<8192x8192xf32>, tensor<8192x8192xf32>) outs(%init2 : tensor<8192xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %q = arith.divf %a, %b : f32
    %s = arith.addf %out, %q : f32
    linalg.yield %s : f32
  } -> tensor<8192xf32>
  return %y2 : tensor<8192xf32>
}

// -----

#id = affine_map<(i, j, c) -> (i, j, c)>
#ij = affine_map<(i, j, c) -> (i, j)>
#first = affine_map<(i, j, c) -> (i, c)>
#second = affine_map<(i, j, c) -> (j, c)>
#pairs = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
// Points whose number is known at run time; squares that only the sum reads stay part of multiply-adds.
// CHECK-LABEL: func.func @points
// CHECK: %[[EXTENT:.*]] = tensor.dim
// CHECK: tensor.empty(%{{.*}}) : tensor<?x4096x1xf32>
// CHECK: arith.mulf {{.*}} fastmath<contract>
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]} ins(%{{.*}}, %{{.*}} : tensor<?x4096x1xf32>, tensor<?x4096x1xf32>)
// CHECK: iterator_types = ["parallel", "reduction"]
func.func @points(%x: tensor<?x2xf32> {fuse.extent_hints = array<i64: 8192, 0>}, %y: tensor<4096x2xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x2xf32>
  %e = tensor.empty(%n) : tensor<?x4096x2xf32>
  %r = linalg.generic {indexing_maps = [#first, #second, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %y : tensor<?x2xf32>, tensor<4096x2xf32>) outs(%e : tensor<?x4096x2xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %s = arith.mulf %d, %d : f32
    linalg.yield %s : f32
  } -> tensor<?x4096x2xf32>
  %e1 = tensor.empty(%n) : tensor<?x4096xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  %d = linalg.generic {indexing_maps = [#id, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%r : tensor<?x4096x2xf32>) outs(%init : tensor<?x4096xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %out, %a : f32
    linalg.yield %s : f32
  } -> tensor<?x4096xf32>
  %e2 = tensor.empty(%n) : tensor<?xf32>
  %init2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?xf32>) -> tensor<?xf32>
  %y2 = linalg.generic {indexing_maps = [#pairs, #row], iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<?x4096xf32>) outs(%init2 : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %q = math.exp %a : f32
    %s = arith.addf %out, %q : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %y2 : tensor<?xf32>
}

// -----

#id = affine_map<(i, c) -> (i, c)>
#row = affine_map<(i, c) -> (i)>
#column = affine_map<(i, c) -> (c)>
// Shares of rows, whose sums over all rows are one kernel already.
// CHECK-LABEL: func.func @shares
// CHECK: iterator_types = ["parallel", "reduction"]
// ALWAYS-LABEL: func.func @shares
// ALWAYS-NOT: iterator_types = ["parallel", "reduction"]
// ALWAYS: return
// REMARK: fuse-unroll-reductions: declined: a reduction of 8 elements is predicted to take {{.*}} us unrolled, {{.*}} us as it is
func.func @shares(%x: tensor<4194304x8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<4194304xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4194304xf32>) -> tensor<4194304xf32>
  %d = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4194304x8xf32>) outs(%init : tensor<4194304xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %out, %a : f32
    linalg.yield %s : f32
  } -> tensor<4194304xf32>
  %e = tensor.empty() : tensor<4194304x8xf32>
  %q = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %d : tensor<4194304x8xf32>, tensor<4194304xf32>) outs(%e : tensor<4194304x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.divf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4194304x8xf32>
  %e2 = tensor.empty() : tensor<8xf32>
  %init2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8xf32>) -> tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
      ins(%q : tensor<4194304x8xf32>) outs(%init2 : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %out, %a : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#one = affine_map<(d0) -> (d0)>
#second = affine_map<(d0, d1) -> (d0 - 1, d1)>
// Largest elements of columns, and their roots, one row of a result each: as elementwise ops they are stored there.
// CHECK-LABEL: func.func @lengths
// CHECK-COUNT-4: tensor.extract_slice
// CHECK-NOT: "reduction"
// REMARK: fuse-unroll-reductions: applied: a reduction of 4 elements is predicted to take {{.*}} us unrolled, {{.*}} us as it is
func.func @lengths(%arg0: tensor<4x1250001xf32> {fuse.align = 16 : i64, fuse.name = "x"}) -> tensor<2x1250001xf32> {
  %0 = tensor.empty() : tensor<4x1250001xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<4x1250001xf32>) outs(%0 : tensor<4x1250001xf32>) {
  ^bb0(%in: f32, %out: f32):
    %12 = math.absf %in : f32
    linalg.yield %12 : f32
  } -> tensor<4x1250001xf32>
  %2 = tensor.empty() : tensor<1250001xf32>
  %cst = arith.constant 0xFF800000 : f32
  %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<1250001xf32>) -> tensor<1250001xf32>
  %4 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%1 : tensor<4x1250001xf32>) outs(%3 : tensor<1250001xf32>) {
  ^bb0(%in: f32, %out: f32):
    %12 = arith.maximumf %out, %in : f32
    linalg.yield %12 : f32
  } -> tensor<1250001xf32>
  %5 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%4 : tensor<1250001xf32>) outs(%2 : tensor<1250001xf32>) {
  ^bb0(%in: f32, %out: f32):
    %12 = math.sqrt %in : f32
    linalg.yield %12 : f32
  } -> tensor<1250001xf32>
  %expanded = tensor.expand_shape %4 [[0, 1]] output_shape [1, 1250001] : tensor<1250001xf32> into tensor<1x1250001xf32>
  %expanded_0 = tensor.expand_shape %5 [[0, 1]] output_shape [1, 1250001] : tensor<1250001xf32> into tensor<1x1250001xf32>
  %6 = "fuse.gathered_view"(%expanded) {basis = array<i64: 2, 1250001>, map = #id, ranks = array<i64: 1, 1>} : (tensor<1x1250001xf32>) -> tensor<2x1250001xf32>
  %7 = "fuse.gathered_view"(%expanded_0) {basis = array<i64: 2, 1250001>, map = #second, ranks = array<i64: 1, 1>} : (tensor<1x1250001xf32>) -> tensor<2x1250001xf32>
  %8 = "fuse.gathered_view"(%expanded) {basis = array<i64: 2, 1250001>, inside = array<i64: 1, 1250001>, map = #id, ranks = array<i64: 1, 1>} : (tensor<1x1250001xf32>) -> tensor<2x1250001xi1>
  %9 = "fuse.gathered_view"(%expanded_0) {basis = array<i64: 2, 1250001>, inside = array<i64: 1, 1250001>, map = #second, ranks = array<i64: 1, 1>} : (tensor<1x1250001xf32>) -> tensor<2x1250001xi1>
  %10 = tensor.empty() : tensor<2x1250001xf32>
  %11 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%6, %7, %8, %9 : tensor<2x1250001xf32>, tensor<2x1250001xf32>, tensor<2x1250001xi1>, tensor<2x1250001xi1>) outs(%10 : tensor<2x1250001xf32>) {
  ^bb0(%in: f32, %in_1: f32, %in_2: i1, %in_3: i1, %out: f32):
    %cst_4 = arith.constant 0.000000e+00 : f32
    %12 = arith.select %in_2, %in, %cst_4 : f32
    %13 = arith.select %in_3, %in_1, %12 : f32
    linalg.yield %13 : f32
  } -> tensor<2x1250001xf32>
  return %11 : tensor<2x1250001xf32>
}

// -----

#id = affine_map<(i, c) -> (i, c)>
#row = affine_map<(i, c) -> (i)>
// CHECK-LABEL: func.func @alone
// CHECK: "reduction"
// REMARK: fuse-unroll-reductions: declined: no reduction of a few elements feeds one over other loops or a join
func.func @alone(%x: tensor<512x3xf32>) -> tensor<512xf32> {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<512xf32>) -> tensor<512xf32>
  %d = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<512x3xf32>) outs(%init : tensor<512xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %out, %a : f32
    linalg.yield %s : f32
  } -> tensor<512xf32>
  return %d : tensor<512xf32>
}
