// RUN: mlirfuse-opt --fuse-segment --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id2 = affine_map<(d0, d1) -> (d0, d1)>
#id = affine_map<(d0) -> (d0)>
// A reshape that merges extents is a view on the host, between two kernels.
// CHECK-LABEL: func.func @reshape(
// CHECK: %[[A:.*]] = call @reshape_0
// CHECK: %[[B:.*]] = tensor.collapse_shape %[[A]]
// CHECK: call @reshape_1(%[[B]])
func.func @reshape(%x: tensor<32x64xf32>) -> tensor<2048xf32> {
  %e = tensor.empty() : tensor<32x64xf32>
  %0 = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<32x64xf32>
  %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<32x64xf32> into tensor<2048xf32>
  %e1 = tensor.empty() : tensor<2048xf32>
  // expected-remark @below {{it reads its producer's result reshaped to other dimensions, which takes the result in memory}}
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
       ins(%1 : tensor<2048xf32>) outs(%e1 : tensor<2048xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.log %a : f32
    linalg.yield %v : f32
  } -> tensor<2048xf32>
  return %2 : tensor<2048xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// What is only returned transposed, or with a dimension of extent 1, is a view: the kernels write what they compute.
// A reshape of a transposed value needs a kernel that writes the transposed value.
// CHECK-LABEL: func.func @final_views
// CHECK: %[[K:.*]]:2 = call @final_views_0(
// CHECK-DAG: linalg.transpose ins(%[[K]]#0
// CHECK-DAG: tensor.expand_shape %[[K]]#1
// CHECK: return
// CHECK-LABEL: func.func @no_view
// CHECK: %[[T:.*]] = call @no_view_0(%{{.*}}) : (tensor<4x8xf32>) -> tensor<8x4xf32>
// CHECK: tensor.collapse_shape %[[T]]
func.func @final_views(%x: tensor<4x8xf32>) -> (tensor<8x4xf32>, tensor<4x1xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %r = tensor.empty() : tensor<4xf32>
  %t = tensor.empty() : tensor<8x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%r : tensor<4xf32>) -> tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%0 : tensor<4x8xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %v = arith.addf %sum, %a : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %2 = linalg.transpose ins(%0 : tensor<4x8xf32>) outs(%t : tensor<8x4xf32>) permutation = [1, 0]
  %3 = tensor.expand_shape %1 [[0, 1]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
  return %2, %3 : tensor<8x4xf32>, tensor<4x1xf32>
}
func.func @no_view(%x: tensor<4x8xf32>) -> tensor<32xf32> {
  %t = tensor.empty() : tensor<8x4xf32>
  %0 = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%t : tensor<8x4xf32>) permutation = [1, 0]
  %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<8x4xf32> into tensor<32xf32>
  return %1 : tensor<32xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>
func.func @strided(%x: tensor<4x8xf32> {fuse.strides = ["?", 1]}) -> tensor<32xf32> {
  // expected-error @below {{a reshape of an argument that is not contiguous would need a copy}}
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  %e = tensor.empty() : tensor<32xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
       ins(%0 : tensor<32xf32>) outs(%e : tensor<32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<32xf32>
  return %1 : tensor<32xf32>
}

// -----

// The kernel of a split argument gets its strides where they are static; those of a dynamic extent are packed.
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-LABEL: func.func private @heads_0
// CHECK-SAME: tensor<?x2x4xf16> {fuse.align = 16 : i64, fuse.strides = ["negative", 4, 1]}
func.func @heads(%x: tensor<?x8xf16> {fuse.strides = ["negative", 1]}, %e: tensor<?x2x4xf16>) -> tensor<?x2x4xf16> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x8xf16>
  %0 = tensor.expand_shape %x [[0], [1, 2]] output_shape [%m, 2, 4] : tensor<?x8xf16> into tensor<?x2x4xf16>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%0 : tensor<?x2x4xf16>) outs(%e : tensor<?x2x4xf16>) {
  ^bb0(%a: f16, %out: f16):
    %v = math.exp %a : f16
    linalg.yield %v : f16
  } -> tensor<?x2x4xf16>
  return %1 : tensor<?x2x4xf16>
}

// -----

