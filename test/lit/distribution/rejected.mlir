// RUN: mlirfuse-opt --fuse-distribute --split-input-file --verify-diagnostics=only-expected %s

// Ops and tiles without a distribution rule are errors at the op.

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @no_rule_kernel(%x: memref<8x128xf32>, %y: memref<8x128xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%row) in (8) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<8x128xf32>, vector<1x128xf32>
    // expected-error @below {{no distribution rule for vector.interleave}}
    %2 = vector.interleave %0, %0 : vector<1x128xf32> -> vector<1x256xf32>
    %1 = vector.extract_strided_slice %2 {offsets = [0, 0], sizes = [1, 128], strides = [1, 1]} : vector<1x256xf32> to vector<1x128xf32>
    vector.transfer_write %1, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x128xf32>, memref<8x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @several_numbers_kernel(%x: memref<8x128xf32>, %y: memref<8x128xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%row) in (8) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<8x128xf32>, vector<1x128xf32>
    // expected-error @below {{tile constants must be splats}}
    %c = arith.constant dense<"0x000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F"> : vector<1x128xf32>
    %1 = arith.addf %0, %c : vector<1x128xf32>
    vector.transfer_write %1, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x128xf32>, memref<8x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @folded_kernel(%x: memref<8x128xf32>, %y: memref<8x128xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%row) in (8) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<8x128xf32>, vector<1x128xf32>
    // expected-error @below {{a tile's shape_cast may only add or drop extents of 1}}
    %2 = vector.shape_cast %0 : vector<1x128xf32> to vector<2x64xf32>
    %1 = vector.shape_cast %2 : vector<2x64xf32> to vector<1x128xf32>
    vector.transfer_write %1, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x128xf32>, memref<8x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @element_kernel(%x: memref<8x128xf32>, %y: memref<8x128xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%row) in (8) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<8x128xf32>, vector<1x128xf32>
    // expected-error @below {{only a tile of one element becomes a scalar, not vector<1x128xf32>}}
    %2 = vector.extract %0[0, 5] : f32 from vector<1x128xf32>
    %1 = vector.broadcast %2 : f32 to vector<1x128xf32>
    vector.transfer_write %1, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x128xf32>, memref<8x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @carried_kernel(%x: memref<8x128xf32>, %y: memref<8x128xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%row) in (8) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<8x128xf32>, vector<1x128xf32>
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    // expected-error @below {{a loop may carry tiles of rank 2, not vector<128xf32>}}
    %flat = vector.shape_cast %0 : vector<1x128xf32> to vector<128xf32>
    %2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%v = %flat) -> (vector<128xf32>) {
      %3 = arith.addf %v, %v : vector<128xf32>
      scf.yield %3 : vector<128xf32>
    }
    %1 = vector.shape_cast %2 : vector<128xf32> to vector<1x128xf32>
    vector.transfer_write %1, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x128xf32>, memref<8x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
#wider = {vector = array<i64: 1, 2>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 2>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
// expected-error @below {{the kernel's layouts differ in their number of threads}}
func.func private @sizes_kernel(%x: memref<8x128xf32>, %y: memref<8x128xf32>)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%row) in (8) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #wider, in_bounds = [true, true]} : memref<8x128xf32>, vector<1x128xf32>
    vector.transfer_write %0, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x128xf32>, memref<8x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

#layout = {vector = array<i64: 1, 4>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 1>, blocks = array<i64: 1, 1>}
func.func private @condition_kernel(%x: memref<8x128xf32>, %y: memref<8x128xf32>, %more: i1)
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 128>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%row) in (8) {
    %0 = vector.transfer_read %x[%row, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<8x128xf32>, vector<1x128xf32>
    // expected-error @below {{an scf.while may carry scalars only, no tiles}}
    %1 = scf.while (%v = %0) : (vector<1x128xf32>) -> vector<1x128xf32> {
      scf.condition(%more) %v : vector<1x128xf32>
    } do {
    ^bb0(%v: vector<1x128xf32>):
      %2 = arith.addf %v, %v : vector<1x128xf32>
      scf.yield %2 : vector<1x128xf32>
    }
    vector.transfer_write %1, %y[%row, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x128xf32>, memref<8x128xf32>
  } {mapping = [#gpu.block<x>]}
  return
}
