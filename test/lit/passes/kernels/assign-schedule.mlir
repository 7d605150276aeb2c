// RUN: mlirfuse-opt --fuse-assign-schedule --target=sm_90a --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func private @chosen
// CHECK-SAME: fuse.schedule = {{{.*}}layout = {{{.*}}vector = array<i64: 1, 4>{{.*}}persistence = "{{[a-z_]+}}"{{.*}}tile = array<i64: {{[0-9]+}}, {{[0-9]+}}>}
func.func private @chosen(%x: tensor<?x4096xf32>) -> tensor<?xf32> attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x4096xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x4096xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#transposed = affine_map<(d0, d1) -> (d1, d0)>
// Tiles whose sides are whole sectors in both orders go through shared memory.
// CHECK-LABEL: func.func private @transpose
// CHECK-SAME: tile = array<i64: {{(32|64|128)}}, {{(32|64|128)}}>
// CHECK-SAME: transposed = {
func.func private @transpose(%x: tensor<4096x8192xf32>) -> tensor<8192x4096xf32> attributes {fuse.kernel} {
  %e = tensor.empty() : tensor<8192x4096xf32>
  %0 = linalg.generic {indexing_maps = [#id, #transposed], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<4096x8192xf32>) outs(%e : tensor<8192x4096xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<8192x4096xf32>
  return %0 : tensor<8192x4096xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#transposed = affine_map<(d0, d1) -> (d1, d0)>
// Tiles at (i, j) and (j, i) read the same two regions of an array.
// CHECK-LABEL: func.func private @mirrored
// CHECK-SAME: transposed = {{.*}} mirrored = true
// Rows shorter than a sector have no tiles in shared memory: a thread holds a row whole, and stores it in one run.
// CHECK-LABEL: func.func private @narrow
// CHECK-NOT: transposed
// CHECK-SAME: lanes = array<i64: 1, 32>, repeats = array<i64: 5, 1>
func.func private @mirrored(%x: tensor<8192x8192xf32>) -> tensor<8192x8192xf32> attributes {fuse.kernel} {
  %e = tensor.empty() : tensor<8192x8192xf32>
  %0 = linalg.generic {indexing_maps = [#id, #transposed, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %x : tensor<8192x8192xf32>, tensor<8192x8192xf32>) outs(%e : tensor<8192x8192xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.addf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<8192x8192xf32>
  return %0 : tensor<8192x8192xf32>
}
func.func private @narrow(%x: tensor<5x1024xf32>) -> tensor<1024x5xf32> attributes {fuse.kernel} {
  %e = tensor.empty() : tensor<1024x5xf32>
  %0 = linalg.generic {indexing_maps = [#id, #transposed], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<5x1024xf32>) outs(%e : tensor<1024x5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<1024x5xf32>
  return %0 : tensor<1024x5xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A given schedule is kept.
// CHECK-LABEL: func.func private @given
// CHECK-SAME: warps = array<i64: 1, 2>
// expected-remark @below {{given: given tile (1, 256), 64 threads, 4 elements a thread, cluster 1, registers}}
func.func private @given(%x: tensor<?x256xf32>) -> tensor<?xf32>
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
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

// -----

// expected-remark @below {{already a tile program}}
func.func private @tiled(%x: memref<8xf32>) attributes {fuse.kernel} {
  scf.forall (%block) in (8) {
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 64>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// expected-error @below {{the schedule of illegal is illegal: 2048 threads exceed the 1024 of a block}}
func.func private @illegal(%x: tensor<?x256xf32>) -> tensor<?xf32>
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
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

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// expected-error @below {{empty has no elements: dimension 1 of its iteration space is 0}}
func.func private @empty(%x: tensor<?x0xf32>) -> tensor<?xf32> attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x0xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x0xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
// expected-error @below {{grid_reduction='last_block' was asked for, but no kernel reduces over the grid}}
module {
  func.func @rows(%x: tensor<?x256xf32>) -> tensor<?x256xf32> attributes {fuse.grid_reduction = "last_block"} {
    %0 = call @rows_0(%x) : (tensor<?x256xf32>) -> tensor<?x256xf32>
    return %0 : tensor<?x256xf32>
  }
  func.func private @rows_0(%x: tensor<?x256xf32>) -> tensor<?x256xf32>
      attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
    %c0 = arith.constant 0 : index
    %m = tensor.dim %x, %c0 : tensor<?x256xf32>
    %e = tensor.empty(%m) : tensor<?x256xf32>
    %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
         ins(%x : tensor<?x256xf32>) outs(%e : tensor<?x256xf32>) {
    ^bb0(%a: f32, %out: f32):
      %v = math.exp %a : f32
      linalg.yield %v : f32
    } -> tensor<?x256xf32>
    return %0 : tensor<?x256xf32>
  }
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// expected-error @below {{grid_reduction='grid_sync' was asked for, but no kernel without a given schedule reduces over the grid}}
module {
  func.func @pinned(%x: tensor<?x256xf32>) -> tensor<256xf32> attributes {fuse.grid_reduction = "grid_sync"} {
    %0 = call @pinned_0(%x) : (tensor<?x256xf32>) -> tensor<256xf32>
    return %0 : tensor<256xf32>
  }
  func.func private @pinned_0(%x: tensor<?x256xf32>) -> tensor<256xf32>
      attributes {fuse.kernel, fuse.result_extents = array<i64>,
                  fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout,
                    persistent_loop = {dims = array<i64: 0>, grid_reduction = "last_block", second_stage_tile = array<i64: 1, 256>, second_stage_layout = #layout}}} {
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
}

// -----

// expected-error @below {{the kernel has no schedule: result 0 is not computed by an op with loops}}
func.func private @returns_its_argument(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  return %x : tensor<4xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// expected-error @below {{Schedule.order is 1.000000e+00 : f64, not a str}}
func.func private @malformed(%x: tensor<8x256xf32>) -> tensor<8x256xf32>
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout, order = 1.0}} {
  %e = tensor.empty() : tensor<8x256xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<8x256xf32>) outs(%e : tensor<8x256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<8x256xf32>
  return %0 : tensor<8x256xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
// expected-error @below {{no cluster of 8 holds a row of 4000000 elements with its accumulators}}
func.func private @too_wide(%x: tensor<4096x4000000xf32>) -> (tensor<4096xf32>, tensor<4000000xf32>)
    attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4096xf32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<4096xf32>) -> tensor<4096xf32>
  %e1 = tensor.empty() : tensor<4000000xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4000000xf32>) -> tensor<4000000xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<4096x4000000xf32>) outs(%i0 : tensor<4096xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<4096xf32>
  %1 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<4096x4000000xf32>) outs(%i1 : tensor<4000000xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<4000000xf32>
  return %0, %1 : tensor<4096xf32>, tensor<4000000xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#last = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
// A thread has all three channels of its pixels: it reads vectors of each plane, and writes them as one run.
// CHECK-LABEL: func.func private @channels_last
// CHECK-SAME: lanes = array<i64: 1, 1, 32>, repeats = array<i64: 1, 3, 1>, vector = array<i64: 1, 1, 4>
func.func private @channels_last(%x: tensor<64x3x262144xf16>) -> tensor<64x262144x3xf16> attributes {fuse.kernel} {
  %e = tensor.empty() : tensor<64x262144x3xf16>
  %0 = linalg.generic {indexing_maps = [#id, #last], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x : tensor<64x3x262144xf16>) outs(%e : tensor<64x262144x3xf16>) {
  ^bb0(%a: f16, %out: f16):
    %v = arith.addf %a, %a : f16
    linalg.yield %v : f16
  } -> tensor<64x262144x3xf16>
  return %0 : tensor<64x262144x3xf16>
}

// -----

#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#kept = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
// A tile holds whole windows, and lanes lie along the windows of a row.
// CHECK-LABEL: func.func private @windows
// CHECK-SAME: lanes = array<i64: {{[0-9]+}}, {{[12]}}, {{[0-9]+}}, 1>
// CHECK-SAME: tile = array<i64: {{[0-9]+}}, 2, {{[0-9]+}}, 2>
func.func private @windows(%x: tensor<65536x2x112x2xf32>) -> tensor<65536x112xf32> attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<65536x112xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<65536x112xf32>) -> tensor<65536x112xf32>
  %0 = linalg.generic {indexing_maps = [#id, #kept], iterator_types = ["parallel", "reduction", "parallel", "reduction"]}
       ins(%x : tensor<65536x2x112x2xf32>) outs(%f : tensor<65536x112xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<65536x112xf32>
  return %0 : tensor<65536x112xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#outer = affine_map<(d0, d1, d2) -> (d0, d2)>
// A tile is chosen for the extents that are expected: 4 heads fill none of 32. Where nothing is expected, extents are
// equal and large.
// CHECK-LABEL: func.func private @expected
// CHECK-SAME: tile = array<i64: {{[0-9]+}}, {{[124]}}, 64>
// CHECK-LABEL: func.func private @unknown
// CHECK-SAME: tile = array<i64: {{[0-9]+}}, {{32|64|128|256}}, 64>
func.func private @expected(%x: tensor<?x?x64xbf16> {fuse.extent_hints = array<i64: 65536, 4, 0>}, %c: tensor<?x64xf32> {fuse.extent_hints = array<i64: 65536, 0>}) -> tensor<?x?x64xbf16> attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?x64xbf16>
  %n = tensor.dim %x, %c1 : tensor<?x?x64xbf16>
  %e = tensor.empty(%m, %n) : tensor<?x?x64xbf16>
  %0 = linalg.generic {indexing_maps = [#id, #outer, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x, %c : tensor<?x?x64xbf16>, tensor<?x64xf32>) outs(%e : tensor<?x?x64xbf16>) {
  ^bb0(%a: bf16, %b: f32, %out: bf16):
    %w = arith.extf %a : bf16 to f32
    %p = arith.mulf %w, %b : f32
    %v = arith.truncf %p : f32 to bf16
    linalg.yield %v : bf16
  } -> tensor<?x?x64xbf16>
  return %0 : tensor<?x?x64xbf16>
}
func.func private @unknown(%x: tensor<?x?x64xbf16>, %c: tensor<?x64xf32>) -> tensor<?x?x64xbf16> attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?x64xbf16>
  %n = tensor.dim %x, %c1 : tensor<?x?x64xbf16>
  %e = tensor.empty(%m, %n) : tensor<?x?x64xbf16>
  %0 = linalg.generic {indexing_maps = [#id, #outer, #id], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x, %c : tensor<?x?x64xbf16>, tensor<?x64xf32>) outs(%e : tensor<?x?x64xbf16>) {
  ^bb0(%a: bf16, %b: f32, %out: bf16):
    %w = arith.extf %a : bf16 to f32
    %p = arith.mulf %w, %b : f32
    %v = arith.truncf %p : f32 to bf16
    linalg.yield %v : bf16
  } -> tensor<?x?x64xbf16>
  return %0 : tensor<?x?x64xbf16>
}

// -----

// Results of elementwise ops are scattered too.
// CHECK-LABEL: func.func private @scattered_elements(
// CHECK-SAME: fuse.schedule = {{{.*}}persistence = "registers"
func.func private @scattered_elements(%x: tensor<64x16xf32>) -> tensor<63x16xf32>
    attributes {fuse.kernel} {
  %e = tensor.empty() : tensor<64x16xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<64x16xf32>) outs(%e : tensor<64x16xf32>) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x16xf32>
  %1 = "fuse.scatter"(%0) {basis = array<i64: 2, 32, 16>, sources = array<i64>, map = affine_map<(a, h, c) -> (h * 2 + a, c)>, ranks = array<i64: 2, 1>}
      : (tensor<64x16xf32>) -> tensor<63x16xf32>
  return %1 : tensor<63x16xf32>
}
