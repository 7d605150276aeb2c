// RUN: mlirfuse-opt --fuse-tile-chunked --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A loop over whole chunks carries a tile of partial results; the remainder is a smaller tile after it.
// CHECK-LABEL: func.func private @f_0_kernel(
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<1x256xf32>)
// CHECK: vector.transfer_read {{.*}} : memref<?x1000xf32>, vector<1x256xf32>
// CHECK: arith.addf {{.*}} : vector<1x256xf32>
// CHECK: scf.yield
// CHECK: vector.transfer_read {{.*}} : memref<?x1000xf32>, vector<1x232xf32>
// CHECK: vector.multi_reduction <add>
// CHECK: vector.transfer_write
func.func private @f_0(%x: tensor<?x1000xf32>) -> tensor<?xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>, fuse.schedule = {tile = array<i64: 1, 256>, persistence = "multi_pass", layout = #layout}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x1000xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x1000xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#keep = affine_map<(d0, d1) -> (d0, 0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// The first pass stores the row to shared memory; the writing pass reads it from there instead of the argument.
// CHECK-LABEL: func.func private @f_0_kernel(
// CHECK: %[[STAGE:.*]] = memref.alloc() : memref<1x1024xf32, #gpu.address_space<workgroup>>
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args
// CHECK: %[[X:.*]] = vector.transfer_read %arg0[%{{.*}}, %[[I]]]
// CHECK: vector.transfer_write %[[X]], %[[STAGE]][%{{.*}}, %[[I]]]
// CHECK: scf.yield
// CHECK: vector.multi_reduction <add>
// CHECK: scf.for %[[J:[a-z0-9]+]] =
// CHECK-NOT: %arg0
// CHECK: vector.transfer_read %[[STAGE]][%{{.*}}, %[[J]]]
// CHECK: arith.subf
// CHECK: vector.transfer_write %{{.*}}, %arg1[
func.func private @f_0(%x: tensor<?x1024xf32>) -> tensor<?x1024xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>, fuse.schedule = {tile = array<i64: 1, 256>, persistence = "shared", layout = #layout}} {
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
  %1 = tensor.expand_shape %0 [[0, 1]] output_shape [%m, 1] : tensor<?xf32> into tensor<?x1xf32>
  %full = tensor.empty(%m) : tensor<?x1024xf32>
  %2 = linalg.generic {indexing_maps = [#id, #keep, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %1 : tensor<?x1024xf32>, tensor<?x1xf32>) outs(%full : tensor<?x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<?x1024xf32>
  return %2 : tensor<?x1024xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// A result that needs no reduction is written by the pass that reduces it; there is no other.
// CHECK-LABEL: func.func private @f_0_kernel(
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<1x256xf32>)
// CHECK: %[[X:.*]] = vector.transfer_read %arg0
// CHECK: %[[Y:.*]] = math.exp %[[X]]
// CHECK: arith.addf %{{.*}}, %[[Y]]
// CHECK: vector.transfer_write %[[Y]], %arg1
// CHECK: scf.yield
// CHECK-NOT: scf.for
// CHECK-NOT: vector.transfer_read %arg0
// CHECK: vector.transfer_write %{{.*}}, %arg2
func.func private @f_0(%x: tensor<?x1024xf32>) -> (tensor<?x1024xf32>, tensor<?xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0, 0, 0>, fuse.schedule = {tile = array<i64: 1, 256>, persistence = "multi_pass", layout = #layout}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x1024xf32>
  %full = tensor.empty(%m) : tensor<?x1024xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<?x1024xf32>) outs(%full : tensor<?x1024xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<?x1024xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%0 : tensor<?x1024xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0, %1 : tensor<?x1024xf32>, tensor<?xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// expected-remark @below {{scheduled with persistence = 'registers'}}
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

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#id = affine_map<(d0, d1) -> (d0, d1)>
// expected-error @below {{chunked persistence needs a reduction}}
func.func private @f_0(%x: tensor<8x256xf32>) -> tensor<8x256xf32>
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, persistence = "shared", layout = #layout}} {
  %e = tensor.empty() : tensor<8x256xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<8x256xf32>) outs(%e : tensor<8x256xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<8x256xf32>
  return %0 : tensor<8x256xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 4, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}
// An extent known at run time is processed in groups of 32 chunks, whose sums are combined separately. The chunk that is
// partial, if there is one, follows in a loop of its own; elements past its end are masked.
// CHECK-LABEL: func.func private @f_0_kernel(
// CHECK: scf.forall
// CHECK: %[[M:.*]] = memref.dim %arg0
// CHECK: %[[WHOLE:.*]] = affine.apply #{{.*}}(%[[M]])
// CHECK: %[[GROUP:.*]] = arith.constant 256 : index
// CHECK: %[[GROUPS:.*]] = scf.for %[[G:.*]] = %{{.*}} to %[[WHOLE]] step %[[GROUP]] iter_args(%[[ALL:.*]] = %{{.*}}) -> (vector<8x128xf32>)
// CHECK: %[[END:.*]] = arith.minui %{{.*}}, %[[WHOLE]]
// CHECK: %[[SUM:.*]] = scf.for %[[R:.*]] = %[[G]] to %[[END]] step %{{.*}} iter_args
// CHECK-NOT: vector.create_mask
// CHECK: vector.transfer_read %arg0[%[[R]], %{{.*}}], %{{.*}} {in_bounds = [true, true]} : memref<?x1024xf32>, vector<8x128xf32>
// CHECK: arith.addf
// CHECK: arith.addf %[[ALL]], %[[SUM]]
// CHECK: %[[LEFT:.*]] = arith.cmpi ult, %[[WHOLE]], %[[M]]
// CHECK: %[[TOTAL:.*]] = scf.if %[[LEFT]] -> (vector<8x128xf32>)
// CHECK: vector.create_mask %{{.*}} : vector<8x1xi1>
// CHECK: vector.transfer_read %arg0[%[[WHOLE]], %{{.*}}], %{{.*}} {in_bounds = [false, true]} : memref<?x1024xf32>, vector<8x128xf32>
// CHECK: arith.select
// CHECK: arith.addf %[[GROUPS]]
// CHECK: else
// CHECK-NEXT: scf.yield %[[GROUPS]]
// CHECK: vector.multi_reduction <add>, %[[TOTAL]]
// CHECK: vector.transfer_write
func.func private @f_0(%x: tensor<?x1024xf32>) -> tensor<1024xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>, fuse.schedule = {tile = array<i64: 8, 128>, persistence = "multi_pass", layout = #layout}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<?x1024xf32>) outs(%init : tensor<1024xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#id = affine_map<(d0, d1) -> (d0, d1)>
// expected-error @below {{fuse.moments needs whole rows in a tile}}
func.func private @joint_0(%x: tensor<8x1024xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, persistence = "multi_pass", layout = #layout}} {
  %0:2 = "fuse.moments"(%x) {dims = array<i64: 1>} : (tensor<8x1024xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

#layout = {vector = array<i64: 1, 1, 4>, lanes = array<i64: 1, 1, 32>, warps = array<i64: 1, 1, 2>, repeats = array<i64: 1, 2, 1>, blocks = array<i64: 1, 1, 1>}
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#row = affine_map<(d0, d1, d2) -> (d0)>
// Loops over two reduced dimensions are nested, the innermost in memory inside; its remainder is a smaller tile after
// each of its loops, with accumulators of its own.
// CHECK-LABEL: func.func private @two_passes_0_kernel(
// CHECK: %[[OUTER:.*]]:2 = scf.for %[[J:[a-z0-9]+]] = %c0{{.*}} to %c4{{.*}} step %c2{{.*}} iter_args(%[[A:[a-z0-9]+]] = %{{.*}}, %[[R:[a-z0-9]+]] = %{{.*}}) -> (vector<1x2x256xf32>, vector<1x2x232xf32>)
// CHECK: %[[INNER:.*]] = scf.for %[[K:[a-z0-9]+]] = %c0{{.*}} to %c768{{.*}} step %c256{{.*}} iter_args(%{{.*}} = %[[A]]) -> (vector<1x2x256xf32>)
// CHECK: vector.transfer_read %arg0[%{{.*}}, %[[J]], %[[K]]],
// CHECK: vector.transfer_read %arg0[%{{.*}}, %[[J]], %c768{{[_0-9]*}}], {{.*}} vector<1x2x232xf32>
// CHECK: %[[LAST:.*]] = arith.addf %[[R]],
// CHECK: scf.yield %[[INNER]], %[[LAST]]
// CHECK: vector.multi_reduction <add>, %[[OUTER]]#0
// CHECK: vector.multi_reduction <add>, %[[OUTER]]#1
func.func private @two_passes_0(%x: tensor<8x4x1000xf32>) -> tensor<8xf32>
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 2, 256>, persistence = "multi_pass", layout = #layout}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction", "reduction"]}
       ins(%x : tensor<8x4x1000xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

#layout = {vector = array<i64: 1, 1, 4>, lanes = array<i64: 1, 1, 32>, warps = array<i64: 1, 1, 2>, repeats = array<i64: 1, 3, 1>, blocks = array<i64: 1, 1, 1>}
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#row = affine_map<(d0, d1, d2) -> (d0)>
// expected-error @below {{tile (1, 3, 256) does not divide the extents of dimensions [1, 2]; it may leave a remainder in one}}
func.func private @two_passes_0(%x: tensor<8x4x1000xf32>) -> tensor<8xf32>
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 3, 256>, persistence = "multi_pass", layout = #layout}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction", "reduction"]}
       ins(%x : tensor<8x4x1000xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

#layout = {vector = array<i64: 1, 1, 4>, lanes = array<i64: 1, 1, 32>, warps = array<i64: 1, 1, 2>, repeats = array<i64: 1, 2, 1>, blocks = array<i64: 1, 1, 1>}
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#row = affine_map<(d0, d1, d2) -> (d0)>
// expected-error @below {{tile (1, 2, 256) is partial in dimensions [1, 2]; rows in shared memory are chunked along one}}
func.func private @two_passes_0(%x: tensor<8x4x1024xf32>) -> tensor<8xf32>
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 2, 256>, persistence = "shared", layout = #layout}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction", "reduction"]}
       ins(%x : tensor<8x4x1024xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
