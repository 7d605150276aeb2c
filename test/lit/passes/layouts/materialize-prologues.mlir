// RUN: mlirfuse-opt --fuse-materialize-prologues --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#rows = affine_map<(d0) -> (d0, 0)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}

// Operand B is computed in a layout of its own, and stored for all threads to read. Scales do not change from
// step to step.
// CHECK-LABEL: func.func private @scaled_0_kernel(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<32x160xf16>, %[[Q:[a-z0-9]+]]: memref<64x160xi8>, %[[S:[a-z0-9]+]]: memref<64xf16>
// CHECK: %[[SCALES:.*]] = vector.transfer_read %[[S]]{{.*}}fuse.layout = {blocks = array<i64: 1, 1>, lanes = array<i64: 8, 4>, repeats = array<i64: 2, 1>, vector = array<i64: 1, 8>, warps = array<i64: 2, 1>}
// CHECK: %[[SLOTS:.*]] = memref.alloc() : memref<2x32x40xf16, #gpu.address_space<workgroup>>
// CHECK: scf.for %[[K:.*]] = %[[LOWER:.*]] to %{{.*}} step %[[STEP:.*]] iter_args
// CHECK: %[[GONE:.*]] = arith.subi %[[K]], %[[LOWER]]
// CHECK: %[[NUMBER:.*]] = arith.divui %[[GONE]], %[[STEP]]
// CHECK: %[[SLOT:.*]] = arith.remui %[[NUMBER]], %{{.*}}
// CHECK: %[[A:.*]] = vector.transfer_read %[[X]]
// CHECK-NOT: fuse.layout
// CHECK: %[[RAW:.*]] = vector.transfer_read %[[Q]]{{.*}}fuse.layout
// CHECK: %[[F:.*]] = arith.sitofp %[[RAW]]
// CHECK: %[[WIDE:.*]] = vector.broadcast %[[SCALES]]
// CHECK: %[[B:.*]] = arith.mulf %[[F]], %[[WIDE]]
// CHECK: %[[IN:.*]] = memref.subview %[[SLOTS]][%[[SLOT]], 0, 0] [1, 32, 32]
// CHECK: vector.transfer_write %[[B]], %[[IN]]{{.*}}fuse.layout
// CHECK: gpu.barrier
// CHECK: %[[OUT:.*]] = memref.subview %[[SLOTS]][%[[SLOT]], 0, 0]
// CHECK: %[[STORED:.*]] = vector.transfer_read %[[OUT]]
// CHECK: vector.contract {{.*}} %[[A]], %[[STORED]]
func.func private @scaled_0_kernel(%x: memref<32x160xf16>, %q: memref<64x160xi8>, %s: memref<64xf16>, %y: memref<32x64xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout,
                contraction = {k = 32, instruction = "mma", stages = 3}}} {
  scf.forall (%block) in (2) {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c160 = arith.constant 160 : index
    %pad = arith.constant 0.0 : f16
    %pad8 = arith.constant 0 : i8
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %column = arith.muli %block, %c32 : index
    %acc = scf.for %k = %c0 to %c160 step %c32 iter_args(%sum = %zero) -> (vector<32x32xf32>) {
      %a = vector.transfer_read %x[%c0, %k], %pad {in_bounds = [true, true]} : memref<32x160xf16>, vector<32x32xf16>
      %raw = vector.transfer_read %q[%column, %k], %pad8 {in_bounds = [true, true]} : memref<64x160xi8>, vector<32x32xi8>
      %f = arith.sitofp %raw : vector<32x32xi8> to vector<32x32xf16>
      %scale = vector.transfer_read %s[%column], %pad {in_bounds = [true, true], permutation_map = #rows} : memref<64xf16>, vector<32x1xf16>
      %wide = vector.broadcast %scale : vector<32x1xf16> to vector<32x32xf16>
      %b = arith.mulf %f, %wide : vector<32x32xf16>
      // expected-remark @below {{1 operand(s) computed in a layout of their own}}
      %next = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %sum
          : vector<32x32xf16>, vector<32x32xf16> into vector<32x32xf32>
      scf.yield %next : vector<32x32xf32>
    }
    vector.transfer_write %acc, %y[%c0, %column] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 4, 1>, repeats = array<i64: 1, 4>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}

// A single step needs one slot. Tensor maps cannot describe what is computed, so wgmma's layout is multiplied by mma.
// CHECK-LABEL: func.func private @one_step_0_kernel(
// CHECK: memref.alloc() : memref<1x64x24xf16, #gpu.address_space<workgroup>>
// CHECK: math.absf
// CHECK: vector.transfer_write
// CHECK: gpu.barrier
// CHECK: vector.contract {{.*}} {fuse.instruction = "mma"}
func.func private @one_step_0_kernel(%x: memref<64x16xf16>, %w: memref<32x16xf16>, %y: memref<64x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 64, 32>, layout = #layout,
                contraction = {k = 16, instruction = "wgmma", stages = 3}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<64x32xf32>
    %raw = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<64x16xf16>, vector<64x16xf16>
    %a = math.absf %raw : vector<64x16xf16>
    %b = vector.transfer_read %w[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x16xf16>, vector<32x16xf16>
    // expected-remark @below {{1 operand(s) computed in a layout of their own for mma}}
    %acc = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                            fuse.instruction = "wgmma"} %a, %b, %zero
        : vector<64x16xf16>, vector<32x16xf16> into vector<64x32xf32>
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<64x32xf32>, memref<64x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 4>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}

// CHECK-LABEL: func.func private @plain_0_kernel(
// CHECK-NOT: memref.alloc
func.func private @plain_0_kernel(%x: memref<32x16xf16>, %w: memref<32x16xf16>, %y: memref<32x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout,
                contraction = {k = 16, instruction = "mma"}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %a = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x16xf16>, vector<32x16xf16>
    %b = vector.transfer_read %w[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x16xf16>, vector<32x16xf16>
    // expected-remark @below {{the operands are read from memory as they are}}
    %acc = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %zero
        : vector<32x16xf16>, vector<32x16xf16> into vector<32x32xf32>
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#one = affine_map<(d0) -> (0, 0)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 1>, repeats = array<i64: 2, 4>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}

// A read that the operand shares with a store, which is in another layout, is cloned for the operand; the broadcast of a
// mask that both operands share is cloned for each.
// CHECK-LABEL: func.func private @shared_0_kernel(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<32x16xf16>, %[[W:[a-z0-9]+]]: memref<32x16xf16>, %[[S:[a-z0-9]+]]: memref<1xi1>
// CHECK: %[[FLAG_A:.*]] = vector.transfer_read %[[S]]{{.*}}fuse.layout
// CHECK: %[[FLAG_B:.*]] = vector.transfer_read %[[S]]{{.*}}fuse.layout
// CHECK-NOT: vector.transfer_read %[[S]]
// CHECK: %[[WIDE_A:.*]] = vector.broadcast %[[FLAG_A]]
// CHECK: %[[WIDE_B:.*]] = vector.broadcast %[[FLAG_B]]
// CHECK: %[[RAW:.*]] = vector.transfer_read %[[X]]{{.*}}fuse.layout
// CHECK: %[[OTHER:.*]] = vector.transfer_read %[[X]]
// CHECK-NOT: fuse.layout
// CHECK: %[[A:.*]] = arith.select %[[WIDE_A]], %[[RAW]]
// CHECK: vector.transfer_write %[[A]]{{.*}}fuse.layout
// CHECK: %[[B_RAW:.*]] = vector.transfer_read %[[W]]{{.*}}fuse.layout
// CHECK: %[[B:.*]] = arith.select %[[WIDE_B]], %[[B_RAW]]
// CHECK: vector.transfer_write %[[B]]{{.*}}fuse.layout
// CHECK: vector.contract
// CHECK: vector.transfer_write %[[OTHER]]
func.func private @shared_0_kernel(%x: memref<32x16xf16>, %w: memref<32x16xf16>, %s: memref<1xi1>,
    %y: memref<32x32xf32>, %z: memref<32x16xf16>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout,
                contraction = {k = 16, instruction = "mma"}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f16
    %no = arith.constant false
    %nothing = arith.constant dense<0.0> : vector<32x16xf16>
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %flag = vector.transfer_read %s[%c0], %no {in_bounds = [true, true], permutation_map = #one} : memref<1xi1>, vector<1x1xi1>
    %wide = vector.broadcast %flag : vector<1x1xi1> to vector<32x16xi1>
    %raw = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x16xf16>, vector<32x16xf16>
    %a = arith.select %wide, %raw, %nothing : vector<32x16xi1>, vector<32x16xf16>
    %b_raw = vector.transfer_read %w[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x16xf16>, vector<32x16xf16>
    %b = arith.select %wide, %b_raw, %nothing : vector<32x16xi1>, vector<32x16xf16>
    // expected-remark @below {{2 operand(s) computed in a layout of their own}}
    %acc = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %zero
        : vector<32x16xf16>, vector<32x16xf16> into vector<32x32xf32>
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
    vector.transfer_write %raw, %z[%c0, %c0] {in_bounds = [true, true]} : vector<32x16xf16>, memref<32x16xf16>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 1>, lanes = array<i64: 4, 8>, warps = array<i64: 2, 1>, repeats = array<i64: 2, 4>,
           blocks = array<i64: 1, 1>}

// An operand of ones up to the last of 33 columns has no reads: its mask gets the layout that reads would have. Another use
// of the mask has a clone.
// CHECK-LABEL: func.func private @masked_0_kernel(
// CHECK: %[[MASK:.*]] = vector.create_mask %{{.*}} {fuse.layout = {{.*}}} : vector<16x32xi1>
// CHECK: %[[OTHER:.*]] = vector.create_mask %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : vector<16x32xi1>
// CHECK: %[[ONES:.*]] = arith.select %[[MASK]]
// CHECK: vector.transfer_write %[[ONES]]{{.*}}fuse.layout
// CHECK: arith.select %[[OTHER]]
func.func private @masked_0_kernel(%x: memref<32x33xi32>, %y: memref<16x32xi32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 16, 32>, layout = #layout,
                contraction = {k = 32, instruction = "fma", stages = 2}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c33 = arith.constant 33 : index
    %pad = arith.constant 0 : i32
    %ones = arith.constant dense<1> : vector<16x32xi32>
    %zero = arith.constant dense<0> : vector<16x32xi32>
    %acc = scf.for %k = %c0 to %c33 step %c32 iter_args(%sum = %zero) -> (vector<16x32xi32>) {
      %left = arith.subi %c33, %k : index
      %mask = vector.create_mask %c16, %left : vector<16x32xi1>
      %a = arith.select %mask, %ones, %zero : vector<16x32xi1>, vector<16x32xi32>
      %b = vector.transfer_read %x[%c0, %k], %pad : memref<32x33xi32>, vector<32x32xi32>
      // expected-remark @below {{1 operand(s) computed in a layout of their own}}
      %next = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %sum
          : vector<16x32xi32>, vector<32x32xi32> into vector<16x32xi32>
      %some = arith.select %mask, %next, %sum : vector<16x32xi1>, vector<16x32xi32>
      scf.yield %some : vector<16x32xi32>
    }
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<16x32xi32>, memref<16x32xi32>
  } {mapping = [#gpu.block<x>]}
  return
}
