// RUN: mlirfuse-opt --fuse-store-viewed --target=sm_90a --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

#id = affine_map<(i, j) -> (i, j)>
#right = affine_map<(i, j) -> (i, j - 1024)>
#below = affine_map<(i, j) -> (i - 4096, j)>
#across = affine_map<(i, j) -> (i - 4096, j - 1024)>

// Every place of an array that is joined of two sums, each at two places, would have the loads of all, at strides.
// CHECK-LABEL: func.func @joined
// CHECK-COUNT-2: linalg.generic {{.*}} attrs = {fuse.viewed}
// CHECK:       arith.select
// REMARK:      fuse-store-viewed: applied: views of 2 result(s) are predicted to take
func.func @joined(%x: tensor<4096x4096xf32>, %y: tensor<4096x4096xf32>) -> tensor<8192x2048xf32> {
  %x0 = tensor.extract_slice %x[0, 0] [4096, 1024] [1, 4] : tensor<4096x4096xf32> to tensor<4096x1024xf32>
  %x1 = tensor.extract_slice %x[0, 1] [4096, 1024] [1, 4] : tensor<4096x4096xf32> to tensor<4096x1024xf32>
  %x2 = tensor.extract_slice %x[0, 2] [4096, 1024] [1, 4] : tensor<4096x4096xf32> to tensor<4096x1024xf32>
  %x3 = tensor.extract_slice %x[0, 3] [4096, 1024] [1, 4] : tensor<4096x4096xf32> to tensor<4096x1024xf32>
  %y0 = tensor.extract_slice %y[0, 0] [4096, 1024] [1, 4] : tensor<4096x4096xf32> to tensor<4096x1024xf32>
  %y1 = tensor.extract_slice %y[0, 1] [4096, 1024] [1, 4] : tensor<4096x4096xf32> to tensor<4096x1024xf32>
  %y2 = tensor.extract_slice %y[0, 2] [4096, 1024] [1, 4] : tensor<4096x4096xf32> to tensor<4096x1024xf32>
  %y3 = tensor.extract_slice %y[0, 3] [4096, 1024] [1, 4] : tensor<4096x4096xf32> to tensor<4096x1024xf32>
  %e = tensor.empty() : tensor<4096x1024xf32>
  %sum_x = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x0, %x1, %x2, %x3 : tensor<4096x1024xf32>, tensor<4096x1024xf32>, tensor<4096x1024xf32>, tensor<4096x1024xf32>) outs(%e : tensor<4096x1024xf32>) {
  ^bb0(%b0: f32, %b1: f32, %b2: f32, %b3: f32, %out: f32):
    %s1 = arith.addf %b0, %b1 : f32
    %s2 = arith.addf %s1, %b2 : f32
    %s3 = arith.addf %s2, %b3 : f32
    linalg.yield %s3 : f32
  } -> tensor<4096x1024xf32>
  %sum_y = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y0, %y1, %y2, %y3 : tensor<4096x1024xf32>, tensor<4096x1024xf32>, tensor<4096x1024xf32>, tensor<4096x1024xf32>) outs(%e : tensor<4096x1024xf32>) {
  ^bb0(%b0: f32, %b1: f32, %b2: f32, %b3: f32, %out: f32):
    %s1 = arith.addf %b0, %b1 : f32
    %s2 = arith.addf %s1, %b2 : f32
    %s3 = arith.addf %s2, %b3 : f32
    linalg.yield %s3 : f32
  } -> tensor<4096x1024xf32>
  %view0 = "fuse.gathered_view"(%sum_x) {basis = array<i64: 8192, 2048>, map = #id, ranks = array<i64: 1, 1>} : (tensor<4096x1024xf32>) -> tensor<8192x2048xf32>
  %in0 = "fuse.gathered_view"(%sum_x) {basis = array<i64: 8192, 2048>, inside = array<i64: 4096, 1024>, map = #id, ranks = array<i64: 1, 1>} : (tensor<4096x1024xf32>) -> tensor<8192x2048xi1>
  %view1 = "fuse.gathered_view"(%sum_y) {basis = array<i64: 8192, 2048>, map = #right, ranks = array<i64: 1, 1>} : (tensor<4096x1024xf32>) -> tensor<8192x2048xf32>
  %in1 = "fuse.gathered_view"(%sum_y) {basis = array<i64: 8192, 2048>, inside = array<i64: 4096, 1024>, map = #right, ranks = array<i64: 1, 1>} : (tensor<4096x1024xf32>) -> tensor<8192x2048xi1>
  %view2 = "fuse.gathered_view"(%sum_y) {basis = array<i64: 8192, 2048>, map = #below, ranks = array<i64: 1, 1>} : (tensor<4096x1024xf32>) -> tensor<8192x2048xf32>
  %in2 = "fuse.gathered_view"(%sum_y) {basis = array<i64: 8192, 2048>, inside = array<i64: 4096, 1024>, map = #below, ranks = array<i64: 1, 1>} : (tensor<4096x1024xf32>) -> tensor<8192x2048xi1>
  %view3 = "fuse.gathered_view"(%sum_x) {basis = array<i64: 8192, 2048>, map = #across, ranks = array<i64: 1, 1>} : (tensor<4096x1024xf32>) -> tensor<8192x2048xf32>
  %in3 = "fuse.gathered_view"(%sum_x) {basis = array<i64: 8192, 2048>, inside = array<i64: 4096, 1024>, map = #across, ranks = array<i64: 1, 1>} : (tensor<4096x1024xf32>) -> tensor<8192x2048xi1>
  %o = tensor.empty() : tensor<8192x2048xf32>
  %d = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%view0, %view1, %view2, %view3, %in0, %in1, %in2, %in3 : tensor<8192x2048xf32>, tensor<8192x2048xf32>, tensor<8192x2048xf32>, tensor<8192x2048xf32>, tensor<8192x2048xi1>, tensor<8192x2048xi1>, tensor<8192x2048xi1>, tensor<8192x2048xi1>) outs(%o : tensor<8192x2048xf32>) {
  ^bb0(%p0: f32, %p1: f32, %p2: f32, %p3: f32, %c0: i1, %c1: i1, %c2: i1, %c3: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %3 = arith.select %c3, %p3, %zero : f32
    %2 = arith.select %c2, %p2, %3 : f32
    %1 = arith.select %c1, %p1, %2 : f32
    %0 = arith.select %c0, %p0, %1 : f32
    linalg.yield %0 : f32
  } -> tensor<8192x2048xf32>
  return %d : tensor<8192x2048xf32>
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
