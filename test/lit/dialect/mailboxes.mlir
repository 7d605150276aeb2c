// RUN: mlirfuse-opt --fuse-verify --split-input-file --verify-diagnostics %s

func.func @legal(%mail: memref<4x8x16xf32>, %tile: vector<8x16xf32>, %i: index) {
  "fuse.post"(%tile, %mail, %i, %i, %i) : (vector<8x16xf32>, memref<4x8x16xf32>, index, index, index) -> ()
  %0:2 = "fuse.collect"(%mail, %i, %i, %i) {parts = 2 : i64} : (memref<4x8x16xf32>, index, index, index) -> (vector<4x16xf32>, vector<4x16xf32>)
  %1:2 = "fuse.collect"(%mail, %i, %i, %i, %i, %i, %i) {parts = 1 : i64} : (memref<4x8x16xf32>, index, index, index, index, index, index) -> (f32, f32)
  return
}

// -----

func.func @half(%mail: memref<4xf16>, %x: vector<2xf16>, %i: index) {
  // expected-error @below {{'fuse.post' op mailbox memref<4xf16> must be a memref of f32 in global memory}}
  "fuse.post"(%x, %mail, %i) : (vector<2xf16>, memref<4xf16>, index) -> ()
  return
}

// -----

func.func @shared(%mail: memref<4xf32, #gpu.address_space<workgroup>>, %i: index) -> f32 {
  // expected-error @below {{must be a memref of f32 in global memory}}
  %0 = "fuse.collect"(%mail, %i) {parts = 1 : i64} : (memref<4xf32, #gpu.address_space<workgroup>>, index) -> f32
  return %0 : f32
}

// -----

func.func @rank(%mail: memref<4xf32>, %x: vector<2x2xf32>, %i: index) {
  // expected-error @below {{vector<2x2xf32> does not fit mailbox memref<4xf32>}}
  "fuse.post"(%x, %mail, %i) : (vector<2x2xf32>, memref<4xf32>, index) -> ()
  return
}

// -----

func.func @indices(%mail: memref<4x4xf32>, %x: f32, %i: index) {
  // expected-error @below {{mailbox memref<4x4xf32> needs 2 indices, not 1}}
  "fuse.post"(%x, %mail, %i) : (f32, memref<4x4xf32>, index) -> ()
  return
}

// -----

func.func @results(%mail: memref<4x4xf32>, %i: index) -> f32 {
  // expected-error @below {{4 indices into memref<4x4xf32> and 2 parts do not make 1 results}}
  %0 = "fuse.collect"(%mail, %i, %i, %i, %i) {parts = 2 : i64} : (memref<4x4xf32>, index, index, index, index) -> f32
  return %0 : f32
}
