// RUN: mlirfuse-opt --fuse-mix-order-reduction --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
// The caller may ask for separate kernels.
// CHECK-LABEL: func.func @apart(
// CHECK: call @f_0(
// CHECK: call @f_1(
// expected-remark @below {{the caller asked for separate kernels (split)}}
func.func @apart(%x: tensor<?x64xf32> {fuse.align = 16 : i64, fuse.name = "x"}) -> (tensor<?xf32>, tensor<64xf32>)
    attributes {fuse.mix_order = "split"} {
  %0 = call @f_0(%x) : (tensor<?x64xf32>) -> tensor<?xf32>
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
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
// Where the requested fusion is impossible, an error gives the reason.
func.func @impossible(%x: tensor<?x64xf32>) -> tensor<?xf32> attributes {fuse.mix_order = "fused"} {
  %0 = call @f_0(%x) : (tensor<?x64xf32>) -> tensor<64xf32>
  // expected-error @below {{mix-order fusion was asked for, but f_1 stays apart from f_0: it reduces a value that depends on a reduction over the grid, known at its end}}
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
#col = affine_map<(d0, d1) -> (d1)>
// expected-error @below {{fuse.mix_order is 'always'}}
func.func @unknown(%x: tensor<?x64xf32> {fuse.align = 16 : i64, fuse.name = "x"}) -> (tensor<?xf32>, tensor<64xf32>)
    attributes {fuse.mix_order = "always"} {
  %0 = call @f_0(%x) : (tensor<?x64xf32>) -> tensor<?xf32>
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
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A schedule that was given for one block a tile is not overruled.
// CHECK-LABEL: func.func @given_schedule(
// CHECK: call @f_0
// CHECK: call @f_1
func.func @given_schedule(%x: tensor<?x256xf32>) -> (tensor<?xf32>, tensor<256xf32>) {
  %0 = call @f_0(%x) : (tensor<?x256xf32>) -> tensor<?xf32>
  // expected-remark @below {{f_1 stays apart from f_0: the schedule of f_0 has no persistent loop}}
  %1 = call @f_1(%x) : (tensor<?x256xf32>) -> tensor<256xf32>
  return %0, %1 : tensor<?xf32>, tensor<256xf32>
}
func.func private @f_0(%x: tensor<?x256xf32>) -> tensor<?xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x256xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x256xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @f_1(%x: tensor<?x256xf32>) -> tensor<256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<?x256xf32>) outs(%init : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  return %0 : tensor<256xf32>
}

// -----

// expected-error @below {{fuse.mix_order is 'sometimes'}}
func.func @unknown_request(%x: tensor<?x256xf32>) -> tensor<?x256xf32> attributes {fuse.mix_order = "sometimes"} {
  %0 = call @f_0(%x) : (tensor<?x256xf32>) -> tensor<?x256xf32>
  return %0 : tensor<?x256xf32>
}
func.func private @f_0(%x: tensor<?x256xf32>) -> tensor<?x256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  return %x : tensor<?x256xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
// A request for one kernel overrides the cost model.
// CHECK-LABEL: func.func @few_long_rows_asked_for(
// CHECK: call @f_0(%{{.*}}) : (tensor<8x65536xf16>) -> (tensor<8xf16>, tensor<65536xf16>)
// CHECK-NOT: call
func.func @few_long_rows_asked_for(%x: tensor<8x65536xf16>) -> (tensor<8xf16>, tensor<65536xf16>) attributes {fuse.mix_order = "fused"} {
  %0 = call @f_0(%x) : (tensor<8x65536xf16>) -> tensor<8xf16>
  // expected-remark @below {{f_1 joins f_0: 2 bytes an element saved}}
  %1 = call @f_1(%x) : (tensor<8x65536xf16>) -> tensor<65536xf16>
  return %0, %1 : tensor<8xf16>, tensor<65536xf16>
}
func.func private @f_0(%x: tensor<8x65536xf16>) -> tensor<8xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<8xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e : tensor<8xf16>) -> tensor<8xf16>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<8x65536xf16>) outs(%init : tensor<8xf16>) {
  ^bb0(%a: f16, %out: f16):
    %v = arith.addf %out, %a : f16
    linalg.yield %v : f16
  } -> tensor<8xf16>
  return %0 : tensor<8xf16>
}
func.func private @f_1(%x: tensor<8x65536xf16>) -> tensor<65536xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<65536xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e : tensor<65536xf16>) -> tensor<65536xf16>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<8x65536xf16>) outs(%init : tensor<65536xf16>) {
  ^bb0(%a: f16, %out: f16):
    %v = arith.addf %out, %a : f16
    linalg.yield %v : f16
  } -> tensor<65536xf16>
  return %0 : tensor<65536xf16>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
// Where fusion is off, two calls that reduce one array are two kernels.
// CHECK-LABEL: func.func @two_operations(
// CHECK: call @f_0(
// CHECK: call @f_1(
func.func @two_operations(%x: tensor<?x64xf32> {fuse.align = 16 : i64, fuse.name = "x"}) -> (tensor<?xf32>, tensor<64xf32>) {
  %0 = call @f_0(%x) : (tensor<?x64xf32>) -> tensor<?xf32>
  // expected-remark @below {{f_1 stays apart from f_0: fusion is off}}
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
       ins(%x : tensor<?x64xf32>) outs(%init : tensor<?xf32>) attrs = {fuse.operation = 0 : i64} {
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
       ins(%x : tensor<?x64xf32>) outs(%init : tensor<64xf32>) attrs = {fuse.operation = 1 : i64} {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
