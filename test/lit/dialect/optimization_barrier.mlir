// RUN: mlirfuse-opt --fuse-verify --split-input-file --verify-diagnostics %s

func.func @legal(%x: vector<1x8xf16>, %after: vector<1x1xf32>) -> vector<1x8xf16> {
  %0 = "fuse.optimization_barrier"(%x, %after) : (vector<1x8xf16>, vector<1x1xf32>) -> vector<1x8xf16>
  return %0 : vector<1x8xf16>
}

// -----

func.func @another_type(%x: f16, %after: f32) {
  // expected-error @below {{'fuse.optimization_barrier' op result type f32 must be the source's, f16}}
  %0 = "fuse.optimization_barrier"(%x, %after) : (f16, f32) -> f32
  return
}
