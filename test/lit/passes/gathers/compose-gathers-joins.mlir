// RUN: mlirfuse-opt %s --fuse-compose-gathers --split-input-file --show-remarks 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// Joined halves, of which the first is negated: its elements are only selected where they are inside of the half, so the
// negation is computed of the view. The check that the negated half gave its shape is one of the argument.
// CHECK-LABEL: func.func @joined
// REMARK: fuse-compose-gathers: applied: 1 views of elementwise results
// CHECK: %[[X:.*]] = "fuse.gathered_view"(%arg0) {basis = array<i64: 8, 64>, map = #{{.*}} : (tensor<8x32xf32>) -> tensor<8x64xf32>
// CHECK: %[[N:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<8x64xf32>)
// CHECK: arith.negf
// CHECK: %[[C:.*]] = "fuse.gathered_view"(%arg0) {basis = array<i64: 8, 64>, inside = array<i64: 8, 32>, {{.*}} : (tensor<8x32xf32>) -> tensor<8x64xi1>
// CHECK: linalg.generic {{.*}} ins(%[[N]], %{{.*}}, %[[C]], %{{.*}} :
func.func @joined(%x: tensor<8x32xf32>, %y: tensor<8x32xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x32xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x32xf32>) outs(%e : tensor<8x32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.negf %a : f32
    linalg.yield %t : f32
  } -> tensor<8x32xf32>
  %v = "fuse.gathered_view"(%n) {basis = array<i64: 8, 64>, ranks = array<i64: 1, 1>, map = affine_map<(i, j) -> (i, j)>}
      : (tensor<8x32xf32>) -> tensor<8x64xf32>
  %w = "fuse.gathered_view"(%y) {basis = array<i64: 8, 64>, ranks = array<i64: 1, 1>, map = affine_map<(i, j) -> (i, j - 32)>}
      : (tensor<8x32xf32>) -> tensor<8x64xf32>
  %c = "fuse.gathered_view"(%n) {inside = array<i64: 8, 32>, basis = array<i64: 8, 64>, ranks = array<i64: 1, 1>, map = affine_map<(i, j) -> (i, j)>}
      : (tensor<8x32xf32>) -> tensor<8x64xi1>
  %d = "fuse.gathered_view"(%y) {inside = array<i64: 8, 32>, basis = array<i64: 8, 64>, ranks = array<i64: 1, 1>, map = affine_map<(i, j) -> (i, j - 32)>}
      : (tensor<8x32xf32>) -> tensor<8x64xi1>
  %f = tensor.empty() : tensor<8x64xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
                                        affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%v, %w, %c, %d : tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x64xi1>, tensor<8x64xi1>) outs(%f : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %p: i1, %q: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %s = arith.select %p, %a, %zero : f32
    %t = arith.select %q, %b, %s : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  return %z : tensor<8x64xf32>
}

// -----

// The same of a part that is a constant: nothing is read for it, and its check is one of what another part reads.
// CHECK-LABEL: func.func @constant
// REMARK: fuse-compose-gathers: applied: 1 views of elementwise results
// CHECK: %[[ONES:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<8x33xf32>)
// CHECK: %[[C:.*]] = "fuse.gathered_view"(%arg0) {basis = array<i64: 8, 33>, inside = array<i64: 8, 1>, {{.*}} -> tensor<8x33xi1>
// CHECK: linalg.generic {{.*}} ins(%[[ONES]], %{{.*}}, %[[C]], %{{.*}} :
func.func @constant(%y: tensor<8x32xf32>) -> tensor<8x33xf32> {
  %e = tensor.empty() : tensor<8x1xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%e : tensor<8x1xf32>) {
  ^bb0(%out: f32):
    %one = arith.constant 1.0 : f32
    linalg.yield %one : f32
  } -> tensor<8x1xf32>
  %v = "fuse.gathered_view"(%n) {basis = array<i64: 8, 33>, ranks = array<i64: 1, 1>, map = affine_map<(i, j) -> (i, j)>}
      : (tensor<8x1xf32>) -> tensor<8x33xf32>
  %w = "fuse.gathered_view"(%y) {basis = array<i64: 8, 33>, ranks = array<i64: 1, 1>, map = affine_map<(i, j) -> (i, j - 1)>}
      : (tensor<8x32xf32>) -> tensor<8x33xf32>
  %c = "fuse.gathered_view"(%n) {inside = array<i64: 8, 1>, basis = array<i64: 8, 33>, ranks = array<i64: 1, 1>, map = affine_map<(i, j) -> (i, j)>}
      : (tensor<8x1xf32>) -> tensor<8x33xi1>
  %d = "fuse.gathered_view"(%y) {inside = array<i64: 8, 32>, basis = array<i64: 8, 33>, ranks = array<i64: 1, 1>, map = affine_map<(i, j) -> (i, j - 1)>}
      : (tensor<8x32xf32>) -> tensor<8x33xi1>
  %f = tensor.empty() : tensor<8x33xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
                                        affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%v, %w, %c, %d : tensor<8x33xf32>, tensor<8x33xf32>, tensor<8x33xi1>, tensor<8x33xi1>) outs(%f : tensor<8x33xf32>) {
  ^bb0(%a: f32, %b: f32, %p: i1, %q: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %s = arith.select %p, %a, %zero : f32
    %t = arith.select %q, %b, %s : f32
    linalg.yield %t : f32
  } -> tensor<8x33xf32>
  return %z : tensor<8x33xf32>
}

