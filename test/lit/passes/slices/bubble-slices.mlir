// RUN: mlirfuse-opt --fuse-bubble-slices --target=sm_90a --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
// Both halves are computed from halves of the arguments; rows are known at run time.
// CHECK-LABEL: func.func @gate
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x512xf32>{{.*}}, %[[B:[a-z0-9]+]]: tensor<512xf32>
// CHECK-DAG: tensor.extract_slice %[[X]][0, 0] [%{{.*}}, 256] [1, 1]
// CHECK-DAG: tensor.extract_slice %[[X]][0, 256] [%{{.*}}, 256] [1, 1]
// CHECK-DAG: tensor.extract_slice %[[B]][0] [256] [1]
// CHECK-DAG: tensor.extract_slice %[[B]][256] [256] [1]
// CHECK: arith.addf
// CHECK: arith.addf
// CHECK-NOT: extract_slice
// CHECK: arith.mulf
// REMARK: fuse-bubble-slices: applied: slices are computed from slices
func.func @gate(%x: tensor<?x512xf32>, %b: tensor<512xf32>) -> tensor<?x256xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x512xf32>
  %e = tensor.empty(%n) : tensor<?x512xf32>
  %h = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<?x512xf32>, tensor<512xf32>) outs(%e : tensor<?x512xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<?x512xf32>
  %left = tensor.extract_slice %h[0, 0] [%n, 256] [1, 1] : tensor<?x512xf32> to tensor<?x256xf32>
  %right = tensor.extract_slice %h[0, 256] [%n, 256] [1, 1] : tensor<?x512xf32> to tensor<?x256xf32>
  %e2 = tensor.empty(%n) : tensor<?x256xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%left, %right : tensor<?x256xf32>, tensor<?x256xf32>) outs(%e2 : tensor<?x256xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.mulf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<?x256xf32>
  return %y : tensor<?x256xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
// Through a reshape, from a slice of a slice.
// CHECK-LABEL: func.func @reshaped
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<64x512xf32>
// CHECK: %[[SLICE:.*]] = tensor.extract_slice %[[X]][0, 384] [64, 128] [1, 1]
// CHECK: %[[H:.*]] = linalg.generic {{.*}} ins(%[[SLICE]] : tensor<64x128xf32>)
// CHECK: %[[G:.*]] = linalg.generic {{.*}} ins(%[[H]] : tensor<64x128xf32>)
// CHECK: tensor.expand_shape %[[G]] {{\[}}[0], [1, 2]] output_shape [64, 1, 128]
// REMARK: fuse-bubble-slices: applied: slices are computed from slices
func.func @reshaped(%x: tensor<64x512xf32>) -> tensor<64x128xf32> {
  %e = tensor.empty() : tensor<64x512xf32>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x512xf32>) outs(%e : tensor<64x512xf32>) {
  ^bb0(%p: f32, %out: f32):
    %s = math.absf %p : f32
    linalg.yield %s : f32
  } -> tensor<64x512xf32>
  %half = tensor.extract_slice %h[0, 256] [64, 256] [1, 1] : tensor<64x512xf32> to tensor<64x256xf32>
  %e0 = tensor.empty() : tensor<64x256xf32>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%half : tensor<64x256xf32>) outs(%e0 : tensor<64x256xf32>) {
  ^bb0(%p: f32, %out: f32):
    %s = arith.addf %p, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x256xf32>
  %heads = tensor.expand_shape %g [[0], [1, 2]] output_shape [64, 2, 128] : tensor<64x256xf32> into tensor<64x2x128xf32>
  %head = tensor.extract_slice %heads[0, 1, 0] [64, 1, 128] [1, 1, 1] : tensor<64x2x128xf32> to tensor<64x1x128xf32>
  %flat = tensor.collapse_shape %head [[0], [1, 2]] : tensor<64x1x128xf32> into tensor<64x128xf32>
  %e2 = tensor.empty() : tensor<64x128xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%flat : tensor<64x128xf32>) outs(%e2 : tensor<64x128xf32>) {
  ^bb0(%p: f32, %out: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  return %y : tensor<64x128xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
// An array that is returned is in memory, and so are slices that are.
// CHECK-LABEL: func.func @returned
// CHECK: %[[H:.*]] = linalg.generic
// CHECK: tensor.extract_slice %[[H]]
// REMARK: fuse-bubble-slices: declined: the value is in memory anyway, or its slices are
func.func @returned(%x: tensor<64x512xf32>) -> (tensor<64x512xf32>, tensor<64x256xf32>) {
  %e = tensor.empty() : tensor<64x512xf32>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x512xf32>) outs(%e : tensor<64x512xf32>) {
  ^bb0(%p: f32, %out: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<64x512xf32>
  %left = tensor.extract_slice %h[0, 0] [64, 256] [1, 1] : tensor<64x512xf32> to tensor<64x256xf32>
  return %h, %left : tensor<64x512xf32>, tensor<64x256xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
// Four powers of each element again would take longer than to load the first ones.
// CHECK-LABEL: func.func @costly
// CHECK: %[[H:.*]] = linalg.generic
// CHECK: tensor.extract_slice %[[H]]
// REMARK: fuse-bubble-slices: declined: computing slices would take {{.*}} us longer
func.func @costly(%x: tensor<4096x4096xf32>) -> tensor<4096x4092xf32> {
  %e = tensor.empty() : tensor<4096x4096xf32>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4096x4096xf32>) outs(%e : tensor<4096x4096xf32>) {
  ^bb0(%p: f32, %out: f32):
    %a = math.powf %p, %p : f32
    %b = math.powf %a, %p : f32
    %c = math.powf %b, %p : f32
    %s = math.powf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4096x4096xf32>
  %left = tensor.extract_slice %h[0, 0] [4096, 4092] [1, 1] : tensor<4096x4096xf32> to tensor<4096x4092xf32>
  %right = tensor.extract_slice %h[0, 4] [4096, 4092] [1, 1] : tensor<4096x4096xf32> to tensor<4096x4092xf32>
  %e2 = tensor.empty() : tensor<4096x4092xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%left, %right : tensor<4096x4092xf32>, tensor<4096x4092xf32>) outs(%e2 : tensor<4096x4092xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.mulf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<4096x4092xf32>
  return %y : tensor<4096x4092xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#mirrored = affine_map<(d0, d1) -> (d0 floordiv 2, -d1 + 511)>
// A slice of a gathered view is a gathered view of fewer elements: no argument is a view of a view.
// CHECK: #[[ODD:.*]] = affine_map<(d0, d1) -> (d0, -d1 + 511)>
// CHECK-LABEL: func.func @gathered
// CHECK: %[[V:.*]] = "fuse.gathered_view"(%arg0) {basis = array<i64: 32, 512>, map = #[[ODD]], ranks = array<i64: 1, 1>} : (tensor<64x512xf32>) -> tensor<32x512xf32>
// CHECK-NOT: tensor.extract_slice
// CHECK: linalg.generic {{.*}} ins(%[[V]] : tensor<32x512xf32>)
func.func @gathered(%x: tensor<64x512xf32>) -> tensor<32x512xf32> {
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 64, 512>, map = #mirrored, ranks = array<i64: 1, 1>}
      : (tensor<64x512xf32>) -> tensor<64x512xf32>
  %e = tensor.empty() : tensor<64x512xf32>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%v : tensor<64x512xf32>) outs(%e : tensor<64x512xf32>) {
  ^bb0(%p: f32, %out: f32):
    %s = arith.mulf %p, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x512xf32>
  %odd = tensor.extract_slice %h[1, 0] [32, 512] [2, 1] : tensor<64x512xf32> to tensor<32x512xf32>
  %e2 = tensor.empty() : tensor<32x512xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%odd : tensor<32x512xf32>) outs(%e2 : tensor<32x512xf32>) {
  ^bb0(%p: f32, %out: f32):
    %s = arith.negf %p : f32
    linalg.yield %s : f32
  } -> tensor<32x512xf32>
  return %y : tensor<32x512xf32>
}

// -----

#pairs = affine_map<(d0, d1) -> (d0, d1)>
#second = affine_map<(d0) -> (d0 - 12)>
// So is a slice of a reshape of one.
// CHECK: #[[PHASE:.*]] = affine_map<(d0, d1) -> (d0 * 3 + d1 - 12)>
// CHECK-LABEL: func.func @reshaped_view
// CHECK: %[[V:.*]] = "fuse.gathered_view"(%arg0) {basis = array<i64: 8, 1>, map = #[[PHASE]], ranks = array<i64: 1, 1>}
// CHECK-NOT: tensor.extract_slice
// CHECK: linalg.generic {{.*}} ins(%[[V]] : tensor<8x1xf32>)
func.func @reshaped_view(%x: tensor<12xf32>) -> tensor<8x1xf32> {
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 24>, map = #second, ranks = array<i64: 1>} : (tensor<12xf32>) -> tensor<24xf32>
  %r = tensor.expand_shape %v [[0, 1]] output_shape [8, 3] : tensor<24xf32> into tensor<8x3xf32>
  %e2 = tensor.empty() : tensor<8x3xf32>
  %y = linalg.generic {indexing_maps = [#pairs, #pairs], iterator_types = ["parallel", "parallel"]} ins(%r : tensor<8x3xf32>) outs(%e2 : tensor<8x3xf32>) {
  ^bb0(%p: f32, %out: f32):
    %s = arith.negf %p : f32
    linalg.yield %s : f32
  } -> tensor<8x3xf32>
  %first = tensor.extract_slice %y[0, 0] [8, 1] [1, 1] : tensor<8x3xf32> to tensor<8x1xf32>
  %e3 = tensor.empty() : tensor<8x1xf32>
  %z = linalg.generic {indexing_maps = [#pairs, #pairs], iterator_types = ["parallel", "parallel"]} ins(%first : tensor<8x1xf32>) outs(%e3 : tensor<8x1xf32>) {
  ^bb0(%p: f32, %out: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<8x1xf32>
  return %z : tensor<8x1xf32>
}

// -----

// REMARK: fuse-bubble-slices: declined: no result of an elementwise op is sliced
func.func @argument(%x: tensor<64x512xf32>) -> tensor<64x256xf32> {
  %left = tensor.extract_slice %x[0, 0] [64, 256] [1, 1] : tensor<64x512xf32> to tensor<64x256xf32>
  return %left : tensor<64x256xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
// Rows that are read from both ends: the reversed ones are computed of reversed rows.
// CHECK-LABEL: func.func @mirrored
// CHECK: %[[R:.*]] = tensor.extract_slice %arg0[0, 511] [64, 512] [1, -1]
// CHECK: %[[E:.*]] = linalg.generic {{.*}} ins(%[[R]] :
// CHECK: math.exp
// CHECK-NOT: tensor.extract_slice
// CHECK: return
// REMARK: fuse-bubble-slices: applied: slices are computed from slices
func.func @mirrored(%x: tensor<64x512xi8>) -> tensor<64x512xf32> {
  %e = tensor.empty() : tensor<64x512xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x512xi8>) outs(%e : tensor<64x512xf32>) {
  ^bb0(%in: i8, %out: f32):
    %f = arith.sitofp %in : i8 to f32
    %t = math.exp %f : f32
    linalg.yield %t : f32
  } -> tensor<64x512xf32>
  %b = tensor.extract_slice %a[0, 511] [64, 512] [1, -1] : tensor<64x512xf32> to tensor<64x512xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<64x512xf32>, tensor<64x512xf32>) outs(%e : tensor<64x512xf32>) {
  ^bb0(%u: f32, %v: f32, %out: f32):
    %t = arith.addf %u, %v : f32
    linalg.yield %t : f32
  } -> tensor<64x512xf32>
  return %y : tensor<64x512xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#swapped = affine_map<(i, j) -> (j, i)>
// As many rows as run time says, read from both ends, through a transpose.
// CHECK-LABEL: func.func @backwards
// CHECK: %[[N:.*]] = tensor.dim %arg0
// CHECK: %[[LAST:.*]] = arith.subi %[[N]], %{{.*}}
// CHECK: %[[R:.*]] = tensor.extract_slice %arg0[%[[LAST]], 0] [%[[N]], 512] [-1, 1]
// CHECK: %[[E:.*]] = linalg.generic {{.*}} ins(%[[R]] :
// CHECK: math.exp
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[E]] :
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[T]] :
// CHECK-NOT: tensor.extract_slice
// CHECK: return
// REMARK: fuse-bubble-slices: applied: slices are computed from slices
func.func @backwards(%x: tensor<?x512xi8>) -> tensor<512x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x512xi8>
  %last = arith.subi %n, %c1 : index
  %e = tensor.empty(%n) : tensor<?x512xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x512xi8>) outs(%e : tensor<?x512xf32>) {
  ^bb0(%in: i8, %out: f32):
    %f = arith.sitofp %in : i8 to f32
    %t = math.exp %f : f32
    linalg.yield %t : f32
  } -> tensor<?x512xf32>
  %te = tensor.empty(%n) : tensor<512x?xf32>
  %turned = linalg.transpose ins(%a : tensor<?x512xf32>) outs(%te : tensor<512x?xf32>) permutation = [1, 0]
  %b = tensor.extract_slice %turned[0, %last] [512, %n] [1, -1] : tensor<512x?xf32> to tensor<512x?xf32>
  %y = linalg.generic {indexing_maps = [#swapped, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<?x512xf32>, tensor<512x?xf32>) outs(%te : tensor<512x?xf32>) {
  ^bb0(%u: f32, %v: f32, %out: f32):
    %t = arith.addf %u, %v : f32
    linalg.yield %t : f32
  } -> tensor<512x?xf32>
  return %y : tensor<512x?xf32>
}
