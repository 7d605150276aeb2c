// RUN: mlirfuse-opt --fuse-verify --split-input-file --verify-diagnostics %s

func.func @legal(%x: memref<?x8x4xf16>, %i: index) {
  "fuse.prefetch_rows"(%x, %i) {rows = 2 : i64} : (memref<?x8x4xf16>, index) -> ()
  return
}

// -----

func.func @shared(%x: memref<4x8xf16, #gpu.address_space<workgroup>>, %i: index) {
  // expected-error @below {{'fuse.prefetch_rows' op buffer memref<4x8xf16, #gpu.address_space<workgroup>> must be a memref of device memory without gaps, static after the first dimension}}
  "fuse.prefetch_rows"(%x, %i) {rows = 2 : i64} : (memref<4x8xf16, #gpu.address_space<workgroup>>, index) -> ()
  return
}

// -----

func.func @gaps(%x: memref<4x8xf16, strided<[16, 1]>>, %i: index) {
  // expected-error @below {{without gaps}}
  "fuse.prefetch_rows"(%x, %i) {rows = 2 : i64} : (memref<4x8xf16, strided<[16, 1]>>, index) -> ()
  return
}

// -----

func.func @unknown(%x: memref<4x?xf16>, %i: index) {
  // expected-error @below {{static after the first dimension}}
  "fuse.prefetch_rows"(%x, %i) {rows = 2 : i64} : (memref<4x?xf16>, index) -> ()
  return
}

// -----

func.func @row(%x: memref<4x8xf16>, %i: i64) {
  // expected-error @below {{'fuse.prefetch_rows' op row must be an index, not i64}}
  "fuse.prefetch_rows"(%x, %i) {rows = 2 : i64} : (memref<4x8xf16>, i64) -> ()
  return
}

// -----

func.func @none(%x: memref<4x8xf16>, %i: index) {
  // expected-error @below {{'fuse.prefetch_rows' op rows 0 : i64 must be a positive integer}}
  "fuse.prefetch_rows"(%x, %i) {rows = 0 : i64} : (memref<4x8xf16>, index) -> ()
  return
}
