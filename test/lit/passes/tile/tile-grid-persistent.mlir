// RUN: mlirfuse-opt --fuse-tile-grid-persistent --canonicalize --cse --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}
// Two visits of rows by blocks of two slices, around one barrier a slice.
// CHECK-DAG: #[[WANTED:.*]] = affine_map<()[s0] -> ((s0 ceildiv 16) * 2, 2)>
// CHECK-DAG: #[[HELD:.*]] = affine_map<()[s0] -> ((s0 floordiv 2) * 2, 2)>
// CHECK-LABEL: func.func private @centred_kernel(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x64xf32>, %[[Y:[a-z0-9]+]]: memref<?x64xf32>, %[[SUM:[a-z0-9]+]]: memref<64xf32>
// CHECK-SAME: %[[PARTS:[a-z0-9]+]]: memref<?x64xf32> {fuse.workspace = "scratch", fuse.workspace_extents = affine_map<()[s0] -> (s0 ceildiv 2)>, fuse.workspace_operands = array<i64: -1, 1>}
// The slices' semaphores lie a sector apart.
// CHECK-SAME: %[[SEM:[a-z0-9]+]]: memref<16xi32> {fuse.workspace = "semaphores"}) attributes {fuse.cooperative
// CHECK: affine.max #[[WANTED]]()
// CHECK: affine.max #[[HELD]]()
// CHECK: scf.forall (%[[B:.*]]) in
// CHECK: %[[MEMBER:.*]] = affine.apply #{{.*}}(%[[B]])
// CHECK: %[[COLUMN:.*]] = affine.apply #{{.*}}(%[[B]])
// CHECK: %[[KEPT:.*]] = memref.alloc() : memref<3x16x32xf32, #gpu.address_space<workgroup>>
// All copies of tiles that stay in shared memory are under way at once, a group a tile.
// CHECK: scf.for {{.*}} to %c3 step %c1 {
// CHECK:   scf.if
// CHECK:     "fuse.copy_fragments"(%[[X]], %{{.*}}, %{{.*}}, %[[COLUMN]]) {fuse.streaming, in_bounds = [false, true], {{.*}}tile = array<i64: 16, 32>}
// CHECK:   nvvm.cp.async.commit.group
// CHECK: %[[SOME:.*]] = scf.for {{.*}} = %[[MEMBER]] to {{.*}} -> (vector<16x32xf32>) {
// CHECK:   nvvm.cp.async.commit.group
// CHECK:   nvvm.cp.async.wait.group 3
// CHECK:   memref.subview %[[KEPT]]
// CHECK:   arith.select
// Then come those that are read again, which should stay in the L2.
// CHECK: %[[ALL:.*]] = scf.for {{.*}} = %[[SOME]]) -> (vector<16x32xf32>) {
// CHECK:   vector.transfer_read %[[X]][%{{.*}}, %[[COLUMN]]], {{.*}} {in_bounds = [false, true]}
// CHECK: vector.multi_reduction <add>, %[[ALL]], {{.*}} [0] : vector<16x32xf32> to vector<32xf32>
// CHECK: vector.transfer_write %{{.*}}, %[[PARTS]][%[[MEMBER]], %[[COLUMN]]]
// CHECK: "fuse.semaphore_arrive"(%[[SEM]], %[[SLOT:.*]], %{{.*}}) :
// CHECK: "fuse.semaphore_wait"(%[[SEM]], %[[SLOT]], %{{.*}})
// Every member adds up the partial results of all members.
// CHECK: scf.for {{.*}} step %c8 {{.*}} -> (vector<8x32xf32>) {
// CHECK: vector.multi_reduction <add>, {{.*}} : vector<8x32xf32> to vector<32xf32>
// CHECK: "fuse.semaphore_arrive"(%[[SEM]], %[[SLOT]], %{{.*}}) {relaxed}
// The first member writes the sums.
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[MEMBER]], %c0
// CHECK: scf.if %[[FIRST]] {
// CHECK:   vector.transfer_write %{{.*}}, %[[SUM]]
// CHECK: scf.for
// CHECK:   vector.transfer_read %[[X]]{{.*}} {fuse.streaming, in_bounds = [false, true]}
// CHECK:   vector.transfer_write %{{.*}}, %[[Y]]{{.*}} {fuse.streaming
// CHECK: scf.for
// CHECK-NOT: vector.transfer_read %[[X]]
// CHECK:   memref.subview %[[KEPT]]
// CHECK:   vector.transfer_write %{{.*}}, %[[Y]]
// CHECK: func.func private @centred(tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<64xf32>) attributes {fuse.launch = @centred_kernel
func.func private @centred(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<64xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>,
                fuse.schedule = {tile = array<i64: 16, 32>, layout = #layout, blocks_per_sm = 1 : i64, grid_persistent = {dims = array<i64: 0>, kept_tiles = 3 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %se = tensor.empty() : tensor<64xf32>
  %sf = linalg.fill ins(%zero : f32) outs(%se : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<?x64xf32>) outs(%sf : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %sum : tensor<?x64xf32>, tensor<64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%a: f32, %s: f32, %out: f32):
    %v = arith.subf %a, %s : f32
    linalg.yield %v : f32
  } -> tensor<?x64xf32>
  return %y, %sum : tensor<?x64xf32>, tensor<64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Moments have a count in each row, and merge by deviations of means.
// CHECK-LABEL: func.func private @moments_kernel(
// CHECK-SAME: memref<?x2xf32> {fuse.workspace = "scratch"
// CHECK-SAME: memref<?x64xf32> {fuse.workspace = "scratch"
// CHECK-SAME: memref<?x64xf32> {fuse.workspace = "scratch"
// CHECK-NOT: memref.alloc
// Rows divide into tiles, so that one number counts them all.
// CHECK: scf.for {{.*}} -> (vector<1x1xf32>, vector<8x32xf32>, vector<8x32xf32>)
// CHECK:   math.fma
// CHECK: "fuse.semaphore_wait"
// CHECK: scf.for {{.*}} -> (vector<8x1xf32>, vector<8x32xf32>, vector<8x32xf32>)
func.func private @moments(%x: tensor<800x64xf32>) -> tensor<800x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>,
                fuse.schedule = {tile = array<i64: 8, 32>, layout = #layout, blocks_per_sm = 1 : i64, grid_persistent = {dims = array<i64: 0>}}} {
  %sum, %m2 = "fuse.moments"(%x) {dims = array<i64: 0>} : (tensor<800x64xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  %e = tensor.empty() : tensor<800x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #col, #col, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %sum, %m2 : tensor<800x64xf32>, tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<800x64xf32>) {
  ^bb0(%a: f32, %s: f32, %q: f32, %out: f32):
    %v = arith.subf %a, %s : f32
    %w = arith.mulf %v, %q : f32
    linalg.yield %w : f32
  } -> tensor<800x64xf32>
  return %y : tensor<800x64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A sum of exponentials is rescaled where a maximum grows, in each position, and again where positions merge.
// CHECK-LABEL: func.func private @exponentials_kernel(
// CHECK: scf.for {{.*}} -> (vector<8x32xf32>, vector<8x32xf32>)
// CHECK:   arith.maximumf
// CHECK-COUNT-2: math.exp
// CHECK: vector.multi_reduction <maximumf>
// CHECK: math.exp
// CHECK: vector.multi_reduction <add>
// CHECK: "fuse.semaphore_wait"
// CHECK: scf.for {{.*}} -> (vector<8x32xf32>, vector<8x32xf32>)
// CHECK-COUNT-2: math.exp
func.func private @exponentials(%x: tensor<800x64xf32>) -> tensor<800x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>,
                fuse.schedule = {tile = array<i64: 8, 32>, layout = #layout, blocks_per_sm = 1 : i64, grid_persistent = {dims = array<i64: 0>}}} {
  %max, %sum = "fuse.exp_sum"(%x) {dims = array<i64: 0>} : (tensor<800x64xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  %e = tensor.empty() : tensor<800x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #col, #col, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %max, %sum : tensor<800x64xf32>, tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<800x64xf32>) {
  ^bb0(%a: f32, %s: f32, %q: f32, %out: f32):
    %v = arith.subf %a, %s : f32
    %w = arith.divf %v, %q : f32
    linalg.yield %w : f32
  } -> tensor<800x64xf32>
  return %y : tensor<800x64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0) -> (d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Moments that no tile needs take one visit, which writes results of the tiles. Nobody waits: the member that arrives
// last combines what all have left, whatever its number is.
// CHECK-LABEL: func.func private @once_kernel(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x64xf32>, %[[Y:[a-z0-9]+]]: memref<?x64xf32>, %[[MEAN:[a-z0-9]+]]: memref<64xf32>, %[[M2:[a-z0-9]+]]: memref<64xf32>
// CHECK-NOT: fuse.cooperative
// CHECK: scf.for {{.*}} -> (vector<8x1xf32>, vector<8x32xf32>, vector<8x32xf32>)
// CHECK:   %[[TILE:.*]] = vector.transfer_read %[[X]]{{.*}} {fuse.streaming
// CHECK:   %[[DOUBLE:.*]] = arith.addf %[[TILE]], %[[TILE]]
// CHECK:   vector.transfer_write %[[DOUBLE]], %[[Y]]{{.*}} {fuse.streaming
// CHECK-NOT: "fuse.semaphore_wait"
// CHECK: %[[ARRIVED:.*]] = "fuse.semaphore_arrive"(
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[ARRIVED]]
// CHECK: scf.if %[[LAST]] {
// CHECK:   scf.for {{.*}} -> (vector<8x1xf32>, vector<8x32xf32>, vector<8x32xf32>)
// CHECK-NOT: scf.if
// CHECK-DAG: vector.transfer_write %{{.*}}, %[[MEAN]]
// CHECK-DAG: vector.transfer_write %{{.*}}, %[[M2]]
// CHECK-NOT: vector.transfer_read %[[X]]
// CHECK: func.func private @once(
func.func private @once(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>,
                fuse.schedule = {tile = array<i64: 8, 32>, layout = #layout, blocks_per_sm = 1 : i64, grid_persistent = {dims = array<i64: 0>}}} {
  %c0 = arith.constant 0 : index
  %half = arith.constant 0.5 : f32
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %sum, %m2 = "fuse.moments"(%x) {dims = array<i64: 0>} : (tensor<?x64xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  %se = tensor.empty() : tensor<64xf32>
  %mean = linalg.generic {indexing_maps = [#col, #col], iterator_types = ["parallel"]}
       ins(%sum : tensor<64xf32>) outs(%se : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.mulf %a, %half : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<?x64xf32>
  return %y, %mean, %m2 : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A kernel with another schedule is left alone.
// CHECK-LABEL: func.func private @elementwise(%{{.*}}: tensor<4x128xf32>)
// CHECK: linalg.generic
func.func private @elementwise(%x: tensor<4x128xf32>) -> tensor<4x128xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %e = tensor.empty() : tensor<4x128xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<4x128xf32>) outs(%e : tensor<4x128xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<4x128xf32>
  return %0 : tensor<4x128xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @sums_only(%x: tensor<?x64xf32>) -> tensor<64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>,
                fuse.schedule = {tile = array<i64: 8, 32>, layout = #layout, grid_persistent = {dims = array<i64: 0>}}} {
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<64xf32>
  %sf = linalg.fill ins(%zero : f32) outs(%se : tensor<64xf32>) -> tensor<64xf32>
  // expected-error @below {{a grid persistent kernel cannot compute this: nothing along what it reduces waits for a reduction}}
  %sum = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<?x64xf32>) outs(%sf : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %sum : tensor<64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @two_barriers(%x: tensor<800x64xf32>) -> tensor<800x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>,
                fuse.schedule = {tile = array<i64: 8, 32>, layout = #layout, grid_persistent = {dims = array<i64: 0>}}} {
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<64xf32>
  %sf = linalg.fill ins(%zero : f32) outs(%se : tensor<64xf32>) -> tensor<64xf32>
  %first = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<800x64xf32>) outs(%sf : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.maximumf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  // expected-error @below {{it waits for another reduction over the grid, which takes a second barrier}}
  %second = linalg.generic {indexing_maps = [#id, #col, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x, %first : tensor<800x64xf32>, tensor<64xf32>) outs(%sf : tensor<64xf32>) {
  ^bb0(%a: f32, %m: f32, %out: f32):
    %d = arith.subf %a, %m : f32
    %v = arith.addf %out, %d : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %e = tensor.empty() : tensor<800x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %second : tensor<800x64xf32>, tensor<64xf32>) outs(%e : tensor<800x64xf32>) {
  ^bb0(%a: f32, %s: f32, %out: f32):
    %v = arith.subf %a, %s : f32
    linalg.yield %v : f32
  } -> tensor<800x64xf32>
  return %y : tensor<800x64xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// expected-error @below {{the schedule reduces dimensions (1,), the reductions are over (0,)}}
func.func private @other_dims(%x: tensor<800x64xf32>) -> tensor<800x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>,
                fuse.schedule = {tile = array<i64: 8, 32>, layout = #layout, grid_persistent = {dims = array<i64: 1>}}} {
  %sum, %m2 = "fuse.moments"(%x) {dims = array<i64: 0>} : (tensor<800x64xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  %e = tensor.empty() : tensor<800x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %sum : tensor<800x64xf32>, tensor<64xf32>) outs(%e : tensor<800x64xf32>) {
  ^bb0(%a: f32, %s: f32, %out: f32):
    %v = arith.subf %a, %s : f32
    linalg.yield %v : f32
  } -> tensor<800x64xf32>
  return %y : tensor<800x64xf32>
}
