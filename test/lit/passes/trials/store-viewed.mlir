// RUN: mlirfuse-opt --fuse-store-viewed --target=sm_90a --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

#id = affine_map<(i, j) -> (i, j)>
#behind = affine_map<(i, j) -> (i, j - 512)>

// Every place of an array that is joined of two sums would have the loads of both, at strides.
// CHECK-LABEL: func.func @joined
// CHECK-COUNT-2: linalg.generic {{.*}} attrs = {fuse.viewed}
// CHECK:       arith.select
// REMARK:      fuse-store-viewed: applied: views of 2 result(s) are predicted to take
func.func @joined(%x: tensor<4096x4096xf32>, %y: tensor<4096x4096xf32>) -> tensor<4096x1024xf32> {
  %x0 = tensor.extract_slice %x[0, 0] [4096, 512] [1, 8] : tensor<4096x4096xf32> to tensor<4096x512xf32>
  %x1 = tensor.extract_slice %x[0, 1] [4096, 512] [1, 8] : tensor<4096x4096xf32> to tensor<4096x512xf32>
  %x2 = tensor.extract_slice %x[0, 2] [4096, 512] [1, 8] : tensor<4096x4096xf32> to tensor<4096x512xf32>
  %x3 = tensor.extract_slice %x[0, 3] [4096, 512] [1, 8] : tensor<4096x4096xf32> to tensor<4096x512xf32>
  %x4 = tensor.extract_slice %x[0, 4] [4096, 512] [1, 8] : tensor<4096x4096xf32> to tensor<4096x512xf32>
  %x5 = tensor.extract_slice %x[0, 5] [4096, 512] [1, 8] : tensor<4096x4096xf32> to tensor<4096x512xf32>
  %x6 = tensor.extract_slice %x[0, 6] [4096, 512] [1, 8] : tensor<4096x4096xf32> to tensor<4096x512xf32>
  %x7 = tensor.extract_slice %x[0, 7] [4096, 512] [1, 8] : tensor<4096x4096xf32> to tensor<4096x512xf32>
  %y0 = tensor.extract_slice %y[0, 0] [4096, 512] [1, 8] : tensor<4096x4096xf32> to tensor<4096x512xf32>
  %y1 = tensor.extract_slice %y[0, 1] [4096, 512] [1, 8] : tensor<4096x4096xf32> to tensor<4096x512xf32>
  %y2 = tensor.extract_slice %y[0, 2] [4096, 512] [1, 8] : tensor<4096x4096xf32> to tensor<4096x512xf32>
  %y3 = tensor.extract_slice %y[0, 3] [4096, 512] [1, 8] : tensor<4096x4096xf32> to tensor<4096x512xf32>
  %y4 = tensor.extract_slice %y[0, 4] [4096, 512] [1, 8] : tensor<4096x4096xf32> to tensor<4096x512xf32>
  %y5 = tensor.extract_slice %y[0, 5] [4096, 512] [1, 8] : tensor<4096x4096xf32> to tensor<4096x512xf32>
  %y6 = tensor.extract_slice %y[0, 6] [4096, 512] [1, 8] : tensor<4096x4096xf32> to tensor<4096x512xf32>
  %y7 = tensor.extract_slice %y[0, 7] [4096, 512] [1, 8] : tensor<4096x4096xf32> to tensor<4096x512xf32>
  %e = tensor.empty() : tensor<4096x512xf32>
  %sum_x = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7 : tensor<4096x512xf32>, tensor<4096x512xf32>, tensor<4096x512xf32>, tensor<4096x512xf32>, tensor<4096x512xf32>, tensor<4096x512xf32>, tensor<4096x512xf32>, tensor<4096x512xf32>) outs(%e : tensor<4096x512xf32>) {
  ^bb0(%b0: f32, %b1: f32, %b2: f32, %b3: f32, %b4: f32, %b5: f32, %b6: f32, %b7: f32, %out: f32):
    %s1 = arith.addf %b0, %b1 : f32
    %s2 = arith.addf %s1, %b2 : f32
    %s3 = arith.addf %s2, %b3 : f32
    %s4 = arith.addf %s3, %b4 : f32
    %s5 = arith.addf %s4, %b5 : f32
    %s6 = arith.addf %s5, %b6 : f32
    %s7 = arith.addf %s6, %b7 : f32
    linalg.yield %s7 : f32
  } -> tensor<4096x512xf32>
  %sum_y = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y0, %y1, %y2, %y3, %y4, %y5, %y6, %y7 : tensor<4096x512xf32>, tensor<4096x512xf32>, tensor<4096x512xf32>, tensor<4096x512xf32>, tensor<4096x512xf32>, tensor<4096x512xf32>, tensor<4096x512xf32>, tensor<4096x512xf32>) outs(%e : tensor<4096x512xf32>) {
  ^bb0(%b0: f32, %b1: f32, %b2: f32, %b3: f32, %b4: f32, %b5: f32, %b6: f32, %b7: f32, %out: f32):
    %s1 = arith.addf %b0, %b1 : f32
    %s2 = arith.addf %s1, %b2 : f32
    %s3 = arith.addf %s2, %b3 : f32
    %s4 = arith.addf %s3, %b4 : f32
    %s5 = arith.addf %s4, %b5 : f32
    %s6 = arith.addf %s5, %b6 : f32
    %s7 = arith.addf %s6, %b7 : f32
    linalg.yield %s7 : f32
  } -> tensor<4096x512xf32>
  %view_x = "fuse.gathered_view"(%sum_x) {basis = array<i64: 4096, 1024>, map = #id, ranks = array<i64: 1, 1>} : (tensor<4096x512xf32>) -> tensor<4096x1024xf32>
  %in_x = "fuse.gathered_view"(%sum_x) {basis = array<i64: 4096, 1024>, inside = array<i64: 4096, 512>, map = #id, ranks = array<i64: 1, 1>} : (tensor<4096x512xf32>) -> tensor<4096x1024xi1>
  %view_y = "fuse.gathered_view"(%sum_y) {basis = array<i64: 4096, 1024>, map = #behind, ranks = array<i64: 1, 1>} : (tensor<4096x512xf32>) -> tensor<4096x1024xf32>
  %in_y = "fuse.gathered_view"(%sum_y) {basis = array<i64: 4096, 1024>, inside = array<i64: 4096, 512>, map = #behind, ranks = array<i64: 1, 1>} : (tensor<4096x512xf32>) -> tensor<4096x1024xi1>
  %o = tensor.empty() : tensor<4096x1024xf32>
  %d = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%view_x, %view_y, %in_x, %in_y : tensor<4096x1024xf32>, tensor<4096x1024xf32>, tensor<4096x1024xi1>, tensor<4096x1024xi1>) outs(%o : tensor<4096x1024xf32>) {
  ^bb0(%p: f32, %q: f32, %in_p: i1, %in_q: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %0 = arith.select %in_q, %q, %zero : f32
    %1 = arith.select %in_p, %p, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4096x1024xf32>
  return %d : tensor<4096x1024xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#right = affine_map<(i, j) -> (i, j + 1)>

// A sum of four rows costs less to compute twice than to store.
// CHECK-LABEL: func.func @cheap
// CHECK-NOT:   fuse.viewed
// REMARK:      fuse-store-viewed: declined: views of 1 result(s) are predicted to take
func.func @cheap(%x: tensor<4100x4096xf32>) -> tensor<4096x4095xf32> {
  %x0 = tensor.extract_slice %x[0, 0] [4096, 4096] [1, 1] : tensor<4100x4096xf32> to tensor<4096x4096xf32>
  %x1 = tensor.extract_slice %x[1, 0] [4096, 4096] [1, 1] : tensor<4100x4096xf32> to tensor<4096x4096xf32>
  %x2 = tensor.extract_slice %x[2, 0] [4096, 4096] [1, 1] : tensor<4100x4096xf32> to tensor<4096x4096xf32>
  %x3 = tensor.extract_slice %x[3, 0] [4096, 4096] [1, 1] : tensor<4100x4096xf32> to tensor<4096x4096xf32>
  %e = tensor.empty() : tensor<4096x4096xf32>
  %a = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x0, %x1, %x2, %x3 : tensor<4096x4096xf32>, tensor<4096x4096xf32>, tensor<4096x4096xf32>, tensor<4096x4096xf32>) outs(%e : tensor<4096x4096xf32>) {
  ^bb0(%b0: f32, %b1: f32, %b2: f32, %b3: f32, %out: f32):
    %s1 = arith.addf %b0, %b1 : f32
    %s2 = arith.addf %s1, %b2 : f32
    %s3 = arith.addf %s2, %b3 : f32
    linalg.yield %s3 : f32
  } -> tensor<4096x4096xf32>
  %r = "fuse.gathered_view"(%a) {basis = array<i64: 4096, 4095>, map = #right, ranks = array<i64: 1, 1>} : (tensor<4096x4096xf32>) -> tensor<4096x4095xf32>
  %l = "fuse.gathered_view"(%a) {basis = array<i64: 4096, 4095>, map = #id, ranks = array<i64: 1, 1>} : (tensor<4096x4096xf32>) -> tensor<4096x4095xf32>
  %o = tensor.empty() : tensor<4096x4095xf32>
  %d = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%r, %l : tensor<4096x4095xf32>, tensor<4096x4095xf32>) outs(%o : tensor<4096x4095xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %0 = arith.subf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<4096x4095xf32>
  return %d : tensor<4096x4095xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#right = affine_map<(i, j) -> (i, j + 1)>

// A sum of two elements is not worth a trial.
// CHECK-LABEL: func.func @few
// CHECK-NOT:   fuse.viewed
// REMARK:      fuse-store-viewed: declined: no gathered views are computed of many elements of arrays
func.func @few(%x: tensor<4096x4096xf32>) -> tensor<4096x2047xf32> {
  %x0 = tensor.extract_slice %x[0, 0] [4096, 2048] [1, 2] : tensor<4096x4096xf32> to tensor<4096x2048xf32>
  %x1 = tensor.extract_slice %x[0, 1] [4096, 2048] [1, 2] : tensor<4096x4096xf32> to tensor<4096x2048xf32>
  %e = tensor.empty() : tensor<4096x2048xf32>
  %a = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x0, %x1 : tensor<4096x2048xf32>, tensor<4096x2048xf32>) outs(%e : tensor<4096x2048xf32>) {
  ^bb0(%b0: f32, %b1: f32, %out: f32):
    %s1 = arith.addf %b0, %b1 : f32
    linalg.yield %s1 : f32
  } -> tensor<4096x2048xf32>
  %r = "fuse.gathered_view"(%a) {basis = array<i64: 4096, 2047>, map = #right, ranks = array<i64: 1, 1>} : (tensor<4096x2048xf32>) -> tensor<4096x2047xf32>
  %l = "fuse.gathered_view"(%a) {basis = array<i64: 4096, 2047>, map = #id, ranks = array<i64: 1, 1>} : (tensor<4096x2048xf32>) -> tensor<4096x2047xf32>
  %o = tensor.empty() : tensor<4096x2047xf32>
  %d = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%r, %l : tensor<4096x2047xf32>, tensor<4096x2047xf32>) outs(%o : tensor<4096x2047xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %0 = arith.subf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<4096x2047xf32>
  return %d : tensor<4096x2047xf32>
}
