// RUN: mlirfuse-opt --fuse-tile-persistent --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// The host calls a declaration, which names the kernel; every input is read once, every result written once.
// CHECK-LABEL: func.func private @f_0_kernel(
// CHECK-SAME: memref<?x256xf32>, %{{.*}}: memref<?xf32>) attributes {fuse.equal_extents = [array<i64: 0, 0, 1, 0>], fuse.kernel
// CHECK: scf.forall
// CHECK: vector.transfer_read {{.*}}fuse.streaming{{.*}} : memref<?x256xf32>, vector<1x256xf32>
// CHECK-NOT: vector.transfer_read
// CHECK: vector.multi_reduction <add>, %{{.*}} [1] : vector<1x256xf32> to vector<1xf32>
// CHECK: vector.transfer_write
// CHECK-NOT: vector.transfer_write
// CHECK: mapping = [#gpu.block<x>]
// CHECK: func.func private @f_0(tensor<?x256xf32>) -> tensor<?xf32> attributes {fuse.launch = @f_0_kernel
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

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// expected-remark @below {{scheduled with persistence = 'multi_pass'}}
func.func private @f_0(%x: tensor<?x1024xf32>) -> tensor<?xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>, fuse.schedule = {tile = array<i64: 1, 256>, persistence = "multi_pass", layout = #layout}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x1024xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x1024xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// expected-error @below {{tile (1, 128) does not hold the 256 elements of reduced dimension 1 whole}}
func.func private @f_0(%x: tensor<?x256xf32>) -> tensor<?xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
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
// expected-error @below {{kernel has no fuse.schedule}}
func.func private @f_0(%x: tensor<?x256xf32>) -> tensor<?xf32> attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
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
#layout = {vector = array<i64: 4>, lanes = array<i64: 32>, warps = array<i64: 1>, repeats = array<i64: 1>, blocks = array<i64: 1>}
// expected-error @below {{tile (128,) does not have the iteration space's 2 dimensions}}
func.func private @flat_0(%x: tensor<8x128xf32>) -> tensor<8x128xf32>
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 128>, layout = #layout}} {
  %e = tensor.empty() : tensor<8x128xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<8x128xf32>) outs(%e : tensor<8x128xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<8x128xf32>
  return %0 : tensor<8x128xf32>
}

// -----

// The length of rows comes from an operand whose elements are not read: their number is summed.
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// CHECK-LABEL: func.func private @count_0_kernel
// CHECK: vector.multi_reduction <add>, %{{.*}}, %{{.*}} [1] : vector<1x128xf32> to vector<1xf32>
func.func private @count_0(%x: tensor<8x128xf32>) -> tensor<8xf32>
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<8x128xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %one : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @column_0(%x: tensor<8x128xf32>) -> tensor<8x128xf32>
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %e = tensor.empty() : tensor<8x128xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<8x128xf32>) outs(%e : tensor<8x128xf32>) {
  ^bb0(%a: f32, %out: f32):
    // expected-error @below {{linalg.index has no form for tiles}}
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i32
    %v = arith.sitofp %j : i32 to f32
    linalg.yield %v : f32
  } -> tensor<8x128xf32>
  return %0 : tensor<8x128xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// expected-error @below {{the results of unknown_0 have 1 dynamic extents, and fuse.result_extents has 0 pairs}}
