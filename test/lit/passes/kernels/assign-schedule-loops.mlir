// RUN: mlirfuse-opt --fuse-assign-schedule --target=sm_90a --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0) -> (d0)>
#one = affine_map<(d0) -> ()>
// A row that no cluster holds is looped over by the whole grid.
// CHECK-LABEL: func.func private @looped
// CHECK-SAME: fuse.schedule = {{{.*}}persistent_loop = {{{.*}}dims = array<i64: 0>{{.*}}grid_reduction = "{{[a-z_]+}}"{{.*}}tile = array<i64: 4096>
func.func private @looped(%x: tensor<1048577xf32>) -> tensor<f32> attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %0 = linalg.generic {indexing_maps = [#id, #one], iterator_types = ["reduction"]}
       ins(%x : tensor<1048577xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
// The host function may ask for the second stage of a persistent loop; a second kernel combines a partial of each of so
// many blocks.
// CHECK-LABEL: func.func private @asked_0(
// CHECK-SAME: persistent_loop = {blocks = {{[0-9]+}} : i64, {{.*}}grid_reduction = "second_kernel"
func.func @asked(%x: tensor<?x256xf32>) -> tensor<256xf32> attributes {fuse.grid_reduction = "second_kernel"} {
  %0 = call @asked_0(%x) : (tensor<?x256xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}
func.func private @asked_0(%x: tensor<?x256xf32>) -> tensor<256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %sum = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<?x256xf32>) outs(%init : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  return %sum : tensor<256xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
// Atomic additions leave a few rows of sums, over which all threads of the block that reads them are spread.
// CHECK-LABEL: func.func private @added_0(
// CHECK-SAME: grid_reduction = "atomics", {{.*}}second_stage_reads = 8 : i64, second_stage_tile = array<i64: 1, 256>
func.func @added(%x: tensor<?x256xf32>) -> tensor<256xf32> attributes {fuse.grid_reduction = "atomics"} {
  %0 = call @added_0(%x) : (tensor<?x256xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}
func.func private @added_0(%x: tensor<?x256xf32>) -> tensor<256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %sum = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<?x256xf32>) outs(%init : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  return %sum : tensor<256xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
// A single row has no persistent loop, and no partials to combine.
// CHECK-LABEL: func.func private @one_row_0(
// CHECK-NOT: persistent_loop
// CHECK: linalg.generic
func.func @one_row(%x: tensor<1x256xf32>) -> tensor<256xf32> attributes {fuse.grid_reduction = "last_block"} {
  %0 = call @one_row_0(%x) : (tensor<1x256xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}
// expected-remark @below {{grid_reduction='last_block' has nothing to combine: one_row_0 reduces over an extent of 1}}
func.func private @one_row_0(%x: tensor<1x256xf32>) -> tensor<256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %sum = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<1x256xf32>) outs(%init : tensor<256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  return %sum : tensor<256xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#plane = affine_map<(d0, d1, d2) -> (d1, d2)>
#front = affine_map<(d0, d1, d2) -> (d0, d1)>
// Few clusters leave partials of two dimensions: the lanes of a second stage share rows of them, not partials.
// CHECK-LABEL: func.func private @planes
// CHECK-SAME: dims = array<i64: 0>
// CHECK-SAME: second_stage_layout = {blocks = array<i64: 1, 1, 8>, lanes = array<i64: 1, 4, 8>
// CHECK-SAME: second_stage_tile = array<i64: {{[0-9]+}}, 4, 256>
func.func private @planes(%x: tensor<256x256x256xf32>) -> (tensor<256x256xf32>, tensor<256x256xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %0 = linalg.generic {indexing_maps = [#id, #plane], iterator_types = ["reduction", "parallel", "parallel"]}
       ins(%x : tensor<256x256x256xf32>) outs(%init : tensor<256x256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256x256xf32>
  %1 = linalg.generic {indexing_maps = [#id, #front], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x : tensor<256x256x256xf32>) outs(%init : tensor<256x256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<256x256xf32>
  return %0, %1 : tensor<256x256xf32>, tensor<256x256xf32>
}
