// RUN: mlirfuse-opt %s --split-input-file --verify-diagnostics
// RUN: mlirfuse-opt %s --split-input-file --verify-diagnostics --fuse-verify

// Names, types and carriers of discardable attributes.

func.func @legal(%x: memref<8xf32> {fuse.name = "x", fuse.align = 16 : i64}) attributes {fuse.kernel} {
  return
}

// -----

// expected-error @below {{'func.func' op has an unknown attribute fuse.kernal}}
func.func @unknown() attributes {fuse.kernal} {
  return
}

// -----

// expected-error @below {{argument 0 of 'func.func' op has an unknown attribute fuse.alignment}}
func.func @unknown_of_an_argument(%x: memref<8xf32> {fuse.alignment = 16 : i64}) {
  return
}

// -----

func.func @unknown_of_an_op() {
  // expected-error @below {{'arith.constant' op has an unknown attribute fuse.zzz}}
  %0 = arith.constant {fuse.zzz} 0 : i32
  return
}

// -----

// expected-error @below {{kind: fuse.schedule is 1 : i64, and must be a dictionary}}
func.func @kind() attributes {fuse.schedule = 1 : i64} {
  return
}

// -----

// expected-error @below {{align: fuse.align of argument 0 is 3 : i64, and must be 1, 2, 4, 8 or 16}}
func.func @align(%x: memref<8xf32> {fuse.align = 3 : i64}) {
  return
}

// -----

// expected-error @below {{strides: fuse.strides of argument 1 has 1 entries for memref<8x8xf32>}}
func.func @strides(%n: i64, %x: memref<8x8xf32> {fuse.strides = [1]}) {
  return
}

// -----

// expected-error @below {{carrier: fuse.align is on 'func.func' op}}
func.func @carrier() attributes {fuse.align = 16 : i64} {
  return
}

// -----

// expected-error @below {{carrier_argument: fuse.grid is on an argument of 'func.func' op}}
func.func @carrier_argument(%x: memref<8xf32> {fuse.grid = affine_map<() -> (1)>}) {
  return
}

// -----

func.func @carrier_op() {
  // expected-error @below {{fuse.in_order is on 'arith.constant' op}}
  %0 = arith.constant {fuse.in_order} 0 : i32
  return
}

// -----

// expected-error @below {{no_argument: fuse.result_extents names argument 9 of 1}}
func.func private @no_argument(%x: tensor<?x64xf16>) -> tensor<?x64xf16> attributes {fuse.result_extents = array<i64: 9, 0>} {
  return %x : tensor<?x64xf16>
}

// -----

// expected-error @below {{no_dimension: fuse.result_extents names dimension 2 of argument 0, which has 2}}
func.func private @no_dimension(%x: tensor<?x64xf16>) -> tensor<?x64xf16> attributes {fuse.result_extents = array<i64: 0, 2>} {
  return %x : tensor<?x64xf16>
}
