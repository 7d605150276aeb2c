// RUN: mlirfuse-opt --fuse-mix-order-reduction --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
// One kernel reduces x along rows, one over rows: merged they read x once.
// CHECK-LABEL: func.func @shared_input(
// CHECK: %[[R:.*]]:2 = call @f_0(%{{.*}}) : (tensor<?x64xf32>) -> (tensor<?xf32>, tensor<64xf32>)
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1
// CHECK-LABEL: func.func private @f_0(
// CHECK-SAME: {fuse.align = 16 : i64, fuse.name = "x"}) -> (tensor<?xf32>, tensor<64xf32>)
// CHECK-SAME: fuse.kernel, fuse.result_extents = array<i64: 0, 0>
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: iterator_types = ["reduction", "parallel"]
// CHECK-NOT: func.func private @f_1
func.func @shared_input(%x: tensor<?x64xf32> {fuse.align = 16 : i64, fuse.name = "x"}) -> (tensor<?xf32>, tensor<64xf32>) {
  %0 = call @f_0(%x) : (tensor<?x64xf32>) -> tensor<?xf32>
  // expected-remark @below {{f_1 joins f_0: 4 bytes an element saved}}
  %1 = call @f_1(%x) : (tensor<?x64xf32>) -> tensor<64xf32>
  return %0, %1 : tensor<?xf32>, tensor<64xf32>
}
func.func private @f_0(%x: tensor<?x64xf32> {fuse.align = 16 : i64, fuse.name = "x"}) -> tensor<?xf32>
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
func.func private @f_1(%x: tensor<?x64xf32> {fuse.align = 16 : i64, fuse.name = "x"}) -> tensor<64xf32>
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

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
// A result of the first kernel that only the second reads is no longer stored.
// CHECK-LABEL: func.func @producer(
// CHECK: call @f_0(%{{.*}}) : (tensor<?x64xf32>) -> tensor<64xf32>
// CHECK-LABEL: func.func private @f_0(
// CHECK: %[[E:.*]] = linalg.generic {{.*}}["parallel", "parallel"]
// CHECK: linalg.generic {{.*}}["reduction", "parallel"]} ins(%[[E]] : tensor<?x64xf32>)
func.func @producer(%x: tensor<?x64xf32>) -> tensor<64xf32> {
  %0 = call @f_0(%x) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  // expected-remark @below {{f_1 joins f_0}}
  %1 = call @f_1(%0) : (tensor<?x64xf32>) -> tensor<64xf32>
  return %1 : tensor<64xf32>
}
func.func private @f_0(%x: tensor<?x64xf32>) -> tensor<?x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.mulf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
func.func private @f_1(%x: tensor<?x64xf32>) -> tensor<64xf32>
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

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
// A view of the first kernel's result moves behind the call of the merged kernel.
// CHECK-LABEL: func.func @early_view(
// CHECK: %[[R:.*]]:2 = call @f_0(%{{.*}}) : (tensor<65536x256xf32>) -> (tensor<65536xf32>, tensor<256xf32>)
// CHECK-NEXT: %[[V:.*]] = tensor.expand_shape %[[R]]#0
// CHECK-NEXT: return %[[V]], %[[R]]#1
func.func @early_view(%x: tensor<65536x256xf32>) -> (tensor<65536x1xf32>, tensor<256xf32>) {
  %0 = call @f_0(%x) : (tensor<65536x256xf32>) -> tensor<65536xf32>
  %v = tensor.expand_shape %0 [[0, 1]] output_shape [65536, 1] : tensor<65536xf32> into tensor<65536x1xf32>
  %1 = call @f_1(%x) : (tensor<65536x256xf32>) -> tensor<256xf32>
  return %v, %1 : tensor<65536x1xf32>, tensor<256xf32>
}
func.func private @f_0(%x: tensor<65536x256xf32>) -> tensor<65536xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<65536xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<65536xf32>) -> tensor<65536xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<65536x256xf32>) outs(%init : tensor<65536xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<65536xf32>
  return %0 : tensor<65536xf32>
}
func.func private @f_1(%x: tensor<65536x256xf32>) -> tensor<256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<65536x256xf32>) outs(%init : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  return %0 : tensor<256xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#row3 = affine_map<(d0, d1, d2) -> (d0, d1)>
// The host reshapes the shared data: both kernels run over rows, batches collapsed, and the sums are expanded again.
// CHECK-LABEL: func.func @reshaped(
// CHECK-SAME: %[[X:.*]]: tensor<?x16x64xf32>
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0, 1], [2]] : tensor<?x16x64xf32> into tensor<?x64xf32>
// CHECK-NOT: tensor.collapse_shape
// CHECK: %[[R:.*]]:2 = call @f_0(%[[ROWS]]) : (tensor<?x64xf32>) -> (tensor<?xf32>, tensor<64xf32>)
// CHECK: tensor.expand_shape %[[R]]#0 {{\[\[}}0, 1]]
// CHECK-LABEL: func.func private @f_0(
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: iterator_types = ["reduction", "parallel"]
// CHECK-NOT: func.func private @f_1
func.func @reshaped(%x: tensor<?x16x64xf32>) -> (tensor<?x16xf32>, tensor<64xf32>) {
  %0 = call @f_0(%x) : (tensor<?x16x64xf32>) -> tensor<?x16xf32>
  %v = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x16x64xf32> into tensor<?x64xf32>
  // expected-remark @below {{f_1 joins f_0: 4 bytes an element saved}}
  %1 = call @f_1(%v) : (tensor<?x64xf32>) -> tensor<64xf32>
  return %0, %1 : tensor<?x16xf32>, tensor<64xf32>
}
func.func private @f_0(%x: tensor<?x16x64xf32>) -> tensor<?x16xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x16x64xf32>
  %e = tensor.empty(%m) : tensor<?x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x16xf32>) -> tensor<?x16xf32>
  %0 = linalg.generic {indexing_maps = [#id3, #row3], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x : tensor<?x16x64xf32>) outs(%init : tensor<?x16xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?x16xf32>
  return %0 : tensor<?x16xf32>
}
func.func private @f_1(%x: tensor<?x64xf32>) -> tensor<64xf32>
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
