// RUN: mlirfuse-opt --fuse-assign-schedule --target=sm_90a --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d1, d2)>
#ab = affine_map<(d0, d1, d2) -> (d0, d1)>
// Distances of pairs of rows: a thread has a tile of them, and single elements along the rows, which are dimension 1.
// CHECK-LABEL: func.func private @distances
// CHECK-SAME: repeats = array<i64: {{[2-9]|1[0-9]}}, 1, {{[2-9]|1[0-9]}}>, vector = array<i64: 1, 1, 1>
// CHECK-SAME: persistence = "multi_pass"
func.func private @distances(%x: tensor<1024x256xf32>, %y: tensor<4096x256xf32>) -> tensor<1024x4096xf32> attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024x4096xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1024x4096xf32>) -> tensor<1024x4096xf32>
  %0 = linalg.generic {indexing_maps = [#a, #b, #ab], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %y : tensor<1024x256xf32>, tensor<4096x256xf32>) outs(%init : tensor<1024x4096xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %d = arith.subf %p, %q : f32
    %m = math.absf %d : f32
    %v = arith.addf %out, %m : f32
    linalg.yield %v : f32
  } -> tensor<1024x4096xf32>
  return %0 : tensor<1024x4096xf32>
}

// -----

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#b = affine_map<(d0, d1, d2) -> (d1, d2)>
#ab = affine_map<(d0, d1, d2) -> (d0, d1)>
// One array varies along the whole space, and memory bounds its sums: vectors along the rows.
// CHECK-LABEL: func.func private @rows
// CHECK-SAME: vector = array<i64: 1, 1, {{[2-8]}}>
func.func private @rows(%x: tensor<64x1024x256xf32>, %y: tensor<1024x256xf32>) -> tensor<64x1024xf32> attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %0 = linalg.generic {indexing_maps = [#all, #b, #ab], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %y : tensor<64x1024x256xf32>, tensor<1024x256xf32>) outs(%init : tensor<64x1024xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %d = arith.subf %p, %q : f32
    %m = math.absf %d : f32
    %v = arith.addf %out, %m : f32
    linalg.yield %v : f32
  } -> tensor<64x1024xf32>
  return %0 : tensor<64x1024xf32>
}

// -----

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d1, d2)>
#ab = affine_map<(d0, d1, d2) -> (d0, d1)>
#layout = {vector = array<i64: 1, 1, 1>, lanes = array<i64: 2, 2, 8>, warps = array<i64: 2, 2, 1>, repeats = array<i64: 4, 4, 1>, blocks = array<i64: 1, 1, 1>}
// expected-error @below {{the schedule of uncovered is illegal: layout covers 16 of the tile's 32 elements in dimension 1}}
func.func private @uncovered(%x: tensor<1024x256xf32>, %y: tensor<4096x256xf32>) -> tensor<1024x4096xf32> attributes {fuse.kernel,
    fuse.schedule = {tile = array<i64: 16, 32, 8>, layout = #layout, persistence = "multi_pass"}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024x4096xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1024x4096xf32>) -> tensor<1024x4096xf32>
  %0 = linalg.generic {indexing_maps = [#a, #b, #ab], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %y : tensor<1024x256xf32>, tensor<4096x256xf32>) outs(%init : tensor<1024x4096xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %d = arith.subf %p, %q : f32
    %m = math.absf %d : f32
    %v = arith.addf %out, %m : f32
    linalg.yield %v : f32
  } -> tensor<1024x4096xf32>
  return %0 : tensor<1024x4096xf32>
}
