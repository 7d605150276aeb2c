// RUN: mlirfuse-opt --fuse-verify --split-input-file --verify-diagnostics %s

func.func @legal(%x: vector<8x8xf16>, %y: vector<8x8xf16>) -> (vector<8x8xf16>, vector<8x8xf16>) {
  %0:2 = "fuse.convert_layout"(%x, %y) : (vector<8x8xf16>, vector<8x8xf16>) -> (vector<8x8xf16>, vector<8x8xf16>)
  return %0#0, %0#1 : vector<8x8xf16>, vector<8x8xf16>
}

// -----

func.func @another_shape(%x: vector<4x6xf16>) -> vector<1x24xf16> {
  %0 = "fuse.convert_layout"(%x) : (vector<4x6xf16>) -> vector<1x24xf16>
  return %0 : vector<1x24xf16>
}

// -----

func.func @fewer_elements(%x: vector<4x6xf16>) {
  // expected-error @below {{'fuse.convert_layout' op vector<1x20xf16> must have the elements of vector<4x6xf16>}}
  %0 = "fuse.convert_layout"(%x) : (vector<4x6xf16>) -> vector<1x20xf16>
  return
}

// -----

func.func @another_rank(%x: vector<4x6xf16>) {
  // expected-error @below {{'fuse.convert_layout' op vector<24xf16> must have the rank of vector<4x6xf16>}}
  %0 = "fuse.convert_layout"(%x) : (vector<4x6xf16>) -> vector<24xf16>
  return
}

// -----

func.func @another_type(%x: vector<8x8xf16>) {
  // expected-error @below {{'fuse.convert_layout' op vector<8x8xf32> must have the elements of vector<8x8xf16>}}
  %0 = "fuse.convert_layout"(%x) : (vector<8x8xf16>) -> vector<8x8xf32>
  return
}

// -----

func.func @nothing() {
  // expected-error @below {{'fuse.convert_layout' op all operands must have one type, and so must as many results, of which there must be at least one}}
  "fuse.convert_layout"() : () -> ()
  return
}

// -----

func.func @no_tile(%x: f16) {
  // expected-error @below {{'fuse.convert_layout' op f16 must be a tile vector}}
  %0 = "fuse.convert_layout"(%x) : (f16) -> f16
  return
}
