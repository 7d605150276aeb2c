// RUN: mlirfuse-opt "--fuse-split-parts=parts=4" --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#kept = affine_map<(d0, d1, d2) -> (d0, d2)>
#weight = affine_map<(d0, d1, d2) -> (d1)>
// The first kernel has a loop over parts that is parallel, the host passes views for it, and the second kernel combines
// the parts. Its reductions run along each other's arguments, as they once shared one, so that they have one space.
// CHECK-LABEL: func.func @columns(
// CHECK: %[[X:.*]] = tensor.expand_shape %arg0 {{\[\[}}0], [1, 2], [3]] output_shape [%{{.*}}, 4, 3, 64]
// CHECK: %[[W:.*]] = tensor.expand_shape %arg1 {{\[\[}}0, 1]] output_shape [4, 3]
// CHECK: %[[PARTS:.*]]:2 = call @columns_0_parts(%[[X]], %[[W]])
// CHECK: call @columns_0(%[[PARTS]]#0, %[[PARTS]]#1) : (tensor<?x4x64xf32>, tensor<?x4x64xf32>)
// CHECK-LABEL: func.func private @columns_0_parts(
// CHECK-SAME: %arg0: tensor<?x4x3x64xf32> {fuse.align = 16 : i64}, %arg1: tensor<4x3xf32>
// CHECK-SAME: fuse.result_extents = array<i64: 0, 0, 0, 0>
// CHECK: iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0, %arg1
// CHECK: iterator_types = ["parallel", "parallel", "reduction", "parallel"]} {{.*}} outs(%{{.*}} : tensor<?x4x64xf32>)
// CHECK: arith.addf
// CHECK: iterator_types = ["parallel", "parallel", "reduction", "parallel"]} ins(%arg0 : tensor<?x4x3x64xf32>)
// CHECK: arith.maximumf
// CHECK-LABEL: func.func private @columns_0(
// CHECK: iterator_types = ["parallel", "reduction", "parallel"]} ins(%arg0 : tensor<?x4x64xf32>)
// CHECK: arith.addf
// CHECK: iterator_types = ["parallel", "reduction", "parallel"]} ins(%arg1, %arg0 : tensor<?x4x64xf32>, tensor<?x4x64xf32>)
// CHECK: ^bb0(%[[IN:.*]]: f32, %{{.*}}: f32, %[[OUT:.*]]: f32):
// CHECK: arith.maximumf %[[OUT]], %[[IN]]
func.func @columns(%x: tensor<?x12x64xf32>, %w: tensor<12xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %0:2 = call @columns_0(%x, %w) : (tensor<?x12x64xf32>, tensor<12xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
  return %0#0, %0#1 : tensor<?x64xf32>, tensor<?x64xf32>
}
// expected-remark @below {{columns_0_parts reduces dimension 1 in 4 parts}}
func.func private @columns_0(%x: tensor<?x12x64xf32> {fuse.align = 16 : i64}, %w: tensor<12xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0, 0, 0>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %m = tensor.dim %x, %c0 : tensor<?x12x64xf32>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %full = tensor.empty(%m) : tensor<?x12x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %weighted = linalg.generic {indexing_maps = [#id, #weight, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x, %w : tensor<?x12x64xf32>, tensor<12xf32>) outs(%full : tensor<?x12x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<?x12x64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #kept], iterator_types = ["parallel", "reduction", "parallel"]}
       ins(%weighted : tensor<?x12x64xf32>) outs(%init : tensor<?x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?x64xf32>
  %start = linalg.fill ins(%lowest : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %max = linalg.generic {indexing_maps = [#id, #kept], iterator_types = ["parallel", "reduction", "parallel"]}
       ins(%x : tensor<?x12x64xf32>) outs(%start : tensor<?x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.maximumf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?x64xf32>
  return %sum, %max : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

// A dimension that is kept whole needs no view. Moments merge as Chan, Golub and LeVeque's: 16 numbers a part, 64 in all.
// CHECK-LABEL: func.func @statistics(
// CHECK-NOT: expand_shape
// CHECK: call @statistics_0_parts(%arg0) : (tensor<4x16xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-LABEL: func.func private @statistics_0_parts(
// CHECK: "fuse.moments"(%arg0) {dims = array<i64: 1>}
// CHECK-LABEL: func.func private @statistics_0(
// CHECK: %[[TOTAL:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<4xf32>)
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1, %[[TOTAL]]
// CHECK: ^bb0(%[[SUM:.*]]: f32, %[[SQUARES:.*]]: f32, %[[ALL:.*]]: f32, %[[OUT:.*]]: f32):
// CHECK-DAG: %[[EACH:.*]] = arith.constant 1.600000e+01
// CHECK-DAG: %[[EVERY:.*]] = arith.constant 6.400000e+01
// CHECK: %[[OWN:.*]] = arith.divf %[[SUM]], %[[EACH]]
// CHECK: %[[MEAN:.*]] = arith.divf %[[ALL]], %[[EVERY]]
// CHECK: %[[APART:.*]] = arith.subf %[[OWN]], %[[MEAN]]
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[APART]], %[[APART]]
// CHECK: %[[BETWEEN:.*]] = arith.mulf %[[SQUARE]], %[[EACH]]
// CHECK: arith.addf %[[SQUARES]], %[[BETWEEN]]
func.func @statistics(%x: tensor<4x16xf32>) -> (tensor<f32>, tensor<f32>) {
  %0:2 = call @statistics_0(%x) : (tensor<4x16xf32>) -> (tensor<f32>, tensor<f32>)
  return %0#0, %0#1 : tensor<f32>, tensor<f32>
}
// expected-remark @below {{statistics_0_parts reduces dimension 0 in 4 parts}}
func.func private @statistics_0(%x: tensor<4x16xf32>) -> (tensor<f32>, tensor<f32>) attributes {fuse.kernel} {
  %0:2 = "fuse.moments"(%x) {dims = array<i64: 0, 1>} : (tensor<4x16xf32>) -> (tensor<f32>, tensor<f32>)
  return %0#0, %0#1 : tensor<f32>, tensor<f32>
}

// -----

// Sums of exponentials are rescaled to the largest maximum; parts of minus infinities only add nothing to others.
// CHECK-LABEL: func.func private @exponentials_0_parts(%arg0: tensor<4x2x16xf32>)
// CHECK: "fuse.exp_sum"(%arg0) {dims = array<i64: 1>}
// CHECK-LABEL: func.func private @exponentials_0(
// CHECK: %[[LARGEST:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<4x16xf32>)
// CHECK: arith.maximumf
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1, %[[LARGEST]]
// CHECK: ^bb0(%[[OWN:.*]]: f32, %[[SUM:.*]]: f32, %[[ALL:.*]]: f32, %{{.*}}: f32):
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.0
// CHECK-DAG: %[[LOWEST:.*]] = arith.constant 0xFF800000
// CHECK: %[[DIFFERENCE:.*]] = arith.subf %[[OWN]], %[[ALL]]
// CHECK: %[[SCALE:.*]] = math.exp %[[DIFFERENCE]]
// CHECK: %[[SCALED:.*]] = arith.mulf %[[SUM]], %[[SCALE]]
// CHECK: %[[IS_LOWEST:.*]] = arith.cmpf oeq, %[[OWN]], %[[LOWEST]]
// CHECK: %[[IS_LARGEST:.*]] = arith.cmpf oeq, %[[OWN]], %[[ALL]]
// CHECK: %[[ELSE:.*]] = arith.select %[[IS_LOWEST]], %[[ZERO]], %[[SCALED]]
// CHECK: arith.select %[[IS_LARGEST]], %[[SUM]], %[[ELSE]]
func.func @exponentials(%x: tensor<8x16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %0:2 = call @exponentials_0(%x) : (tensor<8x16xf32>) -> (tensor<16xf32>, tensor<16xf32>)
  return %0#0, %0#1 : tensor<16xf32>, tensor<16xf32>
}
// expected-remark @below {{exponentials_0_parts reduces dimension 0 in 4 parts}}
func.func private @exponentials_0(%x: tensor<8x16xf32>) -> (tensor<16xf32>, tensor<16xf32>) attributes {fuse.kernel} {
  %0:2 = "fuse.exp_sum"(%x) {dims = array<i64: 0>} : (tensor<8x16xf32>) -> (tensor<16xf32>, tensor<16xf32>)
  return %0#0, %0#1 : tensor<16xf32>, tensor<16xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#kept = affine_map<(d0, d1) -> (d0)>
#back = affine_map<(d0, d1) -> (d0)>
func.func @centred(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = call @centred_0(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
// expected-remark @below {{what is reduced is needed again}}
func.func private @centred_0(%x: tensor<8x16xf32>) -> tensor<8x16xf32> attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #kept], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<8x16xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %full = tensor.empty() : tensor<8x16xf32>
  %0 = linalg.generic {indexing_maps = [#id, #back, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %sum : tensor<8x16xf32>, tensor<8xf32>) outs(%full : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#kept = affine_map<(d0, d1) -> (d0)>
// What is reduced, and is a result too, is written part by part: the host reads it as it was.
// CHECK-LABEL: func.func @squares(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x16xf32>
// CHECK: %[[PARTS:.*]] = tensor.expand_shape %[[X]] {{\[\[}}0], [1, 2]] output_shape [8, 4, 4]
// CHECK: %[[R:.*]]:2 = call @squares_0_parts(%[[PARTS]]) : (tensor<8x4x4xf32>) -> (tensor<8x4xf32>, tensor<8x4x4xf32>)
// CHECK: %[[WRITTEN:.*]] = tensor.collapse_shape %[[R]]#1 {{\[\[}}0], [1, 2]] : tensor<8x4x4xf32> into tensor<8x16xf32>
// CHECK: %[[SUM:.*]] = call @squares_0(%[[R]]#0) : (tensor<8x4xf32>) -> tensor<8xf32>
// CHECK: return %[[WRITTEN]], %[[SUM]]
func.func @squares(%x: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8xf32>) {
  %0:2 = call @squares_0(%x) : (tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8x16xf32>, tensor<8xf32>
}
// expected-remark @below {{squares_0_parts reduces dimension 1 in 4 parts}}
func.func private @squares_0(%x: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8xf32>) attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %full = tensor.empty() : tensor<8x16xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<8x16xf32>) outs(%full : tensor<8x16xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.mulf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<8x16xf32>
  %e = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #kept], iterator_types = ["parallel", "reduction"]}
       ins(%0 : tensor<8x16xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %0, %sum : tensor<8x16xf32>, tensor<8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#kept = affine_map<(d0, d1) -> (d0)>
// A dimension of a slice that is divided has two strides.
// CHECK-LABEL: func.func @slice(
// CHECK: %[[X:.*]] = tensor.extract_slice
// CHECK: %[[VIEW:.*]] = tensor.expand_shape %[[X]] {{\[\[}}0], [1, 2]] output_shape [8, 4, 4] : tensor<8x16xf32> into tensor<8x4x4xf32>
// CHECK: call @slice_0_parts(%[[VIEW]]) : (tensor<8x4x4xf32>) -> tensor<8x4xf32>
// CHECK-LABEL: func.func private @slice_0_parts(
// CHECK-SAME: tensor<8x4x4xf32> {fuse.strides = [96, 8, 2]}
func.func @slice(%whole: tensor<8x3x32xf32>) -> tensor<8xf32> {
  %x = tensor.extract_slice %whole[0, 1, 0] [8, 1, 16] [1, 1, 2] : tensor<8x3x32xf32> to tensor<8x16xf32>
  %0 = call @slice_0(%x) : (tensor<8x16xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// expected-remark @below {{slice_0_parts reduces dimension 1 in 4 parts}}
func.func private @slice_0(%x: tensor<8x16xf32> {fuse.strides = [96, 2]}) -> tensor<8xf32> attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #kept], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<8x16xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %sum : tensor<8xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#kept = affine_map<(d0, d1, d2) -> (d1)>
#wrapped = affine_map<(d0, d1, d2) -> ((d0 + 1) mod 4, d1, d2)>
// Each index of the first dimension is a part by itself.
// CHECK-LABEL: func.func @gathered(
// CHECK: %[[V:.*]] = "fuse.gathered_view"(%arg0)
// CHECK: %[[PARTS:.*]] = call @gathered_0_parts(%[[V]]) : (tensor<4x8x16xf32>) -> tensor<4x8xf32>
// CHECK: call @gathered_0(%[[PARTS]]) : (tensor<4x8xf32>) -> tensor<8xf32>
// CHECK-LABEL: func.func private @gathered_0_parts(
// CHECK: iterator_types = ["parallel", "parallel", "reduction"]
// CHECK-LABEL: func.func private @gathered_0(
// CHECK: iterator_types = ["reduction", "parallel"]
func.func @gathered(%x: tensor<4x8x16xf32>) -> tensor<8xf32> {
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 4, 8, 16>, map = #wrapped, ranks = array<i64: 1, 1, 1>} : (tensor<4x8x16xf32>) -> tensor<4x8x16xf32>
  %0 = call @gathered_0(%v) : (tensor<4x8x16xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// expected-remark @below {{gathered_0_parts reduces dimension 0 in 4 parts}}
func.func private @gathered_0(%x: tensor<4x8x16xf32> {fuse.gather = {basis = array<i64: 4, 8, 16>, map = #wrapped, ranks = array<i64: 1, 1, 1>, source = tensor<4x8x16xf32>}, fuse.strides = [3, 3, 3]}) -> tensor<8xf32> attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #kept], iterator_types = ["reduction", "parallel", "reduction"]}
       ins(%x : tensor<4x8x16xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %sum : tensor<8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#kept = affine_map<(d0, d1) -> (d0)>
#wrapped = affine_map<(d0, d1) -> ((d0 + 1) mod 8, d1)>
// A dimension of a gathered view that is divided is two of the view.
// CHECK-DAG: #[[WRAPPED:.*]] = affine_map<(d0, d1, d2) -> ((d0 + 1) mod 8, d1 * 4 + d2)>
// CHECK-LABEL: func.func @divided(
// CHECK: %[[V:.*]] = "fuse.gathered_view"(%arg0) {basis = array<i64: 8, 4, 4>, map = #[[WRAPPED]], {{.*}} -> tensor<8x4x4xf32>
// CHECK: call @divided_0_parts(%[[V]]) : (tensor<8x4x4xf32>) -> tensor<8x4xf32>
// CHECK-LABEL: func.func private @divided_0_parts(
// CHECK-SAME: tensor<8x4x4xf32> {fuse.align = 16 : i64, fuse.gather = {basis = array<i64: 8, 4, 4>, map = #[[WRAPPED]], ranks = array<i64: 1, 1, 1>, source = tensor<8x16xf32>}
func.func @divided(%x: tensor<8x16xf32>) -> tensor<8xf32> {
  %v = "fuse.gathered_view"(%x) {basis = array<i64: 8, 16>, map = #wrapped, ranks = array<i64: 1, 1>} : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %0 = call @divided_0(%v) : (tensor<8x16xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// expected-remark @below {{divided_0_parts reduces dimension 1 in 4 parts}}
func.func private @divided_0(%x: tensor<8x16xf32> {fuse.align = 16 : i64, fuse.gather = {basis = array<i64: 8, 16>, map = #wrapped, ranks = array<i64: 1, 1>, source = tensor<8x16xf32>}, fuse.strides = [3, 1]}) -> tensor<8xf32> attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #kept], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<8x16xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %sum : tensor<8xf32>
}
