// RUN: mlirfuse-opt --fuse-reduce-slices --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// Rows are reduced over the elements of their halves, both at once.
// CHECK-LABEL: func.func @halves
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<64x128xf32>
// CHECK-DAG: %[[LEFT:.*]] = tensor.extract_slice %[[X]][0, 0] [64, 64] [1, 1]
// CHECK-DAG: %[[RIGHT:.*]] = tensor.extract_slice %[[X]][0, 64] [64, 64] [1, 1]
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[LEFT]], %[[RIGHT]] : tensor<64x64xf32>, tensor<64x64xf32>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[OUT:.*]]: f32):
// CHECK-NEXT: %[[BOTH:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[OUT]], %[[BOTH]]
// CHECK-NEXT: linalg.yield %[[SUM]]
// REMARK: fuse-reduce-slices: applied: 1 reduction(s) combine 2 slices of an axis
func.func @halves(%x: tensor<64x128xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x128xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %out, %a : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %left = tensor.extract_slice %x[0, 0] [64, 64] [1, 1] : tensor<64x128xf32> to tensor<64x64xf32>
  %right = tensor.extract_slice %x[0, 64] [64, 64] [1, 1] : tensor<64x128xf32> to tensor<64x64xf32>
  %e2 = tensor.empty() : tensor<64x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%left, %right, %sum : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>) outs(%e2 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %s = arith.mulf %d, %c : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// No op needs both: the sums are returned.
// CHECK-LABEL: func.func @apart
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<64x128xf32>)
// REMARK: fuse-reduce-slices: declined: no op needs both a slice and a reduction of the array
func.func @apart(%x: tensor<64x128xf32>) -> (tensor<64xf32>, tensor<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x128xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %out, %a : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %left = tensor.extract_slice %x[0, 0] [64, 64] [1, 2] : tensor<64x128xf32> to tensor<64x64xf32>
  %right = tensor.extract_slice %x[0, 1] [64, 64] [1, 2] : tensor<64x128xf32> to tensor<64x64xf32>
  %e2 = tensor.empty() : tensor<64x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%left, %right : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e2 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %sum, %y : tensor<64xf32>, tensor<64x64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
// Two thirds do not cover the axis.
// REMARK: fuse-reduce-slices: declined: no array is read in equal slices that cover an axis
func.func @uncovered(%x: tensor<64x192xf32>) -> tensor<64x64xf32> {
  %left = tensor.extract_slice %x[0, 0] [64, 64] [1, 1] : tensor<64x192xf32> to tensor<64x64xf32>
  %right = tensor.extract_slice %x[0, 64] [64, 64] [1, 1] : tensor<64x192xf32> to tensor<64x64xf32>
  %e2 = tensor.empty() : tensor<64x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%left, %right : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e2 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// Whoever asks for an extent of the array reads none of its elements.
// CHECK-LABEL: func.func @run_time
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<?x64xf32>)
// REMARK: fuse-reduce-slices: applied: 1 reduction(s) combine 2 slices of an axis
func.func @run_time(%x: tensor<?x128xf32>) -> tensor<?x64xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x128xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x128xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %out, %a : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %left = tensor.extract_slice %x[0, 0] [%n, 64] [1, 1] : tensor<?x128xf32> to tensor<?x64xf32>
  %right = tensor.extract_slice %x[0, 64] [%n, 64] [1, 1] : tensor<?x128xf32> to tensor<?x64xf32>
  %e2 = tensor.empty(%n) : tensor<?x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%left, %right, %sum : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?xf32>) outs(%e2 : tensor<?x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %s = arith.subf %a, %b : f32
    %t = arith.mulf %s, %c : f32
    linalg.yield %t : f32
  } -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
