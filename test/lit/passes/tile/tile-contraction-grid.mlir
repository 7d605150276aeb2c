// RUN: mlirfuse-opt --fuse-tile-contraction --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (m)>
#one = affine_map<(m) -> (m)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 32, 32>, layout = #layout, contraction = {k = 32, instruction = "mma"}}

// A row's sum is over three tiles, the last of them with 8 columns inside: each block stores its partial, and the last
// block of a row of tiles adds them up in order and runs the ops behind the sum.
// CHECK-LABEL: func.func private @row_sums_kernel(
// CHECK-SAME: %[[SEMAPHORES:[a-z0-9]+]]: memref<2xi32> {fuse.workspace = "semaphores"}
// CHECK-SAME: %[[PARTS:[a-z0-9]+]]: memref<6x32x1xf32> {fuse.workspace = "scratch"}
// CHECK: %[[SUM:.*]] = scf.for
// CHECK: vector.contract
// CHECK: %[[LEFT:.*]] = arith.subi %{{.*}}, %[[N:.*]] : index
// CHECK: %[[MASK:.*]] = vector.create_mask %{{.*}}, %[[LEFT]] : vector<1x32xi1>
// CHECK: %[[WIDE:.*]] = vector.broadcast %[[MASK]]
// CHECK: %[[INSIDE:.*]] = arith.select %[[WIDE]], %[[SUM]]
// CHECK: %[[PART:.*]] = vector.multi_reduction <add>, %[[INSIDE]]
// CHECK: %[[CAST:.*]] = vector.shape_cast %[[PART]] : vector<32xf32> to vector<32x1xf32>
// CHECK: vector.transfer_write %[[CAST]], %[[PARTS]]
// CHECK: %[[BEFORE:.*]] = "fuse.semaphore_arrive"(%[[SEMAPHORES]], %{{.*}}, %[[LAST:.*]]) : (memref<2xi32>, index, i32) -> i32
// CHECK: %[[IS_LAST:.*]] = arith.cmpi eq, %[[BEFORE]], %[[LAST]]
// CHECK: scf.if %[[IS_LAST]] {
// CHECK: %[[TOTAL:.*]] = scf.for
// CHECK: vector.transfer_read %[[PARTS]]
// CHECK: arith.addf
// CHECK: %[[ROOT:.*]] = math.sqrt %[[TOTAL]] : vector<32x1xf32>
// CHECK: vector.transfer_write
func.func private @row_sums(%x: tensor<64x64xbf16>, %w: tensor<72x64xbf16>) -> tensor<64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = #schedule} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x72xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x72xf32>) -> tensor<64x72xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<64x64xbf16>, tensor<72x64xbf16>) outs(%init : tensor<64x72xf32>) {
  ^bb0(%p: bf16, %q: bf16, %sum: f32):
    %pe = arith.extf %p : bf16 to f32
    %qe = arith.extf %q : bf16 to f32
    %pq = arith.mulf %pe, %qe : f32
    %s = arith.addf %sum, %pq : f32
    linalg.yield %s : f32
  } -> tensor<64x72xf32>
  %t = tensor.empty() : tensor<64xf32>
  %none = linalg.fill ins(%zero : f32) outs(%t : tensor<64xf32>) -> tensor<64xf32>
  %1 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%0 : tensor<64x72xf32>) outs(%none : tensor<64xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %2 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
       ins(%1 : tensor<64xf32>) outs(%t : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %r = math.sqrt %a : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  return %2 : tensor<64xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 32, 32>, layout = #layout, contraction = {k = 32, instruction = "mma", raster = 4}}

// Blocks go through four rows of tiles together, column by column; the last group has the fifth row.
// CHECK-DAG: #[[FIVE:.*]] = affine_map<() -> (5)>
// CHECK-DAG: #[[EIGHT:.*]] = affine_map<() -> (8)>
// CHECK-LABEL: func.func private @squares_0_kernel(
// CHECK: scf.forall (%[[PLACE:.*]]) in
// CHECK: %[[ROWS:.*]] = affine.apply #[[FIVE]]()
// CHECK: %[[COLUMNS:.*]] = affine.apply #[[EIGHT]]()
// CHECK: %[[C4:.*]] = arith.constant 4 : index
// CHECK: %[[ALL:.*]] = arith.muli %[[ROWS]], %[[COLUMNS]]
// CHECK: %[[GROUP:.*]] = arith.muli %[[C4]], %[[COLUMNS]]
// CHECK: %[[IN_MATRIX:.*]] = arith.remui %[[PLACE]], %[[ALL]]
// CHECK: %[[NUMBER:.*]] = arith.divui %[[IN_MATRIX]], %[[GROUP]]
// CHECK: %[[FIRST:.*]] = arith.muli %[[NUMBER]], %[[C4]]
// CHECK: %[[LEFT:.*]] = arith.subi %[[ROWS]], %[[FIRST]]
// CHECK: %[[HEIGHT:.*]] = arith.minui %[[C4]], %[[LEFT]]
// CHECK: %[[IN_GROUP:.*]] = arith.remui %[[IN_MATRIX]], %[[GROUP]]
// CHECK: %[[ROW:.*]] = arith.remui %[[IN_GROUP]], %[[HEIGHT]]
// CHECK: arith.addi %[[FIRST]], %[[ROW]]
// CHECK: arith.divui %[[IN_GROUP]], %[[HEIGHT]]
func.func private @squares_0(%x: tensor<160x64xbf16>, %w: tensor<256x64xbf16>) -> tensor<160x256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = #schedule} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<160x256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<160x256xf32>) -> tensor<160x256xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<160x64xbf16>, tensor<256x64xbf16>) outs(%init : tensor<160x256xf32>) {
  ^bb0(%p: bf16, %q: bf16, %sum: f32):
    %pe = arith.extf %p : bf16 to f32
    %qe = arith.extf %q : bf16 to f32
    %pq = arith.mulf %pe, %qe : f32
    %s = arith.addf %sum, %pq : f32
    linalg.yield %s : f32
  } -> tensor<160x256xf32>
  return %0 : tensor<160x256xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 4, 1>, repeats = array<i64: 1, 4>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 64, 32>, layout = #layout, contraction = {k = 64, instruction = "wgmma", stages = 2, raster = 4, cluster = 2}}

// The blocks of a cluster are neighbours in a row, which has four pairs.
// CHECK-DAG: #[[FOUR:.*]] = affine_map<() -> (4)>
// CHECK-LABEL: func.func private @pairs_0_kernel(
// CHECK: scf.forall (%[[PLACE:.*]]) in
// CHECK: %[[C2:.*]] = arith.constant 2 : index
// CHECK: %[[PAIR:.*]] = arith.divui %[[PLACE]], %[[C2]]
// CHECK: %[[COLUMNS:.*]] = affine.apply #[[FOUR]]()
// CHECK: arith.remui %[[PAIR]], %{{.*}}
// CHECK: %[[MATRIX:.*]] = arith.subi %[[PAIR]], %{{.*}}
// CHECK-NEXT: %[[RASTERED:.*]] = arith.addi %[[MATRIX]], %{{.*}}
// CHECK-NEXT: %[[RANK:.*]] = arith.remui %[[PLACE]], %[[C2]]
// CHECK: %[[FIRST:.*]] = arith.muli %[[RASTERED]], %[[C2]]
// CHECK: arith.addi %[[FIRST]], %[[RANK]]
func.func private @pairs_0(%x: tensor<160x64xbf16>, %w: tensor<256x64xbf16>) -> tensor<160x256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = #schedule} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<160x256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<160x256xf32>) -> tensor<160x256xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<160x64xbf16>, tensor<256x64xbf16>) outs(%init : tensor<160x256xf32>) {
  ^bb0(%p: bf16, %q: bf16, %sum: f32):
    %pe = arith.extf %p : bf16 to f32
    %qe = arith.extf %q : bf16 to f32
    %pq = arith.mulf %pe, %qe : f32
    %s = arith.addf %sum, %pq : f32
    linalg.yield %s : f32
  } -> tensor<160x256xf32>
  return %0 : tensor<160x256xf32>
}

