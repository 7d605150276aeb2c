// RUN: mlirfuse-opt --fuse-verify --split-input-file --verify-diagnostics %s

func.func @legal(%sums: memref<1x64xf32>, %tile: vector<64xf32>, %x: f32, %i: index) {
  "fuse.accumulate"(%tile, %sums, %i, %i) : (vector<64xf32>, memref<1x64xf32>, index, index) -> ()
  "fuse.accumulate"(%x, %sums, %i, %i) {alignment = 4 : i64} : (f32, memref<1x64xf32>, index, index) -> ()
  return
}

// -----

func.func @half(%sums: memref<4xf16>, %x: vector<2xf16>, %i: index) {
  // expected-error @below {{'fuse.accumulate' op sums memref<4xf16> must be a memref of f32 in global memory}}
  "fuse.accumulate"(%x, %sums, %i) : (vector<2xf16>, memref<4xf16>, index) -> ()
  return
}

// -----

func.func @shared(%sums: memref<4xf32, #gpu.address_space<workgroup>>, %x: f32, %i: index) {
  // expected-error @below {{must be a memref of f32 in global memory}}
  "fuse.accumulate"(%x, %sums, %i) : (f32, memref<4xf32, #gpu.address_space<workgroup>>, index) -> ()
  return
}

// -----

func.func @rank(%sums: memref<4xf32>, %x: vector<2x2xf32>, %i: index) {
  // expected-error @below {{vector<2x2xf32> cannot be added to memref<4xf32>}}
  "fuse.accumulate"(%x, %sums, %i) : (vector<2x2xf32>, memref<4xf32>, index) -> ()
  return
}

// -----

func.func @wide(%sums: memref<4xf32>, %x: f64, %i: index) {
  // expected-error @below {{f64 cannot be added to memref<4xf32>}}
  "fuse.accumulate"(%x, %sums, %i) : (f64, memref<4xf32>, index) -> ()
  return
}

// -----

func.func @indices(%sums: memref<4x4xf32>, %x: f32, %i: index) {
  // expected-error @below {{sums memref<4x4xf32> need 2 indices, not 1}}
  "fuse.accumulate"(%x, %sums, %i) : (f32, memref<4x4xf32>, index) -> ()
  return
}
