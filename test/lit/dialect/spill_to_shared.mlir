// RUN: mlirfuse-opt --fuse-verify --split-input-file --verify-diagnostics %s

func.func @legal(%x: vector<1x8xf16>) -> vector<1x8xf16> {
  %0 = "fuse.spill_to_shared"(%x) {fragments = 2 : i64} : (vector<1x8xf16>) -> vector<1x8xf16>
  return %0 : vector<1x8xf16>
}

// -----

func.func @another_type(%x: vector<1x8xf16>) {
  // expected-error @below {{'fuse.spill_to_shared' op result type vector<1x8xf32> must be the source's, vector<1x8xf16>}}
  %0 = "fuse.spill_to_shared"(%x) {fragments = 2 : i64} : (vector<1x8xf16>) -> vector<1x8xf32>
  return
}

// -----

func.func @nothing_spilled(%x: vector<1x8xf16>) {
  // expected-error @below {{'fuse.spill_to_shared' op fragments must be at least 1}}
  %0 = "fuse.spill_to_shared"(%x) {fragments = 0 : i64} : (vector<1x8xf16>) -> vector<1x8xf16>
  return
}
