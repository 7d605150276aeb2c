// RUN: mlirfuse-opt --fuse-gather-reductions --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#plane = affine_map<(d0, d1) -> (d0, d1)>
#rows = affine_map<(d0, d1) -> (d0)>
#rolled = affine_map<(d0, d1) -> ((d0 + 3) mod 8, d1)>
#rolled_rows = affine_map<(d0) -> ((d0 + 3) mod 8)>

// Rows and their sums are read three rows on: the sums are of the rows as they are read.
// CHECK-DAG:   #[[ROLLED:.*]] = affine_map<(d0, d1) -> ((d0 + 3) mod 8, d1)>
// CHECK-LABEL: func.func @rolled(
// CHECK-SAME:  %[[X:.*]]: tensor<8x64xf32>
// CHECK:       %[[Y:.*]] = "fuse.gathered_view"(%[[X]]) {{.*}}map = #[[ROLLED]]
// CHECK:       %[[S:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%[[Y]] : tensor<8x64xf32>)
// CHECK-NOT:   fuse.gathered_view
// CHECK:       linalg.generic {{.*}} ins(%[[Y]], %[[S]] : tensor<8x64xf32>, tensor<8xf32>)
func.func @rolled(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %s = linalg.generic {indexing_maps = [#plane, #rows], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf32>) outs(%i : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %y = "fuse.gathered_view"(%x) {basis = array<i64: 8, 64>, map = #rolled, ranks = array<i64: 1, 1>} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %t = "fuse.gathered_view"(%s) {basis = array<i64: 8>, map = #rolled_rows, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<8xf32>
  %o = tensor.empty() : tensor<8x64xf32>
  %z = linalg.generic {indexing_maps = [#plane, #rows, #plane], iterator_types = ["parallel", "parallel"]} ins(%y, %t : tensor<8x64xf32>, tensor<8xf32>) outs(%o : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.divf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  return %z : tensor<8x64xf32>
}

// -----

#plane = affine_map<(d0, d1) -> (d0, d1)>
#rows = affine_map<(d0, d1) -> (d0)>
#rolled_rows = affine_map<(d0) -> ((d0 + 3) mod 8)>

// The rows themselves are read in order.
// CHECK-LABEL: func.func @of_other_rows(
// CHECK:       linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%arg0
// CHECK:       "fuse.gathered_view"
func.func @of_other_rows(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  // expected-remark @below {{the readers of a view do not gather what is reduced}}
  %s = linalg.generic {indexing_maps = [#plane, #rows], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf32>) outs(%i : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %t = "fuse.gathered_view"(%s) {basis = array<i64: 8>, map = #rolled_rows, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<8xf32>
  %o = tensor.empty() : tensor<8x64xf32>
  %z = linalg.generic {indexing_maps = [#plane, #rows, #plane], iterator_types = ["parallel", "parallel"]} ins(%x, %t : tensor<8x64xf32>, tensor<8xf32>) outs(%o : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.divf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  return %z : tensor<8x64xf32>
}

// -----

#plane = affine_map<(d0, d1) -> (d0, d1)>
#rows = affine_map<(d0, d1) -> (d0)>
#rolled = affine_map<(d0, d1) -> ((d0 + 3) mod 8, d1)>
#rolled_rows = affine_map<(d0) -> ((d0 + 3) mod 8)>

// CHECK-LABEL: func.func @returned(
// CHECK:       %[[S:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%arg0
// CHECK:       "fuse.gathered_view"(%[[S]])
// CHECK:       return %{{.*}}, %[[S]]
func.func @returned(%x: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  // expected-remark @below {{the result is read in its own order too}}
  %s = linalg.generic {indexing_maps = [#plane, #rows], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf32>) outs(%i : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %y = "fuse.gathered_view"(%x) {basis = array<i64: 8, 64>, map = #rolled, ranks = array<i64: 1, 1>} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %t = "fuse.gathered_view"(%s) {basis = array<i64: 8>, map = #rolled_rows, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<8xf32>
  %o = tensor.empty() : tensor<8x64xf32>
  %z = linalg.generic {indexing_maps = [#plane, #rows, #plane], iterator_types = ["parallel", "parallel"]} ins(%y, %t : tensor<8x64xf32>, tensor<8xf32>) outs(%o : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.divf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  return %z, %s : tensor<8x64xf32>, tensor<8xf32>
}

// -----

#line = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @elementwise(
// expected-remark @below {{no view of a reduction's result}}
func.func @elementwise(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %z = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %z : tensor<8xf32>
}

// -----

#plane = affine_map<(d0, d1) -> (d0, d1)>
#columns = affine_map<(d0, d1) -> (d1)>
#rolled = affine_map<(d0) -> ((d0 + 3) mod 8)>

// CHECK-LABEL: func.func @unknown(
// CHECK:       %[[S:.*]] = linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]} ins(%arg0
// CHECK:       "fuse.gathered_view"(%[[S]])
func.func @unknown(%x: tensor<?x8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  // expected-remark @below {{how many elements it reduces is known at run time only}}
  %s = linalg.generic {indexing_maps = [#plane, #columns], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<?x8xf32>) outs(%i : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %t = "fuse.gathered_view"(%s) {basis = array<i64: 8>, map = #rolled, ranks = array<i64: 1>} : (tensor<8xf32>) -> tensor<8xf32>
  %o = tensor.empty() : tensor<8xf32>
  %line = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%y, %t : tensor<8xf32>, tensor<8xf32>) outs(%o : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.divf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %line : tensor<8xf32>
}
