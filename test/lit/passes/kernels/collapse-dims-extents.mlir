// RUN: mlirfuse-opt --fuse-collapse-dims --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#last = affine_map<(d0, d1, d2) -> (d2)>
#one = affine_map<(d0) -> (d0)>

// A mean over two dimensions divides by the number of rows: the merged extent over the static one.
// CHECK-LABEL: func.func private @mean_0(%arg0: tensor<?x64xf32>)
// CHECK: linalg.generic
// CHECK: %[[N:.*]] = tensor.dim %arg0, %c0
// CHECK: linalg.generic
// CHECK: %[[ROWS:.*]] = arith.divui %[[N]], %c4
// CHECK: arith.index_cast %[[ROWS]]
// expected-remark @below {{3 dimensions became 2}}
func.func private @mean_0(%x: tensor<?x4x64xf32>) -> tensor<64xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x4x64xf32>
  %e = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #last], iterator_types = ["reduction", "reduction", "parallel"]}
         ins(%x : tensor<?x4x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  %mean = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
          ins(%sum : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %i = arith.index_cast %n : index to i64
    %f = arith.sitofp %i : i64 to f32
    %r = arith.divf %v, %f : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  return %mean : tensor<64xf32>
}
func.func @mean(%x: tensor<?x4x64xf32>) -> tensor<64xf32> {
  %0 = call @mean_0(%x) : (tensor<?x4x64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// Of two dynamic extents the merged one does not tell one.
// CHECK-LABEL: func.func private @scaled_0(%arg0: tensor<?x?xf32>)
// expected-remark @below {{no neighbouring dimensions can be merged}}
func.func private @scaled_0(%x: tensor<?x?xf32>) -> tensor<?x?xf32> attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0, 0, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%v: f32, %out: f32):
    %i = arith.index_cast %n : index to i64
    %f = arith.sitofp %i : i64 to f32
    %r = arith.divf %v, %f : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
func.func @scaled(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = call @scaled_0(%x) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#none = affine_map<(d0, d1) -> ()>
#scalar = affine_map<() -> ()>

// Their product it is.
// CHECK-LABEL: func.func private @all_0(%arg0: tensor<?xf32>)
// CHECK: %[[N:.*]] = tensor.dim %arg0, %c0
// CHECK: linalg.generic
// CHECK: arith.index_cast %[[N]]
// expected-remark @below {{2 dimensions became 1}}
func.func private @all_0(%x: tensor<?x?xf32>) -> tensor<f32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction", "reduction"]}
         ins(%x : tensor<?x?xf32>) outs(%init : tensor<f32>) {
  ^bb0(%v: f32, %out: f32):
    %r = arith.addf %out, %v : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  %mean = linalg.generic {indexing_maps = [#scalar, #scalar], iterator_types = []}
          ins(%sum : tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%v: f32, %out: f32):
    %count = arith.muli %n, %m : index
    %i = arith.index_cast %count : index to i64
    %f = arith.sitofp %i : i64 to f32
    %r = arith.divf %v, %f : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %mean : tensor<f32>
}
func.func @all(%x: tensor<?x?xf32>) -> tensor<f32> {
  %0 = call @all_0(%x) : (tensor<?x?xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
