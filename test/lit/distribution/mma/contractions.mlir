// RUN: mlirfuse-opt --fuse-assign-layouts --fuse-distribute --canonicalize --cse --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#shared = #gpu.address_space<workgroup>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}

// 64 threads copy 32 rows of two 16-byte pieces each; rows past row 30 become zero.
// CHECK-LABEL: gpu.func @tensor_cores_kernel(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<30x16xf16>{{.*}}, %[[W:[a-z0-9]+]]: memref<16x16xf16>{{.*}}, %[[Y:[a-z0-9]+]]: memref<32x16xf32>)
// CHECK-SAME: workgroup(%[[A:[a-z0-9]+]] : memref<32x16xf16, {{.*}}, %[[B:[a-z0-9]+]] : memref<16x16xf16,
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C30:.*]] = arith.constant 30 : index
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK: %[[THREAD:.*]] = gpu.thread_id
// CHECK: %[[ROW:.*]] = arith.divui %[[THREAD]], %[[C2]] : index
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[ROW]], %[[C30]]
// CHECK: %[[COUNT:.*]] = arith.select %[[INSIDE]], %[[C8]], %{{.*}}
// CHECK: nvgpu.device_async_copy %[[X]][%[[ROW]], %[[COLUMN:.*]]], %[[A]][%[[ROW]], %[[COLUMN]]], 8, %[[COUNT]] :
// The 16 x 16 operand has half as many pieces as there are threads.
// CHECK: scf.if
// CHECK: nvgpu.device_async_copy %[[W]]{{.*}}, %[[B]]{{.*}}, 8 :
// CHECK: gpu.barrier
// Operand A is contiguous in k and operand B in n, so operand B is transposed when it is loaded.
// CHECK: %[[LA:.*]] = nvgpu.ldmatrix %[[A]]{{.*}} {numTiles = 4 : i32, transpose = false}
// CHECK: %[[LEFT:.*]] = vector.shape_cast %[[LA]] : vector<4x2xf16> to vector<8xf16>
// CHECK: nvgpu.ldmatrix %[[B]]{{.*}} {numTiles = 4 : i32, transpose = true}
// CHECK-COUNT-2: "fuse.mma"(%[[LEFT]], %{{.*}}, %{{.*}}) : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
// CHECK-COUNT-4: vector.store %{{.*}}, %[[Y]]{{.*}} {alignment = 8 : i64} : memref<32x16xf32>, vector<2xf32>
func.func private @tensor_cores_kernel(%x: memref<30x16xf16> {fuse.align = 16 : i64}, %w: memref<16x16xf16> {fuse.align = 16 : i64}, %y: memref<32x16xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 16>, layout = #layout, contraction = {k = 16, instruction = "mma"}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<32x16xf32>
    %a = memref.alloc() : memref<32x16xf16, #shared>
    %b = memref.alloc() : memref<16x16xf16, #shared>
    "fuse.copy_tile"(%x, %a, %c0, %c0) {axes = array<i64: 0, 1>, clipped = array<i64: 0>}
        : (memref<30x16xf16>, memref<32x16xf16, #shared>, index, index) -> ()
    "fuse.copy_tile"(%w, %b, %c0, %c0) {axes = array<i64: 0, 1>, clipped = array<i64>}
        : (memref<16x16xf16>, memref<16x16xf16, #shared>, index, index) -> ()
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    gpu.barrier
    %ta = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x16xf16, #shared>, vector<32x16xf16>
    %tb = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #shared>, vector<16x16xf16>
    %acc = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %ta, %tb, %zero {fuse.instruction = "mma"}
        : vector<32x16xf16>, vector<16x16xf16> into vector<32x16xf32>
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<32x16xf32>, memref<32x16xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#shared = #gpu.address_space<workgroup>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}

// Rows of 7 f16 elements are too small for asynchronous copies, so elements go through registers, and out-of-bounds ones
// are not read. Products of eight steps at a time are summed separately, and then added to the accumulators.
// CHECK-LABEL: gpu.func @scalars_kernel(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<5x7xf16>
// CHECK: %[[INSIDE:.*]] = arith.andi
// CHECK: %[[I:.*]] = arith.select %[[INSIDE]]
// CHECK: %[[J:.*]] = arith.select %[[INSIDE]]
// CHECK: %[[E:.*]] = memref.load %[[X]][%[[I]], %[[J]]]
// CHECK: arith.select %[[INSIDE]], %[[E]], %{{.*}} : f16
// CHECK: %[[SUMS:.*]]:2 = scf.for {{.*}} step %c8 iter_args({{.*}}) -> (vector<4xf32>, vector<4xf32>)
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK-COUNT-16: math.fma %{{.*}} : vector<4xf32>
// CHECK: arith.addf %{{.*}}, %[[SUMS]]#0 : vector<4xf32>
func.func private @scalars_kernel(%x: memref<5x7xf16> {fuse.align = 2 : i64}, %w: memref<32x24xf16>, %init: memref<8x32xf32>, %y: memref<8x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 8, 32>, layout = #layout, contraction = {k = 24, instruction = "fma"}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f16
    %none = arith.constant 0.0 : f32
    %before = vector.transfer_read %init[%c0, %c0], %none {in_bounds = [true, true]} : memref<8x32xf32>, vector<8x32xf32>
    %a = memref.alloc() : memref<8x24xf16, #shared>
    %b = memref.alloc() : memref<32x24xf16, #shared>
    "fuse.copy_tile"(%x, %a, %c0, %c0) {axes = array<i64: 0, 1>, clipped = array<i64: 0, 1>}
        : (memref<5x7xf16>, memref<8x24xf16, #shared>, index, index) -> ()
    "fuse.copy_tile"(%w, %b, %c0, %c0) {axes = array<i64: 0, 1>, clipped = array<i64>}
        : (memref<32x24xf16>, memref<32x24xf16, #shared>, index, index) -> ()
    gpu.barrier
    %ta = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x24xf16, #shared>, vector<8x24xf16>
    %tb = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x24xf16, #shared>, vector<32x24xf16>
    %acc = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %ta, %tb, %before {fuse.instruction = "fma"}
        : vector<8x24xf16>, vector<32x24xf16> into vector<8x32xf32>
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<8x32xf32>, memref<8x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 1>, blocks = array<i64: 1, 1>}
func.func private @not_staged_kernel(%x: memref<8x8xf16>, %w: memref<32x8xf16>, %y: memref<8x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 8, 32>, layout = #layout, contraction = {k = 8, instruction = "fma"}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<8x32xf32>
    %ta = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x8xf16>, vector<8x8xf16>
    %tb = vector.transfer_read %w[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x8xf16>, vector<32x8xf16>
    // expected-error @below {{operand 0 is not in shared memory}}
    %acc = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %ta, %tb, %zero
        : vector<8x8xf16>, vector<32x8xf16> into vector<8x32xf32>
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<8x32xf32>, memref<8x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#shared = #gpu.address_space<workgroup>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}

// An f32 operand that is not contiguous in k is loaded by elements; both operands are rounded to tf32 first.
// CHECK-LABEL: gpu.func @tf32_kernel(
// CHECK: nvgpu.ldmatrix {{.*}} {numTiles = 4 : i32, transpose = false} : {{.*}} -> vector<4x1xf32>
// CHECK: arith.truncf %{{.*}} to_nearest_away : vector<4xf32> to vector<4xtf32>
// CHECK-COUNT-2: memref.load %{{.*}} : memref<8x8xf32
// CHECK: arith.truncf %{{.*}} to_nearest_away : vector<2xf32> to vector<2xtf32>
// CHECK: "fuse.mma"(%{{.*}}) : (vector<4xtf32>, vector<2xtf32>, vector<4xf32>) -> vector<4xf32>
// CHECK-NOT: fuse.mma
func.func private @tf32_kernel(%y: memref<32x8xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 8>, layout = #layout, contraction = {k = 8, instruction = "mma"}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %pa = arith.constant 0.0 : f32
    %pb = arith.constant 0.0 : f32
    %zero = arith.constant dense<0.0> : vector<32x8xf32>
    %a = memref.alloc() : memref<32x8xf32, #shared>
    %b = memref.alloc() : memref<8x8xf32, #shared>
    %ta = vector.transfer_read %a[%c0, %c0], %pa {in_bounds = [true, true]} : memref<32x8xf32, #shared>, vector<32x8xf32>
    %tb = vector.transfer_read %b[%c0, %c0], %pb {in_bounds = [true, true]} : memref<8x8xf32, #shared>, vector<8x8xf32>
    %acc = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %ta, %tb, %zero {fuse.instruction = "mma", fuse.precision = "tf32"}
        : vector<32x8xf32>, vector<8x8xf32> into vector<32x8xf32>
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<32x8xf32>, memref<32x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#shared = #gpu.address_space<workgroup>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}

// Three products of large and small parts are summed separately, and then added to the accumulators.
// CHECK-LABEL: gpu.func @split_kernel(
// CHECK: %[[BIG:.*]] = arith.truncf %[[X:.*]] to_nearest_away : vector<4xf32> to vector<4xtf32>
// CHECK: %[[W:.*]] = arith.extf %[[BIG]] : vector<4xtf32> to vector<4xf32>
// CHECK: %[[REST:.*]] = arith.subf %[[X]], %[[W]] : vector<4xf32>
// CHECK: %[[SMALL:.*]] = arith.truncf %[[REST]] to_nearest_away : vector<4xf32> to vector<4xtf32>
// CHECK: %[[P:.*]] = "fuse.mma"(%[[SMALL]], %[[WBIG:.*]], %{{.*}})
// CHECK: %[[Q:.*]] = "fuse.mma"(%[[BIG]], %{{.*}}, %[[P]])
// CHECK: %[[R:.*]] = "fuse.mma"(%[[BIG]], %[[WBIG]], %[[Q]])
// CHECK: arith.addf %{{.*}}, %[[R]] : vector<4xf32>
func.func private @split_kernel(%y: memref<32x8xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 8>, layout = #layout, contraction = {k = 8, instruction = "mma"}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %pa = arith.constant 0.0 : f32
    %pb = arith.constant 0.0 : f32
    %zero = arith.constant dense<0.0> : vector<32x8xf32>
    %a = memref.alloc() : memref<32x8xf32, #shared>
    %b = memref.alloc() : memref<8x8xf32, #shared>
    %ta = vector.transfer_read %a[%c0, %c0], %pa {in_bounds = [true, true]} : memref<32x8xf32, #shared>, vector<32x8xf32>
    %tb = vector.transfer_read %b[%c0, %c0], %pb {in_bounds = [true, true]} : memref<8x8xf32, #shared>, vector<8x8xf32>
    %acc = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %ta, %tb, %zero {fuse.instruction = "mma", fuse.precision = "3xtf32"}
        : vector<32x8xf32>, vector<8x8xf32> into vector<32x8xf32>
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<32x8xf32>, memref<32x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#shared = #gpu.address_space<workgroup>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}

// Both float8 types are loaded as they are and widened to f16 in registers: two products in f16.
// CHECK-LABEL: gpu.func @float8_kernel(
// CHECK: %[[A:.*]] = nvgpu.ldmatrix {{.*}} -> vector<4x4xf8E4M3FN>
// CHECK: arith.extf %{{.*}} : vector<16xf8E4M3FN> to vector<16xf16>
// CHECK: nvgpu.ldmatrix {{.*}} -> vector<2x4xf8E5M2>
// CHECK: arith.extf %{{.*}} : vector<8xf8E5M2> to vector<8xf16>
// CHECK-COUNT-2: "fuse.mma"(%{{.*}}) : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
// CHECK-NOT: fuse.mma
func.func private @float8_kernel(%y: memref<32x8xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 8>, layout = #layout, contraction = {k = 32, instruction = "mma"}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %pa = arith.constant 0.0 : f8E4M3FN
    %pb = arith.constant 0.0 : f8E5M2
    %zero = arith.constant dense<0.0> : vector<32x8xf32>
    %a = memref.alloc() : memref<32x32xf8E4M3FN, #shared>
    %b = memref.alloc() : memref<8x32xf8E5M2, #shared>
    %ta = vector.transfer_read %a[%c0, %c0], %pa {in_bounds = [true, true]} : memref<32x32xf8E4M3FN, #shared>, vector<32x32xf8E4M3FN>
    %tb = vector.transfer_read %b[%c0, %c0], %pb {in_bounds = [true, true]} : memref<8x32xf8E5M2, #shared>, vector<8x32xf8E5M2>
    %wa = arith.extf %ta : vector<32x32xf8E4M3FN> to vector<32x32xf16>
    %wb = arith.extf %tb : vector<8x32xf8E5M2> to vector<8x32xf16>
    %acc = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %wa, %wb, %zero {fuse.instruction = "mma"}
        : vector<32x32xf16>, vector<8x32xf16> into vector<32x8xf32>
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<32x8xf32>, memref<32x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#shared = #gpu.address_space<workgroup>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 2, 1>, repeats = array<i64: 1, 1>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
func.func private @no_scheme_kernel(%y: memref<32x8xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 8>, layout = #layout, contraction = {k = 8, instruction = "mma"}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    %zero = arith.constant dense<0.0> : vector<32x8xf32>
    %a = memref.alloc() : memref<32x8xf32, #shared>
    %b = memref.alloc() : memref<8x8xf32, #shared>
    %ta = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x8xf32, #shared>, vector<32x8xf32>
    %tb = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x8xf32, #shared>, vector<8x8xf32>
    // expected-error @below {{instruction 'mma' does not multiply f32 with f32 as ieee}}
    %acc = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %ta, %tb, %zero {fuse.instruction = "mma"}
        : vector<32x8xf32>, vector<8x8xf32> into vector<32x8xf32>
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<32x8xf32>, memref<32x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#shared = #gpu.address_space<workgroup>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>,
           blocks = array<i64: 1, 1>, run = array<i64: 4, 1>}

// Contiguous rows are one load, and so is the vector of columns. In a transposing copy 8 neighbouring threads read 8
// neighbouring elements of the source, and the next 8 threads those of the next row.
// CHECK-LABEL: gpu.func @side_by_side_kernel(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<16x8xf32>, %{{.*}} workgroup(%[[A:[a-z0-9]+]] : memref<8x16xf32, {{.*}}, %[[B:[a-z0-9]+]] : memref<8x16xf32,
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[THREAD:.*]] = gpu.thread_id
// CHECK: %[[PIECE:.*]] = arith.divui %[[THREAD]], %[[C8]] : index
// CHECK: %[[ROW:.*]] = arith.remui %[[PIECE]], %{{.*}} : index
// CHECK: %[[INNER:.*]] = arith.remui %[[THREAD]], %[[C8]] : index
// CHECK: nvgpu.device_async_copy %[[X]][%[[ROW]], %[[INNER]]], %[[A]][%[[INNER]], %[[ROW]]], 1
// CHECK: gpu.barrier
// CHECK: %[[ROWS:.*]] = vector.load %[[A]][%[[C0]], %{{.*}}] {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK: %[[FIRST:.*]] = vector.extract %[[ROWS]][0]
// CHECK: %[[LEFT:.*]] = vector.broadcast %[[FIRST]] : f32 to vector<2xf32>
// CHECK: %[[RIGHT:.*]] = vector.load %[[B]][%[[C0]], %{{.*}}] {alignment = 8 : i64} : {{.*}}, vector<2xf32>
// CHECK: math.fma %[[LEFT]], %[[RIGHT]], %{{.*}} : vector<2xf32>
// CHECK-NOT: vector.load
// CHECK-COUNT-3: math.fma
// CHECK: vector.load %[[A]][%c1, %{{.*}}] {alignment = 16 : i64}
func.func private @side_by_side_kernel(%x: memref<16x8xf32>, %w: memref<8x16xf32> {fuse.align = 16 : i64}, %y: memref<16x16xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 16, 16>, layout = #layout, contraction = {k = 8, instruction = "fma", transposed_operands = true}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    %zero = arith.constant dense<0.0> : vector<16x16xf32>
    %a = memref.alloc() : memref<8x16xf32, #shared>
    %b = memref.alloc() : memref<8x16xf32, #shared>
    "fuse.copy_tile"(%x, %a, %c0, %c0) {axes = array<i64: 1, 0>, clipped = array<i64>}
        : (memref<16x8xf32>, memref<8x16xf32, #shared>, index, index) -> ()
    "fuse.copy_tile"(%w, %b, %c0, %c0) {axes = array<i64: 0, 1>, clipped = array<i64>}
        : (memref<8x16xf32>, memref<8x16xf32, #shared>, index, index) -> ()
    gpu.barrier
    %ta = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x16xf32, #shared>, vector<8x16xf32>
    %tb = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x16xf32, #shared>, vector<8x16xf32>
    %acc = vector.contract {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %ta, %tb, %zero {fuse.instruction = "fma"}
        : vector<8x16xf32>, vector<8x16xf32> into vector<16x16xf32>
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#shared = #gpu.address_space<workgroup>
#layout = {vector = array<i64: 1, 1>, lanes = array<i64: 4, 8>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}

// Four steps along a contiguous k are one load. Of rows with a stride of 18 elements every second one is not aligned to
// four elements.
// CHECK-LABEL: gpu.func @along_k_kernel(
// CHECK-SAME: workgroup(%[[A:[a-z0-9]+]] : memref<4x20xf32, {{.*}}, %[[B:[a-z0-9]+]] : memref<8x18xf32,
// CHECK: %[[STEPS:.*]] = vector.load %[[A]][%{{.*}}, %c0] {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK-COUNT-4: memref.load %[[B]]
// CHECK: vector.load %[[A]][%{{.*}}, %c4] {alignment = 16 : i64}
func.func private @along_k_kernel(%y: memref<4x8xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 4, 8>, layout = #layout, contraction = {k = 8, instruction = "fma"}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    %zero = arith.constant dense<0.0> : vector<4x8xf32>
    %a = memref.alloc() : memref<4x20xf32, #shared>
    %b = memref.alloc() : memref<8x18xf32, #shared>
    %ta = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<4x20xf32, #shared>, vector<4x8xf32>
    %tb = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x18xf32, #shared>, vector<8x8xf32>
    %acc = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %ta, %tb, %zero {fuse.instruction = "fma"}
        : vector<4x8xf32>, vector<8x8xf32> into vector<4x8xf32>
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<4x8xf32>, memref<4x8xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