// -----

// Views of slices of an argument are views of the argument.
// CHECK: #[[FURTHER:.*]] = affine_map<(d0) -> (d0 + 1)>
// CHECK-LABEL: func.func @slices
// CHECK-NOT: extract_slice
// CHECK: "fuse.gathered_view"(%arg0) {basis = array<i64: 8>, map = #[[FURTHER]]{{.*}} : (tensor<8xf32>) -> tensor<8xf32>
// CHECK: "fuse.gathered_view"(%arg0) {basis = array<i64: 8>, inside = array<i64: 7>, {{.*}} : (tensor<8xf32>) -> tensor<8xi1>
func.func @slices(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = tensor.extract_slice %x[1] [7] [1] : tensor<8xf32> to tensor<7xf32>
  %v = "fuse.gathered_view"(%s) {basis = array<i64: 8>, ranks = array<i64: 1>, map = affine_map<(i) -> (i)>}
      : (tensor<7xf32>) -> tensor<8xf32>
  %c = "fuse.gathered_view"(%s) {inside = array<i64: 7>, basis = array<i64: 8>, ranks = array<i64: 1>, map = affine_map<(i) -> (i)>}
      : (tensor<7xf32>) -> tensor<8xi1>
  %f = tensor.empty() : tensor<8xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                       iterator_types = ["parallel"]}
      ins(%v, %c, %x : tensor<8xf32>, tensor<8xi1>, tensor<8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%a: f32, %p: i1, %b: f32, %out: f32):
    %s0 = arith.select %p, %a, %b : f32
    linalg.yield %s0 : f32
  } -> tensor<8xf32>
  return %z : tensor<8xf32>
}

// -----

// A view of the middle of a joined array has nothing of the part before it: neither that part nor its check is read.
// CHECK-LABEL: func.func @middle
// CHECK-NOT: gathered_view
// CHECK: %[[X:.*]] = "fuse.gathered_view"(%arg1) {basis = array<i64: 6>, map = {{.*}} : (tensor<8xf32>) -> tensor<6xf32>
// CHECK-NOT: gathered_view
// CHECK: linalg.generic {{.*}} ins(%[[X]] : tensor<6xf32>)
// CHECK-NOT: arith.select
// CHECK: return
func.func @middle(%e: tensor<1xf32>, %x: tensor<8xf32>) -> tensor<6xf32> {
  %a = "fuse.gathered_view"(%e) {basis = array<i64: 9>, ranks = array<i64: 1>, map = affine_map<(i) -> (i)>} : (tensor<1xf32>) -> tensor<9xf32>
  %b = "fuse.gathered_view"(%x) {basis = array<i64: 9>, ranks = array<i64: 1>, map = affine_map<(i) -> (i - 1)>} : (tensor<8xf32>) -> tensor<9xf32>
  %p = "fuse.gathered_view"(%e) {inside = array<i64: 1>, basis = array<i64: 9>, ranks = array<i64: 1>, map = affine_map<(i) -> (i)>} : (tensor<1xf32>) -> tensor<9xi1>
  %q = "fuse.gathered_view"(%x) {inside = array<i64: 8>, basis = array<i64: 9>, ranks = array<i64: 1>, map = affine_map<(i) -> (i - 1)>} : (tensor<8xf32>) -> tensor<9xi1>
  %f = tensor.empty() : tensor<9xf32>
  %j = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                       iterator_types = ["parallel"]}
      ins(%a, %b, %p, %q : tensor<9xf32>, tensor<9xf32>, tensor<9xi1>, tensor<9xi1>) outs(%f : tensor<9xf32>) {
  ^bb0(%0: f32, %1: f32, %2: i1, %3: i1, %out: f32):
    %zero = arith.constant 0.0 : f32
    %4 = arith.select %2, %0, %zero : f32
    %5 = arith.select %3, %1, %4 : f32
    linalg.yield %5 : f32
  } -> tensor<9xf32>
  %v = "fuse.gathered_view"(%j) {basis = array<i64: 6>, ranks = array<i64: 1>, map = affine_map<(i) -> (i + 2)>} : (tensor<9xf32>) -> tensor<6xf32>
  %g = tensor.empty() : tensor<6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%v : tensor<6xf32>) outs(%g : tensor<6xf32>) {
  ^bb0(%0: f32, %out: f32):
    %1 = arith.negf %0 : f32
    linalg.yield %1 : f32
  } -> tensor<6xf32>
  return %r : tensor<6xf32>
}