func.func private @unknown_0(%x: tensor<?x128xf32>) -> tensor<?x128xf32>
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x128xf32>
  %e = tensor.empty(%m) : tensor<?x128xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<?x128xf32>) outs(%e : tensor<?x128xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#transposed = affine_map<(d0, d1) -> (d1, d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 8, 1>, blocks = array<i64: 1, 1>}
#across = {vector = array<i64: 4, 1>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>}
// Of 4 x 4 tiles, the last and the first shell have 7 and 1 together, the third and the second 5 and 3.
// CHECK: #[[COUNT:.*]] = affine_map<() -> (4)>
// CHECK-LABEL: func.func private @mirrored_kernel
// CHECK: scf.forall (%[[BLOCK:.*]]) in
// CHECK: %[[SIDE:.*]] = affine.apply #[[COUNT]]()
// CHECK: %[[SMALL:.*]] = arith.divui
// CHECK: %[[LARGE:.*]] = arith.subi %{{.*}}, %[[SMALL]]
// CHECK: %[[WITHIN:.*]] = arith.remui
// CHECK: %[[IN_LARGE:.*]] = arith.cmpi ult, %[[WITHIN]]
// CHECK: %[[SHELL:.*]] = arith.select %[[IN_LARGE]], %[[LARGE]], %[[SMALL]]
// CHECK: %[[ROW:.*]] = arith.select %[[FIRST:.*]], %[[SHELL]], %[[OTHER:.*]] :
// CHECK: %[[COLUMN:.*]] = arith.select %[[FIRST]], %[[OTHER]], %[[SHELL]]
func.func private @mirrored(%x: tensor<128x128xf32>) -> tensor<128x128xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout, transposed = {dim = 0, layout = #across, mirrored = true}}} {
  %e = tensor.empty() : tensor<128x128xf32>
  %0 = linalg.generic {indexing_maps = [#id, #transposed, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %x : tensor<128x128xf32>, tensor<128x128xf32>) outs(%e : tensor<128x128xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.addf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<128x128xf32>
  return %0 : tensor<128x128xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 8, 1>, blocks = array<i64: 1, 1>}
// Blocks follow one another along the rows first, of which there are 3 tiles.
// CHECK: #[[COUNT:.*]] = affine_map<() -> (3)>
// CHECK: #[[OFFSET:.*]] = affine_map<(d0) -> (d0 * 32)>
// CHECK-LABEL: func.func private @rows_first_kernel
// CHECK: scf.forall (%[[BLOCK:.*]]) in
// CHECK: %[[ROWS:.*]] = affine.apply #[[COUNT]]()
// CHECK: %[[ROW:.*]] = arith.remui %[[BLOCK]], %[[ROWS]]
// CHECK: %[[COLUMN:.*]] = arith.divui %[[BLOCK]], %[[ROWS]]
// CHECK: %[[Y:.*]] = affine.apply #[[OFFSET]](%[[ROW]])
// CHECK: %[[X:.*]] = affine.apply #[[OFFSET]](%[[COLUMN]])
// CHECK: vector.transfer_read %{{.*}}[%[[Y]], %[[X]]]
func.func private @rows_first(%x: tensor<96x128xf32>) -> tensor<96x128xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout, grid_order = array<i64: 1, 0>}} {
  %e = tensor.empty() : tensor<96x128xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<96x128xf32>) outs(%e : tensor<96x128xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<96x128xf32>
  return %0 : tensor<96x128xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 8, 1>, blocks = array<i64: 1, 1>}
// expected-error @below {{grid_order (0, 0) does not have each of the 2 dimensions once}}
func.func private @no_order(%x: tensor<96x128xf32>) -> tensor<96x128xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout, grid_order = array<i64: 0, 0>}} {
  %e = tensor.empty() : tensor<96x128xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<96x128xf32>) outs(%e : tensor<96x128xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<96x128xf32>
  return %0 : tensor<96x128xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 8, 1>, blocks = array<i64: 1, 1>}
#across = {vector = array<i64: 4, 1>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 8>, blocks = array<i64: 1, 1>}
// expected-error @below {{tiles that mirror each other make up a square of a known size, not (128, 64)}}
func.func private @no_square(%x: tensor<128x64xf32>) -> tensor<128x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout, transposed = {dim = 0, layout = #across, mirrored = true}}} {
  %e = tensor.empty() : tensor<128x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<128x64xf32>) outs(%e : tensor<128x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<128x64xf32>
  return %0 : tensor<128x64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A body may read its init operand.
// CHECK-LABEL: func.func private @reads_outs_kernel
// CHECK-DAG: vector.transfer_read
// CHECK-DAG: vector.transfer_read
// CHECK: arith.addf
func.func private @reads_outs(%x: tensor<4x128xf32>, %y: tensor<4x128xf32>) -> tensor<4x128xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<4x128xf32>) outs(%y : tensor<4x128xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %out : f32
    linalg.yield %v : f32
  } -> tensor<4x128xf32>
  return %0 : tensor<4x128xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @reads_nothing(%x: tensor<?x128xf32>) -> tensor<?x128xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x128xf32>
  %e = tensor.empty(%m) : tensor<?x128xf32>
  // expected-error @below {{operand 1 of linalg.generic is a tensor.empty, whose elements are undefined}}
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<?x128xf32>) outs(%e : tensor<?x128xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %out : f32
    linalg.yield %v : f32
  } -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}
