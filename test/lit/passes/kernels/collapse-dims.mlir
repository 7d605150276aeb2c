// RUN: mlirfuse-opt --fuse-collapse-dims --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#row = affine_map<(d0, d1, d2) -> (d0)>
#inner = affine_map<(d0, d1, d2) -> (d1, d2)>
// Two dimensions that are reduced together become one row; the caller passes views.
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[COL:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @rows
// CHECK-DAG: %[[X:.*]] = tensor.collapse_shape %arg0 {{\[\[}}0], [1, 2]] : tensor<?x64x80xf32> into tensor<?x5120xf32>
// CHECK-DAG: %[[W:.*]] = tensor.collapse_shape %arg1 {{\[\[}}0, 1]] : tensor<64x80xf32> into tensor<5120xf32>
// CHECK: call @rows_0(%[[X]], %[[W]])
// CHECK-LABEL: func.func private @rows_0(%arg0: tensor<?x5120xf32> {fuse.align = 16 : i64}, %arg1: tensor<5120xf32>) -> tensor<?xf32>
// CHECK-SAME: fuse.result_extents = array<i64: 0, 0>
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[COL]], #[[ROW]]], iterator_types = ["parallel", "reduction"]}
func.func @rows(%x: tensor<?x64x80xf32>, %w: tensor<64x80xf32>) -> tensor<?xf32> {
  %0 = call @rows_0(%x, %w) : (tensor<?x64x80xf32>, tensor<64x80xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @rows_0(%x: tensor<?x64x80xf32> {fuse.align = 16 : i64}, %w: tensor<64x80xf32>) -> tensor<?xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x64x80xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #inner, #row], iterator_types = ["parallel", "reduction", "reduction"]}
       ins(%x, %w : tensor<?x64x80xf32>, tensor<64x80xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %v = arith.addf %out, %p : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#kept = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#row = affine_map<(d0, d1, d2) -> (d0, d1)>
// Two batch dimensions of run-time extent are one; the innermost keeps its static extent. A second call reads the first
// one's collapsed result, without expanding and collapsing it.
// CHECK-LABEL: func.func @batches
// CHECK-DAG: %[[X:.*]] = tensor.collapse_shape %arg0 {{\[\[}}0, 1], [2]]
// CHECK: %[[FIRST:.*]] = call @batches_0(%[[X]]) : (tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK: call @batches_0(%[[FIRST]])
// CHECK-DAG: %[[B:.*]] = tensor.dim %{{.*}}, %c0
// CHECK-DAG: %[[S:.*]] = tensor.dim %{{.*}}, %c1
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1], [2]] output_shape [%[[B]], %[[S]], 8]
// CHECK-LABEL: func.func private @batches_0(%arg0: tensor<?x8xf32>)
// CHECK-SAME: fuse.result_extents = array<i64: 0, 0>
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1]] output_shape [%{{.*}}, 1] : tensor<?xf32> into tensor<?x1xf32>
func.func @batches(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %0 = call @batches_0(%x) : (tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %1 = call @batches_0(%0) : (tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %1 : tensor<?x?x8xf32>
}
func.func private @batches_0(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0, 0, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %b = tensor.dim %x, %c0 : tensor<?x?x8xf32>
  %s = tensor.dim %x, %c1 : tensor<?x?x8xf32>
  %e = tensor.empty(%b, %s) : tensor<?x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x : tensor<?x?x8xf32>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?x?xf32>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [%b, %s, 1] : tensor<?x?xf32> into tensor<?x?x1xf32>
  %full = tensor.empty(%b, %s) : tensor<?x?x8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #kept, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x, %1 : tensor<?x?x8xf32>, tensor<?x?x1xf32>) outs(%full : tensor<?x?x8xf32>) {
  ^bb0(%a: f32, %t: f32, %out: f32):
    %v = arith.divf %a, %t : f32
    linalg.yield %v : f32
  } -> tensor<?x?x8xf32>
  return %2 : tensor<?x?x8xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// Inner dimensions that move together through a transpose are merged on both sides of it.
// CHECK-LABEL: func.func private @moved_0(%arg0: tensor<3x20xf32>) -> tensor<20x3xf32>
// CHECK: linalg.transpose {{.*}} permutation = [1, 0]
func.func @moved(%x: tensor<3x4x5xf32>) -> tensor<4x5x3xf32> {
  %0 = call @moved_0(%x) : (tensor<3x4x5xf32>) -> tensor<4x5x3xf32>
  return %0 : tensor<4x5x3xf32>
}
func.func private @moved_0(%x: tensor<3x4x5xf32>) -> tensor<4x5x3xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<4x5x3xf32>
  %0 = linalg.transpose ins(%x : tensor<3x4x5xf32>) outs(%e : tensor<4x5x3xf32>) permutation = [1, 2, 0]
  return %0 : tensor<4x5x3xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#row = affine_map<(d0, d1) -> (d0)>
// A bias has one of the dimensions only; a sum reduces one; a strided argument has gaps;
// and a schedule refers to the existing dimensions.
// expected-remark @below {{no neighbouring dimensions can be merged}}
func.func private @bias(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %b : tensor<4x8xf32>, tensor<8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %v = arith.addf %a, %c : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
// expected-remark @below {{no neighbouring dimensions can be merged}}
func.func private @sum(%x: tensor<?x8xf32>) -> tensor<?xf32> attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x8xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
// expected-remark @below {{no neighbouring dimensions can be merged}}
func.func private @strided(%x: tensor<4x8xf32> {fuse.strides = ["?", 1]}) -> tensor<4x8xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
// expected-remark @below {{its schedule refers to its dimensions as they are}}
func.func private @scheduled(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = {}} {
  return %x : tensor<4x8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
// Where nothing is reduced and one dimension is left, it may be of run-time extent: accesses are narrow at its end only.
// CHECK-LABEL: func.func private @run_0(%arg0: tensor<?xf32>) -> tensor<?xf32>
// CHECK-SAME: fuse.result_extents = array<i64: 0, 0>
func.func private @run_0(%x: tensor<?x33xf32>) -> tensor<?x33xf32> attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x33xf32>
  %e = tensor.empty(%m) : tensor<?x33xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<?x33xf32>) outs(%e : tensor<?x33xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<?x33xf32>
  return %0 : tensor<?x33xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#swapped = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
// An operand that an op uses only for its shape is replaced by another one, whatever the order of its axes. An argument
// that another op reads along the same dimensions stays, and ties the loops of the two ops.
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func private @unread_0(%arg0: tensor<?xf32>) -> tensor<?xf32>
// CHECK-SAME: fuse.result_extents = array<i64: 0, 0>
// CHECK: %[[SHAPE:.*]] = tensor.empty(%{{.*}}) : tensor<?xf32>
// CHECK: %[[TRUE:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[ID]], #[[ID]]], iterator_types = ["parallel"]}
// CHECK-SAME: ins(%[[SHAPE]], %arg0 : tensor<?xf32>, tensor<?xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[TRUE]], %arg0 : tensor<?xi1>, tensor<?xf32>)
func.func @unread(%x: tensor<?x3x4xf32>) -> tensor<?x3x4xf32> {
  %0 = call @unread_0(%x) : (tensor<?x3x4xf32>) -> tensor<?x3x4xf32>
  return %0 : tensor<?x3x4xf32>
}
func.func private @unread_0(%x: tensor<?x3x4xf32>) -> tensor<?x3x4xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x3x4xf32>
  %swapped = tensor.empty(%n) : tensor<?x4x3xf32>
  %bools = tensor.empty(%n) : tensor<?x3x4xi1>
  %0 = linalg.generic {indexing_maps = [#swapped, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%swapped, %x : tensor<?x4x3xf32>, tensor<?x3x4xf32>) outs(%bools : tensor<?x3x4xi1>) {
  ^bb0(%a: f32, %b: f32, %out: i1):
    %true = arith.constant true
    linalg.yield %true : i1
  } -> tensor<?x3x4xi1>
  %numbers = tensor.empty(%n) : tensor<?x3x4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%0, %x : tensor<?x3x4xi1>, tensor<?x3x4xf32>) outs(%numbers : tensor<?x3x4xf32>) {
  ^bb0(%a: i1, %b: f32, %out: f32):
    %zero = arith.constant 0.0 : f32
    %v = arith.select %a, %b, %zero : f32
    linalg.yield %v : f32
  } -> tensor<?x3x4xf32>
  return %1 : tensor<?x3x4xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// No input has the number of rows.
func.func @rows_of_zeros(%x: tensor<?x3x4xf32>) -> tensor<?x3x4xf32> {
  %0 = call @rows_of_zeros_0(%x) : (tensor<?x3x4xf32>) -> tensor<?x3x4xf32>
  return %0 : tensor<?x3x4xf32>
}
// expected-remark @below {{it reads nothing with one of its dynamic extents}}
func.func private @rows_of_zeros_0(%x: tensor<?x3x4xf32>) -> tensor<?x3x4xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x3x4xf32>
  %e = tensor.empty(%n) : tensor<?x3x4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x : tensor<?x3x4xf32>) outs(%e : tensor<?x3x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %zero = arith.constant 0.0 : f32
    linalg.yield %zero : f32
  } -> tensor<?x3x4xf32>
  return %0 : tensor<?x3x4xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// What is expected of merged dimensions is the product; nothing where nothing is expected of one of them.
// CHECK-LABEL: func.func private @hinted(%arg0: tensor<?xf32> {fuse.extent_hints = array<i64: 25600>}) -> tensor<?xf32>
// CHECK-LABEL: func.func private @partly(%arg0: tensor<?xf32> {fuse.extent_hints = array<i64: 0>}) -> tensor<?xf32>
func.func @host(%x: tensor<?x8x64xf32>, %y: tensor<?x?x64xf32>) -> (tensor<?x8x64xf32>, tensor<?x?x64xf32>) {
  %0 = call @hinted(%x) : (tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
  %1 = call @partly(%y) : (tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
  return %0, %1 : tensor<?x8x64xf32>, tensor<?x?x64xf32>
}
func.func private @hinted(%x: tensor<?x8x64xf32> {fuse.extent_hints = array<i64: 50, 0, 0>}) -> tensor<?x8x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x8x64xf32>
  %e = tensor.empty(%m) : tensor<?x8x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x : tensor<?x8x64xf32>) outs(%e : tensor<?x8x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<?x8x64xf32>
  return %0 : tensor<?x8x64xf32>
}
func.func private @partly(%x: tensor<?x?x64xf32> {fuse.extent_hints = array<i64: 50, 0, 0>}) -> tensor<?x?x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0, 0, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?x64xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?x64xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x : tensor<?x?x64xf32>) outs(%e : tensor<?x?x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<?x?x64xf32>
  return %0 : tensor<?x?x64xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// Halves of the rows of a contiguous array: batches and rows are one in memory, as the outer stride says.
// CHECK-LABEL: func.func @halves
// CHECK: %[[X:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0, 1], [2]] : tensor<?x?x8xf32> into tensor<?x8xf32>
// CHECK: call @halves_0(%[[X]])
// CHECK-LABEL: func.func private @halves_0
// CHECK-SAME: tensor<?x8xf32> {fuse.strides = [16, 1]}
func.func @halves(%x: tensor<?x?x16xf32>) -> tensor<?x?x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %x, %c0 : tensor<?x?x16xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?x16xf32>
  %half = tensor.extract_slice %x[0, 0, 8] [%b, %n, 8] [1, 1, 1] : tensor<?x?x16xf32> to tensor<?x?x8xf32>
  %0 = call @halves_0(%half) : (tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}
func.func private @halves_0(%x: tensor<?x?x8xf32> {fuse.strides = ["packed", 16, 1]}) -> tensor<?x?x8xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0, 0, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %x, %c0 : tensor<?x?x8xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?x8xf32>
  %e = tensor.empty(%b, %n) : tensor<?x?x8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x : tensor<?x?x8xf32>) outs(%e : tensor<?x?x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}
