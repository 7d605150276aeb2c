// RUN: mlirfuse-opt --fuse-assign-schedule --target=sm_90a --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
// A schedule that spilled is not chosen again.
// CHECK-LABEL: func.func private @spilled
// CHECK-SAME: vector = array<i64: 1, 2>
func.func private @spilled(%x: tensor<?x4096xf32>) -> tensor<?x4096xf32> attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x4096xf32>
  %e = tensor.empty(%m) : tensor<?x4096xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<?x4096xf32>) outs(%e : tensor<?x4096xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<?x4096xf32>
  return %0 : tensor<?x4096xf32>
}
// CHECK-LABEL: func.func @host
// CHECK-NOT: fuse.attempts
func.func @host(%x: tensor<?x4096xf32>) -> tensor<?x4096xf32> attributes {
  fuse.attempts = {spilled = [{refused = "", registers = 255 : i64, spilled = 40 : i64, schedule = {
    blocks_per_sm = 0 : i64, in_order = false, rematerialize_addresses = false, order = "breadth", shared_spill = 0 : i64, persistence = "registers",
    layout = {blocks = array<i64: 1, 1>, lanes = array<i64: 1, 32>, repeats = array<i64: 1, 1>, vector = array<i64: 1, 4>, warps = array<i64: 1, 8>},
    tile = array<i64: 1, 1024>}}]}} {
  %0 = func.call @spilled(%x) : (tensor<?x4096xf32>) -> tensor<?x4096xf32>
  return %0 : tensor<?x4096xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
// A schedule whose code takes so many registers that an SM has room for few blocks is not chosen again, though it spills
// nothing; one of few registers is.
// CHECK-LABEL: func.func private @crowded
// CHECK-NOT: tile = array<i64: 32, 32>
// CHECK: linalg.fill
func.func private @crowded(%x: tensor<128x65536xf32>) -> tensor<65536xf32> attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<65536xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<65536xf32>) -> tensor<65536xf32>
  %0 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<128x65536xf32>) outs(%i : tensor<65536xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<65536xf32>
  return %0 : tensor<65536xf32>
}
// CHECK-LABEL: func.func private @roomy
// CHECK-SAME: tile = array<i64: 32, 32>
func.func private @roomy(%x: tensor<128x65536xf32>) -> tensor<65536xf32> attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<65536xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<65536xf32>) -> tensor<65536xf32>
  %0 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<128x65536xf32>) outs(%i : tensor<65536xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<65536xf32>
  return %0 : tensor<65536xf32>
}
// CHECK-LABEL: func.func @host_of_both
// CHECK-NOT: fuse.attempts
func.func @host_of_both(%x: tensor<128x65536xf32>) -> (tensor<65536xf32>, tensor<65536xf32>) attributes {
  fuse.attempts = {crowded = [{refused = "", registers = 255 : i64, spilled = 0 : i64, schedule = {
    blocks_per_sm = 0 : i64, in_order = false, rematerialize_addresses = false, order = "breadth", shared_spill = 0 : i64, persistence = "multi_pass",
    layout = {blocks = array<i64: 1, 1>, lanes = array<i64: 4, 8>, repeats = array<i64: 2, 1>, vector = array<i64: 1, 4>, warps = array<i64: 4, 1>},
    tile = array<i64: 32, 32>}}], roomy = [{refused = "", registers = 40 : i64, spilled = 0 : i64, schedule = {
    blocks_per_sm = 0 : i64, in_order = false, rematerialize_addresses = false, order = "breadth", shared_spill = 0 : i64, persistence = "multi_pass",
    layout = {blocks = array<i64: 1, 1>, lanes = array<i64: 4, 8>, repeats = array<i64: 2, 1>, vector = array<i64: 1, 4>, warps = array<i64: 4, 1>},
    tile = array<i64: 32, 32>}}]}} {
  %0 = func.call @crowded(%x) : (tensor<128x65536xf32>) -> tensor<65536xf32>
  %1 = func.call @roomy(%x) : (tensor<128x65536xf32>) -> tensor<65536xf32>
  return %0, %1 : tensor<65536xf32>, tensor<65536xf32>
}