// Indexing maps that repeat a loop, or select some elements, are no accesses of tiles.
#diagonal = affine_map<(d0) -> (d0, d0)>
#one = affine_map<(d0) -> (d0)>
func.func @diagonal(%x: tensor<32x32xf32>) -> tensor<32xf32> {
  %e = tensor.empty() : tensor<32xf32>
  // expected-error @below {{indexing map affine_map<(d0) -> (d0, d0)> is not a projection of its loops}}
  %0 = linalg.generic {indexing_maps = [#diagonal, #one], iterator_types = ["parallel"]}
       ins(%x : tensor<32x32xf32>) outs(%e : tensor<32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<32xf32>
  return %0 : tensor<32xf32>
}

// -----

#first = affine_map<(d0) -> (d0, 0)>
#one = affine_map<(d0) -> (d0)>
func.func @first_column(%x: tensor<8x64xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  // expected-error @below {{only the first element along axis 1 of tensor<8x64xf32> is read}}
  %0 = linalg.generic {indexing_maps = [#first, #one], iterator_types = ["parallel"]}
       ins(%x : tensor<8x64xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A view of a later kernel's result exists only after that kernel: its reader joins no earlier kernel.
// CHECK-LABEL: func.func @reads_a_later_view_too(
// CHECK-COUNT-4: call @reads_a_later_view_too_
// CHECK-NOT: call
#id = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0) -> (d0)>
func.func @reads_a_later_view_too(%x: tensor<32x64xf32>, %y: tensor<32x64xf32>, %z: tensor<2048xf32>)
    -> tensor<32x64xf32> {
  %e = tensor.empty() : tensor<32x64xf32>
  %f = tensor.empty() : tensor<2048xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<32x64xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%y : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<32x64xf32>
  %2 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
       ins(%z : tensor<2048xf32>) outs(%f : tensor<2048xf32>) {
  ^bb0(%v: f32, %out: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<2048xf32>
  %view = tensor.expand_shape %2 [[0, 1]] output_shape [32, 64] : tensor<2048xf32> into tensor<32x64xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0, %1, %view : tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32, %out: f32):
    %r = math.fma %u, %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<32x64xf32>
  return %3 : tensor<32x64xf32>
}

// -----

#diagonal = affine_map<(d0, d1) -> (d1, d0, d1)>
#id = affine_map<(d0, d1) -> (d0, d1)>

// A diagonal is a view of the host's: its kernel reads it by the sum of the strides.
// CHECK-LABEL: func.func @diagonal(
// CHECK: %[[VIEW:.*]] = linalg.generic
// CHECK: call @diagonal_0(%[[VIEW]]) : (tensor<3x4xf32>) -> tensor<3x4xf32>
// CHECK-LABEL: func.func private @diagonal_0(%{{.*}}: tensor<3x4xf32> {fuse.align = 16 : i64, fuse.strides = [4, 13]})
func.func @diagonal(%x: tensor<4x3x4xf32>) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<3x4xf32>
  %0 = linalg.generic {indexing_maps = [#diagonal, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<4x3x4xf32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<3x4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%0 : tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}

// -----

#broadcast = affine_map<(d0, d1, d2) -> (d1, d2)>
#cube = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#diagonal = affine_map<(d0) -> (d0, d0)>
#line = affine_map<(d0) -> (d0)>

// Views of an argument, and views of them, have no kernel.
// CHECK-LABEL: func.func @only_views(
// CHECK-NOT: call
// CHECK: return
// CHECK-NOT: func.func private
// expected-remark @below {{no op to put into a kernel}}
func.func @only_views(%x: tensor<8x6xf32>) -> (tensor<3x8xf32>, tensor<2x8x6xf32>, tensor<6xf32>, tensor<2x4x6xf32>) {
  %e0 = tensor.empty() : tensor<6x8xf32>
  %t = linalg.transpose ins(%x : tensor<8x6xf32>) outs(%e0 : tensor<6x8xf32>) permutation = [1, 0]
  %s = tensor.extract_slice %t[5, 0] [3, 8] [-2, 1] : tensor<6x8xf32> to tensor<3x8xf32>
  %e1 = tensor.empty() : tensor<2x8x6xf32>
  %b = linalg.generic {indexing_maps = [#broadcast, #cube], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x : tensor<8x6xf32>) outs(%e1 : tensor<2x8x6xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<2x8x6xf32>
  %part = tensor.extract_slice %x[1, 0] [6, 6] [1, 1] : tensor<8x6xf32> to tensor<6x6xf32>
  %e2 = tensor.empty() : tensor<6xf32>
  %d = linalg.generic {indexing_maps = [#diagonal, #line], iterator_types = ["parallel"]}
       ins(%part : tensor<6x6xf32>) outs(%e2 : tensor<6xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<6xf32>
  %split = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 4, 6] : tensor<8x6xf32> into tensor<2x4x6xf32>
  return %s, %b, %d, %split : tensor<3x8xf32>, tensor<2x8x6xf32>, tensor<6xf32>, tensor<2x4x6xf32>
}

// -----

#line = affine_map<(d0) -> (d0)>

// A reversed slice has strides that are known, and negative.
// CHECK-LABEL: func.func @reversed(
// CHECK-LABEL: func.func private @reversed_0(%{{.*}}: tensor<?x16xf32> {fuse.align = 4 : i64, fuse.strides = [16, -1]}
// CHECK-SAME:    %{{.*}}: tensor<?x16xf32> {fuse.align = 4 : i64, fuse.strides = [-32, -2]}
#plane = affine_map<(d0, d1) -> (d0, d1)>
func.func @reversed(%x: tensor<?x16xf32>, %y: tensor<?x32xf32>, %n: index, %last: index, %e: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %s = tensor.extract_slice %x[0, 15] [%n, 16] [1, -1] : tensor<?x16xf32> to tensor<?x16xf32>
  %t = tensor.extract_slice %y[%last, 31] [%n, 16] [-1, -2] : tensor<?x32xf32> to tensor<?x16xf32>
  %0 = linalg.generic {indexing_maps = [#plane, #plane, #plane], iterator_types = ["parallel", "parallel"]} ins(%s, %t : tensor<?x16xf32>, tensor<?x16xf32>) outs(%e : tensor<?x16xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.addf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<?x16xf32>
  return %0 : tensor<?x16xf32>
}

// -----

#line = affine_map<(d0) -> (d0)>

// A kernel reads a slice as a strided argument, whose start lowers the alignment.
// CHECK-LABEL: func.func @sliced(
// CHECK: %[[S:.*]] = tensor.extract_slice %arg0
// CHECK: call @sliced_0(%[[S]])
// CHECK-LABEL: func.func private @sliced_0(%{{.*}}: tensor<10xf32> {fuse.align = 8 : i64, fuse.strides = [3]})
func.func @sliced(%x: tensor<40xf32>) -> tensor<10xf32> {
  %s = tensor.extract_slice %x[2] [10] [3] : tensor<40xf32> to tensor<10xf32>
  %e = tensor.empty() : tensor<10xf32>
  %0 = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]} ins(%s : tensor<10xf32>) outs(%e : tensor<10xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<10xf32>
  return %0 : tensor<10xf32>
}

// -----

// A dimension of one element that is only merged with others again: the kernel's result has it not.
// CHECK-LABEL: func.func @unit_dimension(
// CHECK: %[[Y:.*]] = call @unit_dimension_0(%{{.*}}) : (tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK: %[[D:.*]] = tensor.expand_shape %[[Y]]
// CHECK: %[[F:.*]] = tensor.collapse_shape %[[D]]
// CHECK: call @unit_dimension_1(%[[F]])
func.func @unit_dimension(%x: tensor<8x4xf32>) -> tensor<32xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%v: f32, %out: f32):
    %q = math.exp %v : f32
    linalg.yield %q : f32
  } -> tensor<8x4xf32>
  %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [1, 8, 4] : tensor<8x4xf32> into tensor<1x8x4xf32>
  %2 = tensor.collapse_shape %1 [[0, 1, 2]] : tensor<1x8x4xf32> into tensor<32xf32>
  %f = tensor.empty() : tensor<32xf32>
  // expected-remark @below {{starts a kernel of its own}}
  %3 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%2 : tensor<32xf32>) outs(%f : tensor<32xf32>) {
  ^bb0(%v: f32, %out: f32):
    %q = arith.negf %v : f32
    linalg.yield %q : f32
  } -> tensor<32xf32>
  return %3 : tensor<32xf32>
}