// -----

// Tiles of a scattered result are stored to a view of the result's buffer, whose strides promise rows of 16 elements.
// CHECK: #[[POSITIONS:.*]] = affine_map<(d0, d1, d2) -> (d1 * 2 + d0, d2)>
// CHECK-LABEL: func.func private @scattered_kernel(
// CHECK-SAME: %[[Y:[a-z0-9]+]]: memref<63x16xf32>)
// CHECK: %[[V:.*]] = "fuse.scattered"(%[[Y]]) {basis = array<i64: 2, 32, 16>, map = #[[POSITIONS]], ranks = array<i64: 2, 1>} : (memref<63x16xf32>) -> memref<64x16xf32, strided<[16, 1]>>
// CHECK: scf.forall
// CHECK: vector.transfer_write %{{.*}}, %[[V]][%{{.*}}, %{{.*}}] {{.*}} : vector<32x16xf32>, memref<64x16xf32, strided<[16, 1]>>
// CHECK: func.func private @scattered(tensor<64x64xf16>, tensor<16x64xf16>) -> tensor<63x16xf32>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 1>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 32, 16>, layout = #layout, contraction = {k = 32, instruction = "mma"}}
func.func private @scattered(%x: tensor<64x64xf16>, %w: tensor<16x64xf16>) -> tensor<63x16xf32>
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<64x64xf16>, tensor<16x64xf16>) outs(%init : tensor<64x16xf32>) {
  ^bb0(%p: f16, %q: f16, %sum: f32):
    %pe = arith.extf %p : f16 to f32
    %qe = arith.extf %q : f16 to f32
    %pq = arith.mulf %pe, %qe : f32
    %s = arith.addf %sum, %pq : f32
    linalg.yield %s : f32
  } -> tensor<64x16xf32>
  %1 = "fuse.scatter"(%0) {basis = array<i64: 2, 32, 16>, sources = array<i64>, map = affine_map<(a, h, c) -> (h * 2 + a, c)>, ranks = array<i64: 2, 1>}
      : (tensor<64x16xf32>) -> tensor<63x16xf32>
  return %1 : tensor<63x16xf32>
}
