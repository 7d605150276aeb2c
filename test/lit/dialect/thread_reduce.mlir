// RUN: mlirfuse-opt --fuse-verify --split-input-file --verify-diagnostics %s

func.func @legal(%x: vector<8x64xf32>, %sums: vector<8x8xf32>) -> vector<8x8xf32> {
  %0 = "fuse.thread_reduce"(%x, %sums) {dims = array<i64: 1>, kind = #vector.kind<add>, neighbours = array<i64: 4>} : (vector<8x64xf32>, vector<8x8xf32>) -> vector<8x8xf32>
  return %0 : vector<8x8xf32>
}

// -----

func.func @another_start(%x: vector<8x64xf32>, %sums: vector<8x4xf32>) {
  // expected-error @below {{'fuse.thread_reduce' op vector<8x4xf32> must be the type of the result, of the rank and the elements of vector<8x64xf32>}}
  %0 = "fuse.thread_reduce"(%x, %sums) {dims = array<i64: 1>, kind = #vector.kind<add>, neighbours = array<i64: 4>} : (vector<8x64xf32>, vector<8x4xf32>) -> vector<8x8xf32>
  return
}

// -----

func.func @no_number_for_a_dimension(%x: vector<8x64xf32>, %sums: vector<8x8xf32>) {
  // expected-error @below {{'fuse.thread_reduce' op neighbours [4] must be one number for each of the dimensions [0, 1] of vector<8x64xf32>}}
  %0 = "fuse.thread_reduce"(%x, %sums) {dims = array<i64: 0, 1>, kind = #vector.kind<add>, neighbours = array<i64: 4>} : (vector<8x64xf32>, vector<8x8xf32>) -> vector<8x8xf32>
  return
}

// -----

func.func @another_dimension(%x: vector<8x64xf32>, %sums: vector<4x8xf32>) {
  // expected-error @below {{'fuse.thread_reduce' op dimension 0 is none of [1], and has 8 elements in the source, 4 in the result}}
  %0 = "fuse.thread_reduce"(%x, %sums) {dims = array<i64: 1>, kind = #vector.kind<add>, neighbours = array<i64: 4>} : (vector<8x64xf32>, vector<4x8xf32>) -> vector<4x8xf32>
  return
}

// -----

func.func @uneven(%x: vector<8x64xf32>, %sums: vector<8x8xf32>) {
  // expected-error @below {{'fuse.thread_reduce' op 3 neighbours of 8 threads do not divide 64 elements in dimension 1}}
  %0 = "fuse.thread_reduce"(%x, %sums) {dims = array<i64: 1>, kind = #vector.kind<add>, neighbours = array<i64: 3>} : (vector<8x64xf32>, vector<8x8xf32>) -> vector<8x8xf32>
  return
}
