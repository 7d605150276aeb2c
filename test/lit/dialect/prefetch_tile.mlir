// RUN: mlirfuse-opt --fuse-verify --split-input-file --verify-diagnostics %s

func.func @whole(%r: memref<3x?x512xf32, strided<[?, 512, 1]>>, %i: index) {
  "fuse.prefetch_tile"(%r, %i, %i, %i) {dims = array<i64: 1, 2>, tile = array<i64: 128, 64>}
      : (memref<3x?x512xf32, strided<[?, 512, 1]>>, index, index, index) -> ()
  return
}

// -----

func.func @too_few_indices(%r: memref<?x512xf32>, %i: index) {
  // expected-error @below {{'fuse.prefetch_tile' op 1 indices for memref<?x512xf32>}}
  "fuse.prefetch_tile"(%r, %i) {dims = array<i64: 0, 1>, tile = array<i64: 128, 64>} : (memref<?x512xf32>, index) -> ()
  return
}

// -----

func.func @strided_columns(%r: memref<?x512xf32>, %i: index) {
  // expected-error @below {{'fuse.prefetch_tile' op the stride of dimension 0 of memref<?x512xf32> must be 1}}
  "fuse.prefetch_tile"(%r, %i, %i) {dims = array<i64: 1, 0>, tile = array<i64: 128, 64>} : (memref<?x512xf32>, index, index) -> ()
  return
}

// -----

func.func @no_rows(%r: memref<?x512xf32>, %i: index) {
  // expected-error @below {{'fuse.prefetch_tile' op tile [0, 64] must be a number of rows and one of columns}}
  "fuse.prefetch_tile"(%r, %i, %i) {dims = array<i64: 0, 1>, tile = array<i64: 0, 64>} : (memref<?x512xf32>, index, index) -> ()
  return
}
