// RUN: mlirfuse-opt --fuse-rematerialize --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#shared = #gpu.address_space<workgroup>
// The tile is read again, and cast again, where the first op after the reduction uses it; the row value is used as it is.
// CHECK-LABEL: func.func private @again
// CHECK-SAME: %[[S:[a-z0-9]+]]: memref<8x1x256xbf16, #gpu.address_space<workgroup>>
// CHECK: scf.for
// CHECK: %[[SLOT:.*]] = memref.subview %[[S]]
// CHECK: %[[X:.*]] = vector.transfer_read %[[SLOT]]
// CHECK-NEXT: %[[W:.*]] = arith.extf %[[X]]
// CHECK-NEXT: vector.multi_reduction <add>, %[[W]]
// CHECK-NEXT: %[[MEAN:.*]] = vector.shape_cast
// CHECK-NEXT: %[[MEANS:.*]] = vector.broadcast %[[MEAN]]
// CHECK-NEXT: %[[X2:.*]] = vector.transfer_read %[[SLOT]]
// CHECK-NEXT: %[[W2:.*]] = arith.extf %[[X2]]
// CHECK-NEXT: %[[D:.*]] = arith.subf %[[W2]], %[[MEANS]]
// One copy serves all uses before the same reduction.
// CHECK-NEXT: arith.mulf %[[D]], %[[W2]]
// expected-remark @below {{2 op(s) repeated after a reduction}}
func.func private @again(%s: memref<8x1x256xbf16, #shared>, %y: memref<8x256xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, order = "depth", layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%block) in (1) {
    scf.for %t = %c0 to %c8 step %c1 {
      %slot = memref.subview %s[%t, 0, 0] [1, 1, 256] [1, 1, 1]
          : memref<8x1x256xbf16, #shared> to memref<1x256xbf16, strided<[256, 1], offset: ?>, #shared>
      %x = vector.transfer_read %slot[%c0, %c0], %pad {in_bounds = [true, true]}
          : memref<1x256xbf16, strided<[256, 1], offset: ?>, #shared>, vector<1x256xbf16>
      %w = arith.extf %x : vector<1x256xbf16> to vector<1x256xf32>
      %sum = vector.multi_reduction <add>, %w, %zero [1] : vector<1x256xf32> to vector<1xf32>
      %mean = vector.shape_cast %sum : vector<1xf32> to vector<1x1xf32>
      %means = vector.broadcast %mean : vector<1x1xf32> to vector<1x256xf32>
      %d = arith.subf %w, %means : vector<1x256xf32>
      %p = arith.mulf %d, %w : vector<1x256xf32>
      vector.transfer_write %p, %y[%t, %c0] {in_bounds = [true, true]} : vector<1x256xf32>, memref<8x256xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#shared = #gpu.address_space<workgroup>
// Two reductions share one exchange; an optimization barrier in front of the first is replaced by one behind it.
// CHECK-LABEL: func.func private @one_round
// CHECK: %[[C:.*]] = arith.constant dense<1.000000e+00> : vector<1x256xbf16>
// CHECK: vector.multi_reduction <add>
// CHECK: %[[MAX:.*]] = vector.multi_reduction <maximumf>
// CHECK-NOT: vector.transfer_read
// CHECK: vector.broadcast
// CHECK: vector.broadcast
// CHECK: %[[AFTER:.*]] = vector.shape_cast %[[MAX]] : vector<1xf32> to vector<1x1xf32>
// CHECK: %[[BARRIER:.*]] = "fuse.optimization_barrier"(%[[C]], %[[AFTER]])
// CHECK: arith.extf %[[BARRIER]]
// CHECK: arith.mulf
// CHECK: vector.transfer_write
// expected-remark @below {{op(s) repeated after a reduction}}
func.func private @one_round(%s: memref<1x256xbf16, #shared>, %y: memref<8x256xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, order = "depth", layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : bf16
  %column = arith.constant dense<1.0> : vector<1x256xbf16>
  %row = arith.constant dense<0> : vector<1x1xi32>
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%block) in (1) {
    scf.for %t = %c0 to %c8 step %c1 {
      %opaque = "fuse.optimization_barrier"(%column, %row) : (vector<1x256xbf16>, vector<1x1xi32>) -> vector<1x256xbf16>
      %b = arith.extf %opaque : vector<1x256xbf16> to vector<1x256xf32>
      %x = vector.transfer_read %s[%c0, %c0], %pad {in_bounds = [true, true]} : memref<1x256xbf16, #shared>, vector<1x256xbf16>
      %w = arith.extf %x : vector<1x256xbf16> to vector<1x256xf32>
      %sum = vector.multi_reduction <add>, %w, %zero [1] : vector<1x256xf32> to vector<1xf32>
      %max = vector.multi_reduction <maximumf>, %w, %zero [1] : vector<1x256xf32> to vector<1xf32>
      %s1 = vector.shape_cast %sum : vector<1xf32> to vector<1x1xf32>
      %m1 = vector.shape_cast %max : vector<1xf32> to vector<1x1xf32>
      %sums = vector.broadcast %s1 : vector<1x1xf32> to vector<1x256xf32>
      %maxima = vector.broadcast %m1 : vector<1x1xf32> to vector<1x256xf32>
      %d = arith.subf %sums, %maxima : vector<1x256xf32>
      %p = arith.mulf %d, %b : vector<1x256xf32>
      vector.transfer_write %p, %y[%t, %c0] {in_bounds = [true, true]} : vector<1x256xf32>, memref<8x256xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#shared = #gpu.address_space<workgroup>
// The slot holds another tile by then.
// expected-remark @below {{no tile of shared memory is used across a reduction}}
func.func private @overwritten(%a: memref<8x256xbf16>, %s: memref<1x256xbf16, #shared>, %y: memref<8x256xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, order = "depth", layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%block) in (1) {
    scf.for %t = %c0 to %c8 step %c1 {
      %x = vector.transfer_read %s[%c0, %c0], %pad {in_bounds = [true, true]} : memref<1x256xbf16, #shared>, vector<1x256xbf16>
      %w = arith.extf %x : vector<1x256xbf16> to vector<1x256xf32>
      %sum = vector.multi_reduction <add>, %w, %zero [1] : vector<1x256xf32> to vector<1xf32>
      "fuse.copy_fragments"(%a, %s, %t, %c0) {tile = array<i64: 1, 256>, permutation_map = affine_map<(d0, d1) -> (d0, d1)>, in_bounds = [true, true]}
          : (memref<8x256xbf16>, memref<1x256xbf16, #shared>, index, index) -> ()
      %mean = vector.shape_cast %sum : vector<1xf32> to vector<1x1xf32>
      %means = vector.broadcast %mean : vector<1x1xf32> to vector<1x256xf32>
      %d = arith.subf %w, %means : vector<1x256xf32>
      vector.transfer_write %d, %y[%t, %c0] {in_bounds = [true, true]} : vector<1x256xf32>, memref<8x256xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// Device memory is not read twice, and a division is not repeated.
// expected-remark @below {{no tile of shared memory is used across a reduction}}
func.func private @expensive(%a: memref<8x256xf32>, %s: memref<1x256xf32, #gpu.address_space<workgroup>>, %y: memref<8x256xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, order = "depth", layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%block) in (1) {
    scf.for %t = %c0 to %c8 step %c1 {
      %x = vector.transfer_read %a[%t, %c0], %pad {in_bounds = [true, true]} : memref<8x256xf32>, vector<1x256xf32>
      %z = vector.transfer_read %s[%c0, %c0], %pad {in_bounds = [true, true]} : memref<1x256xf32, #gpu.address_space<workgroup>>, vector<1x256xf32>
      %q = arith.divf %z, %x : vector<1x256xf32>
      %sum = vector.multi_reduction <add>, %q, %zero [1] : vector<1x256xf32> to vector<1xf32>
      %mean = vector.shape_cast %sum : vector<1xf32> to vector<1x1xf32>
      %means = vector.broadcast %mean : vector<1x1xf32> to vector<1x256xf32>
      %d = arith.subf %q, %means : vector<1x256xf32>
      %e = arith.mulf %d, %x : vector<1x256xf32>
      vector.transfer_write %e, %y[%t, %c0] {in_bounds = [true, true]} : vector<1x256xf32>, memref<8x256xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// expected-remark @below {{scheduled with order = 'breadth', which does not save registers}}
func.func private @breadth() attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  scf.forall (%block) in (8) {
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// expected-error @below {{kernel has no fuse.schedule}}
func.func private @unscheduled() attributes {fuse.kernel} {
  scf.forall (%block) in (8) {
  } {mapping = [#gpu.block<x>]}
  return
}