// -----

// A check is of the array that is sliced, and what is composed is not in memory for it.
// CHECK-LABEL: func.func @behind_slices
// REMARK: fuse-compose-gathers: applied: 1 views of elementwise results
// CHECK: "fuse.gathered_view"(%arg0) {basis = array<i64: 6>, inside = array<i64: 4>, {{.*}} : (tensor<3xf32>) -> tensor<6xi1>
// CHECK-NOT: tensor<4xf32>
// CHECK: return
func.func @behind_slices(%x: tensor<3xf32>) -> tensor<6xf32> {
  %s = tensor.extract_slice %x[1] [1] [1] : tensor<3xf32> to tensor<1xf32>
  %e0 = tensor.empty() : tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<() -> (0)>, affine_map<() -> ()>], iterator_types = []}
      ins(%s : tensor<1xf32>) outs(%e0 : tensor<f32>) {
  ^bb0(%a: f32, %out: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(p) -> ()>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%r : tensor<f32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %v = "fuse.gathered_view"(%y) {basis = array<i64: 6>, ranks = array<i64: 1>, map = affine_map<(i) -> (i - 1)>}
      : (tensor<4xf32>) -> tensor<6xf32>
  %c = "fuse.gathered_view"(%y) {inside = array<i64: 4>, basis = array<i64: 6>, ranks = array<i64: 1>, map = affine_map<(i) -> (i - 1)>}
      : (tensor<4xf32>) -> tensor<6xi1>
  %f = tensor.empty() : tensor<6xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                       iterator_types = ["parallel"]}
      ins(%v, %c : tensor<6xf32>, tensor<6xi1>) outs(%f : tensor<6xf32>) {
  ^bb0(%a: f32, %p: i1, %out: f32):
    %one = arith.constant 1.0 : f32
    %t = arith.select %p, %a, %one : f32
    linalg.yield %t : f32
  } -> tensor<6xf32>
  return %z : tensor<6xf32>
}

// -----

// Slices that are shifted past an end, where there are zeros: views of the array have the same where the slice ends with
// the array; not where it ends before.
// CHECK-DAG: #[[DOWN:.*]] = affine_map<(d0) -> (d0 - 2)>
// CHECK-DAG: #[[UP:.*]] = affine_map<(d0) -> (d0 + 2)>
// CHECK-LABEL: func.func @shifted
// CHECK-DAG: "fuse.gathered_view"(%arg0) {basis = array<i64: 16>, map = #[[DOWN]]
// CHECK-DAG: "fuse.gathered_view"(%arg0) {basis = array<i64: 16>, map = #[[UP]]
// CHECK-DAG: %[[SHORT:.*]] = tensor.extract_slice %arg0[1] [14] [1]
// CHECK-DAG: "fuse.gathered_view"(%[[SHORT]]) {basis = array<i64: 16>, map = #[[DOWN]]
func.func @shifted(%x: tensor<16xf32>) -> tensor<16xf32> {
  %first = tensor.extract_slice %x[0] [14] [1] : tensor<16xf32> to tensor<14xf32>
  %last = tensor.extract_slice %x[2] [14] [1] : tensor<16xf32> to tensor<14xf32>
  %short = tensor.extract_slice %x[1] [14] [1] : tensor<16xf32> to tensor<14xf32>
  %a = "fuse.gathered_view"(%first) {basis = array<i64: 16>, ranks = array<i64: 1>, map = affine_map<(i) -> (i - 2)>} : (tensor<14xf32>) -> tensor<16xf32>
  %b = "fuse.gathered_view"(%last) {basis = array<i64: 16>, ranks = array<i64: 1>, map = affine_map<(i) -> (i)>} : (tensor<14xf32>) -> tensor<16xf32>
  %c = "fuse.gathered_view"(%short) {basis = array<i64: 16>, ranks = array<i64: 1>, map = affine_map<(i) -> (i - 2)>} : (tensor<14xf32>) -> tensor<16xf32>
  %e = tensor.empty() : tensor<16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a, %b, %c : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) outs(%e : tensor<16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    %t = arith.addf %s, %r : f32
    linalg.yield %t : f32
  } -> tensor<16xf32>
  return %y : tensor<16xf32>
}
