// RUN: mlirfuse-opt --fuse-verify --split-input-file --verify-diagnostics %s

func.func @legal(%buf: memref<4x8x16xf32>, %tile: vector<8x16xf32>, %i: index) {
  "fuse.flagged_store"(%tile, %buf, %i, %i, %i) : (vector<8x16xf32>, memref<4x8x16xf32>, index, index, index) -> ()
  %0:2 = "fuse.flagged_load"(%buf, %i, %i, %i) {partials = 2 : i64} : (memref<4x8x16xf32>, index, index, index) -> (vector<4x16xf32>, vector<4x16xf32>)
  %1:2 = "fuse.flagged_load"(%buf, %i, %i, %i, %i, %i, %i) {partials = 1 : i64} : (memref<4x8x16xf32>, index, index, index, index, index, index) -> (f32, f32)
  return
}

// -----

func.func @half(%buf: memref<4xf16>, %x: vector<2xf16>, %i: index) {
  // expected-error @below {{'fuse.flagged_store' op flagged buffer memref<4xf16> must be a memref of f32 in global memory}}
  "fuse.flagged_store"(%x, %buf, %i) : (vector<2xf16>, memref<4xf16>, index) -> ()
  return
}

// -----

func.func @shared(%buf: memref<4xf32, #gpu.address_space<workgroup>>, %i: index) -> f32 {
  // expected-error @below {{must be a memref of f32 in global memory}}
  %0 = "fuse.flagged_load"(%buf, %i) {partials = 1 : i64} : (memref<4xf32, #gpu.address_space<workgroup>>, index) -> f32
  return %0 : f32
}

// -----

func.func @rank(%buf: memref<4xf32>, %x: vector<2x2xf32>, %i: index) {
  // expected-error @below {{vector<2x2xf32> does not fit flagged buffer memref<4xf32>}}
  "fuse.flagged_store"(%x, %buf, %i) : (vector<2x2xf32>, memref<4xf32>, index) -> ()
  return
}

// -----

func.func @indices(%buf: memref<4x4xf32>, %x: f32, %i: index) {
  // expected-error @below {{flagged buffer memref<4x4xf32> needs 2 indices, not 1}}
  "fuse.flagged_store"(%x, %buf, %i) : (f32, memref<4x4xf32>, index) -> ()
  return
}

// -----

func.func @results(%buf: memref<4x4xf32>, %i: index) -> f32 {
  // expected-error @below {{1 results, not those of 4 indices into memref<4x4xf32> and 2 partials}}
  %0 = "fuse.flagged_load"(%buf, %i, %i, %i, %i) {partials = 2 : i64} : (memref<4x4xf32>, index, index, index, index) -> f32
  return %0 : f32
}
