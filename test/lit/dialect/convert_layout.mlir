// RUN: mlirfuse-opt --fuse-verify --split-input-file --verify-diagnostics %s

func.func @legal(%x: vector<8x8xf16>, %y: vector<8x8xf16>) -> (vector<8x8xf16>, vector<8x8xf16>) {
  %0:2 = "fuse.convert_layout"(%x, %y) : (vector<8x8xf16>, vector<8x8xf16>) -> (vector<8x8xf16>, vector<8x8xf16>)
  return %0#0, %0#1 : vector<8x8xf16>, vector<8x8xf16>
}

// -----

func.func @another_type(%x: vector<8x8xf16>) {
  // expected-error @below {{'fuse.convert_layout' op results must have the types of the operands, of which there must be at least one}}
  %0 = "fuse.convert_layout"(%x) : (vector<8x8xf16>) -> vector<8x8xf32>
  return
}

// -----

func.func @nothing() {
  // expected-error @below {{'fuse.convert_layout' op results must have the types of the operands, of which there must be at least one}}
  "fuse.convert_layout"() : () -> ()
  return
}

// -----

func.func @no_tile(%x: f16) {
  // expected-error @below {{'fuse.convert_layout' op f16 must be a tile vector}}
  %0 = "fuse.convert_layout"(%x) : (f16) -> f16
  return
}
