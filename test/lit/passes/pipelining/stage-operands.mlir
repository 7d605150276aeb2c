// RUN: mlirfuse-opt --fuse-stage-operands --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}

// Rows of 64 bytes are 80 apart, so that eight of them have no bank conflicts. Three stages: two steps are copied ahead.
// CHECK-LABEL: func.func private @ring_0_kernel(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x160xf16>, %[[W:[a-z0-9]+]]: memref<160x64xf16>
// CHECK: %[[RA:.*]] = memref.alloc() : memref<3x32x40xf16, #gpu.address_space<workgroup>>
// CHECK: %[[RB:.*]] = memref.alloc() : memref<3x32x40xf16, #gpu.address_space<workgroup>>
// CHECK: scf.if
// CHECK: "fuse.copy_tile"(%[[X]], %{{.*}}) {axes = array<i64: 0, 1>, clipped = array<i64: 0>}
// CHECK: "fuse.copy_tile"(%[[W]], %{{.*}}) {axes = array<i64: 0, 1>, clipped = array<i64>}
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.for %[[K:.*]] = %[[LOWER:.*]] to %[[UPPER:.*]] step %[[STEP:.*]] iter_args
// CHECK: %[[FROM:.*]] = arith.subi %[[K]], %[[LOWER]]
// CHECK: %[[NUMBER:.*]] = arith.divui %[[FROM]], %[[STEP]]
// CHECK: nvvm.cp.async.wait.group 1
// CHECK-NEXT: gpu.barrier
// The slot of the previous step is filled for the step after the next one.
// CHECK: %[[AHEAD:.*]] = arith.addi %[[K]]
// CHECK: arith.cmpi ult, %[[AHEAD]], %[[UPPER]]
// CHECK: scf.if
// CHECK: memref.subview %[[RA]]
// CHECK: "fuse.copy_tile"(%[[X]], %{{.*}}, %{{.*}}, %[[AHEAD]])
// CHECK: nvvm.cp.async.commit.group
// CHECK: %[[SLOT:.*]] = arith.remui %[[NUMBER]]
// CHECK: %[[A:.*]] = memref.subview %[[RA]][%[[SLOT]], 0, 0] [1, 32, 32]
// CHECK: vector.transfer_read %[[A]]{{.*}} : memref<32x32xf16, strided<[40, 1], offset: ?>, #gpu.address_space<workgroup>>, vector<32x32xf16>
// CHECK: vector.contract
func.func private @ring_0_kernel(%x: memref<?x160xf16>, %w: memref<160x64xf16>, %y: memref<?x64xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout,
                contraction = {k = 32, instruction = "mma", stages = 3}}} {
  scf.forall (%block) in (2) {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c160 = arith.constant 160 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %column = arith.muli %block, %c32 : index
    %acc = scf.for %k = %c0 to %c160 step %c32 iter_args(%sum = %zero) -> (vector<32x32xf32>) {
      %a = vector.transfer_read %x[%c0, %k], %pad {in_bounds = [false, true]} : memref<?x160xf16>, vector<32x32xf16>
      %b = vector.transfer_read %w[%k, %column], %pad {in_bounds = [true, true]} : memref<160x64xf16>, vector<32x32xf16>
      %next = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %sum
          : vector<32x32xf16>, vector<32x32xf16> into vector<32x32xf32>
      scf.yield %next : vector<32x32xf32>
    }
    vector.transfer_write %acc, %y[%c0, %column] {in_bounds = [false, true]} : vector<32x32xf32>, memref<?x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}

// A single step, whose loop is gone, waits for its copies at once. A column-major operand: its axes are swapped.
// CHECK-LABEL: func.func private @once_0_kernel(
// CHECK: memref.alloc() : memref<1x16x40xf16,
// CHECK: memref.alloc() : memref<1x16x40xf16,
// CHECK: "fuse.copy_tile"{{.*}} {axes = array<i64: 1, 0>, clipped = array<i64>}
// CHECK: "fuse.copy_tile"
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NEXT: gpu.barrier
// CHECK: vector.contract
func.func private @once_0_kernel(%x: memref<32x16xf16, strided<[1, 32]>>, %w: memref<16x32xf16>, %y: memref<32x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout, contraction = {k = 16, instruction = "mma"}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %a = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>}
        : memref<32x16xf16, strided<[1, 32]>>, vector<16x32xf16>
    %b = vector.transfer_read %w[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x32xf16>, vector<16x32xf16>
    %acc = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        %a, %b, %zero : vector<16x32xf16>, vector<16x32xf16> into vector<32x32xf32>
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}

// Two contractions of the same operands, as `canonicalize` makes of a product and a sum with it, share the copies.
// CHECK-LABEL: func.func private @shared_0_kernel(
// CHECK-COUNT-2: "fuse.copy_tile"
// CHECK-NOT: "fuse.copy_tile"
// CHECK: %[[A:.*]] = vector.transfer_read %{{.*}} : memref<32x16xf16, {{.*}}>, vector<32x16xf16>
// CHECK: %[[B:.*]] = vector.transfer_read %{{.*}} : memref<16x32xf16, {{.*}}>, vector<16x32xf16>
// CHECK: vector.contract {{.*}} %[[A]], %[[B]], %cst
// CHECK: vector.contract {{.*}} %[[A]], %[[B]], %cst
func.func private @shared_0_kernel(%x: memref<32x16xf16>, %w: memref<16x32xf16>, %y: memref<32x32xf32>, %z: memref<32x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout, contraction = {k = 16, instruction = "mma"}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %one = arith.constant dense<1.0> : vector<32x32xf32>
    %a = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x16xf16>, vector<32x16xf16>
    %b = vector.transfer_read %w[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x32xf16>, vector<16x32xf16>
    %p = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        %a, %b, %zero : vector<32x16xf16>, vector<16x32xf16> into vector<32x32xf32>
    %q = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        %a, %b, %one : vector<32x16xf16>, vector<16x32xf16> into vector<32x32xf32>
    vector.transfer_write %p, %y[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
    vector.transfer_write %q, %z[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
// expected-remark @below {{nothing contracts tiles that it reads from device memory}}
func.func private @nothing_0_kernel(%y: memref<32x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout, contraction = {k = 32, instruction = "mma"}}} {
  scf.forall (%block) in (1) {
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 1, 2>, repeats = array<i64: 2, 2>,
           blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}

// A tile that is broadcast along rows has no axis to copy along, and is read in place; the others are staged.
// CHECK-LABEL: func.func private @repeated_0_kernel(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<1x64xf16>, %[[Z:[a-z0-9]+]]: memref<32x64xf16>, %[[W:[a-z0-9]+]]: memref<64x32xf16>
// CHECK-NOT: "fuse.copy_tile"(%[[X]]
// CHECK: scf.for
// CHECK: "fuse.copy_tile"(%[[Z]]
// CHECK: "fuse.copy_tile"(%[[W]]
// CHECK: vector.transfer_read %[[X]]
// CHECK: vector.contract
// expected-remark @below {{a tile that is broadcast along a dimension is read in place, without a copy}}
func.func private @repeated_0_kernel(%x: memref<1x64xf16>, %z: memref<32x64xf16>, %w: memref<64x32xf16>, %y: memref<32x32xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 32, 32>, layout = #layout, contraction = {k = 32, instruction = "mma", stages = 2}}} {
  scf.forall (%block) in (1) {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %acc = scf.for %k = %c0 to %c64 step %c32 iter_args(%sum = %zero) -> (vector<32x32xf32>) {
      %repeated = vector.transfer_read %x[%c0, %k], %pad {fuse.layout = #layout, in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (0, d1)>}
          : memref<1x64xf16>, vector<32x32xf16>
      %varying = vector.transfer_read %z[%c0, %k], %pad {fuse.layout = #layout, in_bounds = [true, true]}
          : memref<32x64xf16>, vector<32x32xf16>
      %a = arith.mulf %repeated, %varying : vector<32x32xf16>
      %b = vector.transfer_read %w[%k, %c0], %pad {in_bounds = [true, true]} : memref<64x32xf16>, vector<32x32xf16>
      %next = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %sum
          : vector<32x32xf16>, vector<32x32xf16> into vector<32x32xf32>
      scf.yield %next : vector<32x32xf32>
    }
    vector.transfer_write %acc, %y[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 2>, lanes = array<i64: 8, 4>, warps = array<i64: 8, 1>, repeats = array<i64: 1, 2>, blocks = array<i64: 1, 1>, inner = array<i64: 2, 1>}
#schedule = {tile = array<i64: 128, 16>, layout = #layout, contraction = {k = 64 : i64, instruction = "mma", stages = 3 : i64}}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// What is summed up of an operand is read from the slot that the product reads.
// CHECK-LABEL: func.func @summed
// CHECK-COUNT-2: memref.alloc()
// CHECK-NOT: memref.alloc()
// CHECK: scf.for
// CHECK: %[[TILE:.*]] = vector.transfer_read %[[SLOT:.*]][%{{.*}}, %{{.*}}], {{.*}} vector<128x64xbf16>
// CHECK: %[[C16:.*]] = arith.constant 16 : index
// CHECK: vector.transfer_read %[[SLOT]][%{{.*}}, %[[C16]]], {{.*}} vector<128x16xbf16>
func.func @summed(%A: memref<128x512xbf16> {fuse.align = 16 : i64}, %B: memref<16x512xbf16> {fuse.align = 16 : i64}, %C: memref<128x16xf32>, %D: memref<128xf32>)
    attributes {fuse.kernel, fuse.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<128x16xf32>
  %zeros = arith.constant dense<0.0> : vector<128x8xf32>
  %flat = arith.constant dense<0.0> : vector<128xf32>
  scf.forall (%block) in (1) {
    %acc:2 = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero, %part = %zeros) -> (vector<128x16xf32>, vector<128x8xf32>) {
      %x = vector.transfer_read %A[%c0, %k], %pad {in_bounds = [true, true]} : memref<128x512xbf16>, vector<128x64xbf16>
      %w = vector.transfer_read %B[%c0, %k], %pad {in_bounds = [true, true]} : memref<16x512xbf16>, vector<16x64xbf16>
      %next = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
              %x, %w, %sum {fuse.instruction = "mma"} : vector<128x64xbf16>, vector<16x64xbf16> into vector<128x16xf32>
      %t = "fuse.operand_tile"(%x) {first = 16 : i64} : (vector<128x64xbf16>) -> vector<128x16xbf16>
      %e = arith.extf %t : vector<128x16xbf16> to vector<128x16xf32>
      %left = vector.extract_strided_slice %e {offsets = [0, 0], sizes = [128, 8], strides = [1, 1]} : vector<128x16xf32> to vector<128x8xf32>
      %right = vector.extract_strided_slice %e {offsets = [0, 8], sizes = [128, 8], strides = [1, 1]} : vector<128x16xf32> to vector<128x8xf32>
      %one = arith.addf %part, %left : vector<128x8xf32>
      %two = arith.addf %one, %right : vector<128x8xf32>
      scf.yield %next, %two : vector<128x16xf32>, vector<128x8xf32>
    }
    %s = vector.multi_reduction <add>, %acc#1, %flat [1] : vector<128x8xf32> to vector<128xf32>
    vector.transfer_write %s, %D[%c0] {in_bounds = [true], fuse.dims = array<i64: 0>} : vector<128xf32>, memref<128xf32>
    vector.transfer_write %acc#0, %C[%c0, %c0] {in_bounds = [true, true]} : vector<128x16xf32>, memref<128x16xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
