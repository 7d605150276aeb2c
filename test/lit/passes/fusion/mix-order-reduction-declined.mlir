// RUN: mlirfuse-opt --fuse-mix-order-reduction --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#one = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
// The second kernel uses only an extent of x: no data are shared.
// CHECK-LABEL: func.func @extent_alone(
// CHECK: %[[R:.*]] = call @f_0(
// CHECK: call @f_1(%{{.*}}, %[[R]])
func.func @extent_alone(%x: tensor<?x64xf32>) -> (tensor<?xf32>, tensor<f32>) {
  %0 = call @f_0(%x) : (tensor<?x64xf32>) -> tensor<?xf32>
  %1 = call @f_1(%x, %0) : (tensor<?x64xf32>, tensor<?xf32>) -> tensor<f32>
  return %0, %1 : tensor<?xf32>, tensor<f32>
}
func.func private @f_0(%x: tensor<?x64xf32>) -> tensor<?xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x64xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @f_1(%x: tensor<?x64xf32>, %r: tensor<?xf32>) -> tensor<f32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %doubles = tensor.empty(%m) : tensor<?xf32>
  %double = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
       ins(%r : tensor<?xf32>) outs(%doubles : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  %e = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %0 = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
       ins(%double : tensor<?xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
// Every tile of the second kernel needs the first one's grid reduction.
// CHECK-LABEL: func.func @second_pass(
// CHECK: call @f_0(
// CHECK: call @f_1(
func.func @second_pass(%x: tensor<?x64xf32>) -> tensor<?xf32> {
  %0 = call @f_0(%x) : (tensor<?x64xf32>) -> tensor<64xf32>
  // expected-remark @below {{f_1 stays apart from f_0: it reduces a value that depends on a reduction over the grid, known at its end}}
  %1 = call @f_1(%x, %0) : (tensor<?x64xf32>, tensor<64xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
func.func private @f_0(%x: tensor<?x64xf32>) -> tensor<64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<?x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @f_1(%x: tensor<?x64xf32>, %t: tensor<64xf32>) -> tensor<?xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x, %t : tensor<?x64xf32>, tensor<64xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %v = arith.addf %out, %p : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// Both kernels reduce within rows: there is no grid reduction.
// CHECK-LABEL: func.func @rows_twice(
// CHECK: call @f_0(
// CHECK: call @f_1(
func.func @rows_twice(%x: tensor<?x64xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = call @f_0(%x) : (tensor<?x64xf32>) -> tensor<?xf32>
  // expected-remark @below {{f_1 stays apart from f_0: no reduction runs over the grid}}
  %1 = call @f_1(%x) : (tensor<?x64xf32>) -> tensor<?xf32>
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}
func.func private @f_0(%x: tensor<?x64xf32>) -> tensor<?xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x64xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @f_1(%x: tensor<?x64xf32>) -> tensor<?xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%one : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x64xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.mulf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
// No cluster holds a row with its accumulators on chip.
func.func @too_wide(%x: tensor<?x4000000xf32>) -> (tensor<?x4000000xf32>, tensor<4000000xf32>) {
  %0 = call @f_0(%x) : (tensor<?x4000000xf32>) -> tensor<?x4000000xf32>
  // expected-remark @below {{f_1 stays apart from f_0: no cluster of 8 holds a row of 4000000 elements with its accumulators}}
  %1 = call @f_1(%x) : (tensor<?x4000000xf32>) -> tensor<4000000xf32>
  return %0, %1 : tensor<?x4000000xf32>, tensor<4000000xf32>
}
func.func private @f_0(%x: tensor<?x4000000xf32>) -> tensor<?x4000000xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x4000000xf32>
  %e = tensor.empty(%m) : tensor<?x4000000xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<?x4000000xf32>) outs(%e : tensor<?x4000000xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.negf %a : f32
    linalg.yield %v : f32
  } -> tensor<?x4000000xf32>
  return %0 : tensor<?x4000000xf32>
}
func.func private @f_1(%x: tensor<?x4000000xf32>) -> tensor<4000000xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4000000xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4000000xf32>) -> tensor<4000000xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<?x4000000xf32>) outs(%init : tensor<4000000xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<4000000xf32>
  return %0 : tensor<4000000xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
// The second kernel reads a result of the first through a view of the host.
func.func @host_between(%x: tensor<64x256xf32>) -> (tensor<64x256xf32>, tensor<64xf32>) {
  %0 = call @f_0(%x) : (tensor<64x256xf32>) -> tensor<64x256xf32>
  %v = tensor.expand_shape %0 [[0], [1, 2]] output_shape [64, 256, 1] : tensor<64x256xf32> into tensor<64x256x1xf32>
  // expected-remark @below {{f_1 stays apart from f_0: the host computes on values that pass from one kernel to the other}}
  %1 = call @f_1(%x, %v) : (tensor<64x256xf32>, tensor<64x256x1xf32>) -> tensor<64xf32>
  return %0, %1 : tensor<64x256xf32>, tensor<64xf32>
}
func.func private @f_0(%x: tensor<64x256xf32>) -> tensor<64x256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<64x256xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<64x256xf32>) outs(%e : tensor<64x256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.negf %a : f32
    linalg.yield %s : f32
  } -> tensor<64x256xf32>
  return %0 : tensor<64x256xf32>
}
func.func private @f_1(%x: tensor<64x256xf32>, %v: tensor<64x256x1xf32>) -> tensor<64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#id, affine_map<(d0, d1) -> (d0, d1, 0)>, affine_map<(d0, d1) -> (d0)>],
                       iterator_types = ["parallel", "reduction"]}
       ins(%x, %v : tensor<64x256xf32>, tensor<64x256x1xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// A kernel with two launches is not merged.
#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @launched_twice
// CHECK: call @twice_0
// CHECK: call @twice_1
// CHECK: call @twice_0
func.func @launched_twice(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<64xf32>) {
  %0 = call @twice_0(%x) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %1 = call @twice_1(%0) : (tensor<?x64xf32>) -> tensor<64xf32>
  %2 = call @twice_0(%0) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  return %2, %1 : tensor<?x64xf32>, tensor<64xf32>
}
func.func private @twice_0(%x: tensor<?x64xf32>) -> tensor<?x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
func.func private @twice_1(%x: tensor<?x64xf32>) -> tensor<64xf32> attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<?x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
// Shapes that divide the data into different rows have no dimensions in common.
func.func @other_rows(%x: tensor<64x256xf32>) -> (tensor<256xf32>, tensor<256xf32>) attributes {fuse.mix_order = "fused"} {
  %0 = call @f_0(%x) : (tensor<64x256xf32>) -> tensor<256xf32>
  %c = tensor.collapse_shape %x [[0, 1]] : tensor<64x256xf32> into tensor<16384xf32>
  %v = tensor.expand_shape %c [[0, 1]] output_shape [256, 64] : tensor<16384xf32> into tensor<256x64xf32>
  // expected-error @below {{mix-order fusion was asked for, but f_1 stays apart from f_0: it reads 64 x 256 elements as 256 x 64, and an op of a kernel does not allow its dimensions of 64 x 256 to be merged}}
  %1 = call @f_1(%v) : (tensor<256x64xf32>) -> tensor<256xf32>
  return %0, %1 : tensor<256xf32>, tensor<256xf32>
}
func.func private @f_0(%x: tensor<64x256xf32>) -> tensor<256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<64x256xf32>) outs(%init : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  return %0 : tensor<256xf32>
}
func.func private @f_1(%x: tensor<256x64xf32>) -> tensor<256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<256x64xf32>) outs(%init : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  return %0 : tensor<256xf32>
}
