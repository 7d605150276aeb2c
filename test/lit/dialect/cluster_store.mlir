// RUN: mlirfuse-opt --fuse-verify --split-input-file --verify-diagnostics %s

#shared = #gpu.address_space<workgroup>
func.func @legal(%v: f32, %b: memref<64xf32, #shared>, %i: index) {
  "fuse.cluster_store"(%v, %b, %i, %i) : (f32, memref<64xf32, #shared>, index, index) -> ()
  "fuse.cluster_barrier"() : () -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @rank(%v: f32, %b: memref<8x8xf32, #shared>, %i: index) {
  // expected-error @below {{'fuse.cluster_store' op buffer memref<8x8xf32, #gpu.address_space<workgroup>> must be a memref of rank 1}}
  "fuse.cluster_store"(%v, %b, %i, %i) : (f32, memref<8x8xf32, #shared>, index, index) -> ()
  return
}
