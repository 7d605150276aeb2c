// RUN: mlirfuse-opt --fuse-assign-schedule --target=sm_90a --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#pixels = affine_map<(d0, d1, d2, d3, d4) -> (d3, d4, d0)>
#taps = affine_map<(d0, d1, d2, d3, d4) -> (d3, d4, d0, d1, d2)>
#sums = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>
// Sums for each channel and tap over windows that slide: a thread has a run of neighbours, which divides the extent, and
// all five taps; blocks take consecutive tiles.
// CHECK-LABEL: func.func private @slides
// CHECK-SAME: repeats = array<i64: 1, {{[2-9]|1[0-9]}}, 1, 5>
// CHECK-SAME: persistent_loop = {{{.*}}consecutive = true, dims = array<i64: 0, 1>
func.func private @slides(%dy: tensor<256x1024x96xf16>, %x: tensor<256x1024x96x5x1xf16> {fuse.align = 16 : i64, fuse.gather = {basis = array<i64: 256, 1024, 96, 5, 1>, map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 + d3 - 2, d2 + d4)>, ranks = array<i64: 1, 1, 1, 1, 1>, source = tensor<256x1024x96xf16>}, fuse.strides = [96, 96, 1, 96, 96]}) -> tensor<96x5x1xf32> attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<96x5x1xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<96x5x1xf32>) -> tensor<96x5x1xf32>
  %0 = linalg.generic {indexing_maps = [#pixels, #taps, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
       ins(%dy, %x : tensor<256x1024x96xf16>, tensor<256x1024x96x5x1xf16>) outs(%init : tensor<96x5x1xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %c = arith.extf %a : f16 to f32
    %d = arith.extf %b : f16 to f32
    %p = arith.mulf %c, %d fastmath<contract> : f32
    %v = arith.addf %out, %p : f32
    linalg.yield %v : f32
  } -> tensor<96x5x1xf32>
  return %0 : tensor<96x5x1xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
// Columns without windows: tiles are dealt out.
// CHECK-LABEL: func.func private @columns
// CHECK-NOT: consecutive = true
func.func private @columns(%x: tensor<65536x256xf32>) -> tensor<256xf32> attributes {fuse.kernel} {
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
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>}
#second_stage = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// expected-error @below {{the schedule of staged is illegal: a block takes consecutive tiles with one stage and no peeled loop only}}
func.func private @staged(%x: tensor<65536x256xf32>) -> tensor<256xf32> attributes {fuse.kernel,
    fuse.schedule = {tile = array<i64: 2, 256>, layout = #layout, persistent_loop = {dims = array<i64: 0>, grid_reduction = "grid_sync", stages = 2 : i64, consecutive = true, second_stage_tile = array<i64: 8, 32>, second_stage_layout = #second_stage}}} {
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
