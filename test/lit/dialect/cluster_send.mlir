// RUN: mlirfuse-opt --fuse-verify --split-input-file --verify-diagnostics %s

#shared = #gpu.address_space<workgroup>
func.func @legal(%v: f32, %b: memref<64xf32, #shared>, %i: index, %bars: memref<2xi64, #shared>) {
  "fuse.cluster_send"(%v, %b, %i, %i, %bars, %i) {peers = 4 : i64}
      : (f32, memref<64xf32, #shared>, index, index, memref<2xi64, #shared>, index) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @global(%v: f32, %b: memref<64xf32>, %i: index, %bars: memref<2xi64, #shared>) {
  // expected-error @below {{'fuse.cluster_send' op buffer memref<64xf32> must be a memref of rank 1 in workgroup memory}}
  "fuse.cluster_send"(%v, %b, %i, %i, %bars, %i) {peers = 4 : i64}
      : (f32, memref<64xf32>, index, index, memref<2xi64, #shared>, index) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @narrow(%v: f16, %b: memref<64xf16, #shared>, %i: index, %bars: memref<2xi64, #shared>) {
  // expected-error @below {{'fuse.cluster_send' op a value of f16 does not have 4 or 8 bytes}}
  "fuse.cluster_send"(%v, %b, %i, %i, %bars, %i) {peers = 4 : i64}
      : (f16, memref<64xf16, #shared>, index, index, memref<2xi64, #shared>, index) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @types(%v: f32, %b: memref<64xi32, #shared>, %i: index, %bars: memref<2xi64, #shared>) {
  // expected-error @below {{'fuse.cluster_send' op a value of f32 for elements of memref<64xi32}}
  "fuse.cluster_send"(%v, %b, %i, %i, %bars, %i) {peers = 4 : i64}
      : (f32, memref<64xi32, #shared>, index, index, memref<2xi64, #shared>, index) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @barriers(%v: f32, %b: memref<64xf32, #shared>, %i: index, %bars: memref<2xi32, #shared>) {
  // expected-error @below {{'fuse.cluster_send' op barriers memref<2xi32}}
  "fuse.cluster_send"(%v, %b, %i, %i, %bars, %i) {peers = 4 : i64}
      : (f32, memref<64xf32, #shared>, index, index, memref<2xi32, #shared>, index) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @alone(%v: f32, %b: memref<64xf32, #shared>, %i: index, %bars: memref<2xi64, #shared>) {
  // expected-error @below {{'fuse.cluster_send' op peers = 0 : i64 must be an integer of at least 1}}
  "fuse.cluster_send"(%v, %b, %i, %i, %bars, %i) {peers = 0 : i64}
      : (f32, memref<64xf32, #shared>, index, index, memref<2xi64, #shared>, index) -> ()
  return
}
